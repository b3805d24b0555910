#include "runtime/base/OutputFile.h"

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace strata {
namespace {

Status ioError(std::string_view what, const std::string &path) {
  return makeError(StatusCode::Internal, "cannot {} '{}': {}", what, path, std::strerror(errno));
}

/// `path`, or what it leads to as a symbolic link, whether that is there or not.
std::string target(std::filesystem::path path) {
  std::error_code error;
  for (int hops = 0; hops < 40 && std::filesystem::is_symlink(path, error); ++hops)
    path = path.parent_path() / std::filesystem::read_symlink(path, error);
  return path.string();
}

/// Calls `take` with names that no file in `folder` has, until one is not in use.
template <class Take> bool takeName(const std::string &folder, std::string &name, Take take) {
  for (uint32_t i = 0; i < 1000; ++i) {
    name = fmt::format("{}/.strata-{}-{}.part", folder, ::getpid(), i);
    if (take(name.c_str()))
      return true;
    if (errno != EEXIST)
      break;
  }
  return false;
}

} // namespace

Status checkOutputPath(const std::string &path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode))
    return Status::ok(); // what cannot be looked at is reported by whoever writes it
  return makeError(StatusCode::InvalidArgument,
                   "output '{}' is {}, which the finished file would replace; name a file", path,
                   S_ISDIR(info.st_mode) ? "a folder" : "a device or a pipe");
}

std::string folderOf(const std::string &path) {
  std::filesystem::path folder = std::filesystem::path(target(path)).parent_path();
  return folder.empty() ? "." : folder.string();
}

Result<std::unique_ptr<OutputFile>> OutputFile::createIn(const std::string &folder) {
  std::string name;
  int descriptor = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
  if (descriptor < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL) &&
      !takeName(
          folder, name,
          [&](const char *path) {
            descriptor = ::open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
            return descriptor >= 0;
          }))
    name.clear();
  if (descriptor < 0)
    return makeError(errno == ENOENT ? StatusCode::NotFound : StatusCode::Internal,
                     "cannot create a file in '{}': {}", folder, std::strerror(errno));
  return std::unique_ptr<OutputFile>(new OutputFile(folder, descriptor, name));
}

Result<std::unique_ptr<OutputFile>> OutputFile::create(const std::string &path) {
  STRATA_RETURN_IF_ERROR(checkOutputPath(path));
  return createIn(folderOf(path));
}

OutputFile::~OutputFile() {
  ::close(descriptor_);
  if (!temporary_.empty())
    ::unlink(temporary_.c_str());
}

Status OutputFile::writeAt(uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    ssize_t written = ::pwrite(descriptor_, bytes.data(), bytes.size(), off_t(offset));
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return ioError("write to", folder_);
    bytes = bytes.subspan(size_t(written));
    offset += uint64_t(written);
  }
  return Status::ok();
}

Status OutputFile::append(std::span<const std::byte> bytes) {
  STRATA_RETURN_IF_ERROR(writeAt(end_, bytes));
  end_ += bytes.size();
  return Status::ok();
}

Status OutputFile::publish(const std::string &path) {
  if (::fsync(descriptor_) != 0)
    return ioError("sync", path);
  // A file without a name can take one, but not another's: it gets a name of its own first.
  if (temporary_.empty()) {
    std::string self = fmt::format("/proc/self/fd/{}", descriptor_);
    if (!takeName(folder_, temporary_, [&](const char *name) {
          return ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0;
        })) {
      temporary_.clear();
      return ioError("create", path);
    }
  }
  if (::rename(temporary_.c_str(), target(path).c_str()) != 0)
    return ioError("rename to", path);
  temporary_.clear();
  // The name survives a power cut; not every file system can sync a folder.
  int folder = ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    (void)::fsync(folder);
    ::close(folder);
  }
  return Status::ok();
}

} // namespace strata
