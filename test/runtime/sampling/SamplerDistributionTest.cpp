// The sampler against a plain reference in double, and against the distribution that it promises.
#include "runtime/sampling/Sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace strata {
namespace {

struct Reference {
  int32_t id;
  double logProbability;
  double margin; ///< How near the closest decision was, relative to the total: below 1e-6 float
                 ///< decides.
};

/// Logits after penalties and bias, one id at a time.
std::vector<float> referenceLogits(const std::vector<float> &raw,
                                   const SamplingParameters &parameters,
                                   const SamplingContext &context) {
  std::vector<float> logits = raw;
  std::vector<int32_t> tokens(context.tokens.begin(), context.tokens.end());
  if (parameters.penaltyWindow > 0 && size_t(parameters.penaltyWindow) < tokens.size())
    tokens.erase(tokens.begin(), tokens.end() - parameters.penaltyWindow);
  for (int32_t id = 0; id < int32_t(logits.size()); ++id) {
    auto times = std::count(tokens.begin(), tokens.end(), id);
    if (times > 0) {
      if (logits[id] <= 0)
        logits[id] *= parameters.repetitionPenalty;
      else
        logits[id] /= parameters.repetitionPenalty;
      logits[id] -= float(times) * parameters.frequencyPenalty + 1.0f * parameters.presencePenalty;
    }
    for (size_t i = 0; i < context.biasIds.size(); ++i)
      if (context.biasIds[i] == id)
        logits[id] += context.biasValues[i];
  }
  return logits;
}

Reference referenceSample(const std::vector<float> &raw, const SamplingParameters &parameters,
                          uint64_t position, const SamplingContext &context = {}) {
  std::vector<float> logits = referenceLogits(raw, parameters, context);
  std::vector<int32_t> order;
  for (int32_t id = 0; id < int32_t(logits.size()); ++id)
    if (context.allowed.empty() || (context.allowed[id / 32] & (1u << (id % 32))))
      order.push_back(id);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
  double largest = logits[order[0]], all = 0, margin = 1;
  for (float logit : raw)
    all += std::exp(double(logit));
  auto result = [&](int32_t id) { return Reference{id, raw[id] - std::log(all), margin}; };
  if (parameters.temperature == 0)
    return result(order[0]);

  if (parameters.topK > 0 && size_t(parameters.topK) < order.size())
    order.resize(parameters.topK);
  auto weight = [&](int32_t id) {
    return std::exp((logits[id] - largest) / double(parameters.temperature));
  };
  double total = 0;
  for (int32_t id : order)
    total += weight(id);
  if (parameters.topP < 1) {
    double sum = 0;
    size_t kept = 0;
    while (kept < order.size() && (kept == 0 || sum < parameters.topP * total)) {
      sum += weight(order[kept++]);
      margin = std::min(margin, std::abs(sum / total - parameters.topP));
    }
    order.resize(kept);
  }
  std::erase_if(order, [&](int32_t id) {
    if (weight(id) < 1)
      margin = std::min(margin, std::abs(weight(id) - parameters.minP));
    return weight(id) < std::min(1.0, double(parameters.minP));
  });

  std::sort(order.begin(), order.end());
  total = 0;
  for (int32_t id : order)
    total += weight(id);
  double target = uniformAt(parameters.seed, position) * total, sum = 0;
  int32_t chosen = -1;
  for (int32_t id : order) {
    sum += weight(id);
    margin = std::min(margin, std::abs(sum - target) / total);
    if (chosen < 0 && sum > target)
      chosen = id;
  }
  return result(chosen);
}

TEST(SamplerDistribution, EqualsThePlainReference) {
  std::mt19937 random(7);
  auto pick = [&](std::initializer_list<float> values) {
    return values.begin()[random() % values.size()];
  };
  int compared = 0;
  constexpr int rounds = 20'000;
  for (int round = 0; round < rounds; ++round) {
    std::vector<float> logits(1 + random() % (round % 10 == 0 ? 2000 : 50));
    std::normal_distribution<float> normal(0, pick({0.1f, 1, 3, 10}));
    bool coarse = random() % 3 == 0; // many equal logits
    for (float &logit : logits)
      logit = coarse ? std::round(normal(random)) : normal(random);
    SamplingParameters parameters{
        pick({0, 0.1f, 0.7f, 1, 1.5f, 5}), int32_t(random() % 3 == 0 ? random() % 60 : 0),
        pick({1, 1, 0.99f, 0.9f, 0.5f, 0.1f}), pick({0, 0, 0.02f, 0.1f, 0.5f}), random()};
    // Each of the adjustments alone, together, and (every other round) none.
    std::vector<int32_t> tokens, biasIds;
    std::vector<float> biasValues;
    std::vector<uint32_t> allowed;
    if (round % 2 == 0) {
      parameters.repetitionPenalty = pick({1, 1, 1.1f, 2, 0.5f});
      parameters.presencePenalty = pick({0, 0, 0.5f, -1});
      parameters.frequencyPenalty = pick({0, 0, 0.25f, 2, -0.5f});
      parameters.penaltyWindow = int32_t(random() % 3 == 0 ? random() % 20 : 0);
      for (uint32_t i = random() % 40; i > 0; --i)
        tokens.push_back(int32_t(random() % logits.size()));
      for (uint32_t i = random() % 6; i > 1; --i) {
        biasIds.push_back(int32_t(random() % logits.size()));
        biasValues.push_back(pick({-5, -0.5f, 0.25f, 3}));
      }
      if (random() % 3 == 0) {
        allowed.resize(maskWords(logits.size()));
        for (uint32_t &word : allowed)
          word = uint32_t(random());
        uint32_t always = uint32_t(random() % logits.size());
        allowed[always / 32] |= 1u << always % 32;
      }
    }
    SamplingContext context{tokens, biasIds, biasValues, allowed};
    uint64_t position = random();
    std::vector<SamplingScratch> scratch(logits.size());
    TokenChoice choice = sampleToken(logits, parameters, position, scratch, context);
    Reference expected = referenceSample(logits, parameters, position, context);
    if (expected.margin < 1e-6)
      continue;
    ++compared;
    ASSERT_EQ(choice.id, expected.id) << "round " << round;
    ASSERT_NEAR(choice.logProbability, expected.logProbability,
                1e-6 * (1 + std::abs(expected.logProbability)))
        << "round " << round;
  }
  EXPECT_GT(compared, rounds * 9 / 10);
}

/// Pearson's statistic of `draws` samples against the probabilities (0: must never be drawn).
double chiSquared(const std::vector<float> &logits, const SamplingParameters &parameters,
                  const std::vector<double> &probabilities, int draws,
                  const SamplingContext &context = {}) {
  std::vector<int> counts(logits.size());
  std::vector<SamplingScratch> scratch(logits.size());
  for (int position = 0; position < draws; ++position)
    ++counts[sampleToken(logits, parameters, position, scratch, context).id];
  double statistic = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    double expected = probabilities[i] * draws;
    if (expected == 0)
      EXPECT_EQ(counts[i], 0) << "id " << i;
    else
      statistic += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  return statistic;
}

std::vector<double> normalised(std::vector<double> weights) {
  double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double &weight : weights)
    weight /= sum;
  return weights;
}

