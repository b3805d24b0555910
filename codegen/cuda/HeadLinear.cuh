// head_linear.<type>: each head goes through a matrix of its own, or through its transpose. Each
// row reads the matrices anew.
#pragma once

#include "codegen/cuda/WarpDot.cuh"

namespace strata {

/// One block a head of a row. A warp computes an output, or a thread a block of them where the
/// matrix is transposed.
template <class T, class K> inline void headLinear(const Slots<11> &slots) {
  enum { X, Weight, Y };
  constexpr uint64_t from = K::transposed ? K::weight_rows : K::columns;
  constexpr uint64_t to = K::transposed ? K::columns : K::weight_rows;
  awaitPredecessor();
  if (blockIdx.x >= *slots.valid)
    return;
  uint64_t place = uint64_t(blockIdx.x) * K::heads + blockIdx.y;
  const float *x = slots.pointer<const float>(X) + place * (from + K::tail);
  float *y = slots.pointer<float>(Y) + place * (to + K::tail);
  constexpr uint64_t stride = rowBytes<T, K::columns>();
  auto *weight = slots.pointer<const uint8_t>(Weight) + blockIdx.y * K::weight_rows * stride;
  if constexpr (K::transposed) {
    for (uint32_t block = threadIdx.x; block < K::columns / T::blockElements; block += K::threads) {
      float sums[T::blockElements] = {};
      for (uint32_t row = 0; row < K::weight_rows; ++row) {
        float values[T::blockElements];
        T::dequantise(weight + row * stride + uint64_t(block) * T::blockBytes, values);
#pragma unroll 32
        for (uint32_t i = 0; i < T::blockElements; ++i)
          sums[i] = fmaf(x[row], values[i], sums[i]);
      }
#pragma unroll 32
      for (uint32_t i = 0; i < T::blockElements; ++i)
        y[uint64_t(block) * T::blockElements + i] = sums[i];
    }
  } else {
    for (uint32_t output = threadIdx.x / warpThreads; output < K::weight_rows;
         output += K::threads / warpThreads) {
      float value = warpDot<T, K::columns>(weight + output * stride, x);
      if (threadIdx.x % warpThreads == 0)
        y[output] = value;
    }
  }
  for (uint64_t i = threadIdx.x; i < K::tail; i += K::threads)
    y[to + i] = x[from + i];
}

} // namespace strata
