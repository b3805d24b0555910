// A model cut into stages computes what it computes whole, bit for bit, wherever it is cut, while
// every stage is held up at random: for a model of every family. STRATA_FULL=1 tries every cut of
// the larger models too.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "runtime/Strata.h"
#include "runtime/schedule/ScheduleConfig.h"
#include "runtime/stage/PlanExecutor.h"
#include "test/CompilePlan.h"
#include "test/runtime/plan/TinyPlan.h"

namespace strata::test {
namespace {

/// How many layers each stage runs.
using Split = std::vector<uint32_t>;

std::string text(const Split &split) { return fmt::format("{}", fmt::join(split, ",")); }

/// Appends every way to give `layers` to `stages`. The first may have none (the embedding alone)
/// and so may the last (the head alone), but not one between them.
void addSplits(uint32_t layers, uint32_t stages, Split &begun, std::vector<Split> &splits) {
  bool isFirst = begun.empty();
  if (stages == 1) {
    splits.push_back(begun);
    splits.back().push_back(layers);
    return;
  }
  for (uint32_t taken = isFirst ? 0 : 1; taken <= layers; ++taken) {
    begun.push_back(taken);
    addSplits(layers - taken, stages - 1, begun, splits);
    begun.pop_back();
  }
}

std::vector<Split> splitsInto(uint32_t layers, uint32_t stages) {
  std::vector<Split> splits;
  Split begun;
  addSplits(layers, stages, begun, splits);
  return splits;
}

struct Model {
  std::string name;
  std::string path;
  uint32_t mostStages = 4;
};
void PrintTo(const Model &model, std::ostream *out) { *out << model.name; }

struct Answers {
  std::vector<float> logits; ///< At every position of a prompt.
  std::vector<std::vector<int32_t>> ids;
  bool operator==(const Answers &other) const {
    return ids == other.ids && logits.size() == other.logits.size() &&
           std::memcmp(logits.data(), other.logits.data(), logits.size() * sizeof(float)) == 0;
  }
};

class Splits : public testing::TestWithParam<Model> {
protected:
  void SetUp() override {
    STRATA_REQUIRE_FILE(GetParam().path);
    STRATA_REQUIRE_FILE(testTool("strata-compile"));
  }

  /// The plan of `split`; empty: the whole model.
  std::shared_ptr<const PlanFile> compile(const Split &split) {
    std::string options = fmt::format(
        "--max-context 64 --max-batch-tokens 8 --max-seqs 3 --weights '{}'", folder_ / "weights");
    if (!split.empty())
      options +=
          fmt::format(" --devices {} --split {}",
                      fmt::join(std::vector<std::string>(split.size(), "cpu"), ","), text(split));
    EXPECT_TRUE(compilePlan(GetParam().path, options, folder_ / "plan"));
    auto file = PlanFile::open(folder_ / "plan");
    EXPECT_TRUE(file.isOk()) << file.status().toString();
    return file.isOk() ? *file : nullptr;
  }

  /// What five requests of a mixed batch and a prompt's logits give. `seed`: of the delays.
  Answers answers(const std::shared_ptr<const PlanFile> &file, uint32_t seed) {
    const fb::Plan &plan = file->plan();
    std::vector<std::mt19937> random; // one a stage, used on its thread alone
    for (uint32_t i = 0; i < plan.stages()->size(); ++i)
      random.emplace_back(seed * 16 + i);
    ExecutorOptions options{.threads = 1 + seed % 2};
    options.observer = [&](const CommandSite &site) {
      if (random[site.stage]() % 32 == 0)
        std::this_thread::sleep_for(std::chrono::microseconds(random[site.stage]() % 200));
    };
    auto executor = PlanExecutor::create(file, options);
    EXPECT_TRUE(executor.isOk()) << executor.status().toString();
    auto config = scheduleConfig(plan, (*executor)->blockCounts(), 0);
    EXPECT_TRUE(config.isOk()) << config.status().toString();
    auto engine = Engine::create(std::move(*executor), *config);
    EXPECT_TRUE(engine.isOk()) << engine.status().toString();

    Answers answers;
    std::mt19937 ids(7); // the same requests every time
    auto prompt = [&](uint32_t length) {
      std::vector<int32_t> prompt(length);
      for (int32_t &id : prompt)
        id = int32_t(ids() % plan.vocabulary_size());
      return prompt;
    };
    for (uint32_t i = 0; i < 5; ++i) {
      Request request{.prompt = prompt(1 + i * 7 % 20), .maxTokens = 4 + i};
      request.sampling.temperature = i % 2 ? 0.9f : 0.0f;
      request.sampling.seed = i;
      EXPECT_TRUE((*engine)->submit(std::move(request)).isOk());
      answers.ids.emplace_back();
    }
    TokenEvent events[6];
    while ((*engine)->busy()) {
      auto count = (*engine)->poll(events);
      EXPECT_TRUE(count.isOk()) << count.status().toString();
      for (const TokenEvent &event : std::span(events).first(count.isOk() ? *count : 0))
        answers.ids[event.request - 1].push_back(event.id);
      if (!count.isOk())
        break;
    }
    Status status = (*engine)->logits(
        prompt(29),
        [](void *context, uint32_t, uint32_t, std::span<const float> values) {
          auto &all = *static_cast<std::vector<float> *>(context);
          all.insert(all.end(), values.begin(), values.end());
        },
        &answers.logits);
    EXPECT_TRUE(status.isOk()) << status.toString();
    return answers;
  }

