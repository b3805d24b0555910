// router.<function>: the experts of each row, by k rounds over the scores. Bound by the rounds:
// each is a pass over the experts and a comparison across the warp.
#pragma once

#include "codegen/cuda/Elementwise.cuh"

namespace strata {

struct Softmax {};

/// p of one row, by its warp.
template <uint32_t Experts> inline void gate(Softmax, const float *logits, float *p, uint32_t lane) {
  float most = -INFINITY, sum = 0;
  for (uint32_t e = lane; e < Experts; e += warpThreads)
    most = fmaxf(most, logits[e]);
  most = warpMaximum(most);
  for (uint32_t e = lane; e < Experts; e += warpThreads)
    sum += p[e] = expf(logits[e] - most);
  sum = warpSum(sum);
  for (uint32_t e = lane; e < Experts; e += warpThreads)
    p[e] /= sum;
}

template <uint32_t Experts> inline void gate(Sigmoid, const float *logits, float *p, uint32_t lane) {
  for (uint32_t e = lane; e < Experts; e += warpThreads)
    p[e] = Sigmoid::apply(logits[e]);
}

/// The largest of [begin, end), ties to the lower; entries that are NaN are out of the question.
/// `end` where all are.
inline uint32_t warpLargest(const float *values, uint32_t begin, uint32_t end, uint32_t lane) {
  uint32_t best = end;
  float most = 0;
  auto consider = [&](uint32_t i, float value) {
    if (i < end && value == value &&
        (best == end || value > most || (value == most && i < best))) {
      best = i;
      most = value;
    }
  };
  for (uint32_t i = begin + lane; i < end; i += warpThreads)
    consider(i, values[i]);
#pragma unroll
  for (uint32_t offset = warpThreads / 2; offset > 0; offset /= 2) {
    uint32_t i = __shfl_xor_sync(everyLane, best, offset);
    consider(i, __shfl_xor_sync(everyLane, most, offset));
  }
  return best;
}

/// Lane 0 writes what the whole warp then reads.
inline void writeShared(float *to, float value, uint32_t lane) {
  __syncwarp();
  if (lane == 0)
    *to = value;
  __syncwarp();
}

/// Puts every expert outside the best groups out of the question.
template <class K> inline void keepGroups(float *s, float *groupScore, float out, uint32_t lane) {
  constexpr uint32_t size = K::experts / K::groups;
#pragma unroll 1
  for (uint32_t g = 0; g < K::groups; ++g) {
    float score = 0, taken[K::group_top];
    uint32_t place[K::group_top];
#pragma unroll 1
    for (uint32_t i = 0; i < K::group_top; ++i) {
      place[i] = warpLargest(s, g * size, (g + 1) * size, lane);
      taken[i] = s[place[i]];
      score += taken[i];
      writeShared(s + place[i], out, lane);
    }
#pragma unroll 1
    for (uint32_t i = 0; i < K::group_top; ++i)
      writeShared(s + place[i], taken[i], lane);
    writeShared(groupScore + g, score, lane);
  }
#pragma unroll 1
  for (uint32_t i = 0; i < K::groups_used; ++i) // what stays is marked
    writeShared(groupScore + warpLargest(groupScore, 0, K::groups, lane), out, lane);
#pragma unroll 1
  for (uint32_t e = lane; e < K::experts; e += warpThreads)
    if (groupScore[e / size] == groupScore[e / size])
      s[e] = out;
  __syncwarp();
}

/// One warp a row.
template <class Function, class K> inline void router(const Slots<13> &slots) {
  enum { Logits, Bias, Y };
  __shared__ float p[K::experts], s[K::experts], groupScore[K::groups + 1];
  awaitPredecessor();
  uint64_t row = blockIdx.x;
  if (row >= *slots.valid)
    return;
  uint32_t lane = threadIdx.x;
  auto *bias = slots.pointer<const float>(Bias);
  float *y = slots.pointer<float>(Y) + row * 2 * K::used;
  const float out = __int_as_float(0x7FC00000);
  gate<K::experts>(Function{}, slots.pointer<const float>(Logits) + row * K::experts, p, lane);
  for (uint32_t e = lane; e < K::experts; e += warpThreads) {
    float score = bias ? p[e] + bias[e] : p[e];
    s[e] = score == score ? score : -INFINITY;
  }
  __syncwarp();
  if constexpr (K::groups > 1)
    keepGroups<K>(s, groupScore, out, lane);
  float sum = 0;
  uint32_t chosen[K::used];
#pragma unroll 1
  for (uint32_t i = 0; i < K::used; ++i) {
    chosen[i] = warpLargest(s, 0, K::experts, lane);
    writeShared(s + chosen[i], out, lane);
    sum += p[chosen[i]];
  }
  if (lane != 0)
    return;
  float divisor = K::normalise ? fmaxf(sum, real(K::least_sum)) : 1.0f;
#pragma unroll 1
  for (uint32_t i = 0; i < K::used; ++i) {
    y[i] = float(chosen[i]);
    y[K::used + i] = p[chosen[i]] / divisor * real(K::scale);
  }
}

} // namespace strata
