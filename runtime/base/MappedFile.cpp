#include "runtime/base/MappedFile.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/CheckedMath.h"

namespace strata {

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string &path) {
  // Without O_NONBLOCK a pipe would wait here for somebody to write to it.
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0)
    return makeError(errno == ENOENT ? StatusCode::NotFound : StatusCode::InvalidData,
                     "cannot open '{}': {}", path, std::strerror(errno));
  struct stat info;
  if (::fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(descriptor);
    return makeError(StatusCode::InvalidData, "'{}' is not a regular file{}", path,
                     S_ISDIR(info.st_mode) ? " but a folder" : "");
  }
  if (info.st_size == 0) {
    ::close(descriptor);
    return makeError(StatusCode::InvalidData, "'{}' is empty", path);
  }
  size_t size = static_cast<size_t>(info.st_size);
  void *address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  int mapError = errno;
  ::close(descriptor);
  if (address == MAP_FAILED)
    return makeError(StatusCode::ResourceExhausted, "cannot map the {} bytes of '{}': {}", size,
                     path, std::strerror(mapError));
  return std::shared_ptr<const MappedFile>(
      new MappedFile(path, static_cast<const std::byte *>(address), size));
}

void releasePages(std::span<const std::byte> bytes) {
  uint64_t page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  uint64_t begin = alignUp(reinterpret_cast<uint64_t>(bytes.data()), page);
  uint64_t end = reinterpret_cast<uint64_t>(bytes.data() + bytes.size()) & ~(page - 1);
  if (begin < end)
    ::madvise(reinterpret_cast<void *>(begin), end - begin, MADV_DONTNEED);
}

MappedFile::~MappedFile() { ::munmap(const_cast<std::byte *>(data_), size_); }

} // namespace strata
