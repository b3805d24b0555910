// head_linear.<type>: each head goes through a matrix of its own, or through its transpose. A
// weight row is dequantised once for all rows; bounds are those of Tile.h.
#include "codegen/cpu/Tile.h"

namespace strata::cpu::STRATA_ISA_NAMESPACE {
namespace {

enum Slot {
  X,
  Weight,
  Y,
  ValidRows,
  Scratch,
  ScratchStride,
  Heads,
  WeightRows,
  Columns,
  Tail,
  Transposed
};

/// One head of a row, before and after.
struct HeadRows {
  const float *x;
  float *y;
  uint64_t xStride, yStride; // values from one row to the next
};

/// y = sum over weight rows of x[r] * weight[r], in order.
template <class T>
void multiplyTransposed(const uint8_t *weight, uint64_t weightRows, uint64_t columns, uint32_t rows,
                        const HeadRows &head, float *decoded) {
  for (uint32_t row = 0; row < rows; ++row)
    std::memset(head.y + row * head.yStride, 0, columns * sizeof(float));
  for (uint64_t r = 0; r < weightRows; ++r) {
    const uint8_t *stored = weight + r * (columns / T::blockElements * T::blockBytes);
    if constexpr (T::blockElements > 1)
      decodeBlocks<T>(stored, columns, decoded);
    for (uint32_t row = 0; row < rows; ++row) {
      Lanes factor = splat(head.x[row * head.xStride + r]);
      float *y = head.y + row * head.yStride;
      forEachPiece(columns, [&](uint64_t first, uint32_t count) {
        Lanes values;
        if constexpr (T::blockElements > 1)
          values = loadPiece(decoded + first, count);
        else
          values = loadPlainPiece<T>(stored + first * T::blockBytes, count);
        storePiece(y + first, fma(factor, values, loadPiece(y + first, count)), count);
      });
    }
  }
}

/// An item is a head, for all rows.
template <class T>
void headLinear(const uint64_t *slots, uint32_t begin, uint32_t end, uint32_t worker) {
  uint32_t rows = *pointerAt<const uint32_t>(slots, ValidRows);
  uint64_t heads = slots[Heads], weightRows = slots[WeightRows], columns = slots[Columns];
  uint64_t tail = slots[Tail], from = slots[Transposed] ? weightRows : columns,
           to = slots[Transposed] ? columns : weightRows;
  uint64_t rowBytes = columns / T::blockElements * T::blockBytes;
  auto *scratch = reinterpret_cast<float *>(slots[Scratch] + worker * slots[ScratchStride]);
  for (uint64_t head = begin; head < end; ++head) {
    HeadRows of = {pointerAt<const float>(slots, X) + head * (from + tail),
                   pointerAt<float>(slots, Y) + head * (to + tail), heads * (from + tail),
                   heads * (to + tail)};
    const uint8_t *weight = pointerAt<const uint8_t>(slots, Weight) + head * weightRows * rowBytes;
    if (slots[Transposed]) {
      multiplyTransposed<T>(weight, weightRows, columns, rows, of, scratch);
    } else {
      for (uint64_t first = 0; first < weightRows; first += linearTileOutputs) {
        uint64_t left = weightRows - first;
        multiplyTile<T>(
            {weight + first * rowBytes, rowBytes, columns},
            uint32_t(left < linearTileOutputs ? left : linearTileOutputs), rows, scratch,
            [&](uint32_t row) { return of.x + row * of.xStride; },
            [&](uint32_t row, uint32_t output, float value) {
              of.y[row * of.yStride + first + output] = value;
            });
      }
    }
    for (uint32_t row = 0; row < rows; ++row)
      std::memcpy(of.y + row * of.yStride + to, of.x + row * of.xStride + from,
                  tail * sizeof(float));
  }
}

template <class T> constexpr KernelName nameOf{"head_linear.", T::name};

template <class List> struct Entries;
template <class... T> struct Entries<std::tuple<T...>> {
  static constexpr KernelEntry list[] = {{nameOf<T>.view(), headLinear<T>}...};
};

} // namespace

KernelList headLinearKernels() {
  return {Entries<WeightTypeList>::list, std::tuple_size_v<WeightTypeList>};
}

} // namespace strata::cpu::STRATA_ISA_NAMESPACE
