// linear.<type> and norm_linear.<type>: y[row][o] (+)= dot(weight[o], x[row]) + bias[o], in the
// latter x normalised first. Few rows, which read the weights once for up to eight; BF16 has tiles
// for more (LinearTile.cuh).
#pragma once

#include "codegen/cuda/Product.cuh"

namespace strata {

/// Where row `output` of a weight begins; nullptr past the last.
template <class T, class K> inline const uint8_t *rowOfWeight(uint64_t weight, uint64_t output) {
  constexpr uint64_t rowBytes = K::columns / T::blockElements * T::blockBytes;
  return output < K::outputs ? reinterpret_cast<const uint8_t *>(weight) + output * rowBytes
                             : nullptr;
}

template <class T, class K> inline void linear(const Slots<10> &slots) {
  if constexpr (K::rows > cuda::matvecRows) { // the launch shape's choice: BF16 alone
    linearTile<K>(slots);
  } else {
    enum { X, Weight, Bias, Y };
    auto *bias = slots.pointer<const float>(Bias);
    auto *y = slots.pointer<float>(Y);
    auto store = [&](uint64_t output, uint32_t row, float value) {
      if (output >= K::outputs)
        return;
      if (bias)
        value += bias[output];
      float &to = y[row * K::outputs + output];
      to = K::accumulate ? to + value : value;
    };
    multiplyPairs<T, K, (K::outputs + 1) / 2, false>(
        slots, slots.pointer<const float>(X), nullptr, 0,
        [&](uint32_t pair, uint32_t side) {
          return rowOfWeight<T, K>(slots.at[Weight], 2ull * pair + side);
        },
        [&](uint32_t pair, uint32_t row, float first, float second, float) {
          store(2ull * pair, row, first);
          store(2ull * pair + 1, row, second);
        });
  }
}

template <class T, class K> inline void normLinear(const Slots<11> &slots) {
  enum { X, Norm, Weight, Bias, Y, RowSequence, NonfiniteLayer, Layer = 10 };
  auto *bias = slots.pointer<const float>(Bias);
  auto *y = slots.pointer<float>(Y);
  auto store = [&](uint64_t output, uint32_t row, float value) {
    if (output < K::outputs)
      y[row * K::outputs + output] = bias ? value + bias[output] : value;
  };
  multiplyPairs<T, K, (K::outputs + 1) / 2, true>(
      slots, slots.pointer<const float>(X), slots.pointer<const float>(Norm), real(K::epsilon),
      [&](uint32_t pair, uint32_t side) {
        return rowOfWeight<T, K>(slots.at[Weight], 2ull * pair + side);
      },
      [&](uint32_t pair, uint32_t row, float first, float second, float meanSquare) {
        if (pair == 0)
          reportNonfinite(meanSquare, slots.pointer<int32_t>(NonfiniteLayer),
                          slots.pointer<const int32_t>(RowSequence)[row], slots.at[Layer]);
        store(2ull * pair, row, first);
        store(2ull * pair + 1, row, second);
      });
}

} // namespace strata
