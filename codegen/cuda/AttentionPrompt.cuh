// attention_prompt.<type>, with .<stored> or not: causal attention of many rows of few sequences,
// on the matrix units.
//
// A block has a tile of consecutive rows of one sequence with all query heads that share a KV head,
// so that keys and values are fetched once for all of them; it walks the visible tokens with a
// running maximum and sum for each row (online softmax). A warp has 32 rows (16 of wide heads) and
// keeps their weighted sums; queries, keys and values pass through shared memory, values on their
// way while scores are computed and the next keys while values are added. Queries and weights are
// rounded to the cache's type, sums are F32. Bound by the matrix units: 2 * rows * (keys + values)
// operations for each visible token.
#pragma once

#include "codegen/cuda/AttentionShape.h"
#include "codegen/cuda/MatrixUnits.cuh"
#include "codegen/cuda/Narrow.cuh"

namespace strata {

inline float exponentOf2(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

/// Over the four lanes that share a row of a product's sums.
template <class Combine> inline float quadReduce(float value, Combine combine) {
  value = combine(value, __shfl_xor_sync(everyLane, value, 1));
  return combine(value, __shfl_xor_sync(everyLane, value, 2));
}

template <class T, class Stored, class K> class AttentionPrompt {
public:
  inline void run(const Slots<18> &slots);

private:
  enum { Q, Keys, Values, Y, BlockTable, QueryStart, ValidSequences, RowPosition };
  static constexpr uint32_t group = K::query_heads / K::kv_heads;
  static constexpr cuda::AttentionTile tile =
      cuda::attentionTile(group, K::key_width, K::value_width);
  static constexpr uint32_t warpRows = tile.rows / 4, parts = warpRows / 16;
  static constexpr uint32_t keyTiles = tile.keys / 8, valueTiles = K::value_width / 8;
  static constexpr uint32_t keyStride = (K::key_width + cuda::attentionPadding) * T::blockBytes;
  static constexpr uint32_t valueStride = (K::value_width + cuda::attentionPadding) * T::blockBytes;
  static constexpr uint64_t nowhere = ~uint64_t(0);
  static_assert(K::threads == tile.threads && isNarrow<T>);

  // Shared memory: queries, keys, values, and of each token of two tiles where key and value lie.
  static constexpr uint32_t keysAt = tile.rows * keyStride;
  static constexpr uint32_t valuesAt = keysAt + tile.keys * keyStride;
  static constexpr uint32_t placesAt = valuesAt + tile.keys * valueStride;
  static_assert(placesAt + 2 * tile.keys * 2 * sizeof(uint64_t) == tile.sharedBytes);

  inline bool findTile(const Slots<18> &slots);
  inline void loadQueries(const float *q);
  inline void findPlaces(const int32_t *table, uint32_t first);
  template <uint32_t Width, uint32_t Stride>
  inline void copyTile(const uint8_t *state, uint32_t to, uint32_t kind, uint32_t first);
  inline void score();
  inline void weigh(uint32_t first);
  inline void addValues();
  inline void store(uint8_t *y);

  /// Of row `16 * part + lane / 4 + 8 * half` of the warp: its token within the tile.
  inline uint32_t tokenOf(uint32_t part, uint32_t half) const {
    return (warp_ * warpRows + part * 16 + lane_ / 4 + half * 8) / group;
  }
  inline uint64_t *placeOf(uint32_t first, uint32_t kind, uint32_t token) const {
    uint32_t parity = first / tile.keys % 2;
    return reinterpret_cast<uint64_t *>(memory_ + placesAt) + (parity * 2 + kind) * tile.keys +
           token;
  }

  uint8_t *memory_;
  uint32_t address_; ///< Of shared memory.
  uint32_t warp_ = threadIdx.x / warpThreads, lane_ = threadIdx.x % warpThreads;
  uint32_t sequence_, row_, tokens_; ///< The tile's, its first row, how many.
  uint32_t position_;                ///< Of its first row.
  uint32_t end_;                     ///< One past the last visible token.
  uint32_t start_;                   ///< The first, down to a whole tile of tokens.
  float scores_[parts][keyTiles][4];
  float sums_[parts][valueTiles][4] = {};
  float highest_[parts][2], total_[parts][2] = {};
};

/// Tiles are numbered backwards: the long ones begin first.
template <class T, class Stored, class K>
inline bool AttentionPrompt<T, Stored, K>::findTile(const Slots<18> &slots) {
  auto *starts = slots.pointer<const int32_t>(QueryStart);
  uint32_t left = blockIdx.y;
  for (uint32_t s = uint32_t(*slots.pointer<const int32_t>(ValidSequences)); s-- > 0;) {
    uint32_t begin = uint32_t(starts[s]), rows = uint32_t(starts[s + 1]) - begin;
    uint32_t tiles = (rows + tile.tokens - 1) / tile.tokens;
    if (left >= tiles) {
      left -= tiles;
      continue;
    }
    uint32_t first = (tiles - 1 - left) * tile.tokens;
    sequence_ = s;
    row_ = begin + first;
    tokens_ = rows - first < tile.tokens ? rows - first : tile.tokens;
    position_ = uint32_t(slots.pointer<const int32_t>(RowPosition)[row_]);
    end_ = position_ + tokens_;
    uint32_t visible =
        K::window && position_ >= K::window ? position_ + 1 - uint32_t(K::window) : 0;
    start_ = visible / tile.keys * tile.keys;
    return true;
  }
  return false;
}

/// Rows of the tile are token by token, and of a token head by head.
template <class T, class Stored, class K>
inline void AttentionPrompt<T, Stored, K>::loadQueries(const float *q) {
  constexpr uint32_t packs = K::key_width / 8;
  for (uint32_t i = threadIdx.x; i < tile.rows * packs; i += tile.threads) {
    uint32_t row = i / packs, token = row / group;
    uint4 pack = {};
    if (token < tokens_) {
      auto *from = reinterpret_cast<const float4 *>(
          q + (uint64_t(token) * K::query_heads + row % group) * K::key_width + i % packs * 8);
      float4 a = from[0], b = from[1];
      pack = {packPair<T>(a.x, a.y), packPair<T>(a.z, a.w), packPair<T>(b.x, b.y),
              packPair<T>(b.z, b.w)};
    }
    *reinterpret_cast<uint4 *>(memory_ + row * keyStride + i % packs * 16) = pack;
  }
}

template <class T, class Stored, class K>
inline void AttentionPrompt<T, Stored, K>::findPlaces(const int32_t *table, uint32_t first) {
  if (threadIdx.x >= tile.keys)
    return;
  uint32_t token = first + threadIdx.x;
  // Blocks that no row of the tile looks at may be gone, and the sequence may end before the tile.
  bool isVisible = token < end_ && (!K::window || token + uint32_t(K::window) > position_);
  uint64_t key = nowhere, value = nowhere;
  if (isVisible) {
    uint64_t block = uint64_t(table[token / uint32_t(K::block_tokens)]) * K::block_stride;
    uint64_t place = token % uint32_t(K::block_tokens) * K::kv_heads + blockIdx.x;
    key = block + place * K::key_width * T::blockBytes;
    value = block + place * K::value_width * T::blockBytes;
  }
  *placeOf(first, 0, threadIdx.x) = key;
  *placeOf(first, 1, threadIdx.x) = value;
}

template <class T, class Stored, class K>
template <uint32_t Width, uint32_t Stride>
inline void AttentionPrompt<T, Stored, K>::copyTile(const uint8_t *state, uint32_t to,
                                                    uint32_t kind, uint32_t first) {
  constexpr uint32_t packs = Width / 8;
#pragma unroll
  for (uint32_t i = threadIdx.x; i < tile.keys * packs; i += tile.threads) {
    uint64_t place = *placeOf(first, kind, i / packs);
    bool isVisible = place != nowhere;
    copyAhead(address_ + to + i / packs * Stride + i % packs * 16,
              state + (isVisible ? place + i % packs * 16 : 0), isVisible);
  }
}

/// scores = queries keys^T
template <class T, class Stored, class K> inline void AttentionPrompt<T, Stored, K>::score() {
#pragma unroll
  for (uint32_t p = 0; p < parts; ++p)
#pragma unroll
    for (uint32_t n = 0; n < keyTiles; ++n)
#pragma unroll
      for (uint32_t i = 0; i < 4; ++i)
        scores_[p][n][i] = 0;
  uint32_t queries = address_ + (warp_ * warpRows + lane_ % 16) * keyStride + lane_ / 16 * 16;
  uint32_t keys = address_ + keysAt + (lane_ % 8 + lane_ / 16 * 8) * keyStride + lane_ / 8 % 2 * 16;
#pragma unroll
  for (uint32_t k = 0; k < K::key_width / 16; ++k) {
    uint32_t a[parts][4];
#pragma unroll
    for (uint32_t p = 0; p < parts; ++p)
      loadMatrices(a[p], queries + p * 16 * keyStride + k * 32);
#pragma unroll
    for (uint32_t n = 0; n < keyTiles; n += 2) {
      uint32_t b[4];
      loadMatrices(b, keys + n * 8 * keyStride + k * 32);
#pragma unroll
      for (uint32_t p = 0; p < parts; ++p) {
        multiplyMatrices<T>(scores_[p][n], a[p], b[0], b[1]);
        multiplyMatrices<T>(scores_[p][n + 1], a[p], b[2], b[3]);
      }
    }
  }
}

/// Hides what a row does not see, and turns scores into weights of the new maximum.
template <class T, class Stored, class K>
inline void AttentionPrompt<T, Stored, K>::weigh(uint32_t first) {
  constexpr float scale = real(K::scale) * 1.4426950408889634f; // exponents are of 2
  bool isMasked = first + tile.keys - 1 > position_;
  if constexpr (K::window > 0)
    isMasked |= first + uint32_t(K::window) <= position_ + tokens_ - 1;
#pragma unroll
  for (uint32_t p = 0; p < parts; ++p)
#pragma unroll
    for (uint32_t half = 0; half < 2; ++half) {
      if (isMasked) {
        uint32_t position = position_ + tokenOf(p, half), key = first + lane_ % 4 * 2;
#pragma unroll
        for (uint32_t n = 0; n < keyTiles; ++n)
#pragma unroll
          for (uint32_t i = 0; i < 2; ++i) {
            uint32_t token = key + n * 8 + i;
            bool isVisible =
                token <= position && (!K::window || token + uint32_t(K::window) > position);
            if (!isVisible)
              scores_[p][n][half * 2 + i] = -INFINITY;
          }
      }
      float most = highest_[p][half];
#pragma unroll
      for (uint32_t n = 0; n < keyTiles; ++n)
        most = fmaxf(most, fmaxf(scores_[p][n][half * 2], scores_[p][n][half * 2 + 1]));
      most = quadReduce(most, [](float a, float b) { return fmaxf(a, b); });
      // Nothing seen yet: every weight is to be 0.
      float base = most == -INFINITY ? 0.0f : most * scale;
      float correction = exponentOf2(fmaf(highest_[p][half], scale, -base));
      highest_[p][half] = most;
      float sum = 0;
#pragma unroll
      for (uint32_t n = 0; n < keyTiles; ++n)
#pragma unroll
        for (uint32_t i = 0; i < 2; ++i) {
          float &score = scores_[p][n][half * 2 + i];
          score = exponentOf2(fmaf(score, scale, -base));
          sum += score;
        }
      total_[p][half] = fmaf(total_[p][half], correction, sum);
      if (__any_sync(everyLane, correction != 1.0f))
#pragma unroll
        for (uint32_t n = 0; n < valueTiles; ++n)
#pragma unroll
          for (uint32_t i = 0; i < 2; ++i)
            sums_[p][n][half * 2 + i] *= correction;
    }
}

/// sums += weights values
template <class T, class Stored, class K> inline void AttentionPrompt<T, Stored, K>::addValues() {
  uint32_t values = address_ + valuesAt + lane_ % 16 * valueStride + lane_ / 16 * 16;
#pragma unroll
  for (uint32_t k = 0; k < tile.keys / 16; ++k) {
    uint32_t a[parts][4];
#pragma unroll
    for (uint32_t p = 0; p < parts; ++p)
#pragma unroll
      for (uint32_t i = 0; i < 4; ++i)
        a[p][i] = packPair<T>(scores_[p][2 * k + i / 2][i % 2 * 2],
                              scores_[p][2 * k + i / 2][i % 2 * 2 + 1]);
#pragma unroll
    for (uint32_t n = 0; n < valueTiles; n += 2) {
      uint32_t b[4];
      loadTransposed(b, values + k * 16 * valueStride + n * 16);
#pragma unroll
      for (uint32_t p = 0; p < parts; ++p) {
        multiplyMatrices<T>(sums_[p][n], a[p], b[0], b[1]);
        multiplyMatrices<T>(sums_[p][n + 1], a[p], b[2], b[3]);
      }
    }
  }
}

template <class T, class Stored, class K>
inline void AttentionPrompt<T, Stored, K>::store(uint8_t *y) {
#pragma unroll
  for (uint32_t p = 0; p < parts; ++p)
#pragma unroll
    for (uint32_t half = 0; half < 2; ++half) {
      float factor = 1.0f / quadReduce(total_[p][half], [](float a, float b) { return a + b; });
      uint32_t row = warp_ * warpRows + p * 16 + lane_ / 4 + half * 8, token = row / group;
      if (token >= tokens_)
        continue;
      uint8_t *to =
          y + ((uint64_t(token) * K::query_heads + row % group) * K::value_width + lane_ % 4 * 2) *
                  Stored::blockBytes;
#pragma unroll
      for (uint32_t n = 0; n < valueTiles; ++n) {
        float first = sums_[p][n][half * 2] * factor, second = sums_[p][n][half * 2 + 1] * factor;
        if constexpr (isNarrow<Stored>)
          *reinterpret_cast<uint32_t *>(to + n * 16) = packPair<Stored>(first, second);
        else
          *reinterpret_cast<float2 *>(to + n * 32) = {first, second};
      }
    }
}

template <class T, class Stored, class K>
inline void AttentionPrompt<T, Stored, K>::run(const Slots<18> &slots) {
  extern __shared__ __align__(16) uint8_t attentionMemory[];
  memory_ = attentionMemory;
  address_ = sharedAddress(memory_);
#pragma unroll
  for (uint32_t p = 0; p < parts; ++p)
    highest_[p][0] = highest_[p][1] = -INFINITY;

  admitSuccessor();
  if (!findTile(slots)) // of the step, which does not change while it runs
    return;
  auto *table = slots.pointer<const int32_t>(BlockTable) + uint64_t(sequence_) * K::max_blocks;
  auto *keys = slots.pointer<const uint8_t>(Keys), *values = slots.pointer<const uint8_t>(Values);
  uint64_t head = uint64_t(row_) * K::query_heads + blockIdx.x * group;
  findPlaces(table, start_);
  awaitPredecessor();
  __syncthreads();
  copyTile<K::key_width, keyStride>(keys, keysAt, 0, start_);
  loadQueries(slots.pointer<const float>(Q) + head * K::key_width);
#pragma unroll 1
  for (uint32_t first = start_; first < end_; first += tile.keys) {
    awaitCopies();
    __syncthreads(); // keys are there, and the last values have been read
    copyTile<K::value_width, valueStride>(values, valuesAt, 1, first);
    findPlaces(table, first + tile.keys);
    score();
    awaitCopies();
    __syncthreads(); // values are there, and keys have been read
    if (first + tile.keys < end_)
      copyTile<K::key_width, keyStride>(keys, keysAt, 0, first + tile.keys);
    weigh(first);
    addValues();
  }
  store(slots.pointer<uint8_t>(Y) + head * K::value_width * Stored::blockBytes);
}

template <class T, class Stored, class K> inline void attentionPrompt(const Slots<18> &slots) {
  AttentionPrompt<T, Stored, K>().run(slots);
}

template <class T, class K> inline void attentionPrompt(const Slots<18> &slots) {
  attentionPrompt<T, F32, K>(slots);
}

} // namespace strata
