// linear.<type>: y[row][o] (+)= dot(weight[o], x[row]) + bias[o].
//
// One order of summation whatever the batch: lane l of 16 adds the products of columns l, l + 16,
// ... in order, one fused step each; then the lanes are summed by one tree (Lanes.h); then come the
// bias and the old y. How many rows and outputs are computed together changes only what is loaded
// how often.
//
// With one row the bound is the weights' bytes: they are dequantised panel by panel into the L1
// cache, for 4 outputs at a time. With more it is the fused multiply-adds: a tile of 16 outputs is
// dequantised into scratch, and blocks of outputs x rows keep their sums in registers, so that each
// load serves several.
#include "codegen/cpu/Decode.h"

namespace strata::cpu::STRATA_ISA_NAMESPACE {
namespace {

enum Slot { X, Weight, Bias, Y, ValidRows, Scratch, ScratchStride, Columns, Outputs, Accumulate };

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

/// What a block of outputs x rows reads and writes, at its first output and row.
struct Operands {
  const float *x;
  const uint8_t *weight;
  uint64_t weightStride; // bytes from one output to the next
  const float *bias;     // null: none
  float *y;
  uint64_t columns;
  uint64_t outputs; // of y's rows
  bool accumulate;
};

STRATA_INLINE void finish(const Operands &operands, uint32_t row, uint32_t output, float value) {
  float *y = operands.y + row * operands.outputs + output;
  if (operands.bias)
    value += operands.bias[output];
  *y = operands.accumulate ? *y + value : value;
}

/// Adds the products of `columns` columns of a plain type to the sums. `x` has rows `xStride`
/// apart.
template <class T, uint32_t OutputBlock, uint32_t RowBlock>
STRATA_INLINE void addProducts(Lanes (&sums)[OutputBlock][RowBlock], const float *x,
                               uint64_t xStride, const uint8_t *weight, uint64_t weightStride,
                               uint64_t columns) {
  forEachPiece(columns, [&](uint64_t column, uint32_t count) {
    Lanes values[RowBlock];
#pragma GCC unroll 16
    for (uint32_t r = 0; r < RowBlock; ++r)
      values[r] = loadPiece(x + r * xStride + column, count);
#pragma GCC unroll 16
    for (uint32_t o = 0; o < OutputBlock; ++o) {
      Lanes loaded = loadPlainPiece<T>(weight + o * weightStride + column * T::blockBytes, count);
#pragma GCC unroll 16
      for (uint32_t r = 0; r < RowBlock; ++r)
        sums[o][r] = fma(loaded, values[r], sums[o][r]);
    }
  });
}

template <class T, uint32_t OutputBlock, uint32_t RowBlock>
void multiplyBlock(const Operands &operands) {
  uint64_t columns = operands.columns;
  Lanes sums[OutputBlock][RowBlock];
#pragma GCC unroll 16
  for (uint32_t o = 0; o < OutputBlock; ++o)
#pragma GCC unroll 16
    for (uint32_t r = 0; r < RowBlock; ++r)
      sums[o][r] = splat(0);

  if constexpr (T::blockElements == 1) {
    addProducts<T>(sums, operands.x, columns, operands.weight, operands.weightStride, columns);
  } else {
    constexpr uint64_t panel = panelColumns<T>;
    alignas(64) float decoded[OutputBlock][panel];
    for (uint64_t first = 0; first < columns; first += panel) {
      uint64_t width = columns - first < panel ? columns - first : panel;
      for (uint32_t o = 0; o < OutputBlock; ++o)
        decodeBlocks<T>(operands.weight + o * operands.weightStride +
                            first / T::blockElements * T::blockBytes,
                        width, decoded[o]);
      addProducts<F32>(sums, operands.x + first, columns,
                       reinterpret_cast<const uint8_t *>(decoded), sizeof decoded[0], width);
    }
  }
#pragma GCC unroll 16
  for (uint32_t r = 0; r < RowBlock; ++r) {
    if constexpr (OutputBlock == 4) {
      alignas(16) float values[4];
      _mm_store_ps(values, sumsOf(sums[0][r], sums[1][r], sums[2][r], sums[3][r]));
      for (uint32_t o = 0; o < 4; ++o)
        finish(operands, r, o, values[o]);
    } else {
#pragma GCC unroll 16
      for (uint32_t o = 0; o < OutputBlock; ++o)
        finish(operands, r, o, sumOf(sums[o][r]));
    }
  }
}

/// All of `outputs` outputs for RowBlock rows.
template <class T, uint32_t RowBlock> void multiplyRows(Operands operands, uint32_t outputs) {
  constexpr uint32_t block = outputBlockFor(RowBlock);
  auto advance = [&](uint32_t by) {
    operands.weight += by * operands.weightStride;
    operands.y += by;
    if (operands.bias)
      operands.bias += by;
  };
  for (; outputs >= block; outputs -= block, advance(block))
    multiplyBlock<T, block, RowBlock>(operands);
  for (; outputs > 0; --outputs, advance(1))
    multiplyBlock<T, 1, RowBlock>(operands);
}

/// `rows` <= RowBlock rows.
template <class T, uint32_t RowBlock = maxRowBlock>
void multiplyFewRows(const Operands &operands, uint32_t outputs, uint32_t rows) {
  if (rows == RowBlock)
    multiplyRows<T, RowBlock>(operands, outputs);
  else if constexpr (RowBlock > 1)
    multiplyFewRows<T, RowBlock - 1>(operands, outputs, rows);
}

template <class T> void multiplyTile(Operands operands, uint32_t outputs, uint32_t rows) {
  for (; rows > 0;) {
    uint32_t block = rows < maxRowBlock ? rows : maxRowBlock;
    multiplyFewRows<T>(operands, outputs, block);
    operands.x += block * operands.columns;
    operands.y += block * operands.outputs;
    rows -= block;
  }
}

template <class T>
void linear(const uint64_t *slots, uint32_t begin, uint32_t end, uint32_t worker) {
  auto rows = *pointerAt<const uint32_t>(slots, ValidRows);
  uint64_t columns = slots[Columns], outputs = slots[Outputs];
  uint64_t weightStride = columns / T::blockElements * T::blockBytes;
  for (uint64_t tile = begin; tile < end; ++tile) {
    uint64_t first = tile * linearTileOutputs;
    auto count =
        uint32_t(outputs - first < linearTileOutputs ? outputs - first : linearTileOutputs);
    auto *bias = pointerAt<const float>(slots, Bias);
    Operands operands = {.x = pointerAt<const float>(slots, X),
                         .weight = pointerAt<const uint8_t>(slots, Weight) + first * weightStride,
                         .weightStride = weightStride,
                         .bias = bias ? bias + first : nullptr,
                         .y = pointerAt<float>(slots, Y) + first,
                         .columns = columns,
                         .outputs = outputs,
                         .accumulate = slots[Accumulate] != 0};
    // One row multiplies what it decodes at once. More rows share a tile that is decoded once, so
    // that only F32 needs a kernel for every number of rows.
    if constexpr (__is_same(T, F32)) {
      multiplyTile<F32>(operands, count, rows);
      continue;
    } else if (rows == 1) {
      multiplyRows<T, 1>(operands, count);
      continue;
    }
    auto *scratch = reinterpret_cast<float *>(slots[Scratch] + worker * slots[ScratchStride]);
    for (uint32_t o = 0; o < count; ++o)
      decodeBlocks<T>(operands.weight + o * weightStride, columns, scratch + o * columns);
    operands.weight = reinterpret_cast<const uint8_t *>(scratch);
    operands.weightStride = columns * sizeof(float);
    multiplyTile<F32>(operands, count, rows);
  }
}

template <class T> constexpr KernelName nameOf{"linear.", T::name};

template <class List> struct Entries;
template <class... T> struct Entries<std::tuple<T...>> {
  static constexpr KernelEntry list[] = {{nameOf<T>.view(), linear<T>}...};
};

} // namespace

KernelList linearKernels() {
  return {Entries<WeightTypeList>::list, std::tuple_size_v<WeightTypeList>};
}

} // namespace strata::cpu::STRATA_ISA_NAMESPACE
