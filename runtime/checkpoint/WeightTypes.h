// The table of weight types: how many elements a block holds, how many bytes it takes and how it
// becomes F32. The dialect's types, the packer and the plain kernels are all generic over this
// list; a type added to `WeightTypeList` compiles and runs with no other change.
//
// Block layouts are those of GGUF (formulas: one struct each). Blocks have no alignment, so fields
// are loaded with memcpy. A scale times a small integer is exact in F32, so only the last addition
// rounds and the order of evaluation does not change a bit.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>

// Kernels are compiled once per instruction set; each compilation gets its own copy of these inline
// functions, so that the linker never serves one set's code to another.
#ifndef STRATA_ISA_NAMESPACE
#define STRATA_ISA_NAMESPACE portable
#endif

namespace strata {
inline namespace STRATA_ISA_NAMESPACE {

inline uint16_t loadU16(const uint8_t *bytes) {
  uint16_t value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

/// `ggufId` of a type that GGUF files do not hold.
inline constexpr uint32_t noGgufId = 0xFFFFFFFF;

/// IEEE binary16 to binary32, subnormals kept.
inline float halfToFloat(uint16_t half) {
  uint32_t sign = uint32_t(half & 0x8000) << 16;
  uint32_t magnitude = half & 0x7FFF;
  // Rebias by a multiplication, which also normalises subnormals; infinities and NaN are set apart.
  float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  uint32_t bits = magnitude >= 0x7C00 ? 0x7F800000u | (magnitude & 0x3FF) << 13
                                      : std::bit_cast<uint32_t>(scaled);
  return std::bit_cast<float>(sign | bits);
}

/// binary32 to IEEE binary16, round to nearest even.
inline uint16_t floatToHalf(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint16_t sign = uint16_t(bits >> 16 & 0x8000);
  bits &= 0x7FFFFFFF;
  if (bits > 0x7F800000)
    return sign | 0x7E00;
  if (bits >= 0x477FF000) // 65520 and above round to infinity
    return sign | 0x7C00;
  if (bits < 0x38800000) // below 2^-14 the result is subnormal: let an addition do the rounding
    return sign | uint16_t(std::bit_cast<uint32_t>(std::bit_cast<float>(bits) + 0.5f) - 0x3F000000);
  return sign | uint16_t((bits + 0xC8000FFF + (bits >> 13 & 1)) >> 13);
}

inline float bfloatToFloat(uint16_t value) { return std::bit_cast<float>(uint32_t(value) << 16); }

/// binary32 to bfloat16, round to nearest even; NaN stays NaN.
inline uint16_t floatToBfloat(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000)
    return uint16_t(bits >> 16 | 64);
  return uint16_t((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

struct F32 {
  static constexpr const char *name = "f32";
  static constexpr uint32_t blockElements = 1, blockBytes = 4, ggufId = 0;
  static void dequantise(const uint8_t *block, float *out) { std::memcpy(out, block, 4); }
};

struct F16 {
  static constexpr const char *name = "f16";
  static constexpr uint32_t blockElements = 1, blockBytes = 2, ggufId = 1;
  static void dequantise(const uint8_t *block, float *out) { *out = halfToFloat(loadU16(block)); }
};

struct BF16 {
  static constexpr const char *name = "bf16";
  static constexpr uint32_t blockElements = 1, blockBytes = 2, ggufId = 30;
  static void dequantise(const uint8_t *block, float *out) { *out = bfloatToFloat(loadU16(block)); }
};

/// d half @0, 16 nibble bytes @2; low nibbles hold the first half. y = d * (n - 8).
struct Q4_0 {
  static constexpr const char *name = "q4_0";
  static constexpr uint32_t blockElements = 32, blockBytes = 18, ggufId = 2;
  static void dequantise(const uint8_t *block, float *out) {
    float d = halfToFloat(loadU16(block));
    for (int i = 0; i < 16; ++i) {
      out[i] = d * float(int(block[2 + i] & 15) - 8);
      out[i + 16] = d * float(int(block[2 + i] >> 4) - 8);
    }
  }
};

/// d half @0, m half @2, nibbles @4. y = d * n + m.
struct Q4_1 {
  static constexpr const char *name = "q4_1";
  static constexpr uint32_t blockElements = 32, blockBytes = 20, ggufId = 3;
  static void dequantise(const uint8_t *block, float *out) {
    float d = halfToFloat(loadU16(block)), m = halfToFloat(loadU16(block + 2));
    for (int i = 0; i < 16; ++i) {
      out[i] = d * float(block[4 + i] & 15) + m;
      out[i + 16] = d * float(block[4 + i] >> 4) + m;
    }
  }
};

/// d half @0, 32 signed bytes @2. y = d * q.
struct Q8_0 {
  static constexpr const char *name = "q8_0";
  static constexpr uint32_t blockElements = 32, blockBytes = 34, ggufId = 8;
  static void dequantise(const uint8_t *block, float *out) {
    float d = halfToFloat(loadU16(block));
    for (int i = 0; i < 32; ++i)
      out[i] = d * float(static_cast<int8_t>(block[2 + i]));
  }
};

/// Every weight type that Strata reads, packs and multiplies by. Append to widen.
using WeightTypeList = std::tuple<F32, F16, BF16, Q4_0, Q4_1, Q8_0>;

} // namespace STRATA_ISA_NAMESPACE
} // namespace strata
