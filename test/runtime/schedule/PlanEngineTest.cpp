// The whole runtime over a real plan file: what the engine gives equals the model's equations,
// however the requests were cut and batched and wherever their blocks lie.
#include <algorithm>
#include <cmath>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/Strata.h"
#include "runtime/plan/PlanFile.h"
#include "test/runtime/plan/TinyPlan.h"

namespace strata::test {
namespace {

class PlanEngine : public testing::Test {
protected:
  void SetUp() override {
    fb::PlanT plan = tinyPlan();
    Status status = writeTinyPlan(path, plan, model);
    ASSERT_TRUE(status.isOk()) << status.toString();
  }

  std::unique_ptr<Engine> boot(const EngineOptions &options) {
    auto engine = Engine::create(path, options);
    EXPECT_TRUE(engine.isOk()) << engine.status().toString();
    return std::move(*engine);
  }

  std::vector<int32_t> greedyAlone(std::vector<int32_t> ids, size_t count) const {
    std::vector<int32_t> generated;
    for (; generated.size() < count && ids.size() < TinyModel::context;
         ids.push_back(generated.back())) {
      std::vector<double> last = model.logits(ids).back();
      generated.push_back(
          static_cast<int32_t>(std::max_element(last.begin(), last.end()) - last.begin()));
    }
    return generated;
  }

