// kv_write.<type>: one component of each row goes into its sequence's block. Bound by memory.
#pragma once

#include "codegen/cuda/Narrow.cuh"

namespace strata {

/// One block a row.
template <class T, class K> inline void kvWrite(const Slots<9> &slots) {
  enum { X, State, BlockTable, RowSequence, RowPosition };
  awaitPredecessor();
  uint32_t row = blockIdx.x;
  if (row >= *slots.valid)
    return;
  auto sequence = uint64_t(slots.pointer<const int32_t>(RowSequence)[row]);
  auto position = uint64_t(slots.pointer<const int32_t>(RowPosition)[row]);
  auto block = uint64_t(slots.pointer<const int32_t>(
      BlockTable)[sequence * K::max_blocks + position / K::block_tokens]);
  uint8_t *to = slots.pointer<uint8_t>(State) + block * K::block_stride +
                position % K::block_tokens * K::width * T::blockBytes;
  const float *x = slots.pointer<const float>(X) + row * K::width;
  for (uint64_t i = threadIdx.x; i < K::width; i += K::threads)
    storePlain(T{}, to + i * T::blockBytes, x[i]);
}

} // namespace strata
