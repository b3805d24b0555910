// The pointwise functions that models name.
#pragma once

#include "codegen/cpu/Families.h"

namespace strata::cpu::STRATA_ISA_NAMESPACE {

struct Silu {
  static constexpr const char *name = "silu";
  STRATA_INLINE static Lanes apply(Lanes x) {
    return x / (splat(1.0f) + exponential(splat(0.0f) - x));
  }
};

/// 0.5 x (1 + tanh(u)) = x / (1 + e^(-2u)), u = sqrt(2 / pi) (x + 0.044715 x^3).
struct GeluTanh {
  static constexpr const char *name = "gelu_tanh";
  STRATA_INLINE static Lanes apply(Lanes x) {
    Lanes inner = x * fma(splat(0.044715f), x * x, splat(1.0f));
    return x / (splat(1.0f) + exponential(splat(-1.5957691216057308f) * inner));
  }
};

struct Relu2 {
  static constexpr const char *name = "relu2";
  STRATA_INLINE static Lanes apply(Lanes x) {
    Lanes positive = maximum(splat(0.0f), x);
    return positive * positive;
  }
};

struct Sigmoid {
  static constexpr const char *name = "sigmoid";
  STRATA_INLINE static Lanes apply(Lanes x) {
    return splat(1.0f) / (splat(1.0f) + exponential(splat(0.0f) - x));
  }
};

} // namespace strata::cpu::STRATA_ISA_NAMESPACE
