// The whole runtime over a real plan file: what the engine gives equals the model's equations,
// however the requests were cut and batched and wherever their blocks lie.
#include <algorithm>
#include <random>

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
