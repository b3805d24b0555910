// The weight types of WeightTypes.h as values, for code that meets a type by name or by a file's
// id.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace strata {

/// One row of the table; instances are static and compared by address.
struct WeightType {
  std::string_view name; ///< `f32`, `q4_1`, ...: the spelling in IR, plan and flags.
  uint32_t blockElements;
  uint32_t blockBytes;
  uint32_t ggufId;
  /// Writes blockElements floats from blockBytes bytes of any alignment.
  void (*dequantise)(const uint8_t *block, float *out);

  bool isPlain() const { return blockElements == 1; }
  /// Bytes of `elements` values, or nothing where they are no whole number of blocks or overflow.
  std::optional<uint64_t> bytesFor(uint64_t elements) const;
};

std::span<const WeightType> weightTypes();
const WeightType *findWeightType(std::string_view name); ///< nullptr where unknown.
const WeightType *findWeightTypeByGgufId(uint32_t id);   ///< nullptr where unknown.

/// Dequantises `elements` values (a whole number of blocks) from `source` into `out`.
void dequantiseRow(const WeightType &type, const uint8_t *source, uint64_t elements, float *out);

} // namespace strata
