// Memory is what the plan says, for the plans of real models: under the address sanitizer every
// byte of arena, weights and state that a command was not given is poisoned while it runs;
// otherwise the peak is read from what a full launch leaves in the arena.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "runtime/base/CheckedMath.h"
#include "test/CompilePlan.h"
#include "test/runtime/plan/TinyPlan.h"
#include "test/runtime/stage/FullSteps.h"
#include "test/runtime/stage/MemoryWatch.h"

namespace strata::test {
namespace {

struct Model {
  std::string name;
  std::string path;
  std::string config = {}; ///< Of a model without a checkpoint, whose weights are random numbers.
};
void PrintTo(const Model &model, std::ostream *out) { *out << model.name; }

class CompiledPlans : public testing::TestWithParam<Model> {
protected:
  void SetUp() override {
    STRATA_REQUIRE_FILE(testTool("strata-compile"));
    // The promise covers the largest bucket; a longer context only makes the pool larger.
    std::string path = GetParam().path, options = "--max-context 128";
    if (!GetParam().config.empty()) {
      std::ofstream(path = folder_ / "config.json") << GetParam().config;
      options += " --weights=none --weight-type f32";
      options_.randomWeightsSeed = 1;
    }
    STRATA_REQUIRE_FILE(path);
    ASSERT_TRUE(compilePlan(path, options, plan()));
    auto opened = PlanFile::open(plan());
    ASSERT_TRUE(opened.isOk()) << opened.status().toString();
    file_ = *opened;
  }

  std::string plan() { return folder_ / "plan.strata"; }

  /// Boots the plan with `observer` and runs every bucket full.
  template <class Observer> void run(Observer &observer) {
    std::unique_ptr<PlanExecutor> executor;
    ExecutorOptions options = options_;
    options.observer = [&](const CommandSite &site) { observer(*executor, site); };
    auto created = PlanExecutor::create(file_, options);
    ASSERT_TRUE(created.isOk()) << created.status().toString();
    executor = std::move(*created);
    FullSteps steps(file_->plan());
    Status status = steps.runAll(*executor);
    ASSERT_TRUE(status.isOk()) << status.toString();
  }

