// attention.<K>.<V> for few rows: blocks share out the tokens of a row, and join over their
// cluster.
//
// A block has a span of tokens for some query heads of one KV head. Lanes split a head's width,
// eight elements each, and warps take tokens in turns, several of them on their way at once. Warps
// join in shared memory, blocks in each other's. Bound by the bytes of K and V, read once a KV
// head.
#pragma once

#include "codegen/cuda/Cluster.cuh"
#include "codegen/cuda/Matvec.cuh"
#include "codegen/cuda/Narrow.cuh"

namespace strata {

/// Eight consecutive elements of a plain type, past L1: a line may hold what this step writes.
template <class T> struct Eight {
  static constexpr uint32_t packs = 8 * T::blockBytes / sizeof(uint4);
  uint4 data[packs] = {};

  void load(const uint8_t *from) {
#pragma unroll
    for (uint32_t i = 0; i < packs; ++i)
      asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];"
                   : "=r"(data[i].x), "=r"(data[i].y), "=r"(data[i].z), "=r"(data[i].w)
                   : "l"(from + i * sizeof(uint4))
                   : "memory");
  }
  void unpack(float (&values)[8]) const {
    constexpr uint32_t elements = 8 / packs;
#pragma unroll
    for (uint32_t i = 0; i < packs; ++i) {
      float part[elements];
      Pack<T>::unpack(data[i], part);
#pragma unroll
      for (uint32_t j = 0; j < elements; ++j)
        values[i * elements + j] = part[j];
    }
  }
};

/// exp2(a - b), where both may be -infinity: what is weighted so is 0.
inline float weightOf(float a, float b) { return b == -INFINITY ? 0.0f : exp2f(a - b); }

