// Plain types as kernels between matrix products store them: several numbers at a time.
#pragma once

#include "codegen/cuda/Kernel.cuh"

namespace strata {

template <class T> inline constexpr bool isNarrow = T::blockBytes == 2; ///< Of the plain types.

/// Two numbers, rounded to nearest even; the first in the low half.
template <class T> inline uint32_t packPair(float first, float second) {
  static_assert(isNarrow<T>);
  uint32_t pair;
  if constexpr (T::ggufId == BF16::ggufId)
    asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(pair) : "f"(first), "f"(second));
  else
    asm("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(pair) : "f"(first), "f"(second));
  return pair;
}

template <class T> inline float2 unpackPair(uint32_t pair) {
  static_assert(isNarrow<T>);
  float2 values;
  if constexpr (T::ggufId == BF16::ggufId)
    values = {__uint_as_float(pair << 16), __uint_as_float(pair & 0xFFFF0000)};
  else
    asm("{.reg .b16 first, second;\n mov.b32 {first, second}, %2;\n cvt.f32.f16 %0, first;\n"
        " cvt.f32.f16 %1, second;}"
        : "=f"(values.x), "=f"(values.y)
        : "r"(pair));
  return values;
}

/// Elements of a plain type in 16 bytes.
template <class T> inline constexpr uint32_t packElements = sizeof(uint4) / T::blockBytes;

/// 16 bytes at a multiple of 16.
template <class T> inline void loadPack(const uint8_t *from, float (&values)[packElements<T>]) {
  uint4 pack = *reinterpret_cast<const uint4 *>(from);
  const uint32_t words[] = {pack.x, pack.y, pack.z, pack.w};
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i)
    if constexpr (isNarrow<T>) {
      float2 pair = unpackPair<T>(words[i]);
      values[2 * i] = pair.x;
      values[2 * i + 1] = pair.y;
    } else {
      values[i] = __uint_as_float(words[i]);
    }
}

template <class T> inline void storePack(uint8_t *to, const float (&values)[packElements<T>]) {
  uint32_t words[4];
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i)
    if constexpr (isNarrow<T>)
      words[i] = packPair<T>(values[2 * i], values[2 * i + 1]);
    else
      words[i] = __float_as_uint(values[i]);
  *reinterpret_cast<uint4 *>(to) = {words[0], words[1], words[2], words[3]};
}

/// Four numbers at a multiple of their size.
template <class T> inline void storeFour(uint8_t *to, float4 values) {
  if constexpr (isNarrow<T>)
    *reinterpret_cast<uint2 *>(to) = {packPair<T>(values.x, values.y),
                                      packPair<T>(values.z, values.w)};
  else
    *reinterpret_cast<float4 *>(to) = values;
}

inline void storePlain(F32, uint8_t *to, float value) { *reinterpret_cast<float *>(to) = value; }
inline void storePlain(F16, uint8_t *to, float value) {
  *reinterpret_cast<uint16_t *>(to) = floatToHalf(value);
}
inline void storePlain(BF16, uint8_t *to, float value) {
  *reinterpret_cast<uint16_t *>(to) = floatToBfloat(value);
}

} // namespace strata
