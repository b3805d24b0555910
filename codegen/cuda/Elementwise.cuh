// gated, gated_pair, convert, activation, row_gated, add, copy_rows and gather_rows: one pass over
// each row, bound by memory.
#pragma once

#include "codegen/cuda/Narrow.cuh"

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

/// Calls `body(first)` for the block's elements of its row, 16 bytes of type T at a time; first
/// counts within the row.
template <class T, class K, class Body> inline void forEachPack(const uint32_t *valid, Body body) {
  static_assert(K::width % packElements<T> == 0);
  awaitPredecessor();
  if (blockIdx.x >= *valid)
    return;
  for (uint64_t i = blockIdx.y * K::threads + threadIdx.x; i < K::width / packElements<T>;
       i += uint64_t(gridDim.y) * K::threads)
    body(i * packElements<T>);
}

template <class Function, class Stored, class K> inline void gated(const Slots<4> &slots) {
  enum { Gate, Up, Y };
  auto *gate = slots.pointer<const float>(Gate), *up = slots.pointer<const float>(Up);
  uint8_t *y = slots.pointer<uint8_t>(Y);
  forEachOfRow<K>(slots.valid, [&](uint64_t i) {
    storePlain(Stored{}, y + i * Stored::blockBytes, Function::apply(gate[i]) * up[i]);
  });
}

template <class Function, class K> inline void gated(const Slots<4> &slots) {
  gated<Function, F32, K>(slots);
}

template <class Function, class T, class K> inline void gatedPair(const Slots<3> &slots) {
  enum { X, Y };
  constexpr uint64_t bytes = T::blockBytes;
  const uint8_t *x = slots.pointer<const uint8_t>(X) + blockIdx.x * 2 * K::width * bytes;
  uint8_t *y = slots.pointer<uint8_t>(Y) + blockIdx.x * K::width * bytes;
  forEachPack<T, K>(slots.valid, [&](uint64_t first) {
    float gate[packElements<T>], up[packElements<T>];
    loadPack<T>(x + first * bytes, gate);
    loadPack<T>(x + (K::width + first) * bytes, up);
#pragma unroll
    for (uint32_t i = 0; i < packElements<T>; ++i)
      up[i] *= Function::apply(gate[i]);
    storePack<T>(y + first * bytes, up);
  });
}

template <class Function, class K> inline void gatedPair(const Slots<3> &slots) {
  gatedPair<Function, F32, K>(slots);
}

template <class T, class K> inline void convert(const Slots<3> &slots) {
  enum { X, Y };
  const float *x = slots.pointer<const float>(X) + blockIdx.x * K::width;
  uint8_t *y = slots.pointer<uint8_t>(Y) + blockIdx.x * K::width * T::blockBytes;
  forEachPack<F32, K>(slots.valid, [&](uint64_t first) {
    storeFour<T>(y + first * T::blockBytes, *reinterpret_cast<const float4 *>(x + first));
  });
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
