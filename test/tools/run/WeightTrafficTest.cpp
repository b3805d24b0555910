#include "tools/run/WeightTraffic.h"

#include <fstream>

#include <gtest/gtest.h>

#include "runtime/plan/PlanFile.h"
#include "test/CompilePlan.h"
#include "test/runtime/plan/TinyPlan.h"

namespace strata::test {
namespace {

constexpr std::string_view config = R"json({
  "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
  "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2, "num_attention_heads": 4,
  "num_key_value_heads": 2, "vocab_size": 320, "rms_norm_eps": 1e-05, "rope_theta": 10000.0,
  "max_position_embeddings": 512, "tie_word_embeddings": false})json";

/// Matrices of both layers and the head in BF16; norms and the rotations' frequencies in F32.
constexpr uint64_t layerElements = 256 * (256 + 128 + 128 + 256) + 3 * 256 * 512;
constexpr uint64_t expected = 2 * (2 * layerElements + 256 * 320) + 4 * ((2 * 2 + 1) * 256 + 32);

class WeightTraffic : public testing::TestWithParam<std::string> {};

TEST_P(WeightTraffic, AStepReadsEveryWeightOnceForAnyNumberOfSequences) {
  STRATA_REQUIRE_FILE(testTool("strata-compile"));
  TemporaryFolder folder;
  std::string path = folder / "config.json", plan = folder / "plan.strata";
  std::ofstream(path) << config;
  ASSERT_TRUE(compilePlan(path,
                          "--weights=none --weight-type bf16 --max-context 128 --max-seqs 32 "
                          "--devices " +
                              GetParam(),
                          plan));
  auto file = PlanFile::open(plan);
  ASSERT_TRUE(file.isOk()) << file.status().toString();
  for (uint32_t sequences : {1, 3, 8, 9, 32})
    EXPECT_EQ(run::weightBytesPerStep((*file)->plan(), sequences), expected) << sequences;
}

#ifdef STRATA_HAS_CUDA
const std::vector<std::string> devices = {"cpu:x86-64-v3", "cuda:sm_90"};
#else
const std::vector<std::string> devices = {"cpu:x86-64-v3"};
#endif

INSTANTIATE_TEST_SUITE_P(Devices, WeightTraffic, testing::ValuesIn(devices), [](const auto &info) {
  return info.param.substr(0, info.param.find(':'));
});

} // namespace
} // namespace strata::test
