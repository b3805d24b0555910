// Blocks that work together: a cluster of clusterBlocks where the architecture has clusters, else one
// block alone.
#pragma once

#include "codegen/cuda/ClusterShape.h"
#include "codegen/cuda/Kernel.cuh"

namespace strata {

#ifdef STRATA_CLUSTERS
constexpr uint32_t clusterBlocks = cuda::clusterBlocks;

inline void synchroniseCluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;\n"
               "barrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
}

/// `*local` as block `rank` of the cluster has it; 4 or 8 bytes.
template <class T> inline T readShared(const T *local, uint32_t rank) {
  uint32_t address = uint32_t(__cvta_generic_to_shared(local)), remote;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(address), "r"(rank));
  if constexpr (sizeof(T) == sizeof(uint32_t)) {
    uint32_t bits;
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(bits) : "r"(remote) : "memory");
    return __builtin_bit_cast(T, bits);
  } else {
    uint64_t bits;
    asm volatile("ld.shared::cluster.u64 %0, [%1];" : "=l"(bits) : "r"(remote) : "memory");
    return __builtin_bit_cast(T, bits);
  }
}
#else
constexpr uint32_t clusterBlocks = 1;
inline void synchroniseCluster() { __syncthreads(); }
template <class T> inline T readShared(const T *local, uint32_t) { return *local; }
#endif

/// Reductions over a cluster whose blocks follow each other in y. All its threads call the same ones
/// in the same order.
template <uint32_t Threads> class Cluster {
public:
  /// `exchange` is in shared memory.
  explicit Cluster(uint64_t (&exchange)[2]) : exchange_(exchange) {}

  uint32_t rank() const { return blockIdx.y % clusterBlocks; }

  /// Combined in the order of ranks; every thread is given the result.
  template <class T, class Combine> T reduce(T value, T identity, Combine combine) {
    T own = blockReduce<Threads>(value, identity, combine);
    T result = identity;
    for (uint32_t b = 0; b < clusterBlocks; ++b)
      result = combine(result, ofBlock(own, b));
    return result;
  }
  template <class T> T sum(T value) {
    return reduce(value, T(0), [](T a, T b) { return a + b; });
  }

  /// The sum of the values of the threads before this one, in order of ranks and threads; `all` of
  /// all of them.
  template <class T> T sumBefore(T value, T &all) {
    __shared__ T values[Threads];
    __shared__ T warps[Threads / warpThreads + 1];
    values[threadIdx.x] = value;
    __syncthreads();
    if (threadIdx.x % warpThreads == 0) {
      T sum = 0;
      for (uint32_t i = 0; i < warpThreads; ++i) {
        T next = values[threadIdx.x + i];
        values[threadIdx.x + i] = sum;
        sum += next;
      }
      warps[threadIdx.x / warpThreads] = sum;
    }
    __syncthreads();
    T block = 0, sum = 0;
    for (uint32_t w = 0; w < Threads / warpThreads; ++w) {
      if (w == threadIdx.x / warpThreads)
        sum = block;
      block += warps[w];
    }
    sum += values[threadIdx.x];
    __syncthreads();
    T before = 0;
    all = 0;
    for (uint32_t b = 0; b < clusterBlocks; ++b) {
      if (b == rank())
        before = all;
      all += ofBlock(block, b);
    }
    return before + sum;
  }

private:
  /// What block `rank` has as `own`. The first call of a round sends, the others read; two places in
  /// turn, so that no block waits for the readers of the last round.
  template <class T> T ofBlock(T own, uint32_t rank) {
    if (rank == 0) {
      turn_ ^= 1;
      if (threadIdx.x == 0)
        *reinterpret_cast<T *>(exchange_ + turn_) = own;
      synchroniseCluster();
    }
    return readShared(reinterpret_cast<const T *>(exchange_ + turn_), rank);
  }

  uint64_t *exchange_;
  uint32_t turn_ = 0;
};

} // namespace strata
