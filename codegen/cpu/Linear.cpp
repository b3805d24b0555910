// linear.<type>: y[row][o] (+)= dot(weight[o], x[row]) + bias[o].
//
// One order of summation whatever the batch: lane l of 16 adds the products of columns l, l + 16,
// ... in order, one fused step each; then the lanes are summed by one tree (Lanes.h); then come the
// bias and the old y. How many rows and outputs are computed together changes only what is loaded
// how often.
//
// With few rows the bound is the weights' bytes: blocks are dequantised into registers and used
// once. With many it is the fused multiply-adds: a tile of 16 outputs is dequantised into scratch,
// and blocks of outputs x rows of it keep their sums in registers, each load serving several.
#include "codegen/cpu/Families.h"

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

/// Columns that are dequantised together: whole blocks, whole lanes.
template <class T>
constexpr uint32_t groupOf = T::blockElements < laneCount ? laneCount : T::blockElements;

template <class T> struct Group {
  static_assert(groupOf<T> % laneCount == 0 && groupOf<T> % T::blockElements == 0);
  static constexpr uint32_t bytes = groupOf<T> / T::blockElements * T::blockBytes;
  Lanes pieces[groupOf<T> / laneCount];
};

template <class T> STRATA_INLINE Group<T> loadGroup(const uint8_t *from) {
  Group<T> group;
  if constexpr (T::blockElements == 1) {
    group.pieces[0] = loadPlain<T>(from);
  } else {
    alignas(64) float values[groupOf<T>];
    for (uint32_t i = 0; i < groupOf<T> / T::blockElements; ++i)
      T::dequantise(from + i * T::blockBytes, values + i * T::blockElements);
#pragma GCC unroll 16
    for (uint32_t i = 0; i < groupOf<T> / laneCount; ++i)
      group.pieces[i] = load(values + i * laneCount);
  }
  return group;
}

/// The last `count` < 16 columns, where blocks are smaller than the lanes.
template <class T> STRATA_INLINE Lanes loadTail(const uint8_t *from, uint32_t count) {
  if constexpr (T::blockElements == 1) {
    return loadPlainPiece<T>(from, count);
  } else {
    alignas(64) float values[groupOf<T>] = {};
    for (uint32_t i = 0; i < count / T::blockElements; ++i)
      T::dequantise(from + i * T::blockBytes, values + i * T::blockElements);
    return load(values);
  }
}

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

template <class T, uint32_t OutputBlock, uint32_t RowBlock>
void multiplyBlock(const Operands &operands) {
  constexpr uint32_t group = groupOf<T>;
  const float *x = operands.x;
  uint64_t columns = operands.columns;
  Lanes sums[OutputBlock][RowBlock];
#pragma GCC unroll 16
  for (uint32_t o = 0; o < OutputBlock; ++o)
#pragma GCC unroll 16
    for (uint32_t r = 0; r < RowBlock; ++r)
      sums[o][r] = splat(0);

  const uint8_t *weight = operands.weight;
  uint64_t column = 0;
  for (; column + group <= columns; column += group, weight += Group<T>::bytes) {
#pragma GCC unroll 16
    for (uint32_t o = 0; o < OutputBlock; ++o) {
      Group<T> loaded = loadGroup<T>(weight + o * operands.weightStride);
#pragma GCC unroll 16
      for (uint32_t i = 0; i < group / laneCount; ++i)
#pragma GCC unroll 16
        for (uint32_t r = 0; r < RowBlock; ++r)
          sums[o][r] =
              fma(loaded.pieces[i], load(x + r * columns + column + i * laneCount), sums[o][r]);
    }
  }
  if constexpr (T::blockElements < laneCount) {
    if (uint32_t rest = uint32_t(columns - column)) {
#pragma GCC unroll 16
      for (uint32_t o = 0; o < OutputBlock; ++o) {
        Lanes loaded = loadTail<T>(weight + o * operands.weightStride, rest);
#pragma GCC unroll 16
        for (uint32_t r = 0; r < RowBlock; ++r)
          sums[o][r] = fma(loaded, loadFirst(x + r * columns + column, rest), sums[o][r]);
      }
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
  uint64_t blocks = columns / T::blockElements, weightStride = blocks * T::blockBytes;
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
    if (__is_same(T, F32) || rows <= maxRowBlock) {
      multiplyTile<T>(operands, count, rows);
      continue;
    }
    auto *scratch = reinterpret_cast<float *>(slots[Scratch] + worker * slots[ScratchStride]);
    for (uint32_t o = 0; o < count; ++o)
      for (uint64_t block = 0; block < blocks; ++block)
        T::dequantise(operands.weight + o * weightStride + block * T::blockBytes,
                      scratch + o * columns + block * T::blockElements);
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
