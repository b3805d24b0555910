// linear.bf16 for many rows: tiles of rows x outputs on the matrix units.
//
// Weights are BF16 as they are; an F32 activation becomes two BF16 numbers, its rounding and the
// rounding of what that leaves out, and each is multiplied: 16 bits of the activation count, against
// 24, and sums are F32. Bound by the matrix units: 4 * rows * columns * outputs operations, twice
// those of one product.
#pragma once

#include "codegen/cuda/Kernel.cuh"

namespace strata {

/// Rows and outputs of a block's tile. Eight warps, two by rows and four by outputs.
template <uint32_t Rows> struct TileShape {
  static constexpr uint32_t rows = Rows, outputs = Rows == 128 ? 128 : 64;
};

constexpr uint32_t tileColumns = 32;
constexpr uint32_t tileStride = 40; ///< Of a row in shared memory: eight rows touch all banks once.

inline uint32_t pairOf(uint16_t low, uint16_t high) { return uint32_t(high) << 16 | low; }

inline void loadMatrices(uint32_t (&to)[4], const uint16_t *from) {
  uint32_t address = uint32_t(__cvta_generic_to_shared(from));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address)
               : "memory");
}

inline void multiplyAdd(float (&sum)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
               "{%8,%9}, {%0,%1,%2,%3};"
               : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <class K> inline void linearTile(const Slots<10> &slots) {
  enum { X, Weight, Bias, Y };
  using Shape = TileShape<K::rows>;
  constexpr uint32_t warpRows = Shape::rows / 2 / 16, warpOutputs = Shape::outputs / 4 / 8;
  constexpr uint32_t xLoads = Shape::rows * tileColumns / 4 / K::threads;
  constexpr uint32_t weightLoads = Shape::outputs * tileColumns / 8 / K::threads;
  static_assert(K::threads == 256 && K::columns % tileColumns == 0 && warpOutputs % 2 == 0);
  __shared__ alignas(16) uint16_t high[Shape::rows * tileStride], low[Shape::rows * tileStride];
  __shared__ alignas(16) uint16_t weights[Shape::outputs * tileStride];

  uint32_t row0 = blockIdx.y * Shape::rows, output0 = blockIdx.x * Shape::outputs;
  uint32_t warp = threadIdx.x / warpThreads, lane = threadIdx.x % warpThreads;
  uint32_t warpRow = warp / 4 * warpRows * 16, warpOutput = warp % 4 * warpOutputs * 8;
  auto *weight = slots.pointer<const uint4>(Weight);
  auto *x = slots.pointer<const float4>(X);

  uint4 nextWeights[weightLoads];
  auto loadWeights = [&](uint32_t column) {
#pragma unroll
    for (uint32_t i = 0; i < weightLoads; ++i) {
      uint32_t place = i * K::threads + threadIdx.x, output = output0 + place / 4;
      nextWeights[i] = output < K::outputs ? __ldg(weight + (uint64_t(output) * K::columns + column) / 8 +
                                                   place % 4)
                                           : uint4{};
    }
  };
  loadWeights(0);
  awaitPredecessor();
  uint32_t valid = *slots.valid;
  if (row0 >= valid)
    return;

  float4 nextX[xLoads];
  auto loadX = [&](uint32_t column) {
#pragma unroll
    for (uint32_t i = 0; i < xLoads; ++i) {
      uint32_t place = i * K::threads + threadIdx.x, row = row0 + place / 8;
      nextX[i] = row < valid ? x[(uint64_t(row) * K::columns + column) / 4 + place % 8] : float4{};
    }
  };
  loadX(0);

  float sums[warpRows][warpOutputs][4] = {};
#pragma unroll 1
  for (uint32_t column = 0; column < K::columns; column += tileColumns) {
#pragma unroll
    for (uint32_t i = 0; i < weightLoads; ++i) {
      uint32_t place = i * K::threads + threadIdx.x;
      *reinterpret_cast<uint4 *>(weights + place / 4 * tileStride + place % 4 * 8) = nextWeights[i];
    }
#pragma unroll
    for (uint32_t i = 0; i < xLoads; ++i) {
      uint32_t place = i * K::threads + threadIdx.x, at = place / 8 * tileStride + place % 8 * 4;
      const float values[] = {nextX[i].x, nextX[i].y, nextX[i].z, nextX[i].w};
      uint16_t upper[4], lower[4];
#pragma unroll
      for (uint32_t j = 0; j < 4; ++j) {
        upper[j] = floatToBfloat(values[j]);
        lower[j] = floatToBfloat(values[j] - bfloatToFloat(upper[j]));
      }
      *reinterpret_cast<uint2 *>(high + at) = {pairOf(upper[0], upper[1]),
                                               pairOf(upper[2], upper[3])};
      *reinterpret_cast<uint2 *>(low + at) = {pairOf(lower[0], lower[1]),
                                              pairOf(lower[2], lower[3])};
    }
    __syncthreads();
    if (column + tileColumns < K::columns) {
      loadWeights(column + tileColumns);
      loadX(column + tileColumns);
    }
#pragma unroll
    for (uint32_t k = 0; k < tileColumns; k += 16) {
      uint32_t b[warpOutputs / 2][4];
#pragma unroll
      for (uint32_t n = 0; n < warpOutputs / 2; ++n)
        loadMatrices(b[n], weights + (warpOutput + n * 16 + lane % 8 + lane / 16 * 8) * tileStride +
                               k + lane / 8 % 2 * 8);
#pragma unroll
      for (uint32_t m = 0; m < warpRows; ++m) {
        uint32_t at = (warpRow + m * 16 + lane % 16) * tileStride + k + lane / 16 * 8;
        uint32_t a[4];
        loadMatrices(a, high + at);
#pragma unroll
        for (uint32_t n = 0; n < warpOutputs; ++n)
          multiplyAdd(sums[m][n], a, b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1]);
        loadMatrices(a, low + at);
#pragma unroll
        for (uint32_t n = 0; n < warpOutputs; ++n)
          multiplyAdd(sums[m][n], a, b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1]);
      }
    }
    __syncthreads();
  }

  auto *bias = slots.pointer<const float>(Bias);
#pragma unroll
  for (uint32_t m = 0; m < warpRows; ++m)
#pragma unroll
    for (uint32_t n = 0; n < warpOutputs; ++n)
#pragma unroll
      for (uint32_t i = 0; i < 4; ++i) {
        uint32_t row = row0 + warpRow + m * 16 + lane / 4 + i / 2 * 8;
        uint32_t output = output0 + warpOutput + n * 8 + lane % 4 * 2 + i % 2;
        if (row >= valid || output >= K::outputs)
          continue;
        float value = sums[m][n][i] + (bias ? bias[output] : 0.0f);
        float *y = slots.pointer<float>(Y) + uint64_t(row) * K::outputs + output;
        *y = K::accumulate ? *y + value : value;
      }
}

} // namespace strata