  /// All cuts of a small model; of a larger one, or where everything is slow, a part.
  std::vector<Split> chooseSplits(uint32_t layers) const {
    std::vector<Split> splits;
    for (uint32_t stages = 2; stages <= GetParam().mostStages; ++stages)
      for (Split &split : splitsInto(layers, stages))
        splits.push_back(std::move(split));
    const char *full = std::getenv("STRATA_FULL");
    if (full && *full)
      return splits;
    if (layers > 20) // the first, the middle and the last
      return {{1, layers - 1}, {layers / 2, layers - layers / 2}, {layers - 1, 1}};
    if (splits.size() > 26) { // of five or more layers
      std::vector<Split> kept;
      for (size_t i = 0; i < splits.size(); i += 3)
        kept.push_back(std::move(splits[i]));
      splits = std::move(kept);
    }
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    std::ranges::shuffle(splits, std::mt19937(layers));
    splits.resize(std::min<size_t>(splits.size(), 5));
#endif
    return splits;
  }

  TemporaryFolder folder_;
};

TEST_P(Splits, Row29SplitIsUnsplitBitForBit) {
  std::shared_ptr<const PlanFile> whole = compile({});
  ASSERT_TRUE(whole);
  Answers expected = answers(whole, 0);
  ASSERT_FALSE(expected.logits.empty());
  uint32_t layers = whole->plan().stages()->Get(0)->end_layer();
  std::vector<Split> splits = chooseSplits(layers);
  uint32_t seed = 0;
  for (const Split &split : splits) {
    SCOPED_TRACE(fmt::format("layers of the stages: {}", text(split)));
    std::shared_ptr<const PlanFile> plan = compile(split);
    ASSERT_TRUE(plan);
    ASSERT_EQ(plan->plan().stages()->size(), split.size());
    ASSERT_TRUE(answers(plan, ++seed) == expected);
    ASSERT_FALSE(HasFailure());
  }
  RecordProperty("splits", std::to_string(splits.size()));
}

Model fixture(const std::string &name, const std::string &folder) {
  return {name, testData("fixtures/" + folder)};
}

INSTANTIATE_TEST_SUITE_P(
    , Splits,
    testing::Values(Model{"stories", testData("stories260K/stories260K.gguf")},
                    fixture("llama", "llama-rope-llama3"), fixture("mistral", "mistral-window"),
                    fixture("qwen2", "qwen2-bias"), fixture("qwen3", "qwen3-qknorm"),
                    fixture("qwen3_moe", "qwen3-moe"), fixture("gemma3", "gemma3"),
                    fixture("mamba2", "mamba2"), fixture("nemotron_h", "nemotron-h-dense"),
                    fixture("nemotron_h_moe", "nemotron-h-moe"),
                    fixture("nemotron_h_latent", "nemotron-h-latent"),
                    fixture("deepseek", "deepseek-v3"),
                    Model{"smollm2", cachedModel("SmolLM2-135M-Instruct.Q4_1.gguf"), 3}),
    [](const auto &model) { return model.param.name; });

} // namespace
} // namespace strata::test
