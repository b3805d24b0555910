// As Matvec, on the matrix units: BF16 weights with four to eight activation rows.
//
// An F32 activation becomes two BF16 numbers, its rounding and the rounding of what that leaves out.
// The units multiply sixteen rows: eight of them are the former of all rows, eight the latter, so both
// cost one multiplication, and a result is the sum of two. Columns are taken in an order of their own,
// the same for both sides, so that what a lane needs of a weight row is 16 consecutive bytes.
#pragma once

#include "codegen/cuda/LinearTile.cuh"
#include "codegen/cuda/Matvec.cuh"

namespace strata {

/// Two numbers rounded to BF16, the first in the low half; and what rounding left out, likewise.
inline void splitPair(float first, float second, uint32_t &high, uint32_t &low) {
  auto round = [](float a, float b) {
    uint32_t pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(b), "f"(a));
    return pair;
  };
  high = round(first, second);
  low = round(first - __uint_as_float(high << 16), second - __uint_as_float(high & 0xFFFF0000));
}

template <uint32_t Columns, uint32_t Outputs, uint32_t Threads, uint32_t Rows, bool IsNormed>
class MatvecTile {
public:
  static constexpr uint64_t rowBytes = uint64_t(Columns) * BF16::blockBytes;
  static constexpr uint32_t results = Outputs * Rows;
  using Result = MatvecResult;

  void prefetch(const uint8_t *const (&weights)[Outputs]) {
#pragma unroll
    for (uint32_t tile = 0; tile < tiles; ++tile) {
      rows_[tile] = nullptr;
#pragma unroll
      for (uint32_t o = 0; o < tileOutputs; ++o)
        if (o == group())
          rows_[tile] = weights[tile * tileOutputs + o];
    }
#pragma unroll
    for (uint32_t i = 0; i < atOnce; ++i)
      load(i, i);
  }

  Result run(const float *x, uint32_t rows, const float *gain, float epsilon) {
    const float *own = x + uint64_t(group()) * Columns;
    bool isRow = group() < rows;
#pragma unroll 1
    for (uint32_t turn = 0; turn < turns; ++turn) {
#pragma unroll
      for (uint32_t i = 0; i < atOnce; ++i) {
        uint32_t step = stepOf(turn * atOnce + i);
        if (!isEven && step >= steps)
          continue;
        uint32_t column = columnOf(step);
        float values[8] = {};
        if (isRow)
          loadActivations(own + column, values);
        if constexpr (IsNormed) {
          float gains[8];
          loadActivations(gain + column, gains);
#pragma unroll
          for (uint32_t j = 0; j < 8; ++j) {
            square_ = fmaf(values[j], values[j], square_);
            values[j] *= gains[j];
          }
        }
        uint32_t high[4], low[4];
#pragma unroll
        for (uint32_t j = 0; j < 4; ++j)
          splitPair(values[2 * j], values[2 * j + 1], high[j], low[j]);
#pragma unroll
        for (uint32_t tile = 0; tile < tiles; ++tile) {
          const uint4 &weights = loaded_[tile][i];
          multiplyAdd(sums_[tile], {high[0], low[0], high[1], low[1]}, weights.x, weights.y);
          multiplyAdd(sums_[tile], {high[2], low[2], high[3], low[3]}, weights.z, weights.w);
        }
        if (turn + 1 < turns) // the next weights are on their way as soon as their place is free
          load((turn + 1) * atOnce + i, i);
      }
    }
    return sum(epsilon);
  }

private:
  static constexpr uint32_t tileOutputs = 8, tiles = Outputs / tileOutputs;
  static constexpr uint32_t warps = Threads / warpThreads;
  static constexpr uint32_t steps = Columns / 32; ///< Of 32 columns; warps take them in turns.
  static constexpr uint32_t perWarp = (steps + warps - 1) / warps;
  static constexpr uint32_t turns = (perWarp + 7) / 8;
  static constexpr uint32_t atOnce = (perWarp + turns - 1) / turns;
  static constexpr bool isEven = turns * atOnce * warps == steps;
  static_assert(Columns % 32 == 0 && Outputs % tileOutputs == 0 && Rows <= 8);
  static_assert(results <= Threads);

  /// The lane's weight row of a tile, and its activation row.
  static uint32_t group() { return threadIdx.x % warpThreads / 4; }
  static uint32_t stepOf(uint32_t number) { return number * warps + threadIdx.x / warpThreads; }
  static uint32_t columnOf(uint32_t step) { return step * 32 + threadIdx.x % 4 * 8; }

  /// The warp's step `number` into place `i`.
  void load(uint32_t number, uint32_t i) {
    uint32_t step = stepOf(number);
#pragma unroll
    for (uint32_t tile = 0; tile < tiles; ++tile)
      loaded_[tile][i] =
          rows_[tile] && (isEven || step < steps)
              ? loadWeights(rows_[tile] + uint64_t(columnOf(step)) * BF16::blockBytes)
              : uint4{};
  }

  Result sum(float epsilon) {
    constexpr uint32_t values = results + (IsNormed ? Rows : 0);
    __shared__ float parts[warps][values];
    uint32_t warp = threadIdx.x / warpThreads, row = group(), column = threadIdx.x % 4 * 2;
    if (row < Rows)
#pragma unroll
      for (uint32_t tile = 0; tile < tiles; ++tile)
#pragma unroll
        for (uint32_t j = 0; j < 2; ++j)
          parts[warp][(tile * tileOutputs + column + j) * Rows + row] =
              sums_[tile][j] + sums_[tile][2 + j];
    if constexpr (IsNormed) {
      square_ += __shfl_xor_sync(everyLane, square_, 1);
      square_ += __shfl_xor_sync(everyLane, square_, 2);
      if (column == 0 && row < Rows)
        parts[warp][results + row] = square_;
    }
    __syncthreads();
    return joinParts<Columns, results, Rows, IsNormed>(parts, epsilon);
  }

  const uint8_t *rows_[tiles];
  uint4 loaded_[tiles][atOnce];
  float sums_[tiles][4] = {};
  float square_ = 0;
};

template <class T> constexpr bool isBf16 = false;
template <> constexpr bool isBf16<BF16> = true;

/// The product of kernel constants K with `AllOutputs` weight rows of type T.
template <class T, class K, uint64_t AllOutputs, bool IsNormed, bool MayTile = true>
struct MatvecOf {
  static constexpr bool isTile =
      MayTile && cuda::usesMatrixUnits(isBf16<T>, K::columns, K::rows);
  static constexpr cuda::MatvecShape shape = cuda::matvecShape(
      K::columns / T::blockElements * T::blockBytes, AllOutputs, isTile);
  static_assert(shape.threads == K::threads);
  static constexpr uint32_t outputs = shape.outputs;
  template <bool IsTile, uint32_t Columns> struct Choice {
    using type = Matvec<T, Columns, outputs, K::threads, K::rows, IsNormed>;
  };
  template <uint32_t Columns> struct Choice<true, Columns> {
    using type = MatvecTile<Columns, outputs, K::threads, K::rows, IsNormed>;
  };
  using type = typename Choice<isTile, K::columns>::type;
};

} // namespace strata
