// norm_gated.<function>.<type>: y = f(gate n) * (up n), with n = x normalised; for few rows. A row of
// `gate` and one of `up` are a pair.
#pragma once

#include "codegen/cuda/Elementwise.cuh"
#include "codegen/cuda/Linear.cuh"

namespace strata {

template <class Function, class T, class K> inline void normGated(const Slots<11> &slots) {
  enum { X, Norm, Gate, Up, Y, RowSequence, NonfiniteLayer, Layer = 10 };
  multiplyPairs<T, K, K::outputs, true>(
      slots, slots.pointer<const float>(X), slots.pointer<const float>(Norm), real(K::epsilon),
      [&](uint32_t output, uint32_t side) {
        return rowOfWeight<T, K>(slots.at[side == 0 ? Gate : Up], output);
      },
      [&](uint32_t output, uint32_t row, float gate, float up, float meanSquare) {
        if (output == 0)
          reportNonfinite(meanSquare, slots.pointer<int32_t>(NonfiniteLayer),
                          slots.pointer<const int32_t>(RowSequence)[row], slots.at[Layer]);
        slots.pointer<float>(Y)[row * K::outputs + output] = Function::apply(gate) * up;
      });
}

} // namespace strata
