// rms_norm and rms_norm_heads: y = x * rsqrt(mean(x^2) + epsilon) * weight. Bound by memory.
#pragma once

#include "codegen/cuda/Kernel.cuh"

namespace strata {

/// One block a row. A row whose mean square is not finite lowers its sequence's entry of
/// nonfinite_layer; unsigned, so that -1 (no layer) is above every layer.
template <class K> inline void rmsNorm(const Slots<8> &slots) {
  enum { X, Weight, Y, RowSequence, NonfiniteLayer, Layer = 7 };
  awaitPredecessor();
  uint32_t row = blockIdx.x;
  if (row >= *slots.valid)
    return;
  const float *x = slots.pointer<const float>(X) + uint64_t(row) * K::width;
  float *y = slots.pointer<float>(Y) + uint64_t(row) * K::width;
  auto *weight = slots.pointer<const float>(Weight);
  float sum = 0;
  for (uint32_t i = threadIdx.x; i < K::width; i += K::threads)
    sum = fmaf(x[i], x[i], sum);
  float mean = blockSum<K::threads>(sum) / float(K::width);
  if (threadIdx.x == 0 && !isfinite(mean))
    atomicMin(slots.pointer<uint32_t>(NonfiniteLayer) +
                  slots.pointer<const int32_t>(RowSequence)[row],
              uint32_t(slots.at[Layer]));
  float factor = 1.0f / sqrtf(mean + real(K::epsilon));
  for (uint32_t i = threadIdx.x; i < K::width; i += K::threads)
    y[i] = x[i] * factor * weight[i];
}

/// One warp a head of a row, in place.
template <class K> inline void rmsNormHeads(const Slots<6> &slots) {
  enum { X, Weight };
  awaitPredecessor();
  if (blockIdx.x >= *slots.valid)
    return;
  float *x = slots.pointer<float>(X) +
             (uint64_t(blockIdx.x) * K::heads + blockIdx.y) * K::head_width;
  auto *weight = slots.pointer<const float>(Weight) + uint64_t(blockIdx.y) * K::weight_stride;
  float sum = 0;
  for (uint32_t i = threadIdx.x; i < K::head_width; i += warpThreads)
    sum = fmaf(x[i], x[i], sum);
  float factor = 1.0f / sqrtf(warpSum(sum) / float(K::head_width) + real(K::epsilon));
  for (uint32_t i = threadIdx.x; i < K::head_width; i += warpThreads)
    x[i] = x[i] * factor * weight[i];
}

} // namespace strata
