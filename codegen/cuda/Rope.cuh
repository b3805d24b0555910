// rope: rotates pairs of each head by position * frequency, in place. Bound by memory.
#pragma once

#include "codegen/cuda/Kernel.cuh"

namespace strata {

/// One block a row. Angles are computed in F64 once for all heads: an F32 product would be off by
/// 2e-4 at position 4000.
template <class K> inline void rope(const Slots<9> &slots) {
  enum { X, Frequencies, RowPosition };
  constexpr uint32_t pairs = K::rotary_width / 2;
  __shared__ float cosine[pairs], sine[pairs];
  awaitPredecessor();
  uint32_t row = blockIdx.x;
  if (row >= *slots.valid)
    return;
  auto *frequencies = slots.pointer<const float>(Frequencies);
  double position = slots.pointer<const int32_t>(RowPosition)[row];
  constexpr double magnitude = __builtin_bit_cast(double, uint64_t(K::magnitude));
  for (uint32_t j = threadIdx.x; j < pairs; j += K::threads) {
    double s, c;
    sincos(position * double(frequencies[j]), &s, &c);
    cosine[j] = float(c * magnitude);
    sine[j] = float(s * magnitude);
  }
  __syncthreads();
  float *x = slots.pointer<float>(X) + uint64_t(row) * K::heads * K::head_width + K::first;
  for (uint32_t i = threadIdx.x; i < K::heads * pairs; i += K::threads) {
    uint32_t j = i % pairs;
    float *head = x + i / pairs * K::head_width;
    float *first = head + (K::interleaved ? 2 * j : j);
    float *second = head + (K::interleaved ? 2 * j + 1 : j + pairs);
    float a = *first, b = *second;
    *first = a * cosine[j] - b * sine[j];
    *second = a * sine[j] + b * cosine[j];
  }
}

} // namespace strata
