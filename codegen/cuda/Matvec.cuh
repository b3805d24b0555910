// Dot products of a block's few weight rows with a few activation rows, the latter normalised on the
// way where a norm stands before the product.
//
// The bound is the weights' bytes, each read once. For plain types a thread loads its share of every
// weight row into registers, 16 bytes at a time, before it waits for its predecessor, which weights
// do not depend on; so the next kernel's weights are on their way while this one computes.
#pragma once

#include "codegen/cuda/Kernel.cuh"
#include "codegen/cuda/MatvecShape.h"

namespace strata {

/// 16 bytes that nothing writes: past L1, which they would only sweep.
inline uint4 loadWeights(const uint8_t *from) {
  uint4 pack;
  asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(pack.x), "=r"(pack.y), "=r"(pack.z), "=r"(pack.w)
               : "l"(from));
  return pack;
}

/// The values of 16 bytes of a plain type.
template <class T> struct Pack {
  static constexpr uint32_t elements = sizeof(uint4) / T::blockBytes;
  static void unpack(const uint4 &pack, float (&values)[elements]) {
    auto *bytes = reinterpret_cast<const uint8_t *>(&pack);
#pragma unroll
    for (uint32_t i = 0; i < elements; ++i)
      values[i] = loadPlain<T>(bytes + i * T::blockBytes);
  }
};

template <> struct Pack<BF16> {
  static constexpr uint32_t elements = 8;
  static void unpack(const uint4 &pack, float (&values)[elements]) {
    const uint32_t words[] = {pack.x, pack.y, pack.z, pack.w};
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) {
      values[2 * i] = __uint_as_float(words[i] << 16);
      values[2 * i + 1] = __uint_as_float(words[i] & 0xFFFF0000);
    }
  }
};

template <uint32_t Count> inline void loadActivations(const float *from, float (&values)[Count]) {
#pragma unroll
  for (uint32_t i = 0; i < Count; i += 4)
    *reinterpret_cast<float4 *>(values + i) = *reinterpret_cast<const float4 *>(from + i);
}

/// A result for each thread that is below outputs * rows: of output thread / rows and row thread %
/// rows.
struct MatvecResult {
  float value;
  float meanSquare; ///< Of the row, where it is normalised.
};

/// Sums the warps' parts in a fixed order: `Results` results, then each row's squares.
template <uint32_t Columns, uint32_t Results, uint32_t Rows, bool IsNormed, uint32_t Warps,
          uint32_t Values>
inline MatvecResult joinParts(const float (&parts)[Warps][Values], float epsilon) {
  MatvecResult result{};
  if (threadIdx.x >= Results)
    return result;
#pragma unroll
  for (uint32_t w = 0; w < Warps; ++w) {
    result.value += parts[w][threadIdx.x];
    if constexpr (IsNormed)
      result.meanSquare += parts[w][Results + threadIdx.x % Rows];
  }
  if constexpr (IsNormed) {
    result.meanSquare /= float(Columns);
    result.value *= 1.0f / sqrtf(result.meanSquare + epsilon);
  }
  return result;
}

/// Of `Outputs` weight rows of type T and `Columns` columns with at most `Rows` activation rows.
template <class T, uint32_t Columns, uint32_t Outputs, uint32_t Threads, uint32_t Rows,
          bool IsNormed>
class Matvec {
public:
  static constexpr uint64_t rowBytes = uint64_t(Columns) / T::blockElements * T::blockBytes;
  static constexpr uint32_t results = Outputs * Rows;
  using Result = MatvecResult;

  /// What precedes the wait. A row of nullptr stands for none and gives 0.
  void prefetch(const uint8_t *const (&weights)[Outputs]) {
#pragma unroll
    for (uint32_t o = 0; o < Outputs; ++o)
      weights_[o] = weights[o];
    if constexpr (isPacked)
      load(0);
  }

  /// `x` is [rows][Columns], 16-byte aligned; `gain` [Columns]. Every thread of the block calls it.
  Result run(const float *x, uint32_t rows, const float *gain, float epsilon) {
    if constexpr (isPacked)
      multiplyPacked(x, rows, gain);
    else
      multiplyBlocks(x, rows, gain);
    return sum(epsilon);
  }

private:
  static constexpr bool isPacked = T::blockElements == 1 && rowBytes % sizeof(uint4) == 0;
  static constexpr uint32_t packs = rowBytes / sizeof(uint4);
  static constexpr uint32_t perThread = (packs + Threads - 1) / Threads;
  /// Packs of a weight row that a thread has in registers at once.
  static constexpr uint32_t mostAtOnce = Rows > 2 ? 4 : 28 / Outputs;
  static constexpr uint32_t turns = (perThread + mostAtOnce - 1) / mostAtOnce;
  static constexpr uint32_t atOnce = (perThread + turns - 1) / turns;
  static constexpr bool isEven = turns * atOnce * Threads == packs;

