// Sampling: one specification that every device follows, and its plain reference.
//
// In this order: temperature (0: the largest logit, ties to the lower id, and nothing below
// applies), top-k, top-p, min-p, draw. The random number is f(seed, position): nothing is stored,
// so moving or re-running a sequence changes nothing.
#pragma once

#include <cstdint>
#include <span>

namespace strata {

struct SamplingParameters {
  float temperature = 0.0f; ///< 0 is greedy.
  int32_t topK = 0;         ///< 0 keeps all.
  float topP = 1.0f; ///< Smallest set of the likeliest tokens whose sum reaches this; 1 keeps all.
  float minP = 0.0f; ///< Drops tokens below minP times the likeliest's probability.
  uint64_t seed = 0;
};

struct TokenChoice {
  int32_t id;
  float logProbability; ///< Natural log of the softmax of the raw logits at `id`.
};

/// Uniform in [0, 1) from (seed, position): a counter-based generator (Philox-style mixing).
double uniformAt(uint64_t seed, uint64_t position);

/// Chooses from `logits` (one row, at least one value). `scratch` has at least logits.size()
/// entries. `position` is the position of the token being drawn. Allocates nothing.
struct SamplingScratch {
  float weight;
  int32_t id;
};
TokenChoice sampleToken(std::span<const float> logits, const SamplingParameters &parameters,
                        uint64_t position, std::span<SamplingScratch> scratch);

} // namespace strata
