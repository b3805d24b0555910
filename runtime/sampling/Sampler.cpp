#include "runtime/sampling/Sampler.h"

#include <algorithm>
#include <limits>

#include "runtime/sampling/Elementary.h"
#include "runtime/sampling/Philox.h"

namespace strata {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// The logit below the largest one: 0 at the largest, also where that is infinite.
float distance(float logit, float largest) { return logit == largest ? 0.0f : logit - largest; }

constexpr size_t lanes = 16; ///< Independent partial results, by index modulo 16; loops vectorise.

/// The largest logit that is a number, or NaN where there is none.
float largestOf(std::span<const float> logits) {
  float largest[lanes];
  std::fill_n(largest, lanes, -infinity);
  // NaN loses every comparison.
  auto take = [&](size_t lane, float logit) {
    largest[lane] = logit > largest[lane] ? logit : largest[lane];
  };
  size_t i = 0;
  for (; i + lanes <= logits.size(); i += lanes)
    for (size_t j = 0; j < lanes; ++j)
      take(j, logits[i + j]);
  for (size_t j = 0; i + j < logits.size(); ++j)
    take(j, logits[i + j]);
  float best = *std::max_element(largest, largest + lanes);
  bool found = best > -infinity || std::any_of(logits.begin(), logits.end(),
                                               [](float logit) { return logit == logit; });
  return found ? best : std::numeric_limits<float>::quiet_NaN();
}

/// Sum of exp(logit - largest).
double sumOfExponentials(std::span<const float> logits, float largest) {
  double sums[lanes] = {};
  float terms[lanes];
  size_t i = 0;
  for (; i + lanes <= logits.size(); i += lanes) {
    for (size_t j = 0; j < lanes; ++j)
      terms[j] = exponential(distance(logits[i + j], largest));
    for (size_t j = 0; j < lanes; ++j)
      sums[j] += double(terms[j]);
  }
  for (size_t j = 0; i + j < logits.size(); ++j)
    sums[j] += double(exponential(distance(logits[i + j], largest)));
  double sum = 0.0;
  for (double part : sums)
    sum += part;
  return sum;
}

bool likelierFirst(const SamplingScratch &a, const SamplingScratch &b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

bool lowerId(const SamplingScratch &a, const SamplingScratch &b) { return a.id < b.id; }

double sumOfWeights(std::span<const SamplingScratch> tokens) {
  double sum = 0.0;
  for (const SamplingScratch &token : tokens)
    sum += double(token.weight);
  return sum;
}

/// Top-p, then min-p. What is kept comes back in the order of ids.
std::span<SamplingScratch> keepLikeliest(std::span<SamplingScratch> tokens, float topP,
                                         float minP) {
  double total = sumOfWeights(tokens), enough = double(topP) * total;
  // Tokens below (1 - p) of the mean weigh less than 1 - p together, so the others reach p without
  // them; a thousandth less leaves room for rounding. Few tokens are left to order.
  double cutoff = (1.0 - double(topP)) * total / double(tokens.size()) * 0.999;
  auto end = std::partition(tokens.begin(), tokens.end(), [&](const SamplingScratch &token) {
    return double(token.weight) >= cutoff && token.weight >= minP;
  });

  auto lessLikely = [](const SamplingScratch &a, const SamplingScratch &b) {
    return likelierFirst(b, a);
  };
  std::make_heap(tokens.begin(), end, lessLikely);
  auto rest = end;
  double sum = 0.0;
  do {
    std::pop_heap(tokens.begin(), rest, lessLikely);
    --rest;
    sum += double(rest->weight);
  } while (rest != tokens.begin() && sum < enough);
  std::span<SamplingScratch> kept(rest, end);
  std::sort(kept.begin(), kept.end(), lowerId);
  return kept;
}

int32_t draw(std::span<const SamplingScratch> tokens, double uniform) {
  double target = uniform * sumOfWeights(tokens), sum = 0.0;
  int32_t last = tokens.front().id;
  for (const SamplingScratch &token : tokens) {
    sum += double(token.weight);
    if (sum > target)
      return token.id;
    if (token.weight > 0.0f)
      last = token.id;
  }
  return last; // the product rounded up to the sum
}

bool hasPenalties(const SamplingParameters &parameters) {
  return parameters.repetitionPenalty != 1.0f || parameters.presencePenalty != 0.0f ||
         parameters.frequencyPenalty != 0.0f;
}

/// Until candidates are chosen, entry i is that of id i and its `id` holds the count of i.
void applyPenalties(std::span<SamplingScratch> all, const SamplingParameters &parameters,
                    std::span<const int32_t> tokens) {
  if (parameters.penaltyWindow > 0)
    tokens = tokens.last(std::min(tokens.size(), size_t(parameters.penaltyWindow)));
  for (int32_t token : tokens)
    if (uint32_t(token) < all.size())
      ++all[size_t(token)].id;
  for (SamplingScratch &entry : all) {
    if (entry.id == 0)
      continue;
    entry.logit = entry.logit > 0.0f ? entry.logit / parameters.repetitionPenalty
                                     : entry.logit * parameters.repetitionPenalty;
    entry.logit -= float(entry.id) * parameters.frequencyPenalty + parameters.presencePenalty;
  }
}

/// The tokens that may be drawn, by id, with their logits after penalties, bias and mask.
std::span<SamplingScratch> chooseCandidates(std::span<const float> logits,
                                            const SamplingParameters &parameters,
                                            const SamplingContext &context,
                                            std::span<SamplingScratch> scratch) {
  std::span<SamplingScratch> all = scratch.first(logits.size());
  for (size_t id = 0; id < all.size(); ++id)
    all[id] = {logits[id], 0.0f, 0};
  if (hasPenalties(parameters))
    applyPenalties(all, parameters, context.tokens);
  for (size_t i = 0; i < context.biasIds.size(); ++i)
    if (uint32_t(context.biasIds[i]) < all.size())
      all[size_t(context.biasIds[i])].logit += context.biasValues[i];
  size_t count = 0;
  for (size_t id = 0; id < all.size(); ++id) {
    float logit = all[id].logit;
    bool isAllowed = context.allowed.empty() || (context.allowed[id / 32] >> id % 32 & 1) != 0;
    if (isAllowed && logit == logit)
      all[count++] = {logit, 0.0f, int32_t(id)};
  }
  return all.first(count);
}

} // namespace

double uniformAt(uint64_t seed, uint64_t position) {
  auto words = philox4x32({uint32_t(position), uint32_t(position >> 32), 0, 0},
                          {uint32_t(seed), uint32_t(seed >> 32)});
  return double((uint64_t(words[1]) << 32 | words[0]) >> 11) * 0x1p-53;
}

TokenChoice sampleToken(std::span<const float> logits, const SamplingParameters &parameters,
                        uint64_t position, std::span<SamplingScratch> scratch,
                        const SamplingContext &context) {
  float largest = largestOf(logits);
  if (largest != largest)
    return {0, largest};
  double logSum = logarithm(sumOfExponentials(logits, largest));
  auto choose = [&](int32_t id) {
    return TokenChoice{id, float(double(distance(logits[size_t(id)], largest)) - logSum)};
  };

  bool isGreedy = !(parameters.temperature > 0.0f);
  bool isAdjusted = (hasPenalties(parameters) && !context.tokens.empty()) ||
                    !context.biasIds.empty() || !context.allowed.empty();
  if (isGreedy && !isAdjusted) {
    auto first = std::find(logits.begin(), logits.end(), largest);
    return choose(int32_t(first - logits.begin()));
  }

  std::span<SamplingScratch> tokens = chooseCandidates(logits, parameters, context, scratch);
  if (tokens.empty())
    return {0, std::numeric_limits<float>::quiet_NaN()};
  float likeliest = -infinity;
  for (const SamplingScratch &token : tokens)
    likeliest = token.logit > likeliest ? token.logit : likeliest;
  if (isGreedy)
    return choose(std::find_if(tokens.begin(), tokens.end(), [&](const SamplingScratch &token) {
                    return token.logit == likeliest;
                  })->id);

  if (parameters.topK > 0 && size_t(parameters.topK) < tokens.size()) {
    std::nth_element(tokens.begin(), tokens.begin() + parameters.topK, tokens.end(), likelierFirst);
    tokens = tokens.first(size_t(parameters.topK));
    std::sort(tokens.begin(), tokens.end(), lowerId);
  }

  // An infinite temperature must not turn an infinite distance into NaN.
  float temperature = std::min(parameters.temperature, std::numeric_limits<float>::max());
  for (SamplingScratch &token : tokens)
    token.weight = exponential(distance(token.logit, likeliest) / temperature);

  // Weights are relative to the likeliest token's, which is 1: min-p is a bound on the weight.
  float minP = parameters.minP > 0.0f ? std::min(parameters.minP, 1.0f) : 0.0f;
  if (parameters.topP < 1.0f) {
    tokens = keepLikeliest(tokens, std::max(parameters.topP, 0.0f), minP);
  } else if (minP > 0.0f) {
    auto end = std::remove_if(tokens.begin(), tokens.end(),
                              [&](const SamplingScratch &token) { return token.weight < minP; });
    tokens = tokens.first(size_t(end - tokens.begin()));
  }
  return choose(draw(tokens, uniformAt(parameters.seed, position)));
}

} // namespace strata
