// Weights as the matrix units take them: of 32 columns of a row, the eight of a lane.
//
// Quantised weights stay the whole numbers that they are, a byte each: w = scale * (n - bias) +
// offset. Their products with activations, which are made whole numbers too (StreamOperand.cuh),
// are exact, and a scale is applied to their sum.
#pragma once

#include "codegen/cuda/Kernel.cuh"

namespace strata {

/// Of 32 columns, or of each half of 16.
template <uint32_t Parts> struct FragmentScale {
  float scale[Parts];
  float offset[Parts];
};

inline float halfAt(const uint8_t *from) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(*reinterpret_cast<const uint16_t *>(from)));
  return value;
}

inline uint32_t wordAt(const uint8_t *from) { return *reinterpret_cast<const uint32_t *>(from); }

/// Four bytes at an even address.
inline uint32_t wordAtEven(const uint8_t *from) {
  auto *halves = reinterpret_cast<const uint16_t *>(from);
  return halves[0] | uint32_t(halves[1]) << 16;
}

/// The type's fragments. `block` is that of group `group`, 32 columns each, numbered within the
/// block. Lane t of four has columns firstRun(t) to + 3 and secondRun(t) to + 3, in that order.
/// Blocks of one group have `scale`; of eight, scales2 gives those of groups 2t and 2t + 1.
template <class T> struct Fragment;

template <> struct Fragment<BF16> {
  static constexpr uint32_t scales = 0;
  static constexpr bool hasOffset = false;
  static uint32_t firstRun(uint32_t t) { return 8 * t; }
  static uint32_t secondRun(uint32_t t) { return 8 * t + 4; }
  static void load(const uint8_t *group, uint32_t, uint32_t t, uint32_t (&pairs)[4]) {
    uint4 pack = *reinterpret_cast<const uint4 *>(group + 16 * t);
    pairs[0] = pack.x, pairs[1] = pack.y, pairs[2] = pack.z, pairs[3] = pack.w;
  }
};

/// What quantised types have in common: `load` gives a run's four numbers as the bytes of a word.
template <uint32_t Scales, int32_t Bias, bool IsSigned, bool HasOffset> struct ByteFragment {
  static constexpr uint32_t scales = Scales;
  static constexpr int32_t bias = Bias;
  static constexpr bool isSigned = IsSigned, hasOffset = HasOffset;
  static uint32_t firstRun(uint32_t t) { return 4 * t; }
  static uint32_t secondRun(uint32_t t) { return 16 + 4 * t; }
};

template <> struct Fragment<Q8_0> : ByteFragment<1, 0, true, false> {
  static void load(const uint8_t *block, uint32_t, uint32_t t, uint32_t (&runs)[2]) {
    runs[0] = wordAtEven(block + 2 + 4 * t);
    runs[1] = wordAtEven(block + 18 + 4 * t);
  }
  static FragmentScale<1> scale(const uint8_t *block) { return {{halfAt(block)}, {}}; }
};

constexpr uint32_t lowNibbles = 0x0F0F0F0F;

/// Bits 0..3 of `bits` as bit 4 of four bytes.
inline uint32_t fifthBits(uint32_t bits) {
  // Bit i comes to bit 8 * i: each product bit below is reached by one summand alone.
  return ((bits & 15) * 0x00204081 & 0x01010101) << 4;
}

template <> struct Fragment<Q4_0> : ByteFragment<1, 8, false, false> {
  static void load(const uint8_t *block, uint32_t, uint32_t t, uint32_t (&runs)[2]) {
    uint32_t nibbles = wordAtEven(block + 2 + 4 * t);
    runs[0] = nibbles & lowNibbles;
    runs[1] = nibbles >> 4 & lowNibbles;
  }
  static FragmentScale<1> scale(const uint8_t *block) { return {{halfAt(block)}, {}}; }
};

template <> struct Fragment<Q4_1> : ByteFragment<1, 0, false, true> {
  static void load(const uint8_t *block, uint32_t, uint32_t t, uint32_t (&runs)[2]) {
    uint32_t nibbles = wordAt(block + 4 + 4 * t);
    runs[0] = nibbles & lowNibbles;
    runs[1] = nibbles >> 4 & lowNibbles;
  }
  static FragmentScale<1> scale(const uint8_t *block) {
    return {{halfAt(block)}, {halfAt(block + 2)}};
  }
};

template <> struct Fragment<Q5_0> : ByteFragment<1, 16, false, false> {
  static void load(const uint8_t *block, uint32_t, uint32_t t, uint32_t (&runs)[2]) {
    uint32_t nibbles = wordAtEven(block + 6 + 4 * t), high = wordAtEven(block + 2) >> 4 * t;
    runs[0] = (nibbles & lowNibbles) | fifthBits(high);
    runs[1] = (nibbles >> 4 & lowNibbles) | fifthBits(high >> 16);
  }
  static FragmentScale<1> scale(const uint8_t *block) { return {{halfAt(block)}, {}}; }
};

