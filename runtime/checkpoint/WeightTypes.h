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

inline uint32_t loadU32(const uint8_t *bytes) {
  uint32_t value;
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

/// d half @0, u32 of fifth bits @2 (bit i belongs to element i), nibbles @6. y = d * (n - 16).
struct Q5_0 {
  static constexpr const char *name = "q5_0";
  static constexpr uint32_t blockElements = 32, blockBytes = 22, ggufId = 6;
  static void dequantise(const uint8_t *block, float *out) {
    float d = halfToFloat(loadU16(block));
    uint32_t high = loadU32(block + 2);
    for (int i = 0; i < 16; ++i) {
      out[i] = d * float(int((block[6 + i] & 15) | (high >> i & 1) << 4) - 16);
      out[i + 16] = d * float(int(block[6 + i] >> 4 | (high >> (i + 16) & 1) << 4) - 16);
    }
  }
};

/// d half @0, m half @2, fifth bits @4, nibbles @8. y = d * n + m.
struct Q5_1 {
  static constexpr const char *name = "q5_1";
  static constexpr uint32_t blockElements = 32, blockBytes = 24, ggufId = 7;
  static void dequantise(const uint8_t *block, float *out) {
    float d = halfToFloat(loadU16(block)), m = halfToFloat(loadU16(block + 2));
    uint32_t high = loadU32(block + 4);
    for (int i = 0; i < 16; ++i) {
      out[i] = d * float((block[8 + i] & 15) | (high >> i & 1) << 4) + m;
      out[i + 16] = d * float(block[8 + i] >> 4 | (high >> (i + 16) & 1) << 4) + m;
    }
  }
};

/// scales @0 (low nibble scale, high nibble minimum, of 16 elements each), 2-bit q @16, d half @80,
/// dmin half @82. y = d * scale * q - dmin * minimum.
struct Q2_K {
  static constexpr const char *name = "q2_k";
  static constexpr uint32_t blockElements = 256, blockBytes = 84, ggufId = 10;
  static void dequantise(const uint8_t *block, float *out) {
    float d = halfToFloat(loadU16(block + 80)), dmin = halfToFloat(loadU16(block + 82));
    for (int s = 0; s < 16; ++s) {
      float scale = d * float(block[s] & 15), minimum = dmin * float(block[s] >> 4);
      const uint8_t *q = block + 16 + 32 * (s / 8) + 16 * (s % 2);
      int shift = 2 * (s % 8 / 2);
      for (int i = 0; i < 16; ++i)
        out[16 * s + i] = scale * float(q[i] >> shift & 3) - minimum;
    }
  }
};

/// Third bits @0 (bit s / 2 of byte i % 32; clear subtracts 4), 2-bit q @32, 6-bit scales @96 (low
/// nibbles in 8 bytes, high pairs in 4), d half @108. y = d * (scale - 32) * q.
struct Q3_K {
  static constexpr const char *name = "q3_k";
  static constexpr uint32_t blockElements = 256, blockBytes = 110, ggufId = 11;
  static void dequantise(const uint8_t *block, float *out) {
    float d = halfToFloat(loadU16(block + 108));
    for (int s = 0; s < 16; ++s) {
      int low = s < 8 ? block[96 + s] & 15 : block[96 + s - 8] >> 4;
      int high = block[104 + s % 4] >> 2 * (s / 4) & 3;
      float scale = d * float((low | high << 4) - 32);
      const uint8_t *q = block + 32 + 32 * (s / 8) + 16 * (s % 2);
      const uint8_t *mask = block + 16 * (s % 2);
      int shift = 2 * (s % 8 / 2), bit = s / 2;
      for (int i = 0; i < 16; ++i)
        out[16 * s + i] = scale * float((q[i] >> shift & 3) - (mask[i] >> bit & 1 ? 0 : 4));
    }
  }
};

/// The eight 6-bit pairs of scale and minimum in the 12 bytes of Q4_K and Q5_K: the first four in
/// the low six bits of bytes 0..3 and 4..7, whose top bits go with the nibbles of bytes 8..11.
struct ScaleAndMinimum {
  int scale, minimum;
};
inline ScaleAndMinimum scaleAndMinimum(const uint8_t *packed, int s) {
  if (s < 4)
    return {packed[s] & 63, packed[s + 4] & 63};
  return {(packed[s + 4] & 15) | (packed[s - 4] >> 6) << 4, packed[s + 4] >> 4 | (packed[s] >> 6)
                                                                                     << 4};
}

/// d half @0, dmin half @2, scales and minimums @4, nibbles @16: of 64 elements each, the low ones
/// first. y = d * scale * n - dmin * minimum.
struct Q4_K {
  static constexpr const char *name = "q4_k";
  static constexpr uint32_t blockElements = 256, blockBytes = 144, ggufId = 12;
  static void dequantise(const uint8_t *block, float *out) {
    float d = halfToFloat(loadU16(block)), dmin = halfToFloat(loadU16(block + 2));
    for (int s = 0; s < 8; ++s) {
      ScaleAndMinimum pair = scaleAndMinimum(block + 4, s);
      float scale = d * float(pair.scale), minimum = dmin * float(pair.minimum);
      const uint8_t *nibbles = block + 16 + 32 * (s / 2);
      int shift = 4 * (s % 2);
      for (int i = 0; i < 32; ++i)
        out[32 * s + i] = scale * float(nibbles[i] >> shift & 15) - minimum;
    }
  }
};

/// As Q4_K, with fifth bits @16 (bit s of byte i % 32) and nibbles @48.
struct Q5_K {
  static constexpr const char *name = "q5_k";
  static constexpr uint32_t blockElements = 256, blockBytes = 176, ggufId = 13;
  static void dequantise(const uint8_t *block, float *out) {
    float d = halfToFloat(loadU16(block)), dmin = halfToFloat(loadU16(block + 2));
    for (int s = 0; s < 8; ++s) {
      ScaleAndMinimum pair = scaleAndMinimum(block + 4, s);
      float scale = d * float(pair.scale), minimum = dmin * float(pair.minimum);
      const uint8_t *nibbles = block + 48 + 32 * (s / 2), *high = block + 16;
      int shift = 4 * (s % 2);
      for (int i = 0; i < 32; ++i)
        out[32 * s + i] =
            scale * float((nibbles[i] >> shift & 15) | (high[i] >> s & 1) << 4) - minimum;
    }
  }
};

/// Low nibbles @0, high 2-bit pairs @128, signed scales of 16 elements each @192, d half @208.
/// y = d * scale * (q - 32).
struct Q6_K {
  static constexpr const char *name = "q6_k";
  static constexpr uint32_t blockElements = 256, blockBytes = 210, ggufId = 14;
  static void dequantise(const uint8_t *block, float *out) {
    float d = halfToFloat(loadU16(block + 208));
    for (int s = 0; s < 16; ++s) {
      float scale = d * float(static_cast<int8_t>(block[192 + s]));
      int half = s / 8, quarter = s % 8 / 2, lane = 16 * (s % 2);
      const uint8_t *low = block + 64 * half + 32 * (quarter & 1) + lane;
      const uint8_t *high = block + 128 + 32 * half + lane;
      int lowShift = quarter >= 2 ? 4 : 0, highShift = 2 * quarter;
      for (int i = 0; i < 16; ++i)
        out[16 * s + i] =
            scale * float(((low[i] >> lowShift & 15) | (high[i] >> highShift & 3) << 4) - 32);
    }
  }
};

/// d half @0, nibbles @2 that index a table. y = d * table[n].
struct IQ4_NL {
  static constexpr const char *name = "iq4_nl";
  static constexpr uint32_t blockElements = 32, blockBytes = 18, ggufId = 20;
  static constexpr float table[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                      1,    13,   25,  38,  53,  69,  89,  113};
  static void dequantise(const uint8_t *block, float *out) {
    float d = halfToFloat(loadU16(block));
    for (int i = 0; i < 16; ++i) {
      out[i] = d * table[block[2 + i] & 15];
      out[i + 16] = d * table[block[2 + i] >> 4];
    }
  }
};

/// Exponent byte e @0, E2M1 nibbles @1. The table holds twice their values, so that it is whole
/// numbers: y = 2^(e - 128) * table[n].
struct MXFP4 {
  static constexpr const char *name = "mxfp4";
  static constexpr uint32_t blockElements = 32, blockBytes = 17, ggufId = 39;
  static constexpr float table[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  static void dequantise(const uint8_t *block, float *out) {
    // 2^-128 and 2^-127 are subnormal.
    float d =
        std::bit_cast<float>(block[0] < 2 ? 0x00200000u << block[0] : uint32_t(block[0] - 1) << 23);
    for (int i = 0; i < 16; ++i) {
      out[i] = d * table[block[1 + i] & 15];
      out[i + 16] = d * table[block[1 + i] >> 4];
    }
  }
};

/// OCP E4M3 without infinities: exponent bias 7, all ones is NaN. GGUF has no such type.
struct F8_E4M3 {
  static constexpr const char *name = "f8_e4m3";
  static constexpr uint32_t blockElements = 1, blockBytes = 1, ggufId = noGgufId;
  static void dequantise(const uint8_t *block, float *out) {
    uint32_t sign = uint32_t(*block & 0x80) << 24, magnitude = *block & 0x7F;
    // Rebias by a multiplication, which also normalises subnormals, as for halves.
    float scaled = std::bit_cast<float>(magnitude << 20) * 0x1p120f;
    uint32_t bits = magnitude == 0x7F ? 0x7FC00000u : std::bit_cast<uint32_t>(scaled);
    *out = std::bit_cast<float>(sign | bits);
  }
};

/// Every weight type that Strata reads, packs and multiplies by. Append to widen.
using WeightTypeList = std::tuple<F32, F16, BF16, Q4_0, Q4_1, Q8_0, Q5_0, Q5_1, Q2_K, Q3_K, Q4_K,
                                  Q5_K, Q6_K, IQ4_NL, MXFP4, F8_E4M3>;

} // namespace STRATA_ISA_NAMESPACE
} // namespace strata
