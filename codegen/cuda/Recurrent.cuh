// conv and ssm_scan: recurrences along each sequence, whose state is one slot a sequence. Rows
// follow one another. Decoding is bound by the state's bytes, read and written once a step.
#pragma once

#include "codegen/cuda/Kernel.cuh"

namespace strata {

/// Calls `body(begin, end, isNew, state)` for every sequence of the step: its rows, whether it
/// begins (and reads zeros), and its slot of the pool. `First` is the slot of the state, which the
/// step's fields follow.
template <uint32_t First, class K, uint32_t Count, class Body>
inline void forEachSequence(const Slots<Count> &slots, Body body) {
  enum { State = First, BlockTable, ValidSequences, QueryStart, RowPosition };
  uint32_t sequences = *slots.template pointer<const uint32_t>(ValidSequences);
  auto *start = slots.template pointer<const int32_t>(QueryStart);
  for (uint32_t s = 0; s < sequences; ++s) {
    auto begin = uint32_t(start[s]), end = uint32_t(start[s + 1]);
    if (begin >= end)
      continue;
    bool isNew = slots.template pointer<const int32_t>(RowPosition)[begin] == 0;
    auto block = uint64_t(slots.template pointer<const int32_t>(BlockTable)[s]);
    body(begin, end, isNew,
         reinterpret_cast<float *>(slots.template pointer<uint8_t>(State) +
                                   block * K::block_stride));
  }
}

/// A thread is one channel. y is x: a row is read before it is written.
template <class K> inline void conv(const Slots<11> &slots) {
  enum { X, Weight, Bias, State };
  constexpr uint32_t kept = K::taps - 1;
  uint64_t channel = uint64_t(blockIdx.x) * K::threads + threadIdx.x;
  awaitPredecessor();
  if (channel >= K::width)
    return;
  float tap[K::taps];
#pragma unroll
  for (uint32_t j = 0; j < K::taps; ++j)
    tap[j] = slots.pointer<const float>(Weight)[channel * K::taps + j];
  auto *bias = slots.pointer<const float>(Bias);
  float first = bias ? bias[channel] : 0.0f;
  float *x = slots.pointer<float>(X) + channel;
  forEachSequence<State, K>(slots, [&](uint32_t begin, uint32_t end, bool isNew, float *state) {
    float past[kept]; // oldest first
#pragma unroll
    for (uint32_t j = 0; j < kept; ++j)
      past[j] = isNew ? 0.0f : state[j * K::width + channel];
    for (uint32_t row = begin; row < end; ++row) {
      float newest = x[row * K::width], sum = first;
#pragma unroll
      for (uint32_t j = 0; j < kept; ++j)
        sum = fmaf(tap[j], past[j], sum);
      x[row * K::width] = fmaf(tap[kept], newest, sum);
#pragma unroll
      for (uint32_t j = 0; j + 1 < kept; ++j)
        past[j] = past[j + 1];
      past[kept - 1] = newest;
    }
#pragma unroll
    for (uint32_t j = 0; j < kept; ++j)
      state[j * K::width + channel] = past[j];
  });
}

/// log(1 + e^x)
inline float softplus(float x) { return fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x))); }

/// A warp is one row of one head's state, whose values its lanes keep while rows pass.
template <class K> inline void ssmScan(const Slots<18> &slots) {
  enum { X, Dt, A, Skip, DtBias, Y, State };
  constexpr uint64_t inner = K::heads * K::head_width, width = inner + 2 * K::groups * K::state_width;
  constexpr uint32_t kept = (K::state_width + warpThreads - 1) / warpThreads;
  awaitPredecessor();
  uint64_t head = blockIdx.x, p = blockIdx.y;
  uint32_t lane = threadIdx.x;
  uint64_t group = head / (K::heads / K::groups);
  float a = slots.pointer<const float>(A)[head], skip = slots.pointer<const float>(Skip)[head];
  float dtBias = slots.pointer<const float>(DtBias)[head];
  forEachSequence<State, K>(slots, [&](uint32_t begin, uint32_t end, bool isNew, float *slot) {
    float *state = slot + (head * K::head_width + p) * K::state_width;
    float values[kept];
#pragma unroll
    for (uint32_t k = 0; k < kept; ++k) {
      uint32_t n = k * warpThreads + lane;
      values[k] = !isNew && n < K::state_width ? state[n] : 0.0f;
    }
    for (uint32_t row = begin; row < end; ++row) {
      const float *from = slots.pointer<const float>(X) + row * width;
      const float *b = from + inner + group * K::state_width, *c = b + K::groups * K::state_width;
      float x = from[head * K::head_width + p];
      float dt = softplus(slots.pointer<const float>(Dt)[row * K::heads + head] + dtBias);
      dt = dt < real(K::least_dt) ? real(K::least_dt) : dt;
      dt = dt > real(K::most_dt) ? real(K::most_dt) : dt;
      float decay = expf(dt * a), input = dt * x, sum = 0;
#pragma unroll
      for (uint32_t k = 0; k < kept; ++k) {
        uint32_t n = k * warpThreads + lane;
        if (n >= K::state_width)
          continue;
        values[k] = fmaf(input, b[n], decay * values[k]);
        sum = fmaf(values[k], c[n], sum);
      }
      sum = warpSum(sum);
      if (lane == 0)
        slots.pointer<float>(Y)[row * inner + head * K::head_width + p] = fmaf(skip, x, sum);
    }
#pragma unroll
    for (uint32_t k = 0; k < kept; ++k)
      if (uint32_t n = k * warpThreads + lane; n < K::state_width)
        state[n] = values[k];
  });
}

} // namespace strata
