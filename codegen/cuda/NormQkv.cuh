// norm_qkv.<type>.<K>.<V>: x normalised; its queries, keys and values; queries and keys rotated;
// queries into y, keys and values into the sequence's block. For few rows.
//
// The outputs are those of q, k and v one after the other, by heads; two that rotate together are a
// pair.
#pragma once

#include "codegen/cuda/Product.cuh"
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
    NonfiniteLayer,
    Layer = 24
  };
  constexpr uint32_t half = K::head_width / 2;
  static_assert(K::head_width % 2 == 0);
  constexpr uint64_t heads = K::query_heads + 2 * K::kv_heads;
  constexpr uint64_t rowBytes = K::columns / T::blockElements * T::blockBytes;
  /// 0 for a head of queries, 1 of keys, 2 of values; and its number among them.
  auto kindOf = [](uint32_t head) {
    return head < K::query_heads ? 0 : head < K::query_heads + K::kv_heads ? 1 : 2;
  };
  auto headOfKind = [&](uint32_t head) {
    uint32_t kind = kindOf(head);
    return kind == 0 ? head : uint32_t(head - K::query_heads - (kind - 1) * K::kv_heads);
  };
  multiplyPairs<T, K, heads * half, true>(
      slots, slots.pointer<const float>(X), slots.pointer<const float>(Norm), real(K::epsilon),
      [&](uint32_t pair, uint32_t side) {
        uint32_t head = pair / half;
        uint64_t output =
            uint64_t(headOfKind(head)) * K::head_width + elementOfPair<K>(pair % half, side);
        return slots.pointer<const uint8_t>(Query + kindOf(head)) + output * rowBytes;
      },
      [&](uint32_t pair, uint32_t row, float first, float second, float meanSquare) {
        uint32_t head = pair / half, own = headOfKind(head), kind = kindOf(head);
        auto position = uint64_t(slots.pointer<const int32_t>(RowPosition)[row]);
        auto sequence = uint64_t(slots.pointer<const int32_t>(RowSequence)[row]);
        if (pair == 0)
          reportNonfinite(meanSquare, slots.pointer<int32_t>(NonfiniteLayer), int32_t(sequence),
                          slots.at[Layer]);
        pair %= half;
        uint32_t elements[] = {elementOfPair<K>(pair, 0), elementOfPair<K>(pair, 1)};
        if (auto *bias = slots.pointer<const float>(QueryBias + kind)) {
          first += bias[own * K::head_width + elements[0]];
          second += bias[own * K::head_width + elements[1]];
        }
        if (kind != 2 && pair < K::rotary_width / 2) {
          constexpr double turn = 6.283185307179586476925;
          constexpr double magnitude = __builtin_bit_cast(double, uint64_t(K::magnitude));
          double angle = double(position) * double(slots.pointer<const float>(Frequencies)[pair]);
          float sine, cosine;
          sincosf(float(angle - turn * rint(angle / turn)), &sine, &cosine);
          sine *= float(magnitude);
          cosine *= float(magnitude);
          float rotated = first * cosine - second * sine;
          second = first * sine + second * cosine;
          first = rotated;
        }
        if (kind == 0) {
          float *y = slots.pointer<float>(Y) + (uint64_t(row) * K::query_heads + head) * K::head_width;
          y[elements[0]] = first;
          y[elements[1]] = second;
          return;
        }
        auto block = uint64_t(slots.pointer<const int32_t>(
            BlockTable)[sequence * K::max_blocks + position / K::block_tokens]);
        uint64_t place = (position % K::block_tokens * K::kv_heads + own) * K::head_width;
        auto store = [&](auto type, uint32_t slot) {
          uint8_t *to = slots.pointer<uint8_t>(slot) + block * K::block_stride;
          storePlain(type, to + (place + elements[0]) * type.blockBytes, first);
          storePlain(type, to + (place + elements[1]) * type.blockBytes, second);
        };
        if (kind == 1)
          store(KeyType{}, Keys);
        else
          store(ValueType{}, Values);
      });
}

} // namespace strata
