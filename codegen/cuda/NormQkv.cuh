// norm_qkv.<type>.<K>.<V>: x normalised; its queries, keys and values; queries and keys rotated;
// queries into y, keys and values into the sequence's block. For few rows.
//
// The outputs are those of q, k and v one after the other, by heads. A block has whole rotary pairs
// of one head.
#pragma once

#include "codegen/cuda/MatvecTile.cuh"
#include "codegen/cuda/State.cuh"

namespace strata {

/// Element of a head that is the first (`side` 0) or second of pair `pair`; past the rotary part,
/// elements that do not rotate pair up as they lie.
template <class K> inline uint32_t elementOfPair(uint32_t pair, uint32_t side) {
  constexpr uint32_t pairs = K::rotary_width / 2;
  return pair >= pairs || K::interleaved ? 2 * pair + side : pair + side * pairs;
}

template <class T, class KeyType, class ValueType, class K>
inline void normQkv(const Slots<28> &slots) {
  enum {
    X,
    Norm,
    Query,
    Key,
    Value,
    QueryBias,
    KeyBias,
    ValueBias,
    Frequencies,
    Y,
    Keys,
    Values,
    BlockTable,
    RowSequence,
    RowPosition,
    NonfiniteLayer
  };
  admitSuccessor();
  constexpr uint64_t heads = K::query_heads + 2 * K::kv_heads;
  using Of = MatvecOf<T, K, heads * K::head_width, true, K::head_width % 16 == 0>;
  constexpr uint32_t half = Of::outputs / 2, blocksPerHead = K::head_width / Of::outputs;
  static_assert(K::head_width % Of::outputs == 0);
  uint32_t head = blockIdx.x / blocksPerHead, firstPair = blockIdx.x % blocksPerHead * half;
  bool isQuery = head < K::query_heads, isKey = !isQuery && head < K::query_heads + K::kv_heads;
  uint32_t headOfKind = isQuery ? head : isKey ? head - K::query_heads
                                               : head - K::query_heads - K::kv_heads;
  auto *weight = slots.pointer<const uint8_t>(isQuery ? Query : isKey ? Key : Value);
  const uint8_t *rows[Of::outputs];
#pragma unroll
  for (uint32_t o = 0; o < Of::outputs; ++o)
    rows[o] = weight + (uint64_t(headOfKind) * K::head_width +
                        elementOfPair<K>(firstPair + o % half, o / half)) *
                           Of::type::rowBytes;
  typename Of::type matvec;
  matvec.prefetch(rows);

  // The step does not change while it runs: angles are ready before the products are.
  uint32_t o = threadIdx.x / K::rows, r = threadIdx.x % K::rows;
  uint32_t valid = *slots.valid, pair = firstPair + o % half;
  bool isResult = threadIdx.x < Of::type::results && r < valid;
  uint64_t position = isResult ? slots.pointer<const int32_t>(RowPosition)[r] : 0;
  float sine = 0, cosine = 1;
  if (isResult && (isQuery || isKey) && pair < K::rotary_width / 2) {
    constexpr double turn = 6.283185307179586476925;
    double angle = double(position) * double(slots.pointer<const float>(Frequencies)[pair]);
    sincosf(float(angle - turn * rint(angle / turn)), &sine, &cosine);
    constexpr double magnitude = __builtin_bit_cast(double, uint64_t(K::magnitude));
    sine *= float(magnitude);
    cosine *= float(magnitude);
  }
  awaitPredecessor();
  auto result = matvec.run(slots.pointer<const float>(X), valid, slots.pointer<const float>(Norm),
                           real(K::epsilon));
  uint32_t element = elementOfPair<K>(pair, o / half);
  if (isResult)
    if (auto *bias = slots.pointer<const float>(isQuery ? QueryBias
                                                : isKey ? KeyBias
                                                        : ValueBias))
      result.value += bias[headOfKind * K::head_width + element];
  __shared__ float products[Of::type::results];
  if (threadIdx.x < Of::type::results)
    products[threadIdx.x] = result.value;
  __syncthreads();
  if (!isResult)
    return;
  auto sequence = uint64_t(slots.pointer<const int32_t>(RowSequence)[r]);
  if (blockIdx.x == 0 && o == 0)
    reportNonfinite(result.meanSquare, slots.pointer<int32_t>(NonfiniteLayer), int32_t(sequence),
                    K::layer);
  float other = products[(o + half) % Of::outputs * K::rows + r];
  float value = o < half ? result.value * cosine - other * sine
                         : other * sine + result.value * cosine;
  if (isQuery) {
    slots.pointer<float>(Y)[(uint64_t(r) * K::query_heads + head) * K::head_width + element] =
        value;
    return;
  }
  auto block = uint64_t(slots.pointer<const int32_t>(
      BlockTable)[sequence * K::max_blocks + position / K::block_tokens]);
  uint64_t place =
      (position % K::block_tokens * K::kv_heads + headOfKind) * K::head_width + element;
  if (isKey)
    storePlain(KeyType{},
               slots.pointer<uint8_t>(Keys) + block * K::block_stride + place * KeyType::blockBytes,
               value);
  else
    storePlain(ValueType{},
               slots.pointer<uint8_t>(Values) + block * K::block_stride +
                   place * ValueType::blockBytes,
               result.value);
}

} // namespace strata