template <class KeyType, class ValueType, class Stored, class K>
inline void attentionSplit(const Slots<16> &slots) {
  enum { Q, Keys, Values, Y, BlockTable, RowSequence, RowPosition };
  constexpr uint32_t heads = cuda::attentionHeads(K::query_heads / K::kv_heads);
  constexpr uint32_t keyLanes = K::key_width / 8, valueLanes = K::value_width / 8;
  constexpr uint32_t widest = keyLanes > valueLanes ? keyLanes : valueLanes;
  constexpr uint32_t lanes = widest <= 1    ? 1
                             : widest <= 2  ? 2
                             : widest <= 4  ? 4
                             : widest <= 8  ? 8
                             : widest <= 16 ? 16
                                            : 32;
  constexpr uint32_t warps = K::threads / warpThreads, perWarp = warpThreads / lanes;
  constexpr uint32_t splits = cuda::attentionSplits(K::rows * K::query_heads / heads,
                                                    STRATA_MULTIPROCESSORS, clusterBlocks > 1);
  constexpr uint32_t ahead = KeyType::blockBytes + ValueType::blockBytes > 4 || heads > 4 ? 2 : 4;
  constexpr uint32_t perTurn = warps * perWarp;
  __shared__ float warpSums[warps][heads][K::value_width];
  __shared__ float warpHighest[warps][heads], warpTotal[warps][heads];
  __shared__ float blockSums[heads][K::value_width], blockHighest[heads], blockTotal[heads];

  admitSuccessor();
  uint32_t row = blockIdx.x, split = blockIdx.y % splits;
  uint32_t firstHead = blockIdx.y / splits * heads;
  uint32_t kvHead = firstHead / (K::query_heads / K::kv_heads);
  if (row >= *slots.valid) // all blocks of the cluster
    return;
  // The step, and what earlier steps have written, may be read before the wait.
  auto position = uint64_t(slots.pointer<const int32_t>(RowPosition)[row]);
  auto sequence = uint64_t(slots.pointer<const int32_t>(RowSequence)[row]);
  auto *table = slots.pointer<const int32_t>(BlockTable) + sequence * K::max_blocks;
  uint64_t visible = K::window && position >= K::window ? position + 1 - K::window : 0;
  uint64_t span = (position + 1 - visible + splits - 1) / splits;
  uint64_t begin = visible + split * span;
  uint64_t end = begin + span < position + 1 ? begin + span : position + 1;
  uint32_t warp = threadIdx.x / warpThreads, lane = threadIdx.x % lanes;
  uint32_t tokenOfWarp = threadIdx.x % warpThreads / lanes;

  Eight<KeyType> keys[ahead];
  Eight<ValueType> values[ahead];
  auto load = [&](uint64_t first, bool isWritten) {
#pragma unroll
    for (uint32_t i = 0; i < ahead; ++i) {
      uint64_t token = first + i * perTurn;
      // The step's rows of a sequence are its last tokens.
      if (token >= end || (token + K::rows <= position) != isWritten)
        continue;
      uint64_t block = uint64_t(table[token / K::block_tokens]) * K::block_stride;
      uint64_t place = token % K::block_tokens * K::kv_heads + kvHead;
      if (lanes == keyLanes || lane < keyLanes)
        keys[i].load(slots.pointer<const uint8_t>(Keys) + block +
                     (place * K::key_width + lane * 8) * KeyType::blockBytes);
      if (lanes == valueLanes || lane < valueLanes)
        values[i].load(slots.pointer<const uint8_t>(Values) + block +
                       (place * K::value_width + lane * 8) * ValueType::blockBytes);
    }
  };
  uint64_t first = begin + warp * perWarp + tokenOfWarp;
  load(first, true);
  awaitPredecessor();

  float query[heads][8] = {}, sums[heads][8] = {}, highest[heads], total[heads];
  auto *q =
      slots.pointer<const float>(Q) + (uint64_t(row) * K::query_heads + firstHead) * K::key_width;
  constexpr float scale = real(K::scale) * 1.4426950408889634f; // exponents are of 2
#pragma unroll
  for (uint32_t h = 0; h < heads; ++h) {
    highest[h] = -INFINITY;
    total[h] = 0;
    if (lanes == keyLanes || lane < keyLanes)
      loadActivations(q + h * K::key_width + lane * 8, query[h]);
#pragma unroll
    for (uint32_t e = 0; e < 8; ++e)
      query[h][e] *= scale;
  }
  // Every lane of a warp takes every turn: they exchange sums.
  for (uint64_t turn = begin + warp * perWarp; turn < end; turn += ahead * perTurn) {
    load(first, false);
    float scores[ahead][heads];
#pragma unroll
    for (uint32_t i = 0; i < ahead; ++i) {
      float key[8];
      keys[i].unpack(key);
#pragma unroll
      for (uint32_t h = 0; h < heads; ++h) {
        float sum = 0;
#pragma unroll
        for (uint32_t e = 0; e < 8; ++e)
          sum = fmaf(query[h][e], key[e], sum);
        scores[i][h] = sum;
      }
    }
#pragma unroll
    for (uint32_t offset = lanes / 2; offset > 0; offset /= 2)
#pragma unroll
      for (uint32_t i = 0; i < ahead; ++i)
#pragma unroll
        for (uint32_t h = 0; h < heads; ++h)
          scores[i][h] += __shfl_xor_sync(everyLane, scores[i][h], offset);
#pragma unroll
    for (uint32_t h = 0; h < heads; ++h) {
      float most = highest[h];
#pragma unroll
      for (uint32_t i = 0; i < ahead; ++i) {
        if (first + i * perTurn >= end)
          scores[i][h] = -INFINITY;
        most = fmaxf(most, scores[i][h]);
      }
      float correction = weightOf(highest[h], most);
      highest[h] = most;
      total[h] *= correction;
#pragma unroll
      for (uint32_t e = 0; e < 8; ++e)
        sums[h][e] *= correction;
#pragma unroll
      for (uint32_t i = 0; i < ahead; ++i) {
        scores[i][h] = weightOf(scores[i][h], most);
        total[h] += scores[i][h];
      }
    }
#pragma unroll
    for (uint32_t i = 0; i < ahead; ++i) {
      if (first + i * perTurn >= end) // stale, or nothing at all
        continue;
      float value[8];
      values[i].unpack(value);
#pragma unroll
      for (uint32_t h = 0; h < heads; ++h)
#pragma unroll
        for (uint32_t e = 0; e < 8; ++e)
          sums[h][e] = fmaf(scores[i][h], value[e], sums[h][e]);
    }
    first += ahead * perTurn;
    load(first, true);
  }

  // The tokens of a warp, the warps of a block, the blocks of the cluster.
#pragma unroll
  for (uint32_t h = 0; h < heads; ++h) {
#pragma unroll
    for (uint32_t offset = lanes; offset < warpThreads; offset *= 2) {
      float otherHighest = __shfl_xor_sync(everyLane, highest[h], offset);
      float otherTotal = __shfl_xor_sync(everyLane, total[h], offset);
      float most = fmaxf(highest[h], otherHighest);
      float mine = weightOf(highest[h], most), others = weightOf(otherHighest, most);
      highest[h] = most;
      total[h] = total[h] * mine + otherTotal * others;
#pragma unroll
      for (uint32_t e = 0; e < 8; ++e)
        sums[h][e] = sums[h][e] * mine + __shfl_xor_sync(everyLane, sums[h][e], offset) * others;
    }
    if (tokenOfWarp != 0)
      continue;
    if (lane == 0) {
      warpHighest[warp][h] = highest[h];
      warpTotal[warp][h] = total[h];
    }
    if (lane < valueLanes)
#pragma unroll
      for (uint32_t e = 0; e < 8; ++e)
        warpSums[warp][h][lane * 8 + e] = sums[h][e];
  }
  __syncthreads();
  constexpr uint32_t results = heads * K::value_width;
  for (uint32_t i = threadIdx.x; i < results; i += K::threads) {
    uint32_t h = i / K::value_width, e = i % K::value_width;
    float most = -INFINITY, all = 0, sum = 0;
#pragma unroll
    for (uint32_t w = 0; w < warps; ++w)
      most = fmaxf(most, warpHighest[w][h]);
#pragma unroll
    for (uint32_t w = 0; w < warps; ++w) {
      float weight = weightOf(warpHighest[w][h], most);
      all = fmaf(warpTotal[w][h], weight, all);
      sum = fmaf(warpSums[w][h][e], weight, sum);
    }
    blockSums[h][e] = sum;
    if (e == 0) {
      blockHighest[h] = most;
      blockTotal[h] = all;
    }
  }
  synchroniseCluster();
  uint8_t *y = slots.pointer<uint8_t>(Y) +
               (uint64_t(row) * K::query_heads + firstHead) * K::value_width * Stored::blockBytes;
  for (uint32_t i = split * K::threads + threadIdx.x; i < results; i += splits * K::threads) {
    uint32_t h = i / K::value_width, e = i % K::value_width;
    float most = -INFINITY, all = 0, sum = 0, each[splits];
#pragma unroll
    for (uint32_t b = 0; b < splits; ++b) {
      each[b] = readShared(&blockHighest[h], b);
      most = fmaxf(most, each[b]);
    }
#pragma unroll
    for (uint32_t b = 0; b < splits; ++b) {
      float weight = weightOf(each[b], most);
      all = fmaf(readShared(&blockTotal[h], b), weight, all);
      sum = fmaf(readShared(&blockSums[h][e], b), weight, sum);
    }
    storePlain(Stored{}, y + i * Stored::blockBytes, sum / all);
  }
  synchroniseCluster(); // until all have read, a block's shared memory must stay
}

} // namespace strata
