// dot(weight row, x) by one warp, for weights of any type.
#pragma once

#include "codegen/cuda/Kernel.cuh"

namespace strata {

/// A lane takes whole blocks of the type; every lane is given the sum.
template <class T, uint32_t Columns> inline float warpDot(const uint8_t *weight, const float *x) {
  constexpr uint32_t blocks = Columns / T::blockElements;
  float sum = 0;
  for (uint32_t block = threadIdx.x % warpThreads; block < blocks; block += warpThreads) {
    float values[T::blockElements];
    T::dequantise(weight + uint64_t(block) * T::blockBytes, values);
    const float *from = x + uint64_t(block) * T::blockElements;
#pragma unroll 32
    for (uint32_t i = 0; i < T::blockElements; ++i)
      sum = fmaf(values[i], from[i], sum);
  }
  return warpSum(sum);
}

template <class T, uint32_t Columns> constexpr uint64_t rowBytes() {
  return Columns / T::blockElements * T::blockBytes;
}

} // namespace strata