constexpr int draws = 100'000;
const std::vector<float> logits{0.0f, 1.0f, -1.0f, 2.0f, 0.5f, 1.5f, -2.0f, 0.0f};

std::vector<double> weightsAt(double temperature) {
  std::vector<double> weights;
  for (float logit : logits)
    weights.push_back(std::exp(logit / temperature));
  return weights;
}

// The 99.99 % points of chi-squared: 29.9 for 7 degrees of freedom, 23.5 for 4, 21.1 for 3.
TEST(SamplerDistribution, TemperatureAlone) {
  for (float temperature : {0.7f, 1.0f, 2.0f}) {
    SamplingParameters parameters{temperature, 0, 1.0f, 0.0f, 2024};
    EXPECT_LT(chiSquared(logits, parameters, normalised(weightsAt(temperature)), draws), 29.9);
  }
}

TEST(SamplerDistribution, TopK) {
  // The five likeliest are 3 (2.0), 5 (1.5), 1 (1.0), 4 (0.5) and 0 (0.0, before its equal 7).
  std::vector<double> weights = weightsAt(1.0);
  weights[2] = weights[6] = weights[7] = 0;
  EXPECT_LT(chiSquared(logits, {1.0f, 5, 1.0f, 0.0f, 5}, normalised(weights), draws), 23.5);
}

