// linear.<type>: y[row][o] (+)= dot(weight[o], x[row]) + bias[o]. Bounds and order of summation are
// those of Tile.h; then come the bias and the old y.
#include "codegen/cpu/Tile.h"

namespace strata::cpu::STRATA_ISA_NAMESPACE {
namespace {

enum Slot { X, Weight, Bias, Y, ValidRows, Scratch, ScratchStride, Columns, Outputs, Accumulate };

template <class T>
void linear(const uint64_t *slots, uint32_t begin, uint32_t end, uint32_t worker) {
  auto rows = *pointerAt<const uint32_t>(slots, ValidRows);
  uint64_t columns = slots[Columns], outputs = slots[Outputs];
  uint64_t weightStride = columns / T::blockElements * T::blockBytes;
  auto *scratch = reinterpret_cast<float *>(slots[Scratch] + worker * slots[ScratchStride]);
  const float *x = pointerAt<const float>(slots, X);
  bool accumulate = slots[Accumulate] != 0;
  for (uint64_t tile = begin; tile < end; ++tile) {
    uint64_t first = tile * linearTileOutputs;
    auto count =
        uint32_t(outputs - first < linearTileOutputs ? outputs - first : linearTileOutputs);
    auto *bias = pointerAt<const float>(slots, Bias);
    float *y = pointerAt<float>(slots, Y) + first;
    TileWeight weight = {pointerAt<const uint8_t>(slots, Weight) + first * weightStride,
                         weightStride, columns};
    multiplyTile<T>(
        weight, count, rows, scratch, [&](uint32_t row) { return x + row * columns; },
        [&](uint32_t row, uint32_t output, float value) {
          float *to = y + row * outputs + output;
          if (bias)
            value += bias[first + output];
          *to = accumulate ? *to + value : value;
        });
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
