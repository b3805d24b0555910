// The sampler's rules one by one: order, ties, edges and values that are no numbers.
#include "runtime/sampling/Sampler.h"

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace strata {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

TokenChoice sample(const std::vector<float> &logits, const SamplingParameters &parameters,
                   uint64_t position = 0, const SamplingContext &context = {}) {
  std::vector<SamplingScratch> scratch(logits.size());
  return sampleToken(logits, parameters, position, scratch, context);
}

/// The ids drawn at 2000 positions: a token of probability 1/100 is missed with chance 2e-9.
std::set<int32_t> drawn(const std::vector<float> &logits, const SamplingParameters &parameters) {
  std::set<int32_t> ids;
  for (uint64_t position = 0; position < 2000; ++position)
    ids.insert(sample(logits, parameters, position).id);
  return ids;
}

using Ids = std::set<int32_t>;

TEST(Sampler, GreedyTakesTheLargestAndTiesGoToTheLowerId) {
  EXPECT_EQ(sample({1, 3, 2}, {}).id, 1);
  EXPECT_EQ(sample({1, 3, 3, 3}, {}).id, 1);
  EXPECT_EQ(sample({-0.0f, 0.0f}, {}).id, 0);
  EXPECT_EQ(sample({5}, {}).id, 0);
}

TEST(Sampler, GreedyIgnoresEverythingElse) {
  SamplingParameters parameters{0.0f, 1, 0.01f, 1.0f, 99};
  EXPECT_EQ(sample({0, 0, 7, 0}, parameters, 5).id, 2);
  parameters.temperature = -1.0f;
  EXPECT_EQ(sample({0, 0, 7, 0}, parameters, 5).id, 2);
  parameters.temperature = nan;
  EXPECT_EQ(sample({0, 0, 7, 0}, parameters, 5).id, 2);
}

TEST(Sampler, LogProbabilityIsOfTheRawLogits) {
  // exp(1) / (exp(1) + exp(2) + exp(3)) = 0.0900306
  std::vector<float> logits{1, 2, 3};
  SamplingParameters parameters{100.0f, 0, 1.0f, 0.0f, 4};
  for (uint64_t position = 0; position < 20; ++position) {
    TokenChoice choice = sample(logits, parameters, position);
    EXPECT_NEAR(choice.logProbability, std::log(0.09003057) + choice.id, 1e-6);
  }
  EXPECT_NEAR(sample(logits, {}).logProbability, std::log(0.66524096), 1e-6);
}

TEST(Sampler, LogProbabilityOfManyTokens) {
  // 100000 equal logits: each has ln(1/100000).
  EXPECT_NEAR(sample(std::vector<float>(100'000, 3.5f), {}).logProbability, -std::log(1e5), 1e-6);
}

TEST(Sampler, TopK) {
  SamplingParameters parameters{1.0f, 2, 1.0f, 0.0f, 1};
  EXPECT_EQ(drawn({1, 2, 1.5f, 0, 2}, parameters), (Ids{1, 4}));
  parameters.topK = 1;
  EXPECT_EQ(drawn({1, 2, 2, 2}, parameters), (Ids{1}));
  parameters.topK = 3; // the tie for the third place goes to the lower id
  EXPECT_EQ(drawn({1, 1, 2, 1, 2, 1}, parameters), (Ids{0, 2, 4}));
  parameters.topK = 100;
  EXPECT_EQ(drawn({1, 1, 2}, parameters), (Ids{0, 1, 2}));
  parameters.topK = -1;
  EXPECT_EQ(drawn({1, 1, 2}, parameters), (Ids{0, 1, 2}));
}

TEST(Sampler, TopP) {
  // Probabilities 1/2, 1/4, 1/8, 1/8.
  std::vector<float> logits{std::log(0.125f), std::log(0.5f), std::log(0.25f), std::log(0.125f)};
  SamplingParameters parameters{1.0f, 0, 0.45f, 0.0f, 1};
  EXPECT_EQ(drawn(logits, parameters), (Ids{1}));
  parameters.topP = 0.70f;
  EXPECT_EQ(drawn(logits, parameters), (Ids{1, 2}));
  parameters.topP = 0.80f; // the tie between 0 and 3 goes to the lower id
  EXPECT_EQ(drawn(logits, parameters), (Ids{0, 1, 2}));
  parameters.topP = 0.95f;
  EXPECT_EQ(drawn(logits, parameters), (Ids{0, 1, 2, 3}));
  for (float tiny : {1e-30f, 0.0f, -1.0f}) {
    parameters.topP = tiny;
    EXPECT_EQ(drawn(logits, parameters), (Ids{1}));
  }
}

TEST(Sampler, TopPCountsWithinTopK) {
  // Of the two likeliest, the first has 0.5 / (0.5 + 0.25) = 0.67: more than 0.6 of what top-k
  // left, but only 0.5 of everything.
  std::vector<float> logits{std::log(0.125f), std::log(0.5f), std::log(0.25f), std::log(0.125f)};
  EXPECT_EQ(drawn(logits, {1.0f, 2, 0.6f, 0.0f, 1}), (Ids{1}));
  EXPECT_EQ(drawn(logits, {1.0f, 0, 0.6f, 0.0f, 1}), (Ids{1, 2}));
}

TEST(Sampler, MinP) {
  std::vector<float> logits{0.0f, std::log(0.5f), std::log(0.2f), 0.0f};
  SamplingParameters parameters{1.0f, 0, 1.0f, 0.3f, 1};
  EXPECT_EQ(drawn(logits, parameters), (Ids{0, 1, 3}));
  parameters.minP = 0.1f;
  EXPECT_EQ(drawn(logits, parameters), (Ids{0, 1, 2, 3}));
  for (float all : {1.0f, 2.0f, infinity}) { // only the likeliest, and its equals
    parameters.minP = all;
    EXPECT_EQ(drawn(logits, parameters), (Ids{0, 3}));
  }
  parameters.minP = 0.3f;
  parameters.topP = 0.99f;
  EXPECT_EQ(drawn(logits, parameters), (Ids{0, 1, 3}));
}

TEST(Sampler, MinPCountsAfterTemperature) {
  // At temperature 1/2 the second token is at 0.5^2 of the likeliest.
  std::vector<float> logits{0.0f, std::log(0.5f)};
  EXPECT_EQ(drawn(logits, {1.0f, 0, 1.0f, 0.3f, 1}), (Ids{0, 1}));
  EXPECT_EQ(drawn(logits, {0.5f, 0, 1.0f, 0.3f, 1}), (Ids{0}));
}

TEST(Sampler, TinyAndHugeTemperatures) {
  std::vector<float> logits{1.0f, 1.001f, 1.001f, -infinity};
  for (float tiny : {1e-6f, 1e-30f, std::numeric_limits<float>::denorm_min()})
    EXPECT_EQ(drawn(logits, {tiny, 0, 1.0f, 0.0f, 1}), (Ids{1, 2}));
  for (float huge : {1e30f, std::numeric_limits<float>::max(), infinity})
    EXPECT_EQ(drawn(logits, {huge, 0, 1.0f, 0.0f, 1}), (Ids{0, 1, 2}));
}

TEST(Sampler, NotANumberIsNeverChosen) {
  std::vector<float> logits{nan, 1, nan, 1, nan};
  EXPECT_EQ(sample(logits, {}).id, 1);
  EXPECT_NEAR(sample(logits, {}).logProbability, std::log(0.5), 1e-6);
  for (float topP : {1.0f, 0.9f})
    for (int topK : {0, 2, 4})
      EXPECT_EQ(drawn(logits, {1.0f, topK, topP, 0.0f, 1}), (Ids{1, 3}));
  TokenChoice none = sample({nan, nan}, {1.0f, 0, 1.0f, 0.0f, 1});
  EXPECT_EQ(none.id, 0);
  EXPECT_TRUE(std::isnan(none.logProbability));
}

TEST(Sampler, Infinities) {
  EXPECT_EQ(sample({0, infinity, infinity}, {}).id, 1);
  EXPECT_NEAR(sample({0, infinity, infinity}, {}).logProbability, std::log(0.5), 1e-6);
  EXPECT_EQ(drawn({0, infinity, infinity}, {1.0f, 0, 1.0f, 0.0f, 1}), (Ids{1, 2}));
  EXPECT_EQ(sample({-infinity, -3, -infinity}, {}).id, 1);
  EXPECT_EQ(drawn({-infinity, -3, -infinity}, {1.0f, 0, 1.0f, 0.0f, 1}), (Ids{1}));
  // No mass anywhere: masked logits that leave nothing are all alike.
  EXPECT_EQ(sample({nan, -infinity, -infinity}, {}).id, 1);
  EXPECT_EQ(drawn({nan, -infinity, -infinity}, {1.0f, 0, 1.0f, 0.0f, 1}), (Ids{1, 2}));
}

TEST(Sampler, ParametersThatAreNoNumbersKeepAll) {
  EXPECT_EQ(drawn({0, 1, 0}, {1.0f, 0, nan, nan, 1}), (Ids{0, 1, 2}));
  EXPECT_EQ(drawn({0, 1, 0}, {1.0f, 0, 0.99f, nan, 1}), (Ids{0, 1, 2}));
  // All alike, so that no token is above the mean.
  EXPECT_EQ(drawn({2, 2, 2}, {1.0f, 0, -1.0f, 0.0f, 1}), (Ids{0}));
  EXPECT_EQ(drawn({2, 2, 2}, {1.0f, 0, 0.0f, 1.0f, 1}), (Ids{0}));
}

TEST(Sampler, PenaltiesReachTheGreedyChoice) {
  const std::vector<int32_t> tokens{1, 1, 2, 7, -1}; // 7 and -1 are of no vocabulary of 4
  SamplingContext context{.tokens = tokens};
  SamplingParameters none;
  EXPECT_EQ(sample({0, 5, 4, 3}, none, 0, context).id, 1);
  EXPECT_EQ(sample({0, 5, 4, 3}, {.repetitionPenalty = 2}, 0, context).id, 3);
  EXPECT_EQ(sample({0, 5, 4, 3}, {.presencePenalty = 1.5f}, 0, context).id, 1);
  EXPECT_EQ(sample({0, 5, 4, 3}, {.frequencyPenalty = 0.75f}, 0, context).id, 1); // 3.5, 3.25, 3
  EXPECT_EQ(sample({0, 5, 4, 3}, {.frequencyPenalty = 1.25f}, 0, context).id, 3); // 2.5, 2.75, 3
  EXPECT_EQ(sample({0, 5, 4, 3}, {.frequencyPenalty = 1.25f, .penaltyWindow = 4}, 0, context).id,
            1); // 1 stands once in the last four
  // A negative logit is made smaller by the penalty too.
  EXPECT_EQ(sample({-9, -1, -1.5f, -1.75f}, {.repetitionPenalty = 2}, 0, context).id, 3);
  // What is reported is of the raw logits.
  EXPECT_EQ(sample({0, 5, 4, 3}, {.repetitionPenalty = 2}, 0, context).logProbability,
            sample({0, 5, 4, 3}, {}).logProbability - 2);
}

TEST(Sampler, BiasComesBeforeTheMaskAndBothBeforeTopK) {
  const std::vector<int32_t> ids{0, 3};
  const std::vector<float> values{10, 20};
  const std::vector<uint32_t> allowed{0b0011};
  SamplingContext context{{}, ids, values, allowed};
  EXPECT_EQ(sample({0, 5, 9, 3}, {}, 0, context).id, 0);
  EXPECT_EQ(sample({0, 5, 9, 3}, {1.0f, 1}, 0, context).id, 0);
  context.biasIds = {};
  EXPECT_EQ(sample({0, 5, 9, 3}, {1.0f, 1}, 0, context).id, 1);
  EXPECT_EQ(sample({0, 5, 9, 3}, {}, 0, context).id, 1);
}

TEST(Sampler, NothingThatMayBeDrawn) {
  const std::vector<uint32_t> allowed{0b0100};
  for (float temperature : {0.0f, 1.0f}) {
    TokenChoice choice = sample({1, 2, nan}, {temperature}, 0, {.allowed = allowed});
    EXPECT_EQ(choice.id, 0);
    EXPECT_TRUE(std::isnan(choice.logProbability));
  }
  // All that is allowed has no mass: alike among themselves.
  const std::vector<int32_t> ids{2};
  const std::vector<float> never{-infinity};
  EXPECT_EQ(sample({1, 2, 3}, {1.0f}, 0, {{}, ids, never, allowed}).id, 2);
}

TEST(Sampler, MasksOfSeveralWords) {
  std::vector<float> logits(70, 1);
  std::vector<uint32_t> allowed(maskWords(70));
  ASSERT_EQ(allowed.size(), 3u);
  allowed[1] = 1u << 31;
  allowed[2] = 1u << 5;
  logits[69] = 2;
  EXPECT_EQ(sample(logits, {}, 0, {.allowed = allowed}).id, 69);
  EXPECT_EQ(drawn(logits, {.temperature = 1, .topK = 1}), (Ids{69}));
  logits[69] = 1;
  std::set<int32_t> ids;
  for (uint64_t position = 0; position < 100; ++position)
    ids.insert(sample(logits, {.temperature = 1}, position, {.allowed = allowed}).id);
  EXPECT_EQ(ids, (Ids{63, 69}));
}

TEST(Sampler, SeedAndPositionDecideAlone) {
  std::vector<float> logits(1000);
  for (size_t i = 0; i < logits.size(); ++i)
    logits[i] = float(i * 7919 % 1000) * 0.003f;
  SamplingParameters parameters{0.8f, 200, 0.95f, 0.01f, 42};
  std::set<int32_t> ids;
  for (uint64_t position = 0; position < 50; ++position) {
    int32_t id = sample(logits, parameters, position).id;
    EXPECT_EQ(sample(logits, parameters, position).id, id);
    ids.insert(id);
  }
  EXPECT_GT(ids.size(), 20u);
  // What the scratch held before changes nothing, nor does more of it.
  std::vector<SamplingScratch> dirty(5000, {nan, nan, -7});
  EXPECT_EQ(sampleToken(logits, parameters, 3, dirty).id, sample(logits, parameters, 3).id);
}

} // namespace
} // namespace strata