TEST(SamplerDistribution, TopP) {
  // Weights 7.39, 4.48, 2.72, 1.65, 1, 1, 0.37, 0.14 sum to 18.74. 0.85 of it is 15.93: the first
  // three reach 14.59, the first four 16.24.
  std::vector<double> weights = weightsAt(1.0);
  weights[0] = weights[2] = weights[6] = weights[7] = 0;
  EXPECT_LT(chiSquared(logits, {1.0f, 0, 0.85f, 0.0f, 6}, normalised(weights), draws), 21.1);
}

TEST(SamplerDistribution, Penalties) {
  // Id 3 stands three times, 2 twice, 5 once. Repetition 1.25 makes their logits 2 / 1.25, -1
  // * 1.25 and 1.5 / 1.25; 0.5 for presence and 0.25 a time are subtracted.
  const std::vector<int32_t> tokens{3, 2, 5, 3, 2, 3};
  std::vector<double> weights = weightsAt(1.0);
  weights[3] = std::exp(1.6 - 0.5 - 0.75);
  weights[2] = std::exp(-1.25 - 0.5 - 0.5);
  weights[5] = std::exp(1.2 - 0.5 - 0.25);
  SamplingParameters parameters{1.0f, 0, 1.0f, 0.0f, 9, 1.25f, 0.5f, 0.25f};
  EXPECT_LT(chiSquared(logits, parameters, normalised(weights), draws, {.tokens = tokens}), 29.9);
}

TEST(SamplerDistribution, PenaltiesOfAWindow) {
  // The last three: 3 twice and 2 once.
  const std::vector<int32_t> tokens{5, 5, 5, 3, 2, 3};
  std::vector<double> weights = weightsAt(0.8);
  weights[3] = std::exp((2.0 - 2 * 0.5) / 0.8);
  weights[2] = std::exp((-1.0 - 0.5) / 0.8);
  SamplingParameters parameters{0.8f, 0, 1.0f, 0.0f, 10, 1.0f, 0.0f, 0.5f, 3};
  EXPECT_LT(chiSquared(logits, parameters, normalised(weights), draws, {.tokens = tokens}), 29.9);
}

TEST(SamplerDistribution, BiasAndMask) {
  // Ids 1 to 5 are allowed; 4 gains 1, 3 loses 1.5 in two parts, 2 can no longer be drawn.
  const std::vector<int32_t> ids{4, 3, 2, 3};
  const std::vector<float> values{1.0f, -1.0f, -INFINITY, -0.5f};
  const std::vector<uint32_t> allowed{0b111110};
  std::vector<double> weights(8);
  for (int id : {1, 5})
    weights[id] = std::exp(logits[id]);
  weights[4] = std::exp(1.5);
  weights[3] = std::exp(0.5);
  EXPECT_LT(chiSquared(logits, {1.0f, 0, 1.0f, 0.0f, 11}, normalised(weights), draws,
                       {{}, ids, values, allowed}),
            21.1);
}

TEST(SamplerDistribution, MinP) {
  // 0.2 of 7.39 is 1.48: ids 1, 3, 4 and 5 stay.
  std::vector<double> weights = weightsAt(1.0);
  weights[0] = weights[2] = weights[6] = weights[7] = 0;
  EXPECT_LT(chiSquared(logits, {1.0f, 0, 1.0f, 0.2f, 8}, normalised(weights), draws), 21.1);
}

} // namespace
} // namespace strata
