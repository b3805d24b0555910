// Sampling: one specification that every device follows, and its plain reference.
//
// In this order:
//   1. penalties, for each id that stands `count` > 0 times among the sequence's newest
//      `penaltyWindow` tokens, prompt and generated alike: a positive logit is divided by the
//      repetition penalty, any other multiplied by it; then count times the frequency penalty and
//      once the presence penalty are subtracted;
//   2. bias: each entry's value is added to its id's logit;
//   3. mask: ids that are not allowed take no part;
//   4. temperature (0: the largest logit, and nothing below applies);
//   5. top-k: the k largest logits;
//   6. top-p: of those, the fewest likeliest whose probabilities reach p of their sum, but one at
//      least;
//   7. min-p: of those, the ones with at least min-p times the likeliest's probability;
//   8. draw: walking what is left by increasing id, the first token at which the running sum of the
//      probabilities exceeds u times their sum, where u = uniformAt(seed, position).
// Ties go to the lower id everywhere. NaN logits take no part; where none is left, id 0 with a NaN
// log-probability comes back. Infinite logits are limits: +inf shares all mass with its equals,
// -inf has none unless nothing else is there.
//
// The random number is f(seed, position): nothing is stored, so moving or re-running a sequence
// changes nothing. Sums are in double and in an order that the logits alone fix, so results do not
// depend on the processor.
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
  float repetitionPenalty = 1.0f; ///< Above 0; 1 leaves logits alone.
  float presencePenalty = 0.0f;
  float frequencyPenalty = 0.0f;
  int32_t penaltyWindow = 0; ///< Newest tokens that penalties count; 0 or less: the whole sequence.
};

/// What a sequence brings beside its parameters. Ids outside the vocabulary count for nothing.
struct SamplingContext {
  std::span<const int32_t> tokens; ///< The sequence so far.
  std::span<const int32_t> biasIds;
  std::span<const float> biasValues; ///< One for each of `biasIds`.
  std::span<const uint32_t> allowed; ///< Bit id % 32 of word id / 32: may be drawn. Empty: all.
};

struct LogitBias {
  int32_t id;
  float value; ///< Finite, or -infinity: never drawn unless nothing else may be.
};

/// Entries that a sequence may have at most; every plan keeps room for them.
constexpr uint64_t maxLogitBiases = 512;

/// Words of a mask over `vocabulary` ids.
constexpr uint64_t maskWords(uint64_t vocabulary) { return (vocabulary + 31) / 32; }

struct TokenChoice {
  int32_t id;
  float logProbability; ///< Natural log of the softmax of the raw logits at `id`.
};

/// Uniform in [0, 1), a multiple of 2^-53: the top 53 bits of words 1 and 0 of Philox4x32-10 with
/// the key `seed` and the counter `position` (both low word first).
double uniformAt(uint64_t seed, uint64_t position);

/// Working memory of sampleToken.
struct SamplingScratch {
  float logit;
  float weight;
  int32_t id;
};

/// Chooses from `logits` (one row, at least one value). `scratch` has at least logits.size()
/// entries; what it holds before does not matter. `position` is the position of the token being
/// drawn. Allocates nothing. O(n + tokens counted); top-p adds O(m log n) for the m that it keeps.
TokenChoice sampleToken(std::span<const float> logits, const SamplingParameters &parameters,
                        uint64_t position, std::span<SamplingScratch> scratch,
                        const SamplingContext &context = {});

} // namespace strata
