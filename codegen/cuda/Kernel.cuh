// What every CUDA kernel stands on: its parameters, waiting for what runs before it, and sums over
// warps and blocks in a fixed order.
//
// A kernel has one parameter, the slots of its signature (KernelTable.h) by value. Constants are
// known when it is compiled, as members of K; the slots hold them too, unread, but for those that
// differ between a kernel's commands. Kernels run on a grid of the bucket's most rows and leave at
// once where a row is not valid.
#pragma once

#include <cstdint>

#include "runtime/checkpoint/WeightTypes.h"

namespace strata {

constexpr uint32_t warpThreads = 32;
constexpr uint32_t everyLane = 0xFFFFFFFF;

/// The slots of one command, and how many of its rows (or head rows) are valid, in the step block.
template <uint32_t Count> struct Slots {
  uint64_t at[Count];
  const uint32_t *valid;

  template <class T> T *pointer(uint32_t slot) const { return reinterpret_cast<T *>(at[slot]); }
};

/// A constant that is a number: its F64 bits.
constexpr float real(uint64_t bits) { return float(__builtin_bit_cast(double, bits)); }

/// Lets the next kernel be brought in, once every block of this one has come here or ended: it
/// fetches its weights, and waits for this one's end before it touches anything else.
inline void admitSuccessor() {
#ifdef STRATA_DEPENDENT_LAUNCH
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/// Every kernel calls this before it touches what another of the step may have written. Weights,
/// the step's fields and what earlier steps wrote may be read earlier.
inline void awaitPredecessor() {
  admitSuccessor();
#ifdef STRATA_DEPENDENT_LAUNCH
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

inline float warpSum(float value) {
#pragma unroll
  for (uint32_t offset = warpThreads / 2; offset > 0; offset /= 2)
    value += __shfl_xor_sync(everyLane, value, offset);
  return value;
}

inline float warpMaximum(float value) {
#pragma unroll
  for (uint32_t offset = warpThreads / 2; offset > 0; offset /= 2)
    value = fmaxf(value, __shfl_xor_sync(everyLane, value, offset));
  return value;
}

/// Combines one value a thread with `combine`, in a fixed order; every thread is given the result.
/// `Threads` is a multiple of 32.
template <uint32_t Threads, class T, class Combine>
inline T blockReduce(T value, T identity, Combine combine) {
  __shared__ T parts[Threads / warpThreads];
#pragma unroll
  for (uint32_t offset = warpThreads / 2; offset > 0; offset /= 2)
    value = combine(value, __shfl_xor_sync(everyLane, value, offset));
  if (threadIdx.x % warpThreads == 0)
    parts[threadIdx.x / warpThreads] = value;
  __syncthreads();
  T result = identity;
#pragma unroll
  for (uint32_t i = 0; i < Threads / warpThreads; ++i)
    result = combine(result, parts[i]);
  __syncthreads(); // `parts` may be used again
  return result;
}

template <uint32_t Threads, class T> inline T blockSum(T value) {
  return blockReduce<Threads>(value, T(0), [](T a, T b) { return a + b; });
}

/// One value of a plain type.
template <class T> inline float loadPlain(const uint8_t *from) {
  float value;
  T::dequantise(from, &value);
  return value;
}

} // namespace strata
