#include "tools/run/TensorFile.h"

#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "runtime/base/CheckedMath.h"
#include "runtime/base/OutputPath.h"

namespace strata::run {

static_assert(std::endian::native == std::endian::little, "safetensors is little-endian");

Result<std::unique_ptr<TensorFile>> TensorFile::create(const std::string &path,
                                                       const std::string &name, uint64_t rows,
                                                       uint64_t columns) {
  auto values = checkedMul(rows, columns);
  auto bytes = values ? checkedMul<uint64_t>(*values, sizeof(float)) : std::nullopt;
  if (!bytes)
    return makeError(StatusCode::InvalidArgument, "a tensor of {} x {} values has no size", rows,
                     columns);
  STRATA_RETURN_IF_ERROR(checkOutputPath(path));
  std::unique_ptr<TensorFile> file(new TensorFile);
  file->path_ = path;
  file->temporary_ = path + ".XXXXXX";
  file->missing_ = *values;
  file->descriptor_ = mkstemp(file->temporary_.data());
  if (file->descriptor_ < 0) {
    StatusCode code = errno == ENOENT ? StatusCode::NotFound : StatusCode::Internal;
    file->temporary_.clear();
    return makeError(code, "cannot write '{}': {}", path, std::strerror(errno));
  }

  nlohmann::ordered_json header = {
      {name, {{"dtype", "F32"}, {"shape", {rows, columns}}, {"data_offsets", {0, *bytes}}}}};
  std::string text = header.dump();
  text.append(alignUp(text.size(), 8) - text.size(), ' ');
  uint64_t length = text.size();
  STRATA_RETURN_IF_ERROR(file->writeBytes(&length, sizeof(length)));
  STRATA_RETURN_IF_ERROR(file->writeBytes(text.data(), text.size()));
  return file;
}

TensorFile::~TensorFile() {
  if (descriptor_ >= 0)
    close(descriptor_);
  if (!temporary_.empty())
    unlink(temporary_.c_str());
}

Status TensorFile::writeBytes(const void *bytes, size_t count) {
  const char *next = static_cast<const char *>(bytes);
  while (count > 0) {
    ssize_t written = ::write(descriptor_, next, count);
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      return makeError(StatusCode::Internal, "cannot write '{}': {}", path_, std::strerror(errno));
    next += written;
    count -= static_cast<size_t>(written);
  }
  return Status::ok();
}

Status TensorFile::write(std::span<const float> values) {
  if (values.size() > missing_)
    return makeError(StatusCode::Internal, "'{}' takes {} more values, not {}", path_, missing_,
                     values.size());
  missing_ -= values.size();
  return writeBytes(values.data(), values.size_bytes());
}

Status TensorFile::finish() {
  if (missing_ > 0)
    return makeError(StatusCode::Internal, "'{}' lacks {} values", path_, missing_);
  mode_t mask = umask(0);
  umask(mask);
  if (fchmod(descriptor_, 0666 & ~mask) != 0 || fsync(descriptor_) != 0 ||
      std::rename(temporary_.c_str(), path_.c_str()) != 0)
    return makeError(StatusCode::Internal, "cannot write '{}': {}", path_, std::strerror(errno));
  temporary_.clear();
  return Status::ok();
}

} // namespace strata::run