template <> struct Fragment<Q5_1> : ByteFragment<1, 0, false, true> {
  static void load(const uint8_t *block, uint32_t, uint32_t t, uint32_t (&runs)[2]) {
    uint32_t nibbles = wordAt(block + 8 + 4 * t), high = wordAt(block + 4) >> 4 * t;
    runs[0] = (nibbles & lowNibbles) | fifthBits(high);
    runs[1] = (nibbles >> 4 & lowNibbles) | fifthBits(high >> 16);
  }
  static FragmentScale<1> scale(const uint8_t *block) {
    return {{halfAt(block)}, {halfAt(block + 2)}};
  }
};

/// Byte `i` of `bytes`.
inline float byteOf(uint32_t bytes, uint32_t i) { return float(bytes >> 8 * i & 0xFF); }

/// Of groups 2t and 2t + 1 of Q4_K and Q5_K, whose blocks begin alike.
inline void scalesOfPair(const uint8_t *block, uint32_t t, FragmentScale<1> (&to)[2]) {
  // Six bits each: of groups 0 to 3 the low ones of a byte; of others four bits there, and two more
  // at the top of the former's.
  auto pair = [&](uint32_t first) {
    return uint32_t(*reinterpret_cast<const uint16_t *>(block + first + 2 * (t % 2)));
  };
  uint32_t low = pair(4), middle = pair(8), high = pair(12);
  uint32_t scales = low & 0x3F3F, minima = middle & 0x3F3F;
  if (t >= 2) {
    scales = (high & 0x0F0F) | (low >> 2 & 0x3030);
    minima = (high >> 4 & 0x0F0F) | (middle >> 2 & 0x3030);
  }
  float scale = halfAt(block), minimum = -halfAt(block + 2);
#pragma unroll
  for (uint32_t i = 0; i < 2; ++i)
    to[i] = {{scale * byteOf(scales, i)}, {minimum * byteOf(minima, i)}};
}

template <> struct Fragment<Q4_K> : ByteFragment<1, 0, false, true> {
  static void load(const uint8_t *block, uint32_t group, uint32_t t, uint32_t (&runs)[2]) {
    const uint8_t *nibbles = block + 16 + 32 * (group / 2) + 4 * t;
    uint32_t shift = 4 * (group & 1);
    runs[0] = wordAt(nibbles) >> shift & lowNibbles;
    runs[1] = wordAt(nibbles + 16) >> shift & lowNibbles;
  }
  static void scales2(const uint8_t *block, uint32_t t, FragmentScale<1> (&to)[2]) {
    scalesOfPair(block, t, to);
  }
};

template <> struct Fragment<Q5_K> : ByteFragment<1, 0, false, true> {
  static void load(const uint8_t *block, uint32_t group, uint32_t t, uint32_t (&runs)[2]) {
    const uint8_t *nibbles = block + 48 + 32 * (group / 2) + 4 * t, *high = block + 16 + 4 * t;
    uint32_t shift = 4 * (group & 1);
    auto join = [&](uint32_t low, uint32_t bits) {
      return (low >> shift & lowNibbles) | (bits >> group & 0x01010101) << 4;
    };
    runs[0] = join(wordAt(nibbles), wordAt(high));
    runs[1] = join(wordAt(nibbles + 16), wordAt(high + 16));
  }
  static void scales2(const uint8_t *block, uint32_t t, FragmentScale<1> (&to)[2]) {
    scalesOfPair(block, t, to);
  }
};

template <> struct Fragment<Q6_K> : ByteFragment<2, 32, false, false> {
  static void load(const uint8_t *block, uint32_t group, uint32_t t, uint32_t (&runs)[2]) {
    uint32_t half = group / 4, quarter = group % 4;
    const uint8_t *low = block + 64 * half + 32 * (quarter & 1) + 4 * t;
    const uint8_t *high = block + 128 + 32 * half + 4 * t;
    auto join = [&](const uint8_t *nibbles, const uint8_t *pairs) {
      return (wordAtEven(nibbles) >> 2 * (quarter & 2) & lowNibbles) |
             (wordAtEven(pairs) >> 2 * quarter & 0x03030303) << 4;
    };
    runs[0] = join(low, high);
    runs[1] = join(low + 16, high + 16);
  }
  static void scales2(const uint8_t *block, uint32_t t, FragmentScale<2> (&to)[2]) {
    float scale = halfAt(block + 208);
    uint32_t bytes = wordAtEven(block + 192 + 4 * t);
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i)
      to[i / 2].scale[i % 2] = scale * float(int8_t(bytes >> 8 * i));
  }
};

} // namespace strata
