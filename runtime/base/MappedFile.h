// A read-only memory mapping of a whole file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "runtime/base/Status.h"

namespace strata {

/// Owns the mapping; views into `bytes()` live as long as it does.
class MappedFile {
public:
  /// Errors: NotFound (no such file), InvalidData (not a regular file, not readable,
  /// or empty), ResourceExhausted (mmap). The file must not become shorter while it is
  /// mapped: reading what is gone ends the process.
  static Result<std::shared_ptr<const MappedFile>> open(const std::string &path);

  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string &path() const { return path_; }

private:
  MappedFile(std::string path, const std::byte *data, size_t size)
      : path_(std::move(path)), data_(data), size_(size) {}

  std::string path_;
  const std::byte *data_;
  size_t size_;
};

/// Lets the system take back the resident pages that lie wholly in `bytes`, a part of a mapping;
/// they are read from the file again when they are used.
void releasePages(std::span<const std::byte> bytes);

} // namespace strata
