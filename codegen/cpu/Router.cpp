// router.<function>: the experts of each row, by k rounds over the scores. Bound by the logits'
// bytes where k is small.
#include "codegen/cpu/Functions.h"

namespace strata::cpu::STRATA_ISA_NAMESPACE {
namespace {

enum Slot {
  Logits,
  Bias,
  Y,
  Scratch,
  ScratchStride,
  Experts,
  Used,
  Groups,
  GroupsUsed,
  GroupTop,
  Normalise,
  LeastSum,
  Scale
};

/// p of one row.
struct Softmax {
  static constexpr const char *name = "softmax";
  STRATA_INLINE static void apply(const float *logits, float *p, uint64_t experts) {
    Lanes most = splat(-__builtin_inff()), sum = splat(0);
    for (uint64_t e = 0; e < experts; ++e)
      most = maximum(splat(logits[e]), most);
    forEachPiece(experts, [&](uint64_t first, uint32_t count) {
      storePiece(p + first, exponential(loadPiece(logits + first, count) - most), count);
    });
    forEachPiece(experts,
                 [&](uint64_t first, uint32_t count) { sum = sum + loadPiece(p + first, count); });
    Lanes total = splat(sumOf(sum));
    forEachPiece(experts, [&](uint64_t first, uint32_t count) {
      storePiece(p + first, loadPiece(p + first, count) / total, count);
    });
  }
};

struct SigmoidGate {
  static constexpr const char *name = "sigmoid";
  STRATA_INLINE static void apply(const float *logits, float *p, uint64_t experts) {
    forEachPiece(experts, [&](uint64_t first, uint32_t count) {
      storePiece(p + first, Sigmoid::apply(loadPiece(logits + first, count)), count);
    });
  }
};

/// What is chosen among: an entry that is NaN was taken or is out of the question.
constexpr float out = __builtin_nanf("");

/// The largest of [begin, end), ties to the lower; `end` where all are out.
STRATA_INLINE uint64_t largest(const float *values, uint64_t begin, uint64_t end) {
  uint64_t best = end;
  for (uint64_t i = begin; i < end; ++i)
    if (values[i] == values[i] && (best == end || values[i] > values[best]))
      best = i;
  return best;
}

/// Puts every expert outside the best groups out of the question.
STRATA_INLINE void keepGroups(const uint64_t *slots, float *s, float *groupScore) {
  uint64_t groups = slots[Groups], size = slots[Experts] / groups;
  for (uint64_t g = 0; g < groups; ++g) {
    float score = 0, taken[maxGroupTop];
    uint64_t place[maxGroupTop];
    for (uint64_t i = 0; i < slots[GroupTop]; ++i) {
      place[i] = largest(s, g * size, (g + 1) * size);
      taken[i] = s[place[i]];
      score += taken[i];
      s[place[i]] = out;
    }
    for (uint64_t i = slots[GroupTop]; i-- > 0;)
      s[place[i]] = taken[i];
    groupScore[g] = score;
  }
  for (uint64_t i = 0; i < slots[GroupsUsed]; ++i) // what stays is marked
    groupScore[largest(groupScore, 0, groups)] = out;
  for (uint64_t g = 0; g < groups; ++g)
    if (groupScore[g] == groupScore[g])
      for (uint64_t e = g * size; e < (g + 1) * size; ++e)
        s[e] = out;
}

template <class Gate>
void router(const uint64_t *slots, uint32_t begin, uint32_t end, uint32_t worker) {
  uint64_t experts = slots[Experts], used = slots[Used];
  auto *p = reinterpret_cast<float *>(slots[Scratch] + worker * slots[ScratchStride]);
  float *s = p + experts, *groupScore = s + experts;
  auto *bias = pointerAt<const float>(slots, Bias);
  for (uint32_t row = begin; row < end; ++row) {
    float *y = pointerAt<float>(slots, Y) + row * 2 * used;
    Gate::apply(pointerAt<const float>(slots, Logits) + row * experts, p, experts);
    for (uint64_t e = 0; e < experts; ++e) {
      float score = bias ? p[e] + bias[e] : p[e];
      s[e] = score == score ? score : -__builtin_inff();
    }
    if (slots[Groups] > 1)
      keepGroups(slots, s, groupScore);
    float sum = 0;
    for (uint64_t i = 0; i < used; ++i) {
      uint64_t best = largest(s, 0, experts);
      s[best] = out;
      y[i] = float(best);
      y[used + i] = p[best];
      sum += p[best];
    }
    float least = realAt(slots, LeastSum), scale = realAt(slots, Scale);
    if (slots[Normalise])
      for (uint64_t i = 0; i < used; ++i)
        y[used + i] = y[used + i] / (sum > least ? sum : least);
    for (uint64_t i = 0; i < used; ++i)
      y[used + i] = y[used + i] * scale;
  }
}

template <class Gate> constexpr KernelName nameOf{"router.", Gate::name};

constexpr KernelEntry entries[] = {{nameOf<Softmax>.view(), router<Softmax>},
                                   {nameOf<SigmoidGate>.view(), router<SigmoidGate>}};

} // namespace

KernelList routerKernels() { return {entries, 2}; }

} // namespace strata::cpu::STRATA_ISA_NAMESPACE
