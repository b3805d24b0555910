// Dot products of a tile of outputs with rows: what `linear` and the experts share.
//
// One order of summation whatever the batch: lane l of 16 adds the products of columns l, l + 16,
// ... in order, one fused step each; then the lanes are summed by one tree (Lanes.h). How many rows
// and outputs are computed together changes only what is loaded how often.
//
// With one row the bound is the weights' bytes: they are dequantised panel by panel into the L1
// cache, for 4 outputs at a time. With more it is the fused multiply-adds: a tile of 16 outputs is
// dequantised into scratch, and blocks of outputs x rows keep their sums in registers, so that each
// load serves several.
#pragma once

#include "codegen/cpu/Decode.h"

namespace strata::cpu::STRATA_ISA_NAMESPACE {

// The register blocking: sums (outputs x rows) plus what is loaded must fit 32 zmm or 16 ymm
// registers.
#ifdef __AVX512F__
constexpr uint32_t maxRowBlock = 6;
constexpr uint32_t outputBlockFor(uint32_t) { return 4; }
#else
constexpr uint32_t maxRowBlock = 3;
constexpr uint32_t outputBlockFor(uint32_t rowBlock) { return rowBlock == 1 ? 4 : 2; }
#endif

/// Columns whose weights are dequantised at once: for 4 outputs 4 KiB, which stays in the L1 cache.
template <class T>
constexpr uint64_t panelColumns =
    T::blockElements * (T::blockElements < 256 ? 256 / T::blockElements : 1);

/// Rows of a weight, at the first of some outputs.
struct TileWeight {
  const uint8_t *rows;
  uint64_t stride; // bytes from one output to the next
  uint64_t columns;
};

/// Adds the products of `columns` columns of a plain type to the sums; `first` is the column of x
/// that they begin at.
template <class T, uint32_t OutputBlock, uint32_t RowBlock>
STRATA_INLINE void addProducts(Lanes (&sums)[OutputBlock][RowBlock],
                               const float *const (&x)[RowBlock], uint64_t first,
                               const uint8_t *weight, uint64_t weightStride, uint64_t columns) {
  forEachPiece(columns, [&](uint64_t column, uint32_t count) {
    Lanes values[RowBlock];
#pragma GCC unroll 16
    for (uint32_t r = 0; r < RowBlock; ++r)
      values[r] = loadPiece(x[r] + first + column, count);
#pragma GCC unroll 16
    for (uint32_t o = 0; o < OutputBlock; ++o) {
      Lanes loaded = loadPlainPiece<T>(weight + o * weightStride + column * T::blockBytes, count);
#pragma GCC unroll 16
      for (uint32_t r = 0; r < RowBlock; ++r)
        sums[o][r] = fma(loaded, values[r], sums[o][r]);
    }
  });
}

/// Calls `finish(row, output, value)` for a block of rows x outputs.
template <class T, uint32_t OutputBlock, uint32_t RowBlock, class Finish>
STRATA_INLINE void multiplyBlock(const TileWeight &weight, const float *const (&x)[RowBlock],
                                 Finish finish) {
  Lanes sums[OutputBlock][RowBlock];
#pragma GCC unroll 16
  for (uint32_t o = 0; o < OutputBlock; ++o)
#pragma GCC unroll 16
    for (uint32_t r = 0; r < RowBlock; ++r)
      sums[o][r] = splat(0);

  if constexpr (T::blockElements == 1) {
    addProducts<T>(sums, x, 0, weight.rows, weight.stride, weight.columns);
  } else {
    constexpr uint64_t panel = panelColumns<T>;
    alignas(64) float decoded[OutputBlock][panel];
    for (uint64_t first = 0; first < weight.columns; first += panel) {
      uint64_t width = weight.columns - first < panel ? weight.columns - first : panel;
      for (uint32_t o = 0; o < OutputBlock; ++o)
        decodeBlocks<T>(weight.rows + o * weight.stride + first / T::blockElements * T::blockBytes,
                        width, decoded[o]);
      addProducts<F32>(sums, x, first, reinterpret_cast<const uint8_t *>(decoded),
                       sizeof decoded[0], width);
    }
  }
#pragma GCC unroll 16
  for (uint32_t r = 0; r < RowBlock; ++r) {
    if constexpr (OutputBlock == 4) {
      alignas(16) float values[4];
      _mm_store_ps(values, sumsOf(sums[0][r], sums[1][r], sums[2][r], sums[3][r]));
      for (uint32_t o = 0; o < 4; ++o)
        finish(r, o, values[o]);
    } else {
#pragma GCC unroll 16
      for (uint32_t o = 0; o < OutputBlock; ++o)
        finish(r, o, sumOf(sums[o][r]));
    }
  }
}

/// All of `outputs` outputs for rows [first, first + RowBlock).
template <class T, uint32_t RowBlock, class RowAt, class Finish>
void multiplyRows(TileWeight weight, uint32_t outputs, uint32_t first, RowAt rowAt, Finish finish) {
  constexpr uint32_t block = outputBlockFor(RowBlock);
  const float *x[RowBlock];
  for (uint32_t r = 0; r < RowBlock; ++r)
    x[r] = rowAt(first + r);
  uint32_t output = 0;
  auto finishFrom = [&](uint32_t r, uint32_t o, float value) {
    finish(first + r, output + o, value);
  };
  for (; output + block <= outputs; output += block, weight.rows += block * weight.stride)
    multiplyBlock<T, block, RowBlock>(weight, x, finishFrom);
  for (; output < outputs; ++output, weight.rows += weight.stride)
    multiplyBlock<T, 1, RowBlock>(weight, x, finishFrom);
}

/// `rows` <= RowBlock rows.
template <class T, uint32_t RowBlock = maxRowBlock, class RowAt, class Finish>
void multiplyFewRows(const TileWeight &weight, uint32_t outputs, uint32_t first, uint32_t rows,
                     RowAt rowAt, Finish finish) {
  if (rows == RowBlock)
    multiplyRows<T, RowBlock>(weight, outputs, first, rowAt, finish);
  else if constexpr (RowBlock > 1)
    multiplyFewRows<T, RowBlock - 1>(weight, outputs, first, rows, rowAt, finish);
}

/// Calls `finish(row, output, value)` once for each of `rows` rows and up to 16 outputs. `rowAt`
/// says where a row lies; `scratch` has room for the tile in F32.
template <class T, class RowAt, class Finish>
STRATA_INLINE void multiplyTile(TileWeight weight, uint32_t outputs, uint32_t rows, float *scratch,
                                RowAt rowAt, Finish finish) {
  // One row multiplies what it decodes at once. More rows share a tile that is decoded once, so
  // that only F32 needs code for every number of rows.
  if constexpr (!__is_same(T, F32)) {
    if (rows == 1)
      return multiplyRows<T, 1>(weight, outputs, 0, rowAt, finish);
    for (uint32_t o = 0; o < outputs; ++o)
      decodeBlocks<T>(weight.rows + o * weight.stride, weight.columns,
                      scratch + o * weight.columns);
    weight.rows = reinterpret_cast<const uint8_t *>(scratch);
    weight.stride = weight.columns * sizeof(float);
  }
  for (uint32_t first = 0; first < rows; first += maxRowBlock)
    multiplyFewRows<F32>(weight, outputs, first,
                         rows - first < maxRowBlock ? rows - first : maxRowBlock, rowAt, finish);
}

} // namespace strata::cpu::STRATA_ISA_NAMESPACE
