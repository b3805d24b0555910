// gated, activation, row_gated, add, copy_rows and gather_rows: one pass over each row, bound by memory.
#pragma once

#include "codegen/cuda/Kernel.cuh"

namespace strata {

struct Silu {
  static float apply(float x) { return x / (1.0f + expf(-x)); }
};

/// 0.5 x (1 + tanh(u)) = x / (1 + e^(-2u)), u = sqrt(2 / pi) (x + 0.044715 x^3).
struct GeluTanh {
  static float apply(float x) {
    float inner = x * fmaf(0.044715f, x * x, 1.0f);
    return x / (1.0f + expf(-1.5957691216057308f * inner));
  }
};

struct Relu2 {
  static float apply(float x) {
    float positive = fmaxf(0.0f, x);
    return positive * positive;
  }
};

struct Sigmoid {
  static float apply(float x) { return 1.0f / (1.0f + expf(-x)); }
};

/// Calls `body(index)` for the block's elements of its row: index counts over all rows.
template <class K, class Body> inline void forEachOfRow(const uint32_t *valid, Body body) {
  awaitPredecessor();
  uint64_t row = blockIdx.x;
  if (row >= *valid)
    return;
  for (uint64_t i = blockIdx.y * K::threads + threadIdx.x; i < K::width;
       i += uint64_t(gridDim.y) * K::threads)
    body(row * K::width + i);
}

template <class Function, class K> inline void gated(const Slots<4> &slots) {
  enum { Gate, Up, Y };
  auto *gate = slots.pointer<const float>(Gate), *up = slots.pointer<const float>(Up);
  float *y = slots.pointer<float>(Y);
  forEachOfRow<K>(slots.valid, [&](uint64_t i) { y[i] = Function::apply(gate[i]) * up[i]; });
}

template <class Function, class K> inline void activation(const Slots<3> &slots) {
  enum { X, Y };
  auto *x = slots.pointer<const float>(X);
  float *y = slots.pointer<float>(Y);
  forEachOfRow<K>(slots.valid, [&](uint64_t i) { y[i] = Function::apply(x[i]); });
}

template <class Function, class K> inline void rowGated(const Slots<4> &slots) {
  enum { Gate, X, Y };
  auto *gate = slots.pointer<const float>(Gate), *x = slots.pointer<const float>(X);
  float *y = slots.pointer<float>(Y);
  forEachOfRow<K>(slots.valid,
                  [&](uint64_t i) { y[i] = Function::apply(gate[i / K::width]) * x[i]; });
}

template <class K> inline void add(const Slots<4> &slots) {
  enum { A, B, Y };
  auto *a = slots.pointer<const float>(A), *b = slots.pointer<const float>(B);
  float *y = slots.pointer<float>(Y);
  forEachOfRow<K>(slots.valid, [&](uint64_t i) { y[i] = a[i] + b[i]; });
}

template <class K> inline void copyRows(const Slots<3> &slots) {
  enum { X, Y };
  auto *x = slots.pointer<const float>(X);
  float *y = slots.pointer<float>(Y);
  forEachOfRow<K>(slots.valid, [&](uint64_t i) { y[i] = x[i]; });
}

template <class K> inline void gatherRows(const Slots<4> &slots) {
  enum { X, Y, HeadRow };
  auto *x = slots.pointer<const float>(X);
  float *y = slots.pointer<float>(Y);
  auto *headRow = slots.pointer<const int32_t>(HeadRow);
  forEachOfRow<K>(slots.valid, [&](uint64_t i) {
    y[i] = x[uint64_t(headRow[blockIdx.x]) * K::width + i % K::width];
  });
}

} // namespace strata
