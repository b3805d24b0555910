#include <algorithm>
#include <numeric>

#include "codegen/cpu/Sample.h"
#include "runtime/sampling/Sampler.h"
#include "test/codegen/cpu/KernelData.h"

namespace strata::cpu {
namespace {

/// A step of two sequences, of which the rows of the head are drawn.
struct SampleFixture {
  std::vector<int32_t> sequenceSlot = {5, 1}, sequenceLength = {17, 40};
  std::vector<float> temperature = {0.0f, 0.9f}, topP = {1.0f, 0.9f}, minP = {0.0f, 0.01f};
  std::vector<int32_t> topK = {0, 50};
  std::vector<uint64_t> seed = {1, 0xDEADBEEFCAFE};
  std::vector<float> repetition = {1, 1}, presence = {0, 0}, frequency = {0, 0};
  std::vector<int32_t> window = {0, 0};
  static constexpr uint32_t slots = 6, context = 48;
  std::vector<int32_t> lastId = std::vector<int32_t>(slots, -7);
  std::vector<int32_t> history = std::vector<int32_t>(slots * context, -7);
  std::vector<int32_t> biasCount = std::vector<int32_t>(slots), isMasked = biasCount;
  std::vector<int32_t> biasId = std::vector<int32_t>(slots * maxLogitBiases, -7);
  std::vector<float> biasValue = std::vector<float>(slots * maxLogitBiases);
  std::vector<uint32_t> mask;
  std::vector<int32_t> id, topId;
  std::vector<float> logProbability, topLogProbability;

  void run(Isa isa, const std::vector<float> &logits, const std::vector<int32_t> &headSequence,
           uint32_t vocabulary) {
    size_t rows = headSequence.size() + 1; // one of padding
    id.assign(rows, -7), logProbability.assign(rows, 7);
    topId.assign(rows * reportedTokens, -7), topLogProbability.assign(rows * reportedTokens, 7);
    mask.resize(slots * maskWords(vocabulary));
    uint64_t stride = scratchBytes("sample", vocabulary);
    std::vector<uint8_t> scratch(2 * stride);
    std::vector<uint32_t> validHeadRows = {uint32_t(headSequence.size())};
    KernelCall call("sample", isa,
                    {{"logits", logits},
                     {"valid_head_rows", validHeadRows},
                     {"head_sequence", headSequence},
                     {"sequence_slot", sequenceSlot},
                     {"sequence_length", sequenceLength},
                     {"temperature", temperature},
                     {"top_k", topK},
                     {"top_p", topP},
                     {"min_p", minP},
                     {"seed", seed},
                     {"repetition_penalty", repetition},
                     {"presence_penalty", presence},
                     {"frequency_penalty", frequency},
                     {"penalty_window", window},
                     {"last_id", lastId},
                     {"history", history},
                     {"bias_count", biasCount},
                     {"bias_id", biasId},
                     {"bias_value", biasValue},
                     {"is_masked", isMasked},
                     {"mask", mask},
                     {"id", id},
                     {"log_probability", logProbability},
                     {"top_id", topId},
                     {"top_log_probability", topLogProbability},
                     {"scratch", scratch},
                     {"scratch_stride", stride},
                     {"vocabulary", vocabulary},
                     {"context", context}});
    for (uint32_t row = uint32_t(headSequence.size()); row-- > 0;)
      call.run(row, row + 1, row % 2);
  }
};

class SampleTest : public KernelTest {};

TEST_P(SampleTest, DrawsAsTheSamplerAndReportsTheLikeliest) {
  constexpr uint32_t vocabulary = 1000;
  std::vector<float> logits = randomFloats(2 * vocabulary, 1, 4);
  logits[300] = logits[700] = 30; // a tie: the lower id comes first
  std::vector<int32_t> headSequence = {0, 1};
  SampleFixture step;
  step.run(isa(), logits, headSequence, vocabulary);
  EXPECT_EQ(step.id[0], 300);
  for (uint32_t row = 0; row < 2; ++row) {
    std::span<const float> own(logits.data() + row * vocabulary, vocabulary);
    std::vector<SamplingScratch> scratch(vocabulary);
    TokenChoice choice = sampleToken(
        own,
        {step.temperature[row], step.topK[row], step.topP[row], step.minP[row], step.seed[row]},
        uint64_t(step.sequenceLength[row]), scratch);
    EXPECT_EQ(step.id[row], choice.id);
    EXPECT_EQ(step.logProbability[row], choice.logProbability);
    EXPECT_EQ(step.lastId[step.sequenceSlot[row]], choice.id);

    std::vector<int32_t> order(vocabulary);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return own[a] > own[b]; });
    double total = 0;
    for (float logit : own)
      total += std::exp(double(logit));
    for (uint32_t i = 0; i < reportedTokens; ++i) {
      EXPECT_EQ(step.topId[row * reportedTokens + i], order[i]);
      EXPECT_NEAR(step.topLogProbability[row * reportedTokens + i],
                  double(own[order[i]]) - std::log(total), 1e-5);
      if (order[i] == choice.id) {
        EXPECT_EQ(step.topLogProbability[row * reportedTokens + i], choice.logProbability);
      }
    }
  }
  EXPECT_EQ(step.id[2], -7) << "the padding row was written";
  EXPECT_EQ(step.topId[2 * reportedTokens], -7);
  EXPECT_THAT(step.lastId, testing::ElementsAre(-7, step.id[1], -7, -7, -7, step.id[0]));
}

