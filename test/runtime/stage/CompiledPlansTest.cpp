// Memory is what the plan says, for the plans of real models: under the address sanitizer every
// byte of arena, weights and state that a command was not given is poisoned while it runs;
// otherwise the peak is read from what a full launch leaves in the arena.
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "runtime/base/CheckedMath.h"
#include "test/TestData.h"
#include "test/runtime/plan/TinyPlan.h"
#include "test/runtime/stage/FullSteps.h"
#include "test/runtime/stage/MemoryWatch.h"

namespace strata::test {
namespace {

struct Model {
  std::string name;
  std::string path;
};
void PrintTo(const Model &model, std::ostream *out) { *out << model.name; }

class CompiledPlans : public testing::TestWithParam<Model> {
protected:
  void SetUp() override {
    STRATA_REQUIRE_FILE(GetParam().path);
    std::string compiler = testTool("strata-compile");
    STRATA_REQUIRE_FILE(compiler);
    // The promise covers the largest bucket; a longer context only makes the pool larger.
    std::string command = "'" + compiler + "' '" + GetParam().path + "' --max-context 128 -o '" +
                          plan() + "' 2> '" + folder_ / "errors" + "'";
    // NOLINTNEXTLINE(bugprone-command-processor): of paths that the tests choose
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
    auto opened = PlanFile::open(plan());
    ASSERT_TRUE(opened.isOk()) << opened.status().toString();
    file_ = *opened;
  }

  std::string plan() { return folder_ / "plan.strata"; }

  /// Boots the plan with `observer` and runs every bucket full.
  template <class Observer> void run(Observer &observer) {
    std::unique_ptr<PlanExecutor> executor;
    ExecutorOptions options{.threads = 2};
    options.observer = [&](const CommandSite &site) { observer(*executor, site); };
    auto created = PlanExecutor::create(file_, options);
    ASSERT_TRUE(created.isOk()) << created.status().toString();
    executor = std::move(*created);
    FullSteps steps(file_->plan());
    Status status = steps.runAll(*executor);
    ASSERT_TRUE(status.isOk()) << status.toString();
  }

  TemporaryFolder folder_;
  std::shared_ptr<const PlanFile> file_;
};

#if defined(__SANITIZE_ADDRESS__)

TEST_P(CompiledPlans, NothingButOperandsIsTouched) {
  Poisoner poisoner;
  run(poisoner);
  EXPECT_GT(poisoner.commands, 100u);
}

#else

TEST_P(CompiledPlans, HighWaterMarkIsThePlannedPeak) {
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
                    Model{"smollm2", cachedModel("SmolLM2-135M-Instruct.Q4_1.gguf")}),
    [](const auto &model) { return model.param.name; });

} // namespace
} // namespace strata::test
