// The GGUF container, versions 2 and 3, little-endian: header, key/value pairs and tensor records.
//
//   "GGUF", u32 version, u64 tensors, u64 pairs
//   pairs x   { string key; u32 type; value }
//   tensors x { string name; u32 dimensions; u64 extent[]; u32 type; u64 offset }
//   padding to `general.alignment` from the file's start, then the tensors' bytes
//
// A string is a u64 length and bytes. Nothing is copied: views point into the mapping.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/base/MappedFile.h"
#include "runtime/base/Status.h"
#include "runtime/checkpoint/WeightTypeTable.h"

namespace strata {

enum class GgufType : uint32_t {
  U8,
  I8,
  U16,
  I16,
  U32,
  I32,
  F32,
  Bool,
  String,
  Array,
  U64,
  I64,
  F64,
};

std::string_view ggufTypeName(GgufType type);

/// A value as it stands in the file, already checked to lie inside it.
struct GgufValue {
  GgufType type;        ///< Of the elements, where the value is an array.
  bool isArray = false; ///< Arrays of arrays do not exist.
  uint64_t count = 1;   ///< Elements; 1 for a scalar.
  std::span<const std::byte> bytes;

  bool isInteger() const;

  /// The scalars of an array of `type` (not String) or the scalar itself, by index.
  nlohmann::ordered_json element(uint64_t index) const;
  /// Every string of a String value, in order; views into the mapping.
  std::vector<std::string_view> strings() const;
};

struct GgufPair {
  std::string_view key;
  GgufValue value;
};

struct GgufTensor {
  std::string_view name;
  const WeightType *type;
  std::vector<uint64_t> shape; ///< Row-major, outermost first: the reverse of the file's order.
  std::span<const std::byte> bytes;
};

class GgufFile {
public:
  enum class Parts { Metadata, All };

  /// With `Parts::Metadata` the tensor records are not read, so that a vocabulary can be taken from
  /// a file whose tensors have types that Strata does not know. Errors: NotFound, InvalidData,
  /// Unimplemented (version 1, big-endian, a tensor type, by name).
  static Result<GgufFile> open(const std::string &path, Parts parts);

  std::span<const GgufPair> pairs() const { return pairs_; }
  const GgufValue *find(std::string_view key) const; ///< nullptr where absent.
  std::span<const GgufTensor> tensors() const { return tensors_; }

  /// nothing where the key is absent. Errors: InvalidData (another type, negative, too large).
  Result<std::optional<uint64_t>> unsignedInteger(std::string_view key, uint64_t limit) const;
  Result<std::optional<bool>> boolean(std::string_view key) const;
  Result<std::optional<std::string_view>> string(std::string_view key) const;

  const std::shared_ptr<const MappedFile> &mapping() const { return mapping_; }

private:
  explicit GgufFile(std::shared_ptr<const MappedFile> mapping) : mapping_(std::move(mapping)) {}
  Status parse(Parts parts);
  Status parseTensors(class ByteReader &reader, uint64_t count);

  std::shared_ptr<const MappedFile> mapping_;
  std::vector<GgufPair> pairs_;
  std::unordered_map<std::string_view, size_t> pairIndex_;
  std::vector<GgufTensor> tensors_;
};

} // namespace strata