TEST_P(SampleTest, TheTablesOfASlotReachItsSequence) {
  constexpr uint32_t vocabulary = 40;
  std::vector<float> logits(2 * vocabulary, 0);
  for (uint32_t row : {0, 1}) {
    logits[row * vocabulary + 4] = 3;
    logits[row * vocabulary + 35] = 2.5f;
    logits[row * vocabulary + 8] = 2;
  }
  SampleFixture step; // slots 5 and 1, of lengths 17 and 40
  step.temperature = {0, 0};
  step.mask.resize(SampleFixture::slots * 2);
  // Slot 5: id 4 once in its 17 tokens and once behind them, where nothing counts.
  step.presence = {0.75f, 0};
  step.history[5 * SampleFixture::context + 16] = 4;
  step.history[5 * SampleFixture::context + 17] = 35;
  step.run(isa(), logits, {0, 1}, vocabulary);
  EXPECT_EQ(step.id[0], 35);
  EXPECT_EQ(step.id[1], 4);
  // What was drawn stands in the history.
  EXPECT_EQ(step.history[5 * SampleFixture::context + 17], 35);
  EXPECT_EQ(step.history[1 * SampleFixture::context + 40], 4);
  EXPECT_EQ(step.history[1 * SampleFixture::context + 39], -7);

  step.presence = {0, 0};
  step.biasCount[1] = 1; // of the entries that follow, the first
  step.biasId[maxLogitBiases] = 4, step.biasId[maxLogitBiases + 1] = 35;
  step.biasValue[maxLogitBiases] = step.biasValue[maxLogitBiases + 1] = -2;
  step.isMasked[5] = 1;
  step.mask[5 * 2 + 0] = 1u << 8;
  step.run(isa(), logits, {0, 1}, vocabulary);
  EXPECT_EQ(step.id[0], 8);
  EXPECT_EQ(step.id[1], 35);
}

TEST_P(SampleTest, AFullContextHasNoPlaceForTheDrawnId) {
  SampleFixture step;
  step.sequenceLength = {SampleFixture::context, 40};
  step.run(isa(), {1, 3, 2}, {0}, 3);
  EXPECT_EQ(step.id[0], 1);
  EXPECT_THAT(step.history, testing::Each(-7));
}

TEST_P(SampleTest, AVocabularyBelowTwentyLeavesTheRestEmpty) {
  std::vector<float> logits = {1, 3, 2};
  SampleFixture step;
  step.run(isa(), logits, {0}, 3);
  EXPECT_EQ(step.id[0], 1);
  EXPECT_THAT(std::vector(step.topId.begin(), step.topId.begin() + 4),
              testing::ElementsAre(1, 2, 0, -1));
  EXPECT_EQ(step.topId[reportedTokens - 1], -1);
  EXPECT_EQ(step.topLogProbability[3], -INFINITY);
}

// Scoring reads several rows of a sequence at once; they may finish in any order.
TEST_P(SampleTest, ASequenceGoesOnFromItsLastHeadRow) {
  constexpr uint32_t vocabulary = 50;
  std::vector<float> logits(3 * vocabulary, 0);
  logits[7] = logits[vocabulary + 11] = logits[2 * vocabulary + 13] = 9;
  SampleFixture step;
  step.temperature = {0, 0};
  step.run(isa(), logits, {0, 0, 1}, vocabulary); // from the last row to the first
  EXPECT_THAT(std::vector(step.id.begin(), step.id.begin() + 3), testing::ElementsAre(7, 11, 13));
  EXPECT_EQ(step.lastId[step.sequenceSlot[0]], 11);
  EXPECT_EQ(step.lastId[step.sequenceSlot[1]], 13);
}

STRATA_TEST_KERNELS(SampleTest, {"sample"});

} // namespace
} // namespace strata::cpu
