// qkv_rope.<K>.<V>: queries, keys and values of a product, side by side: queries and keys rotated;
// queries into y, keys and values into the sequence's block. Bound by memory.
#pragma once

#include "codegen/cuda/Narrow.cuh"

namespace strata {

/// One block a row; a thread has four elements of a head at a time.
template <class KeyType, class ValueType, class K> inline void qkvRope(const Slots<20> &slots) {
  enum {
    X,
    QueryBias,
    KeyBias,
    ValueBias,
    Frequencies,
    Y,
    Keys,
    Values,
    BlockTable,
    RowSequence,
    RowPosition
  };
  constexpr uint32_t pairs = K::rotary_width / 2, fours = K::head_width / 4;
  constexpr uint32_t heads = K::query_heads + 2 * K::kv_heads;
  static_assert(K::head_width % 4 == 0);
  __shared__ float cosine[pairs], sine[pairs];
  admitSuccessor();
  uint32_t row = blockIdx.x;
  if (row >= *slots.valid)
    return;
  // The step does not change while it runs.
  auto position = uint64_t(slots.pointer<const int32_t>(RowPosition)[row]);
  auto sequence = uint64_t(slots.pointer<const int32_t>(RowSequence)[row]);
  auto block = uint64_t(slots.pointer<const int32_t>(
      BlockTable)[sequence * K::max_blocks + position / K::block_tokens]);
  uint64_t place = position % K::block_tokens * K::kv_heads * K::head_width;
  for (uint32_t j = threadIdx.x; j < pairs; j += K::threads) {
    constexpr double turn = 6.283185307179586476925;
    double angle = double(position) * double(slots.pointer<const float>(Frequencies)[j]);
    constexpr double magnitude = __builtin_bit_cast(double, uint64_t(K::magnitude));
    float s, c;
    sincosf(float(angle - turn * rint(angle / turn)), &s, &c);
    cosine[j] = c * float(magnitude);
    sine[j] = s * float(magnitude);
  }
  __syncthreads();
  awaitPredecessor();
  const float *x = slots.pointer<const float>(X) + uint64_t(row) * heads * K::head_width;
  float *y = slots.pointer<float>(Y) + uint64_t(row) * K::query_heads * K::head_width;
  uint8_t *keys =
      slots.pointer<uint8_t>(Keys) + block * K::block_stride + place * KeyType::blockBytes;
  uint8_t *values =
      slots.pointer<uint8_t>(Values) + block * K::block_stride + place * ValueType::blockBytes;
  for (uint32_t i = threadIdx.x; i < heads * fours; i += K::threads) {
    uint32_t head = i / fours, first = i % fours * 4;
    bool isQuery = head < K::query_heads, isKey = !isQuery && head < K::query_heads + K::kv_heads;
    uint32_t headOfKind = isQuery ? head
                          : isKey ? head - K::query_heads
                                  : head - K::query_heads - K::kv_heads;
    const float *from = x + head * K::head_width;
    auto *bias = slots.pointer<const float>(isQuery ? QueryBias : isKey ? KeyBias : ValueBias);
    if (bias)
      bias += headOfKind * K::head_width;
    auto four = [&](uint32_t element) {
      float4 value = *reinterpret_cast<const float4 *>(from + element);
      if (bias) {
        float4 more = *reinterpret_cast<const float4 *>(bias + element);
        value.x += more.x, value.y += more.y, value.z += more.z, value.w += more.w;
      }
      return value;
    };
    auto one = [&](uint32_t element) {
      return bias ? from[element] + bias[element] : from[element];
    };
    float4 own = four(first);
    float values4[] = {own.x, own.y, own.z, own.w};
    if (isQuery || isKey) {
      if constexpr (K::interleaved) {
#pragma unroll
        for (uint32_t j = 0; j < 4; j += 2)
          if (uint32_t pair = (first + j) / 2; pair < pairs) {
            float a = values4[j], b = values4[j + 1];
            values4[j] = a * cosine[pair] - b * sine[pair];
            values4[j + 1] = a * sine[pair] + b * cosine[pair];
          }
      } else if constexpr (pairs % 4 == 0) {
        if (first < 2 * pairs) {
          bool isFirst = first < pairs;
          uint32_t pair = isFirst ? first : first - pairs;
          float4 other = four(isFirst ? first + pairs : pair);
          const float others[] = {other.x, other.y, other.z, other.w};
#pragma unroll
          for (uint32_t j = 0; j < 4; ++j)
            values4[j] = isFirst ? values4[j] * cosine[pair + j] - others[j] * sine[pair + j]
                                 : others[j] * sine[pair + j] + values4[j] * cosine[pair + j];
        }
      } else {
#pragma unroll
        for (uint32_t j = 0; j < 4; ++j)
          if (uint32_t element = first + j; element < pairs)
            values4[j] = values4[j] * cosine[element] - one(element + pairs) * sine[element];
          else if (element < 2 * pairs)
            values4[j] =
                one(element - pairs) * sine[element - pairs] + values4[j] * cosine[element - pairs];
      }
    }
    float4 result{values4[0], values4[1], values4[2], values4[3]};
    uint32_t element = headOfKind * K::head_width + first;
    if (isQuery)
      *reinterpret_cast<float4 *>(y + element) = result;
    else if (isKey)
      storeFour<KeyType>(keys + element * KeyType::blockBytes, result);
    else
      storeFour<ValueType>(values + element * ValueType::blockBytes, result);
  }
}

} // namespace strata
