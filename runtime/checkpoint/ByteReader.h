// A cursor over a file's bytes that cannot leave them.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include "runtime/base/Status.h"

namespace strata {

/// Little-endian, unaligned. Every read names what it reads, for the error that says where the file
/// ends. Errors: InvalidData (more bytes asked for than remain).
class ByteReader {
public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  uint64_t position() const { return position_; }
  uint64_t remaining() const { return bytes_.size() - position_; }

  template <class T>
    requires std::is_arithmetic_v<T>
  Result<T> read(std::string_view what) {
    if (remaining() < sizeof(T))
      return shortOf(sizeof(T), what);
    T value;
    std::memcpy(&value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return value;
  }

  Result<std::span<const std::byte>> take(uint64_t count, std::string_view what) {
    if (count > remaining())
      return shortOf(count, what);
    std::span<const std::byte> taken = bytes_.subspan(position_, count);
    position_ += count;
    return taken;
  }

  /// A u64 length and that many bytes.
  Result<std::string_view> readString(std::string_view what) {
    STRATA_ASSIGN_OR_RETURN(uint64_t length, read<uint64_t>(what));
    STRATA_ASSIGN_OR_RETURN(std::span<const std::byte> text, take(length, what));
    return std::string_view(reinterpret_cast<const char *>(text.data()), text.size());
  }

private:
  Status shortOf(uint64_t needed, std::string_view what) const {
    return makeError(StatusCode::InvalidData,
                     "{} needs {} bytes at byte {} but the file has {} bytes; the download is "
                     "incomplete or the file is damaged",
                     what, needed, position_, bytes_.size());
  }

  std::span<const std::byte> bytes_;
  uint64_t position_ = 0;
};

} // namespace strata
