// linear.<type> and norm_linear.<type>: y[row][o] (+)= dot(weight[o], x[row]) + bias[o], in the
// latter x normalised first. Few rows (Matvec.cuh), which read the weights once for up to eight;
// BF16 has tiles for more (LinearTile.cuh).
#pragma once

#include "codegen/cuda/MatvecTile.cuh"

namespace strata {

/// The weight rows of this block, from output `first` on.
template <uint32_t Outputs>
inline void findRows(const uint8_t *(&rows)[Outputs], const uint8_t *weight, uint64_t first,
                     uint64_t outputs, uint64_t rowBytes) {
#pragma unroll
  for (uint32_t o = 0; o < Outputs; ++o)
    rows[o] = first + o < outputs ? weight + (first + o) * rowBytes : nullptr;
}

template <class T, class K> inline void linear(const Slots<10> &slots) {
  if constexpr (K::rows > cuda::matvecRows) { // the launch shape's choice: BF16 alone
    linearTile<K>(slots);
  } else {
    enum { X, Weight, Bias, Y };
    admitSuccessor();
    using Of = MatvecOf<T, K, K::outputs, false>;
    uint64_t first = uint64_t(blockIdx.x) * Of::outputs, row = uint64_t(blockIdx.y) * K::rows;
    const uint8_t *rows[Of::outputs];
    findRows(rows, slots.pointer<const uint8_t>(Weight), first, K::outputs, Of::type::rowBytes);
    typename Of::type matvec;
    matvec.prefetch(rows);
    awaitPredecessor();
    uint32_t valid = *slots.valid;
    if (row >= valid)
      return;
    uint32_t count = valid - row < K::rows ? uint32_t(valid - row) : uint32_t(K::rows);
    auto result =
        matvec.run(slots.pointer<const float>(X) + row * K::columns, count, nullptr, 0);
    uint64_t output = first + threadIdx.x / K::rows;
    uint32_t r = threadIdx.x % K::rows;
    if (threadIdx.x >= Of::type::results || output >= K::outputs || r >= count)
      return;
    float value = result.value;
    if (auto *bias = slots.pointer<const float>(Bias))
      value += bias[output];
    float *y = slots.pointer<float>(Y) + (row + r) * K::outputs + output;
    *y = K::accumulate ? *y + value : value;
  }
}

template <class T, class K> inline void normLinear(const Slots<11> &slots) {
  enum { X, Norm, Weight, Bias, Y, RowSequence, NonfiniteLayer };
  admitSuccessor();
  using Of = MatvecOf<T, K, K::outputs, true>;
  uint64_t first = uint64_t(blockIdx.x) * Of::outputs;
  const uint8_t *rows[Of::outputs];
  findRows(rows, slots.pointer<const uint8_t>(Weight), first, K::outputs, Of::type::rowBytes);
  typename Of::type matvec;
  matvec.prefetch(rows);
  awaitPredecessor();
  uint32_t valid = *slots.valid;
  auto result = matvec.run(slots.pointer<const float>(X), valid, slots.pointer<const float>(Norm),
                           real(K::epsilon));
  uint64_t output = first + threadIdx.x / K::rows;
  uint32_t r = threadIdx.x % K::rows;
  if (threadIdx.x >= Of::type::results || output >= K::outputs || r >= valid)
    return;
  if (output == 0)
    reportNonfinite(result.meanSquare, slots.pointer<int32_t>(NonfiniteLayer),
                    slots.pointer<const int32_t>(RowSequence)[r], K::layer);
  float value = result.value;
  if (auto *bias = slots.pointer<const float>(Bias))
    value += bias[output];
  slots.pointer<float>(Y)[r * K::outputs + output] = value;
}

} // namespace strata
