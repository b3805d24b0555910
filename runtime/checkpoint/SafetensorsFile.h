// The safetensors container: a u64 header length, a JSON header, the tensors' bytes without holes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/MappedFile.h"
#include "runtime/base/Status.h"

namespace strata {

/// Bits of one element of a safetensors dtype (`F32`, `I64`, `F4`, ...); nothing where unknown.
std::optional<uint32_t> safetensorsDtypeBits(std::string_view dtype);

/// `bytes` point into the file's mapping and may have any alignment.
struct SafetensorsEntry {
  std::string name;
  std::string dtype;
  std::vector<uint64_t> shape; ///< Row-major, outermost first; empty for a scalar.
  std::span<const std::byte> bytes;
};

/// Immutable; views live as long as `mapping()`.
class SafetensorsFile {
public:
  /// Every check of the format is made here: header length, strict JSON, exact integers, sizes that
  /// equal shape times dtype, and ranges that cover the data section exactly once.
  /// Errors: NotFound, InvalidData.
  static Result<SafetensorsFile> open(const std::string &path);

  /// In the order of their bytes.
  std::span<const SafetensorsEntry> entries() const { return entries_; }
  const SafetensorsEntry *find(std::string_view name) const; ///< nullptr where absent; linear.

  const std::shared_ptr<const MappedFile> &mapping() const { return mapping_; }

private:
  explicit SafetensorsFile(std::shared_ptr<const MappedFile> mapping)
      : mapping_(std::move(mapping)) {}
  Status parse();

  std::shared_ptr<const MappedFile> mapping_;
  std::vector<SafetensorsEntry> entries_;
};

} // namespace strata
