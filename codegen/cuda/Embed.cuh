// embed.<type>: rows of the token table become F32. Bound by memory: width * (bytes of the type + 4).
#pragma once

#include "codegen/cuda/Kernel.cuh"

namespace strata {

/// One block a row, one block of the type a thread. An id outside the vocabulary makes its row NaN.
template <class T, class K> inline void embed(const Slots<9> &slots) {
  enum { Table, Y, RowId, RowSequence, SequenceSlot, LastId };
  awaitPredecessor();
  uint32_t row = blockIdx.x;
  if (row >= *slots.valid)
    return;
  int32_t id = slots.pointer<const int32_t>(RowId)[row];
  if (id < 0) {
    int32_t sequence = slots.pointer<const int32_t>(RowSequence)[row];
    id = slots.pointer<const int32_t>(
        LastId)[slots.pointer<const int32_t>(SequenceSlot)[sequence]];
  }
  float *y = slots.pointer<float>(Y) + uint64_t(row) * K::width;
  if (uint64_t(int64_t(id)) >= K::vocabulary) {
    for (uint64_t i = threadIdx.x; i < K::width; i += blockDim.x)
      y[i] = __int_as_float(0x7FC00000);
    return;
  }
  constexpr uint64_t blocks = K::width / T::blockElements;
  auto *source = slots.pointer<const uint8_t>(Table) + uint64_t(id) * blocks * T::blockBytes;
  for (uint64_t block = threadIdx.x; block < blocks; block += blockDim.x) {
    float values[T::blockElements];
    T::dequantise(source + block * T::blockBytes, values);
#pragma unroll 32
    for (uint32_t i = 0; i < T::blockElements; ++i)
      y[block * T::blockElements + i] = values[i] * real(K::scale);
  }
}

} // namespace strata