  void load(uint32_t first) {
#pragma unroll
    for (uint32_t i = 0; i < atOnce; ++i) {
      uint32_t pack = (first + i) * Threads + threadIdx.x;
#pragma unroll
      for (uint32_t o = 0; o < Outputs; ++o)
        loaded_[o][i] = weights_[o] && (isEven || pack < packs)
                            ? loadWeights(weights_[o] + uint64_t(pack) * sizeof(uint4))
                            : uint4{};
    }
  }

  void multiplyPacked(const float *x, uint32_t rows, const float *gain) {
    constexpr uint32_t elements = Pack<T>::elements;
#pragma unroll 1
    for (uint32_t turn = 0; turn < turns; ++turn) {
      if (turn > 0)
        load(turn * atOnce);
#pragma unroll
      for (uint32_t i = 0; i < atOnce; ++i) {
        uint32_t pack = (turn * atOnce + i) * Threads + threadIdx.x;
        if (!isEven && pack >= packs)
          continue;
        float gains[elements];
        if constexpr (IsNormed)
          loadActivations(gain + pack * elements, gains);
#pragma unroll
        for (uint32_t r = 0; r < Rows; ++r) {
          if (r >= rows)
            continue;
          float values[elements];
          loadActivations(x + uint64_t(r) * Columns + pack * elements, values);
          if constexpr (IsNormed) {
#pragma unroll
            for (uint32_t j = 0; j < elements; ++j) {
              squares_[r] = fmaf(values[j], values[j], squares_[r]);
              values[j] *= gains[j];
            }
          }
#pragma unroll
          for (uint32_t o = 0; o < Outputs; ++o) {
            float weights[elements];
            Pack<T>::unpack(loaded_[o][i], weights);
#pragma unroll
            for (uint32_t j = 0; j < elements; ++j)
              sums_[o][r] = fmaf(weights[j], values[j], sums_[o][r]);
          }
        }
      }
    }
  }

  /// Any type, through its dequantise(): a thread takes whole blocks of the type.
  void multiplyBlocks(const float *x, uint32_t rows, const float *gain) {
    constexpr uint32_t blocks = Columns / T::blockElements;
    for (uint32_t item = threadIdx.x; item < Outputs * blocks; item += Threads) {
      uint32_t o = item / blocks, block = item % blocks;
      const uint8_t *row = nullptr;
#pragma unroll
      for (uint32_t each = 0; each < Outputs; ++each)
        row = each == o ? weights_[each] : row;
      if (!row)
        continue;
      float values[T::blockElements];
      T::dequantise(row + uint64_t(block) * T::blockBytes, values);
      const float *from = x + uint64_t(block) * T::blockElements;
      const float *gains = gain + uint64_t(block) * T::blockElements;
#pragma unroll
      for (uint32_t r = 0; r < Rows; ++r) {
        if (r >= rows)
          continue;
        float sum = 0, square = 0;
#pragma unroll 32
        for (uint32_t i = 0; i < T::blockElements; ++i) {
          float value = from[uint64_t(r) * Columns + i];
          if constexpr (IsNormed) {
            square = fmaf(value, value, square);
            value *= gains[i];
          }
          sum = fmaf(values[i], value, sum);
        }
        if (IsNormed && o == 0) // each column once
          squares_[r] += square;
#pragma unroll
        for (uint32_t each = 0; each < Outputs; ++each)
          if (each == o)
            sums_[each][r] += sum;
      }
    }
  }

  /// Over the block, in a fixed order.
  Result sum(float epsilon) {
    constexpr uint32_t warps = Threads / warpThreads, values = results + (IsNormed ? Rows : 0);
    static_assert(results <= Threads);
    __shared__ float parts[warps][values];
    uint32_t warp = threadIdx.x / warpThreads, lane = threadIdx.x % warpThreads;
#pragma unroll
    for (uint32_t r = 0; r < Rows; ++r) {
#pragma unroll
      for (uint32_t o = 0; o < Outputs; ++o) {
        float sum = warpSum(sums_[o][r]);
        if (lane == 0)
          parts[warp][o * Rows + r] = sum;
      }
      if constexpr (IsNormed) {
        float square = warpSum(squares_[r]);
        if (lane == 0)
          parts[warp][results + r] = square;
      }
    }
    __syncthreads();
    return joinParts<Columns, results, Rows, IsNormed>(parts, epsilon);
  }

  const uint8_t *weights_[Outputs];
  uint4 loaded_[isPacked ? Outputs : 1][isPacked ? atOnce : 1];
  float sums_[Outputs][Rows] = {};
  float squares_[Rows] = {};
};

/// Where a row that is normalised is not finite, its sequence's nonfinite_layer falls to `layer`:
/// unsigned, so that -1 (no layer) is above every layer.
inline void reportNonfinite(float meanSquare, int32_t *layers, int32_t sequence, uint64_t layer) {
  if (!isfinite(meanSquare))
    atomicMin(reinterpret_cast<uint32_t *>(layers) + sequence, uint32_t(layer));
}

} // namespace strata
