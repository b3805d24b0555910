// Products of few activation rows with pairs of weight rows: streamed to the matrix units
// (MatvecStream.cuh) where the weights' type has a form for them, or by plain arithmetic
// (Matvec.cuh).
#pragma once

#include "codegen/cuda/Matvec.cuh"
#include "codegen/cuda/MatvecStream.cuh"

namespace strata {

/// Without a stream: each block has some pairs, and every thread a share of all their columns.
template <class T, class K, uint64_t Pairs, bool IsNormed, class RowOf, class Finish>
inline void multiplyBlock(const float *x, uint32_t rows, const float *gain, float epsilon,
                          RowOf rowOf, Finish finish) {
  constexpr cuda::MatvecShape shape =
      cuda::matvecShape(K::columns / T::blockElements * T::blockBytes, 2 * Pairs);
  static_assert(shape.threads == K::threads);
  using Product = Matvec<T, K::columns, shape.outputs, K::threads, K::rows, IsNormed>;
  constexpr uint32_t half = shape.outputs / 2;
  uint32_t pair = blockIdx.x * half;
  const uint8_t *weights[shape.outputs];
#pragma unroll
  for (uint32_t o = 0; o < shape.outputs; ++o)
    weights[o] = pair + o % half < Pairs ? rowOf(pair + o % half, o / half) : nullptr;
  Product matvec;
  matvec.prefetch(weights);
  awaitPredecessor();
  MatvecResult result = matvec.run(x, rows, gain, epsilon);
  __shared__ float products[Product::results];
  if (threadIdx.x < Product::results)
    products[threadIdx.x] = result.value;
  __syncthreads();
  uint32_t row = threadIdx.x % K::rows;
  pair += threadIdx.x / K::rows;
  if (threadIdx.x < half * K::rows && pair < Pairs && row < rows)
    finish(pair, row, products[threadIdx.x], products[half * K::rows + threadIdx.x],
           result.meanSquare);
}

/// Rows of the bucket go by groups of K::rows, one a block in y; x is [rows][K::columns]. Every
/// thread of the block calls it, before anything else.
///
/// `rowOf(pair, side)` is where a weight row begins, or nullptr where there is none.
/// `finish(pair, row, first, second, meanSquare)` takes each result, from one thread; the mean
/// square is that of the row, where it is normalised.
template <class T, class K, uint64_t Pairs, bool IsNormed, uint32_t SlotCount, class RowOf,
          class Finish>
inline void multiplyPairs(const Slots<SlotCount> &slots, const float *x, const float *gain,
                          float epsilon, RowOf rowOf, Finish finish) {
  admitSuccessor();
  uint32_t first = blockIdx.y * K::rows, valid = *slots.valid;
  if (first >= valid)
    return awaitPredecessor(); // so that this kernel's end is also its predecessor's
  uint32_t rows = valid - first < K::rows ? valid - first : K::rows;
  x += uint64_t(first) * K::columns;
  auto finishRow = [&](uint32_t pair, uint32_t row, float one, float other, float meanSquare) {
    finish(pair, first + row, one, other, meanSquare);
  };
  if constexpr (cuda::isStreamed(T::ggufId, K::columns, K::rows))
    MatvecStream<T, K, Pairs, IsNormed, RowOf, decltype(finishRow)>(x, rows, gain, rowOf)
        .run(epsilon, finishRow);
  else
    multiplyBlock<T, K, Pairs, IsNormed>(x, rows, gain, epsilon, rowOf, finishRow);
}

} // namespace strata
