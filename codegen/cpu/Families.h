// What the kernel files of one instruction set share: how slots are read, how plain numbers are
// loaded and stored, and the list of kernels that each file offers.
//
// Included only by files that are compiled once per instruction set with STRATA_ISA_NAMESPACE set.
#pragma once

#include <initializer_list>

#include "codegen/cpu/Kernel.h"
#include "codegen/cpu/Lanes.h"
#include "runtime/checkpoint/WeightTypes.h"

namespace strata::cpu::STRATA_ISA_NAMESPACE {

KernelList embedKernels();
KernelList normKernels();
KernelList linearKernels();
KernelList ropeKernels();
KernelList stateKernels();
KernelList attentionKernels();
KernelList elementwiseKernels();
KernelList headLinearKernels();
KernelList routerKernels();
KernelList expertKernels();
KernelList recurrentKernels();

template <class T> STRATA_INLINE T *pointerAt(const uint64_t *slots, uint32_t slot) {
  return reinterpret_cast<T *>(slots[slot]);
}
STRATA_INLINE float realAt(const uint64_t *slots, uint32_t slot) {
  return float(__builtin_bit_cast(double, slots[slot]));
}

/// A kernel's name, joined at compile time.
struct KernelName {
  char text[48] = {};
  uint32_t length = 0;

  constexpr KernelName(std::initializer_list<const char *> parts) {
    for (const char *part : parts)
      while (*part)
        text[length++] = *part++;
  }
  constexpr std::string_view view() const { return {text, length}; }
};

/// Sixteen consecutive values of a plain type.
template <class T> STRATA_INLINE Lanes loadPlain(const uint8_t *from) {
  static_assert(T::blockElements == 1);
  if constexpr (__is_same(T, F32)) {
    return load(reinterpret_cast<const float *>(from));
  } else if constexpr (__is_same(T, F16)) {
    return fromHalf(_mm256_loadu_si256(reinterpret_cast<const __m256i_u *>(from)));
  } else if constexpr (__is_same(T, BF16)) {
    return fromBfloat(_mm256_loadu_si256(reinterpret_cast<const __m256i_u *>(from)));
  } else { // any other plain type, by its own definition
    float values[laneCount];
    for (uint32_t i = 0; i < laneCount; ++i)
      T::dequantise(from + i * T::blockBytes, values + i);
    return load(values);
  }
}

/// `count` <= 16 consecutive values of a plain type; the other lanes are 0.
template <class T> STRATA_INLINE Lanes loadPlainPiece(const uint8_t *from, uint32_t count) {
  if (count == laneCount)
    return loadPlain<T>(from);
  if constexpr (__is_same(T, F32))
    return loadFirst(reinterpret_cast<const float *>(from), count);
  alignas(64) uint8_t padded[laneCount * T::blockBytes] = {};
  std::memcpy(padded, from, count * T::blockBytes);
  return loadPlain<T>(padded);
}

/// Dot product of `width` floats with `width` values of a plain type, before its lanes are summed.
template <class T>
STRATA_INLINE Lanes dotLanes(const float *x, const uint8_t *values, uint64_t width) {
  Lanes sum = splat(0);
  forEachPiece(width, [&](uint64_t first, uint32_t count) {
    sum = fma(loadPiece(x + first, count), loadPlainPiece<T>(values + first * T::blockBytes, count),
              sum);
  });
  return sum;
}

} // namespace strata::cpu::STRATA_ISA_NAMESPACE
