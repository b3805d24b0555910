// attention.<K>.<V>, with .<stored> or not, and attention_latent.<K>.<V>: causal attention of each
// row over its own sequence's blocks. For few rows AttentionSplit.cuh.
//
// One block is one query head of one row; its four warps take the visible tokens in turns of 32,
// each with a running maximum and sum (online softmax), and join at the end. Bound by the bytes of
// K and V, read once a query head.
#pragma once

#include "codegen/cuda/AttentionSplit.cuh"

namespace strata {

/// dot(query, key), 16 bytes of the key at a time where it lies at a multiple of 16.
template <class T, uint32_t Width> inline float dotKey(const float *query, const uint8_t *key) {
  constexpr uint32_t together = sizeof(uint4) / T::blockBytes;
  float score = 0;
  if (Width % together == 0 && reinterpret_cast<uint64_t>(key) % sizeof(uint4) == 0) {
#pragma unroll 8
    for (uint32_t i = 0; i < Width; i += together) {
      uint4 pack = *reinterpret_cast<const uint4 *>(key + i * T::blockBytes);
      auto *bytes = reinterpret_cast<const uint8_t *>(&pack);
#pragma unroll
      for (uint32_t j = 0; j < together; ++j)
        score = fmaf(query[i + j], loadPlain<T>(bytes + j * T::blockBytes), score);
    }
    return score;
  }
#pragma unroll 8
  for (uint32_t i = 0; i < Width; ++i)
    score = fmaf(query[i], loadPlain<T>(key + i * T::blockBytes), score);
  return score;
}

/// With `IsLatent` a key is the value followed by the key component, and so is a query head.
template <class KeyType, class ValueType, class Stored, class K, bool IsLatent>
inline void attentionWhole(const Slots<16> &slots) {
  enum { Q, Keys, Values, Y, BlockTable, RowSequence, RowPosition };
  constexpr uint32_t warps = K::threads / warpThreads;
  // A lane keeps every 32nd element of the weighted sum of values.
  constexpr uint32_t kept = (K::value_width + warpThreads - 1) / warpThreads;
  constexpr uint32_t queryWidth = K::key_width + (IsLatent ? K::value_width : 0);
  __shared__ float query[queryWidth];
  __shared__ float sums[warps][kept * warpThreads];
  __shared__ float highests[warps], totals[warps];

  awaitPredecessor();
  uint64_t row = blockIdx.x, head = blockIdx.y;
  if (row >= *slots.valid)
    return;
  uint64_t kvHead = head / (K::query_heads / K::kv_heads);
  auto position = uint64_t(slots.pointer<const int32_t>(RowPosition)[row]);
  auto sequence = uint64_t(slots.pointer<const int32_t>(RowSequence)[row]);
  auto *table = slots.pointer<const int32_t>(BlockTable) + sequence * K::max_blocks;
  const float *q = slots.pointer<const float>(Q) + (row * K::query_heads + head) * queryWidth;
  uint8_t *y = slots.pointer<uint8_t>(Y) +
               (row * K::query_heads + head) * K::value_width * Stored::blockBytes;
  uint32_t lane = threadIdx.x % warpThreads, warp = threadIdx.x / warpThreads;
  for (uint32_t i = threadIdx.x; i < queryWidth; i += K::threads)
    query[i] = q[i] * real(K::scale);
  __syncthreads();

  uint64_t first = K::window && position >= K::window ? position + 1 - K::window : 0;
  float highest = -INFINITY, total = 0, sum[kept] = {};
  for (uint64_t start = first + warp * warpThreads; start <= position;
       start += warps * warpThreads) {
    // A lane scores one token.
    uint64_t token = start + lane;
    const uint8_t *value = nullptr;
    float score = -INFINITY;
    if (token <= position) {
      uint64_t block = uint64_t(table[token / K::block_tokens]) * K::block_stride;
      uint64_t place = token % K::block_tokens * K::kv_heads + kvHead;
      const uint8_t *key =
          slots.pointer<const uint8_t>(Keys) + block + place * K::key_width * KeyType::blockBytes;
      value = slots.pointer<const uint8_t>(Values) + block +
              place * K::value_width * ValueType::blockBytes;
      score = dotKey<KeyType, K::key_width>(query + (queryWidth - K::key_width), key);
      if constexpr (IsLatent)
        score += dotKey<ValueType, K::value_width>(query, value);
    }
    float newHighest = fmaxf(highest, warpMaximum(score));
    float correction = expf(highest - newHighest), weight = expf(score - newHighest);
    total = total * correction + warpSum(weight);
    highest = newHighest;
#pragma unroll
    for (uint32_t k = 0; k < kept; ++k)
      sum[k] *= correction;
    uint32_t tokens =
        position + 1 - start < warpThreads ? uint32_t(position + 1 - start) : warpThreads;
    // Then all lanes add one token's value after the other.
    for (uint32_t t = 0; t < tokens; ++t) {
      float w = __shfl_sync(everyLane, weight, t);
      auto *v = reinterpret_cast<const uint8_t *>(
          __shfl_sync(everyLane, reinterpret_cast<uint64_t>(value), t));
#pragma unroll
      for (uint32_t k = 0; k < kept; ++k) {
        uint32_t i = k * warpThreads + lane;
        if (K::value_width % warpThreads == 0 || i < K::value_width)
          sum[k] = fmaf(w, loadPlain<ValueType>(v + i * ValueType::blockBytes), sum[k]);
      }
    }
  }

#pragma unroll
  for (uint32_t k = 0; k < kept; ++k)
    sums[warp][k * warpThreads + lane] = sum[k];
  if (lane == 0) {
    highests[warp] = highest;
    totals[warp] = total;
  }
  __syncthreads();
  float most = -INFINITY, all = 0, factor[warps];
#pragma unroll
  for (uint32_t w = 0; w < warps; ++w)
    most = fmaxf(most, highests[w]);
#pragma unroll
  for (uint32_t w = 0; w < warps; ++w) {
    factor[w] = expf(highests[w] - most); // 0 for a warp that saw no token
    all += totals[w] * factor[w];
  }
  for (uint32_t i = threadIdx.x; i < K::value_width; i += K::threads) {
    float value = 0;
#pragma unroll
    for (uint32_t w = 0; w < warps; ++w)
      value = fmaf(sums[w][i], factor[w], value);
    storePlain(Stored{}, y + i * Stored::blockBytes, value / all);
  }
}

template <class KeyType, class ValueType, class Stored, class K>
inline void attention(const Slots<16> &slots) {
  if constexpr (K::rows > 0) // the launch shape's choice
    attentionSplit<KeyType, ValueType, Stored, K>(slots);
  else
    attentionWhole<KeyType, ValueType, Stored, K, false>(slots);
}

template <class KeyType, class ValueType, class K> inline void attention(const Slots<16> &slots) {
  attention<KeyType, ValueType, F32, K>(slots);
}

template <class KeyType, class ValueType, class K>
inline void attentionLatent(const Slots<16> &slots) {
  attentionWhole<KeyType, ValueType, F32, K, true>(slots);
}

} // namespace strata
