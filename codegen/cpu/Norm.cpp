// rms_norm and rms_norm_heads: y = x * rsqrt(mean(x^2) + epsilon) * weight.
#include "codegen/cpu/Families.h"

namespace strata::cpu::STRATA_ISA_NAMESPACE {
namespace {

STRATA_INLINE float meanSquare(const float *x, uint64_t width) {
  Lanes sum = splat(0);
  forEachPiece(width, [&](uint64_t first, uint32_t count) {
    Lanes value = loadPiece(x + first, count);
    sum = fma(value, value, sum);
  });
  return sumOf(sum) / float(width);
}

STRATA_INLINE void normalise(const float *x, const float *weight, float *y, uint64_t width,
                             float mean, float epsilon) {
  Lanes factor = splat(1.0f / __builtin_sqrtf(mean + epsilon));
  forEachPiece(width, [&](uint64_t first, uint32_t count) {
    Lanes value = loadPiece(x + first, count) * factor;
    storePiece(y + first, value * loadPiece(weight + first, count), count);
  });
}

/// Lowers `*layer` to `candidate`. Unsigned, so that -1 (no layer) is above every layer.
STRATA_INLINE void lowerTo(uint32_t *layer, uint32_t candidate) {
  uint32_t seen = __atomic_load_n(layer, __ATOMIC_RELAXED);
  while (candidate < seen && !__atomic_compare_exchange_n(layer, &seen, candidate, true,
                                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

void rmsNorm(const uint64_t *slots, uint32_t begin, uint32_t end, uint32_t) {
  enum { X, Weight, Y, RowSequence, NonfiniteLayer, Width, Epsilon, Layer };
  uint64_t width = slots[Width];
  float epsilon = realAt(slots, Epsilon);
  for (uint32_t row = begin; row < end; ++row) {
    const float *x = pointerAt<const float>(slots, X) + row * width;
    float mean = meanSquare(x, width);
    if (!__builtin_isfinite(mean))
      lowerTo(pointerAt<uint32_t>(slots, NonfiniteLayer) +
                  pointerAt<const int32_t>(slots, RowSequence)[row],
              uint32_t(slots[Layer]));
    normalise(x, pointerAt<const float>(slots, Weight), pointerAt<float>(slots, Y) + row * width,
              width, mean, epsilon);
  }
}

void rmsNormHeads(const uint64_t *slots, uint32_t begin, uint32_t end, uint32_t) {
  enum { X, Weight, Heads, HeadWidth, Epsilon, WeightStride };
  uint64_t heads = slots[Heads], width = slots[HeadWidth];
  float epsilon = realAt(slots, Epsilon);
  for (uint64_t head = begin * heads; head < end * heads; ++head) {
    float *x = pointerAt<float>(slots, X) + head * width;
    normalise(x, pointerAt<const float>(slots, Weight) + head % heads * slots[WeightStride], x,
              width, meanSquare(x, width), epsilon);
  }
}

constexpr KernelEntry entries[] = {{"rms_norm", rmsNorm}, {"rms_norm_heads", rmsNormHeads}};

} // namespace

KernelList normKernels() { return {entries, 2}; }

} // namespace strata::cpu::STRATA_ISA_NAMESPACE
