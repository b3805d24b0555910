// norm_gated.<function>.<type>: y = f(gate n) * (up n), with n = x normalised; for few rows. A block
// has as many rows of `gate` as of `up`, so that what it multiplies is its own.
#pragma once

#include "codegen/cuda/Elementwise.cuh"
#include "codegen/cuda/MatvecTile.cuh"

namespace strata {

template <class Function, class T, class K> inline void normGated(const Slots<11> &slots) {
  enum { X, Norm, Gate, Up, Y, RowSequence, NonfiniteLayer };
  admitSuccessor();
  using Of = MatvecOf<T, K, 2 * K::outputs, true>;
  constexpr uint32_t half = Of::outputs / 2;
  uint64_t first = uint64_t(blockIdx.x) * half;
  const uint8_t *rows[Of::outputs];
#pragma unroll
  for (uint32_t o = 0; o < Of::outputs; ++o) {
    uint64_t output = first + o % half;
    auto *weight = slots.pointer<const uint8_t>(o < half ? Gate : Up);
    rows[o] = output < K::outputs ? weight + output * Of::type::rowBytes : nullptr;
  }
  typename Of::type matvec;
  matvec.prefetch(rows);
  awaitPredecessor();
  uint32_t valid = *slots.valid;
  auto result = matvec.run(slots.pointer<const float>(X), valid, slots.pointer<const float>(Norm),
                           real(K::epsilon));
  __shared__ float products[Of::type::results];
  if (threadIdx.x < Of::type::results)
    products[threadIdx.x] = result.value;
  __syncthreads();
  uint32_t o = threadIdx.x / K::rows, r = threadIdx.x % K::rows;
  if (o >= half || first + o >= K::outputs || r >= valid)
    return;
  if (first + o == 0)
    reportNonfinite(result.meanSquare, slots.pointer<int32_t>(NonfiniteLayer),
                    slots.pointer<const int32_t>(RowSequence)[r], K::layer);
  slots.pointer<float>(Y)[r * K::outputs + first + o] =
      Function::apply(products[threadIdx.x]) * products[half * K::rows + threadIdx.x];
}

} // namespace strata