  std::vector<int32_t> adjustedAlone(const Request &request) const {
    std::vector<int32_t> ids = request.prompt, generated;
    while (generated.size() < request.maxTokens && ids.size() < TinyModel::context) {
      std::vector<double> logits = model.logits(ids).back();
      size_t window = size_t(request.sampling.penaltyWindow);
      auto from = window > 0 && window < ids.size() ? ids.end() - window : ids.begin();
      for (int32_t id = 0; id < int32_t(logits.size()); ++id) {
        auto times = static_cast<double>(std::count(from, ids.end(), id));
        double penalty = times > 0 ? request.sampling.repetitionPenalty : 1;
        logits[id] = logits[id] > 0 ? logits[id] / penalty : logits[id] * penalty;
        logits[id] -= times * request.sampling.frequencyPenalty +
                      (times > 0) * request.sampling.presencePenalty;
        for (const LogitBias &bias : request.logitBias)
          logits[id] += bias.id == id ? bias.value : 0;
        if (!request.allowedTokens.empty() && !(request.allowedTokens[id / 32] >> id % 32 & 1))
          logits[id] = -INFINITY;
      }
      generated.push_back(
          static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
      ids.push_back(generated.back());
    }
    return generated;
  }

  std::vector<int32_t> prompt(uint32_t length, uint32_t seed) const {
    std::mt19937 random(seed);
    std::vector<int32_t> ids(length);
    for (int32_t &id : ids)
      id = static_cast<int32_t>(random() % TinyModel::vocabulary);
    return ids;
  }

  TemporaryFolder folder;
  std::string path = folder / "tiny.strata";
  TinyModel model;
};

TEST_F(PlanEngine, LogitsEqualTheEquations) {
  auto engine = boot({.threads = 2});
  for (uint32_t length = 1; length <= TinyModel::context; ++length) {
    std::vector<int32_t> ids = prompt(length, length);
    std::vector<float> found;
    Status status = engine->logits(
        ids,
        [](void *context, uint32_t, uint32_t, std::span<const float> values) {
          auto &all = *static_cast<std::vector<float> *>(context);
          all.insert(all.end(), values.begin(), values.end());
        },
        &found);
    ASSERT_TRUE(status.isOk()) << status.toString();
    std::vector<std::vector<double>> expected = model.logits(ids);
    ASSERT_EQ(found.size(), size_t{length} * TinyModel::vocabulary);
    for (size_t i = 0; i < found.size(); ++i)
      ASSERT_NEAR(found[i], expected[i / TinyModel::vocabulary][i % TinyModel::vocabulary], 1e-4)
          << "prompt of " << length << ", value " << i;
  }
}

TEST_F(PlanEngine, BatchesOverShuffledBlocksEqualTheEquations) {
  for (uint64_t seed : {1u, 2u}) {
    auto engine = boot({.threads = 2, .shuffleBlocksSeed = seed});
    std::vector<std::vector<int32_t>> prompts, generated(20);
    for (uint32_t i = 0; i < 20; ++i) {
      prompts.push_back(prompt(1 + i * 5 % 19, i + 100 * static_cast<uint32_t>(seed)));
      auto id = engine->submit({.prompt = prompts.back(),
                                .maxTokens = 6,
                                .sampling = {},
                                .ignoreEndOfGeneration = true});
      ASSERT_TRUE(id.isOk()) << id.status().toString();
      ASSERT_EQ(*id, i + 1);
    }
    TokenEvent events[2 * TinyModel::sequences];
    while (engine->busy()) {
      auto count = engine->poll(events);
      ASSERT_TRUE(count.isOk()) << count.status().toString();
      for (const TokenEvent &event : std::span(events).first(*count))
        generated[event.request - 1].push_back(event.id);
    }
    for (size_t i = 0; i < prompts.size(); ++i)
      EXPECT_EQ(generated[i], greedyAlone(prompts[i], 6)) << "request " << i;
  }
}

// Greedy choices under penalties, bias and a mask, against the equations: what a sequence is given
// reaches it and no other, in every batch and after every reuse of a slot.
TEST_F(PlanEngine, AdjustmentsFollowTheirSequence) {
  for (uint32_t stages : {1, 2}) {
    fb::PlanT plan = tinyPlan({.stages = stages});
    ASSERT_TRUE(writeTinyPlan(path, plan, model, fb::WeightsPlace::Inside, "").isOk());
    auto engine = boot({.threads = 2, .shuffleBlocksSeed = 3});
    std::vector<Request> requests;
    std::vector<std::vector<int32_t>> generated(24);
    for (uint32_t i = 0; i < generated.size(); ++i) {
      Request request{
          .prompt = prompt(1 + i * 5 % 17, i), .maxTokens = 7, .ignoreEndOfGeneration = true};
      if (i % 4 == 1)
        request.sampling = {.repetitionPenalty = 1.5f, .penaltyWindow = int32_t(i % 8)};
      if (i % 4 == 2)
        request.sampling = {.presencePenalty = 0.5f, .frequencyPenalty = 0.75f};
      if (i % 3 == 1)
        request.logitBias = {{int32_t(i), 1.5f}, {int32_t(i) / 2, -INFINITY}};
      if (i % 5 == 2)
        request.allowedTokens = {0xAAAAAAAA, 0xF0};
      requests.push_back(request);
      ASSERT_TRUE(engine->submit(std::move(request)).isOk());
    }
    TokenEvent events[2 * TinyModel::sequences];
    while (engine->busy()) {
      auto count = engine->poll(events);
      ASSERT_TRUE(count.isOk()) << count.status().toString();
      for (const TokenEvent &event : std::span(events).first(*count))
        generated[event.request - 1].push_back(event.id);
    }
    for (size_t i = 0; i < requests.size(); ++i)
      EXPECT_EQ(generated[i], adjustedAlone(requests[i])) << "request " << i;
  }
}

TEST_F(PlanEngine, SamplingOutOfRangeIsRefused) {
  auto engine = boot({});
  auto refusal = [&](auto change) {
    Request request{.prompt = {1}};
    change(request);
    return engine->submit(std::move(request)).status().toString();
  };
  using R = Request;
  using testing::HasSubstr;
  EXPECT_THAT(refusal([](R &r) { r.sampling.repetitionPenalty = 0; }),
              HasSubstr("repetition penalty is 0; allowed is above 0, up to 100"));
  EXPECT_THAT(refusal([](R &r) { r.sampling.presencePenalty = 2.5f; }),
              HasSubstr("presence penalty is 2.5; allowed is -2 to 2"));
  EXPECT_THAT(refusal([](R &r) { r.sampling.frequencyPenalty = NAN; }),
              HasSubstr("frequency penalty is nan; allowed is -2 to 2"));
  EXPECT_THAT(refusal([](R &r) { r.sampling.penaltyWindow = -1; }),
              HasSubstr("penalty window is -1; allowed is 0"));
  EXPECT_THAT(refusal([](R &r) { r.logitBias.resize(513); }),
              HasSubstr("513 logit biases are given; 512 are allowed"));
  EXPECT_THAT(refusal([](R &r) { r.logitBias = {{40, 1}}; }),
              HasSubstr("the logit bias of id 40 is outside the vocabulary of 40 tokens"));
  EXPECT_THAT(refusal([](R &r) { r.logitBias = {{4, INFINITY}}; }),
              HasSubstr("the logit bias of id 4 is inf; allowed are finite numbers and -inf"));
  EXPECT_THAT(refusal([](R &r) { r.allowedTokens = {1}; }),
              HasSubstr("the token mask has 1 words; a vocabulary of 40 tokens takes 2"));
  EXPECT_THAT(refusal([](R &r) { r.allowedTokens = {0, 0xFFFFFF00}; }),
              HasSubstr("the token mask allows none of the 40 tokens"));
  EXPECT_FALSE(engine->busy());
}

TEST_F(PlanEngine, OptionsBoundTheState) {
  auto engine = boot({.sequences = 1, .kvTokens = 8});
  EXPECT_TRUE(engine->submit({.prompt = prompt(20, 1), .maxTokens = 100}).isOk());
  EXPECT_EQ(engine->tokenizer(), nullptr);
  EXPECT_EQ(engine->plan().plan().max_context(), TinyModel::context);
  EXPECT_EQ(Engine::create(path, {.sequences = 4}).status().code(), StatusCode::InvalidArgument);
  EXPECT_EQ(Engine::create(folder / "absent", {}).status().code(), StatusCode::NotFound);
}

} // namespace
} // namespace strata::test
