// rms_norm, rms_norm.<stored> and rms_norm_heads: y = x * rsqrt(mean(x^2) + epsilon) * weight.
// Bound by memory.
#pragma once

#include "codegen/cuda/Narrow.cuh"

namespace strata {

/// One block a row, which threads keep four elements at a time. A row whose mean square is not
/// finite lowers its sequence's entry of nonfinite_layer; unsigned, so that -1 (no layer) is above
/// every layer.
template <class Stored, class K> inline void rmsNorm(const Slots<8> &slots) {
  enum { X, Weight, Y, RowSequence, NonfiniteLayer, Layer = 7 };
  constexpr uint32_t fours = K::width / 4, rest = K::width % 4;
  constexpr uint32_t kept = rest ? 0 : (fours + K::threads - 1) / K::threads;
  constexpr bool isKept = kept > 0 && kept <= 8;
  awaitPredecessor();
  uint32_t row = blockIdx.x;
  if (row >= *slots.valid)
    return;
  const float *x = slots.pointer<const float>(X) + uint64_t(row) * K::width;
  uint8_t *y = slots.pointer<uint8_t>(Y) + uint64_t(row) * K::width * Stored::blockBytes;
  auto *weight = slots.pointer<const float>(Weight);
  float sum = 0;
  float4 values[isKept ? kept : 1];
  if constexpr (isKept) {
#pragma unroll
    for (uint32_t k = 0; k < kept; ++k) {
      uint32_t i = k * K::threads + threadIdx.x;
      values[k] = i < fours ? reinterpret_cast<const float4 *>(x)[i] : float4{};
    }
#pragma unroll
    for (uint32_t k = 0; k < kept; ++k)
      sum = fmaf(values[k].x, values[k].x,
                 fmaf(values[k].y, values[k].y,
                      fmaf(values[k].z, values[k].z, fmaf(values[k].w, values[k].w, sum))));
  } else {
    for (uint32_t i = threadIdx.x; i < K::width; i += K::threads)
      sum = fmaf(x[i], x[i], sum);
  }
  float mean = blockSum<K::threads>(sum) / float(K::width);
  if (threadIdx.x == 0 && !isfinite(mean))
    atomicMin(slots.pointer<uint32_t>(NonfiniteLayer) +
                  slots.pointer<const int32_t>(RowSequence)[row],
              uint32_t(slots.at[Layer]));
  float factor = 1.0f / sqrtf(mean + real(K::epsilon));
  if constexpr (isKept) {
#pragma unroll
    for (uint32_t k = 0; k < kept; ++k) {
      uint32_t i = k * K::threads + threadIdx.x;
      if (i >= fours)
        break;
      float4 w = reinterpret_cast<const float4 *>(weight)[i];
      storeFour<Stored>(y + uint64_t(i) * 4 * Stored::blockBytes,
                        {values[k].x * factor * w.x, values[k].y * factor * w.y,
                         values[k].z * factor * w.z, values[k].w * factor * w.w});
    }
  } else {
    for (uint32_t i = threadIdx.x; i < K::width; i += K::threads)
      storePlain(Stored{}, y + uint64_t(i) * Stored::blockBytes, x[i] * factor * weight[i]);
  }
}

template <class K> inline void rmsNorm(const Slots<8> &slots) { rmsNorm<F32, K>(slots); }

/// One warp a head of a row, in place.
template <class K> inline void rmsNormHeads(const Slots<6> &slots) {
  enum { X, Weight };
  awaitPredecessor();
  if (blockIdx.x >= *slots.valid)
    return;
  float *x =
      slots.pointer<float>(X) + (uint64_t(blockIdx.x) * K::heads + blockIdx.y) * K::head_width;
  auto *weight = slots.pointer<const float>(Weight) + uint64_t(blockIdx.y) * K::weight_stride;
  float sum = 0;
  for (uint32_t i = threadIdx.x; i < K::head_width; i += warpThreads)
    sum = fmaf(x[i], x[i], sum);
  float factor = 1.0f / sqrtf(warpSum(sum) / float(K::head_width) + real(K::epsilon));
  for (uint32_t i = threadIdx.x; i < K::head_width; i += warpThreads)
    x[i] = x[i] * factor * weight[i];
}

} // namespace strata
