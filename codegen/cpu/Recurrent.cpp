// conv and ssm_scan: recurrences along each sequence, whose state is one slot a sequence.
//
// A row's result is a function of the rows before it, taken one after the other, so its bits do not
// depend on how a sequence was cut into steps. A sequence that begins (its first row is at position
// 0) reads zeros, whatever its slot holds. Decoding is bound by the state's bytes, read and written
// once a step.
#include "codegen/cpu/Functions.h"

namespace strata::cpu::STRATA_ISA_NAMESPACE {
namespace {

/// The rows of one sequence in the step, and its slot of the pool.
struct SequenceRows {
  uint32_t begin, end;
  bool isNew;
  float *state;
};

/// The step's fields in the order that both kernels take them, from `at` on.
struct StepSlots {
  const uint64_t *at;
  enum { State, BlockTable, ValidSequences, QueryStart, RowPosition, BlockStride };

  template <class Body> STRATA_INLINE void forEachSequence(Body body) const {
    uint32_t sequences = *pointerAt<const uint32_t>(at, ValidSequences);
    auto *start = pointerAt<const int32_t>(at, QueryStart);
    auto *position = pointerAt<const int32_t>(at, RowPosition);
    auto *table = pointerAt<const int32_t>(at, BlockTable);
    for (uint32_t s = 0; s < sequences; ++s) {
      SequenceRows rows{uint32_t(start[s]), uint32_t(start[s + 1]), false, nullptr};
      if (rows.begin >= rows.end)
        continue;
      rows.isNew = position[rows.begin] == 0;
      rows.state = reinterpret_cast<float *>(pointerAt<uint8_t>(at, State) +
                                             uint64_t(table[s]) * at[BlockStride]);
      body(rows);
    }
  }
};

/// An item is 16 channels, for all sequences. y may be x: a row is read before it is written.
void conv(const uint64_t *slots, uint32_t begin, uint32_t end, uint32_t) {
  enum { X, Weight, Bias, StepAt, Width = StepAt + 6, Taps };
  uint64_t width = slots[Width];
  auto taps = uint32_t(slots[Taps]);
  const StepSlots step{slots + StepAt};
  auto *weight = pointerAt<const float>(slots, Weight);
  auto *bias = pointerAt<const float>(slots, Bias);
  float *x = pointerAt<float>(slots, X);
  for (uint32_t item = begin; item < end; ++item) {
    static_assert(convChannels == laneCount);
    uint64_t channel = uint64_t(item) * laneCount;
    auto count = uint32_t(width - channel < laneCount ? width - channel : laneCount);
    Lanes tap[maxConvTaps];
    for (uint32_t j = 0; j < taps; ++j) {
      alignas(64) float values[laneCount] = {};
      for (uint32_t c = 0; c < count; ++c)
        values[c] = weight[(channel + c) * taps + j];
      tap[j] = load(values);
    }
    Lanes first = bias ? loadPiece(bias + channel, count) : splat(0);
    step.forEachSequence([&](const SequenceRows &rows) {
      Lanes past[maxConvTaps]; // the last taps - 1 rows, oldest first
      for (uint32_t j = 0; j + 1 < taps; ++j)
        past[j] = rows.isNew ? splat(0) : loadPiece(rows.state + j * width + channel, count);
      for (uint32_t row = rows.begin; row < rows.end; ++row) {
        float *at = x + row * width + channel;
        Lanes newest = loadPiece(at, count), sum = first;
        for (uint32_t j = 0; j + 1 < taps; ++j)
          sum = fma(tap[j], past[j], sum);
        storePiece(at, fma(tap[taps - 1], newest, sum), count);
        for (uint32_t j = 0; j + 2 < taps; ++j)
          past[j] = past[j + 1];
        past[taps - 2] = newest;
      }
      for (uint32_t j = 0; j + 1 < taps; ++j)
        storePiece(rows.state + j * width + channel, past[j], count);
    });
  }
}

/// An item is one head, for all sequences.
void ssmScan(const uint64_t *slots, uint32_t begin, uint32_t end, uint32_t) {
  enum {
    X,
    Dt,
    A,
    Skip,
    DtBias,
    Y,
    StepAt,
    Heads = StepAt + 6,
    HeadWidth,
    Groups,
    StateWidth,
    LeastDt,
    MostDt
  };
  uint64_t heads = slots[Heads], headWidth = slots[HeadWidth], groups = slots[Groups],
           states = slots[StateWidth];
  uint64_t inner = heads * headWidth, rowWidth = inner + 2 * groups * states;
  const StepSlots step{slots + StepAt};
  for (uint64_t head = begin; head < end; ++head) {
    uint64_t group = head / (heads / groups);
    float a = pointerAt<const float>(slots, A)[head],
          skip = pointerAt<const float>(slots, Skip)[head];
    float dtBias = pointerAt<const float>(slots, DtBias)[head];
    float least = realAt(slots, LeastDt), most = realAt(slots, MostDt);
    step.forEachSequence([&](const SequenceRows &rows) {
      float *state = rows.state + head * headWidth * states;
      if (rows.isNew)
        std::memset(state, 0, headWidth * states * sizeof(float));
      for (uint32_t row = rows.begin; row < rows.end; ++row) {
        const float *x = pointerAt<const float>(slots, X) + row * rowWidth;
        const float *b = x + inner + group * states, *c = b + groups * states;
        x += head * headWidth;
        float *y = pointerAt<float>(slots, Y) + row * inner + head * headWidth;
        float dt = firstOf(
            softplus(splat(pointerAt<const float>(slots, Dt)[row * heads + head] + dtBias)));
        dt = dt < least ? least : dt;
        dt = dt > most ? most : dt;
        Lanes decay = splat(firstOf(exponential(splat(dt * a))));
        for (uint64_t p = 0; p < headWidth; ++p) {
          Lanes input = splat(dt * x[p]), sum = splat(0);
          float *kept = state + p * states;
          forEachPiece(states, [&](uint64_t n, uint32_t count) {
            Lanes value = decay * loadPiece(kept + n, count);
            value = fma(input, loadPiece(b + n, count), value);
            storePiece(kept + n, value, count);
            sum = fma(value, loadPiece(c + n, count), sum);
          });
          y[p] = sumOf(sum) + skip * x[p];
        }
      }
    });
  }
}

constexpr KernelEntry entries[] = {{"conv", conv}, {"ssm_scan", ssmScan}};

} // namespace

KernelList recurrentKernels() { return {entries, 2}; }

} // namespace strata::cpu::STRATA_ISA_NAMESPACE
