// attention.<K>.<V>: causal attention of each row over its own sequence's blocks.
//
// One item is one query head of one row. It walks the visible positions in tiles that begin at
// multiples of 32, with a running maximum and sum (online softmax), so what it computes depends on
// its own position and window alone: not on the batch, the chunk or the size of a block. The
// weighted sum of values is kept in the item's own part of y. Bound by the bytes of K and V, read
// once a query head.
#include "codegen/cpu/Families.h"

namespace strata::cpu::STRATA_ISA_NAMESPACE {
namespace {

enum Slot {
  Q,
  K,
  V,
  Y,
  BlockTable,
  RowSequence,
  RowPosition,
  QueryHeads,
  KvHeads,
  KeyWidth,
  ValueWidth,
  Scale,
  Window,
  BlockTokens,
  BlockStride,
  MaxBlocks
};

constexpr uint32_t tileTokens = 2 * laneCount;

/// Where the keys and values of one tile's tokens lie.
struct Tile {
  const uint8_t *keys[tileTokens], *values[tileTokens];
  uint32_t tokens;
};

/// y = y * correction + sum over the tile's tokens of weight * value.
template <class T>
STRATA_INLINE void addValues(const Tile &tile, const float *weights, float correction, float *y,
                             uint64_t width) {
  constexpr uint32_t pieces = 4; // sums in flight: a fused step takes 4 cycles
  uint64_t first = 0;
  for (; first + pieces * laneCount <= width; first += pieces * laneCount) {
    Lanes sums[pieces];
    for (uint32_t i = 0; i < pieces; ++i)
      sums[i] = load(y + first + i * laneCount) * splat(correction);
    for (uint32_t t = 0; t < tile.tokens; ++t) {
      Lanes weight = splat(weights[t]);
      for (uint32_t i = 0; i < pieces; ++i)
        sums[i] =
            fma(weight, loadPlain<T>(tile.values[t] + (first + i * laneCount) * T::blockBytes),
                sums[i]);
    }
    for (uint32_t i = 0; i < pieces; ++i)
      store(y + first + i * laneCount, sums[i]);
  }
  forEachPiece(width - first, [&](uint64_t offset, uint32_t count) {
    Lanes sum = loadPiece(y + first + offset, count) * splat(correction);
    for (uint32_t t = 0; t < tile.tokens; ++t)
      sum = fma(splat(weights[t]),
                loadPlainPiece<T>(tile.values[t] + (first + offset) * T::blockBytes, count), sum);
    storePiece(y + first + offset, sum, count);
  });
}

/// With `IsLatent` a key is the value followed by the key component, and so is a query head.
template <class KeyType, class ValueType, bool IsLatent>
void attention(const uint64_t *slots, uint32_t begin, uint32_t end, uint32_t) {
  uint64_t queryHeads = slots[QueryHeads], kvHeads = slots[KvHeads];
  uint64_t keyWidth = slots[KeyWidth], valueWidth = slots[ValueWidth];
  uint64_t keyBytes = keyWidth * KeyType::blockBytes,
           valueBytes = valueWidth * ValueType::blockBytes;
  uint64_t blockTokens = slots[BlockTokens], window = slots[Window];
  uint64_t queryWidth = keyWidth + (IsLatent ? valueWidth : 0);
  float scale = realAt(slots, Scale);
  auto score = [&](const float *q, const uint8_t *key, const uint8_t *value) {
    if constexpr (!IsLatent)
      return sumOf(dotLanes<KeyType>(q, key, keyWidth)) * scale;
    else
      return sumOf(dotLanes<ValueType>(q, value, valueWidth) +
                   dotLanes<KeyType>(q + valueWidth, key, keyWidth)) *
             scale;
  };

  for (uint32_t item = begin; item < end; ++item) {
    uint32_t row = uint32_t(item / queryHeads), head = uint32_t(item % queryHeads);
    uint64_t kvHead = head / (queryHeads / kvHeads);
    auto position = uint64_t(pointerAt<const int32_t>(slots, RowPosition)[row]);
    auto sequence = uint64_t(pointerAt<const int32_t>(slots, RowSequence)[row]);
    auto *table = pointerAt<const int32_t>(slots, BlockTable) + sequence * slots[MaxBlocks];
    const float *q = pointerAt<const float>(slots, Q) + item * queryWidth;
    float *y = pointerAt<float>(slots, Y) + item * valueWidth;

    std::memset(y, 0, valueWidth * sizeof(float));
    float highest = -__builtin_inff(), total = 0;
    uint64_t token = window && position >= window ? position + 1 - window : 0;
    while (token <= position) {
      uint64_t tileEnd = token / tileTokens * tileTokens + tileTokens;
      if (tileEnd > position + 1)
        tileEnd = position + 1;
      Tile tile;
      tile.tokens = uint32_t(tileEnd - token);
      for (uint32_t t = 0; t < tile.tokens; ++t, ++token) {
        uint64_t block = uint64_t(table[token / blockTokens]) * slots[BlockStride];
        uint64_t place = token % blockTokens * kvHeads + kvHead;
        tile.keys[t] = pointerAt<const uint8_t>(slots, K) + block + place * keyBytes;
        tile.values[t] = pointerAt<const uint8_t>(slots, V) + block + place * valueBytes;
      }

      alignas(64) float scores[tileTokens];
      for (uint32_t t = 0; t < tileTokens; ++t)
        scores[t] = t < tile.tokens ? score(q, tile.keys[t], tile.values[t]) : -__builtin_inff();
      Lanes low = load(scores), high = load(scores + laneCount);
      float newHighest = maximumOf(maximum(maximum(low, high), splat(highest)));
      // The first tile's exponent is of -infinity: a correction of 0 for sums that are 0.
      float correction = firstOf(exponential(splat(highest - newHighest)));
      low = exponential(low - splat(newHighest));
      high = exponential(high - splat(newHighest));
      store(scores, low);
      store(scores + laneCount, high);
      total = total * correction + sumOf(low + high);
      highest = newHighest;
      addValues<ValueType>(tile, scores, correction, y, valueWidth);
    }
    Lanes divisor = splat(total);
    forEachPiece(valueWidth, [&](uint64_t first, uint32_t count) {
      storePiece(y + first, loadPiece(y + first, count) / divisor, count);
    });
  }
}

template <class Key, class Value>
constexpr KernelName nameOf{"attention.", Key::name, ".", Value::name};
template <class Key, class Value>
constexpr KernelName latentNameOf{"attention_latent.", Key::name, ".", Value::name};

template <class Key, class Value>
constexpr KernelEntry entry = {nameOf<Key, Value>.view(), attention<Key, Value, false>};
template <class Key, class Value>
constexpr KernelEntry latentEntry = {latentNameOf<Key, Value>.view(), attention<Key, Value, true>};

constexpr KernelEntry entries[] = {
    entry<F32, F32>,        entry<F32, F16>,         entry<F32, BF16>,       entry<F16, F32>,
    entry<F16, F16>,        entry<F16, BF16>,        entry<BF16, F32>,       entry<BF16, F16>,
    entry<BF16, BF16>,      latentEntry<F32, F32>,   latentEntry<F32, F16>,  latentEntry<F32, BF16>,
    latentEntry<F16, F32>,  latentEntry<F16, F16>,   latentEntry<F16, BF16>, latentEntry<BF16, F32>,
    latentEntry<BF16, F16>, latentEntry<BF16, BF16>,
};

} // namespace

KernelList attentionKernels() { return {entries, sizeof entries / sizeof entries[0]}; }

} // namespace strata::cpu::STRATA_ISA_NAMESPACE