  TemporaryFolder folder_;
  ExecutorOptions options_{.threads = 2};
  std::shared_ptr<const PlanFile> file_;
};

#if defined(__SANITIZE_ADDRESS__)

TEST_P(CompiledPlans, NothingButOperandsIsTouched) {
  Poisoner poisoner;
  run(poisoner);
  EXPECT_GT(poisoner.commands, 100u);
}

#else

TEST_P(CompiledPlans, Row15HighWaterMarkIsThePlannedPeak) {
  HighWater water;
  for (std::byte pattern : {std::byte{0xA5}, std::byte{0x5A}}) {
    water.pattern = pattern;
    run(water);
  }
  for (uint32_t s = 0; s < file_->plan().stages()->size(); ++s)
    for (const fb::Forward *forward : *file_->plan().stages()->Get(s)->forwards())
      // Buffers are whole multiples of 64 bytes, rows need not be.
      EXPECT_EQ(alignUp(water.mark(s, forward->bucket()), 64), forward->peak())
          << file_->plan().buckets()->Get(forward->bucket())->name()->str();
}

#endif

/// State and tables of all stages.
std::vector<std::vector<std::byte>> keptBy(const PlanExecutor &executor, bool withTables) {
  std::vector<std::vector<std::byte>> kept;
  for (uint32_t i = 0; i < executor.stages(); ++i) {
    const StageMemory &memory = executor.stage(i).memory();
    for (std::span<std::byte> pool : memory.states)
      kept.emplace_back(pool.begin(), pool.end());
    if (withTables)
      kept.emplace_back(memory.table.begin(), memory.table.end());
  }
  return kept;
}

// A bucket with more rows than are valid leaves in every byte of state what the same rows leave one
// by one, which need no padding: canaries where no valid row is.
TEST_P(CompiledPlans, Row10PaddingAndBootLeaveStateUntouched) {
  const fb::Plan &plan = file_->plan();
  FullSteps steps(plan);
  ASSERT_EQ(plan.buckets()->Get(0)->name()->str(), "r1s1");
  const FullSteps::Run runs[] = {{1, 0, 3, true}, {2, 0, 2, true}};
  auto boot = [&] {
    auto created = PlanExecutor::create(file_, options_);
    EXPECT_TRUE(created.isOk()) << created.status().toString();
    for (const std::vector<std::byte> &pool : keptBy(**created, false))
      EXPECT_TRUE(std::ranges::all_of(pool, [](std::byte b) { return b == std::byte{0}; }));
    for (uint32_t i = 0; i < (*created)->stages(); ++i)
      for (std::span<std::byte> pool : (*created)->stage(i).memory().states)
        for (size_t at = 0; at < pool.size(); ++at)
          pool[at] = std::byte(at * 7 % 61 + 1); // of F32 and F16 small numbers, none of them 0
    return std::move(*created);
  };
  auto alone = boot();
  for (const FullSteps::Run &run : runs)
    for (uint32_t i = 0; i < run.rows; ++i) {
      FullSteps::Run row{run.sequence, i, 1, i + 1 == run.rows};
      ASSERT_TRUE(steps.run(*alone, 0, {&row, 1}).isOk());
    }
  for (uint32_t i = 0; i < plan.buckets()->size(); ++i) {
    const fb::Bucket &bucket = *plan.buckets()->Get(i);
    if (!bucket.body() || bucket.rows() < 6 || bucket.sequences() < 2)
      continue;
    auto padded = boot();
    Status status = steps.run(*padded, i, runs);
    ASSERT_TRUE(status.isOk()) << status.toString();
    EXPECT_TRUE(keptBy(*padded, bucket.head()) == keptBy(*alone, bucket.head()))
        << bucket.name()->str();
  }
}

/// Tables of 8 groups, all experts' labels and a gated shared expert.
constexpr const char *groupedLatent = R"({
  "model_type": "grouped_latent", "hidden_size": 64, "num_hidden_layers": 3, "vocab_size": 320,
  "max_position_embeddings": 512, "num_attention_heads": 4, "num_key_value_heads": 2,
  "head_dim": 16, "num_experts": 16, "num_experts_per_tok": 4, "moe_intermediate_size": 32,
  "moe_latent_size": 24, "moe_latent_groups": 8, "shared_expert_intermediate_size": 32,
  "rms_norm_eps": 1e-5, "rope_theta": 10000.0})";

INSTANTIATE_TEST_SUITE_P(
    Models, CompiledPlans,
    testing::Values(Model{"stories", testData("stories260K/stories260K.gguf")},
                    Model{"stories_folder", testData("stories260K-hf")},
                    Model{"rope_scaling", testData("fixtures/llama-rope-llama3")},
                    Model{"window", testData("fixtures/mistral-window")},
                    Model{"bias", testData("fixtures/qwen2-bias")},
                    Model{"head_norms", testData("fixtures/qwen3-qknorm")},
                    Model{"post_norms", testData("fixtures/gemma3")},
                    Model{"experts", testData("fixtures/qwen3-moe")},
                    Model{"recurrent", testData("fixtures/mamba2")},
                    Model{"hybrid", testData("fixtures/nemotron-h-moe")},
                    Model{"latent_experts", testData("fixtures/nemotron-h-latent")},
                    Model{"latent_attention", testData("fixtures/deepseek-v3")},
                    Model{"grouped_latent", "", groupedLatent},
                    Model{"smollm2", cachedModel("SmolLM2-135M-Instruct.Q4_1.gguf")}),
    [](const auto &model) { return model.param.name; });

} // namespace
} // namespace strata::test
