// Steps through a whole plan against the model's equations in double, and against each other bit
// for bit: through every bucket, split, number of workers and order of blocks.
#include "runtime/stage/PlanExecutor.h"
#include "codegen/cpu/KernelTable.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/runtime/stage/Driver.h"

using namespace strata;
using namespace strata::test;
using testing::HasSubstr;
using M = TinyModel;

namespace {

class PlanExecutorTest : public testing::Test {
protected:
  std::string writePlan(const std::string &name, TinyOptions options = {},
                        const TinyModel &model = TinyModel(),
                        fb::WeightsPlace place = fb::WeightsPlace::Inside) {
    fb::PlanT plan = tinyPlan(options);
    Status status = writeTinyPlan(folder_ / name, plan, model, place,
                                  place == fb::WeightsPlace::Store ? "w" : "");
    EXPECT_TRUE(status.isOk()) << status.toString();
    return folder_ / name;
  }

  TemporaryFolder folder_;
};

void expectClose(const std::vector<float> &found, const std::vector<double> &expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    ASSERT_NEAR(found[i], expected[i], 2e-5 * (1 + std::fabs(expected[i]))) << i;
}

const std::vector<int32_t> text = {3, 17, 39, 0, 8, 8, 21, 30, 2, 11, 5, 36};

/// The logits after every token of `text`, token by token.
std::vector<std::vector<float>> oneByOne(Driver &driver, uint32_t sequence) {
  std::vector<std::vector<float>> rows;
  for (int32_t id : text) {
    driver.run(R1S1, {{sequence, {id}, true}});
    rows.push_back(driver.logits(0));
  }
  return rows;
}

TEST_F(PlanExecutorTest, LogitsAreTheModels) {
  TinyModel model(7);
  for (auto place : {fb::WeightsPlace::Inside, fb::WeightsPlace::Store})
    for (uint32_t stages : {1, 2}) {
      Driver driver(writePlan("a", {.stages = stages}, model, place), {.threads = 2});
      ASSERT_TRUE(driver.isBooted()) << driver.status().toString();
      auto expected = model.logits(text);
      auto found = oneByOne(driver, 0);
      for (size_t i = 0; i < text.size(); ++i) {
        SCOPED_TRACE(i);
        expectClose(found[i], expected[i]);
      }
    }
}

TEST_F(PlanExecutorTest, EveryBucketGivesTheSameBits) {
  Driver driver(writePlan("a"), {.threads = 2});
  ASSERT_TRUE(driver.isBooted()) << driver.status().toString();
  auto expected = oneByOne(driver, 0);

  // Two tokens of one sequence at a time.
  for (size_t i = 0; i < text.size(); i += 2) {
    driver.run(R2S2, {{1, {text[i], text[i + 1]}, true}});
    EXPECT_EQ(driver.logits(0), expected[i + 1]);
  }
  // Chunks of four by the body alone, then heads over its rows: the residual stays in place.
  for (size_t i = 0; i < text.size(); i += 4) {
    driver.run(R4S1, {{2, {text.begin() + int64_t(i), text.begin() + int64_t(i) + 4}}});
    EXPECT_TRUE(driver.executor().logits()->empty());
    for (int32_t row : {0, 3}) {
      driver.runHead(H1, {row});
      EXPECT_EQ(driver.logits(0), expected[i + size_t(row)]);
    }
    driver.runHead(H2, {2, 1});
    EXPECT_EQ(driver.logits(0), expected[i + 2]);
    EXPECT_EQ(driver.logits(1), expected[i + 1]);
  }
  // A chunk of three, padded.
  driver.restart(2);
  driver.run(R4S1, {{2, {text.begin(), text.begin() + 3}}});
  driver.runHead(H1, {2});
  EXPECT_EQ(driver.logits(0), expected[2]);
}

TEST_F(PlanExecutorTest, SequencesDoNotMeet) {
  Driver driver(writePlan("a"), {.threads = 3});
  ASSERT_TRUE(driver.isBooted()) << driver.status().toString();
  auto expected = oneByOne(driver, 0);
  // Two sequences in one batch, the second a token behind, in blocks that interleave.
  std::vector<int32_t> blocks = {17, 2, 9, 4, 0, 6, 1, 16, 3, 14, 5, 12, 7, 10, 11, 8, 13, 15};
  driver.setBlocks(blocks);
  driver.restart(0);
  driver.run(R1S1, {{2, {text[0]}, true}});
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    driver.run(R2S2, {{0, {text[i]}, true}, {2, {text[i + 1]}, true}});
    EXPECT_EQ(driver.logits(0), expected[i]);
    EXPECT_EQ(driver.logits(1), expected[i + 1]);
  }
}

TEST_F(PlanExecutorTest, SplitAndWorkersChangeNothing) {
  Driver one(writePlan("one"), {.threads = 1});
  ASSERT_TRUE(one.isBooted());
  auto expected = oneByOne(one, 0);
  for (uint32_t threads : {1, 2, 5}) {
    Driver two(writePlan("two", {.stages = 2}), {.threads = threads});
    ASSERT_TRUE(two.isBooted()) << two.status().toString();
    EXPECT_EQ(oneByOne(two, 1), expected);
  }
}

TEST_F(PlanExecutorTest, SampledIdsComeBackAsRows) {
  for (uint32_t stages : {1, 2}) {
    Driver driver(writePlan("a", {.stages = stages}), {.threads = 2});
    ASSERT_TRUE(driver.isBooted());
    std::vector<int32_t> ids = {5, 9};
    driver.run(R2S2, {{1, ids, true}});
    for (int i = 0; i < 8; ++i) {
      auto expected = TinyModel().logits(ids).back();
      int32_t best = int32_t(std::max_element(expected.begin(), expected.end()) - expected.begin());
      const StepResult &result = driver.launch().result;
      ASSERT_EQ(result.id[0], best);
      ASSERT_EQ(result.topId[0], best);
      ASSERT_NEAR(result.logProbability[0], result.topLogProbability[0], 1e-6);
      ASSERT_EQ(result.nonfiniteLayer[0], -1);
      ids.push_back(best);
      driver.run(R1S1, {{1, {-1}, true}});
    }
  }
}

TEST_F(PlanExecutorTest, NonFiniteRowsNameTheirLayer) {
  TinyModel model;
  model.layer[0].o[0] = INFINITY; // seen by the next norm: layer 1's
  for (uint32_t stages : {1, 2}) {
    Driver driver(writePlan("a", {.stages = stages}, model), {.threads = 2});
    ASSERT_TRUE(driver.isBooted());
    driver.run(R2S2, {{0, {1}, true}, {1, {2}, true}});
    EXPECT_EQ(driver.launch().result.nonfiniteLayer[0], 1);
    EXPECT_EQ(driver.launch().result.nonfiniteLayer[1], 1);
  }
}

TEST_F(PlanExecutorTest, RandomWeights) {
  std::string path = writePlan("a", {}, TinyModel(), fb::WeightsPlace::None);
  Driver none(path, {.threads = 1});
  EXPECT_EQ(none.status().code(), StatusCode::FailedPrecondition);
  auto logitsOf = [&](uint64_t seed) {
    Driver driver(path, {.threads = 1, .randomWeightsSeed = seed});
    EXPECT_TRUE(driver.isBooted()) << driver.status().toString();
    driver.run(R1S1, {{0, {1}, true}});
    EXPECT_EQ(driver.launch().result.nonfiniteLayer[0], -1);
    return driver.logits(0);
  };
  EXPECT_EQ(logitsOf(1), logitsOf(1));
  EXPECT_NE(logitsOf(1), logitsOf(2));
  for (float value : logitsOf(3))
    EXPECT_TRUE(std::isfinite(value));
}

TEST_F(PlanExecutorTest, RandomWeightsSpareWhatThePlanKnows) {
  fb::PlanT plan = tinyPlan();
  plan.weights_place = fb::WeightsPlace::None;
  fb::WeightT &norm = *plan.stages[0]->weights.back(); // the head's, F32
  norm.content.assign(norm.bytes, 0);                  // rows of zeros: every logit is 0
  ASSERT_TRUE(writeTinyPlan(folder_ / "known", plan, TinyModel(), fb::WeightsPlace::None).isOk());
  Driver driver(folder_ / "known", {.threads = 1, .randomWeightsSeed = 1});
  ASSERT_TRUE(driver.isBooted()) << driver.status().toString();
  driver.run(R1S1, {{0, {1}, true}});
  EXPECT_THAT(driver.logits(0), testing::Each(0.0f));
}

// A move is seen by nobody but the pool: what is read is the same, what was left is zeros, and no
// other block changes.
TEST_F(PlanExecutorTest, MovedBlocksReadTheSameAndLeaveZeros) {
  for (uint32_t stages : {1, 2}) {
    std::string path = writePlan("a", {.stages = stages});
    std::vector<int32_t> blocks(18);
    for (int32_t i = 0; i < 18; ++i)
      blocks[i] = i;
    struct Pool {
      std::byte *begin = nullptr;
      uint64_t stride = 0;
      uint32_t count = 0;
      std::vector<std::byte> block(int32_t number) const {
        return {begin + uint64_t(number) * stride, begin + (uint64_t(number) + 1) * stride};
      }
    };
    std::map<uint32_t, Pool> pools; // of each stage
    ExecutorOptions options{.threads = 1};
    options.observer = [&](const CommandSite &site) {
      for (const Operand &operand : site.operands)
        if (operand.count == 18 && operand.stride > 0) {
          auto *begin = const_cast<std::byte *>(operand.begin);
          Pool &pool = pools[site.stage];
          if (!pool.begin || begin < pool.begin)
            pool = {begin, operand.stride, operand.count};
        }
    };
    Driver moved(path, options), still(path, {.threads = 1});
    ASSERT_TRUE(moved.isBooted() && still.isBooted());
    for (Driver *driver : {&moved, &still}) {
      driver->setBlocks(blocks);
      driver->run(R4S1, {{0, {1, 2, 3, 4}}});
      driver->run(R4S1, {{1, {5, 6, 7}}});
      driver->run(R4S1, {{0, {8}}});
    }
    ASSERT_FALSE(pools.empty());
    std::map<uint32_t, std::vector<std::vector<std::byte>>> before;
    for (auto &[stage, pool] : pools)
      for (int32_t i = 0; i < 18; ++i) {
        if (i >= 12) // canaries where no sequence is
          std::memset(pool.begin + uint64_t(i) * pool.stride, 0x40 + i, pool.stride);
        before[stage].push_back(pool.block(i));
      }
    // Sequence 0 holds blocks 0 and 1, sequence 1 block 6; block 1 is moved twice, the second time
    // by way of a block that another has just left.
    moved.launch().step.moves = {{0, 1, 16}, {0, 6, 1}, {0, 16, 6}};
    blocks[1] = 6, blocks[6] = 1;
    moved.setBlocks(blocks);
    for (Driver *driver : {&moved, &still}) {
      driver->run(R2S2, {{0, {9}, true}, {1, {10}, true}});
      driver->launch().step.moves.clear();
    }
    for (uint32_t row : {0u, 1u})
      EXPECT_EQ(moved.logits(row), still.logits(row));
    for (auto &[stage, pool] : pools)
      for (int32_t i = 0; i < 18; ++i)
        if (i != 1 && i != 6) { // into which the step has written
          std::vector<std::byte> wanted =
              i == 16 ? std::vector<std::byte>(pool.stride) : before[stage][size_t(i)];
          EXPECT_EQ(pool.block(i), wanted) << "block " << i << " of stage " << stage;
        }
  }
}

TEST_F(PlanExecutorTest, MovesOutsideThePoolAreRefused) {
  Driver driver(writePlan("a"), {.threads = 1});
  ASSERT_TRUE(driver.isBooted());
  auto refusal = [&](uint32_t bucket, StateMove move) {
    driver.fill(bucket, {{0, {1}, true}});
    driver.launch().step.moves = {move};
    return driver.executor().submit(driver.launch().step).message();
  };
  EXPECT_THAT(refusal(R1S1, {0, 3, 18}), HasSubstr("block 3 of state 'kv' moves to block 18"));
  EXPECT_THAT(refusal(R1S1, {0, 3, 3}), HasSubstr("to block 3 of a pool of 18"));
  EXPECT_THAT(refusal(R1S1, {1, 3, 4}), HasSubstr("state group 1 of 1"));
  EXPECT_THAT(refusal(H1, {0, 3, 4}), HasSubstr("1 blocks move before bucket 'h1'"));
}

TEST_F(PlanExecutorTest, BlocksFollowWhatIsAskedFor) {
  std::string path = writePlan("a");
  auto blocks = [&](uint32_t sequences, uint64_t tokens) {
    Driver driver(path, {.threads = 1, .sequences = sequences, .kvTokens = tokens});
    return driver.isBooted() ? driver.executor().blockCount(0) : 0;
  };
  EXPECT_EQ(blocks(0, 0), 18u);  // the promise: 3 sequences of 6 blocks
  EXPECT_EQ(blocks(1, 0), 6u);   // one sequence of 24 tokens in blocks of 4
  EXPECT_EQ(blocks(0, 41), 11u); // ceil(41 / 4)
  EXPECT_EQ(blocks(0, 1), 6u);   // never less than one sequence
  Driver tooMany(path, {.threads = 1, .sequences = 4});
  EXPECT_EQ(tooMany.status().code(), StatusCode::InvalidArgument);
  EXPECT_THAT(tooMany.status().toString(), HasSubstr("4 sequences was asked for but the plan has"));
  Driver tooLong(path, {.threads = 1, .kvTokens = uint64_t(1) << 60});
  EXPECT_EQ(tooLong.status().code(), StatusCode::InvalidArgument);
}

// A window's table covers the context, but a sequence holds only its share of the promise.
TEST_F(PlanExecutorTest, WindowsTakeWhatTheyHold) {
  fb::PlanT plan = tinyPlan();
  fb::StateGroupT &group = *plan.stages[0]->states[0];
  group.kind = fb::StateKind::Window;
  group.window = 5;
  group.promised_blocks = 9;
  // What the state keeps is all that attention may look at.
  for (auto &forward : plan.stages[0]->forwards)
    for (auto &command : forward->commands) {
      const KernelSignature &signature =
          *findSignature(plan.stages[0]->kernels[command->kernel]->name);
      for (size_t i = 0; i < signature.slots.size(); ++i)
        if (signature.slots[i].name == "window")
          command->slots[i] =
              fb::Slot(fb::SlotKind::Constant, fb::Access::None, 0, group.window, 0);
    }
  Status written = writeTinyPlan(folder_ / "a", plan, TinyModel());
  ASSERT_TRUE(written.isOk()) << written.toString();
  Driver promise(folder_ / "a", {.threads = 1});
  Driver two(folder_ / "a", {.threads = 1, .sequences = 2, .kvTokens = 1000});
  ASSERT_TRUE(promise.isBooted() && two.isBooted()) << promise.status().toString();
  EXPECT_EQ(promise.executor().blockCount(0), 9u);
  EXPECT_EQ(two.executor().blockCount(0), 6u); // 2 of 3 sequences
}

TEST_F(PlanExecutorTest, TakesWhatThePlanSays) {
  Driver driver(writePlan("a"), {.threads = 3});
  ASSERT_TRUE(driver.isBooted());
  const fb::Stage &stage = driver.executor().stage(0).plan();
  const StageMemory &memory = driver.executor().stage(0).memory();
  EXPECT_EQ(memory.arena.size(), stage.arena_bytes());
  EXPECT_EQ(memory.scratch.size(), 3 * stage.scratch_bytes_per_worker());
  EXPECT_EQ(memory.states[0].size(), 18 * stage.states()->Get(0)->block_bytes());
  uint64_t sum = 0;
  for (uint64_t bytes : {memory.arena.size(), memory.scratch.size(), memory.states[0].size(),
                         memory.step.size(), memory.out.size(), memory.table.size()})
    sum += (bytes + 4095) / 4096 * 4096;
  EXPECT_EQ(driver.executor().takenBytes(), sum);
}

TEST_F(PlanExecutorTest, AStepThatBreaksThePlanIsRefused) {
  Driver driver(writePlan("a"), {.threads = 1});
  ASSERT_TRUE(driver.isBooted());
  driver.run(R2S2, {{0, {1}, true}, {1, {2}, true}});
  auto refused = [&](auto change) {
    Launch launch = driver.launch();
    change(launch.step, launch.result);
    Status status = driver.executor().run(launch.step, launch.result);
    EXPECT_EQ(status.code(), StatusCode::Internal);
    return status.toString();
  };
  EXPECT_THAT(refused([](Step &s, auto &) { s.bucket = 9; }), HasSubstr("bucket 9 of 5"));
  EXPECT_THAT(refused([](Step &s, auto &) { s.validRows = 3; }), HasSubstr("3 rows of 2"));
  EXPECT_THAT(refused([](Step &s, auto &) { s.rowId[1] = 40; }),
              HasSubstr("row_id 1 of the step is 40"));
  EXPECT_THAT(refused([](Step &s, auto &) { s.rowPosition[0] = 24; }), HasSubstr("row_position 0"));
  EXPECT_THAT(refused([](Step &s, auto &) { s.rowSequence[0] = 2; }), HasSubstr("row_sequence 0"));
  EXPECT_THAT(refused([](Step &s, auto &) { s.sequenceSlot[0] = 3; }),
              HasSubstr("sequence_slot 0"));
  EXPECT_THAT(refused([](Step &s, auto &) { s.headRow[0] = 4; }), HasSubstr("head_row 0"));
  EXPECT_THAT(refused([](Step &s, auto &) { s.blockTables[0][0] = 18; }),
              HasSubstr("block 0 of state 'kv', which is number 18 of a pool of 18"));
  EXPECT_THAT(refused([](Step &s, auto &) { s.blockTables[0].resize(6); }),
              HasSubstr("has 6 entries"));
  EXPECT_THAT(refused([](Step &, StepResult &r) { r.id.clear(); }), HasSubstr("sized below"));
}

TEST_F(PlanExecutorTest, UnknownStepFieldsAreRefusedAtBoot) {
  fb::PlanT plan = tinyPlan();
  plan.stages[0]->step->fields[7]->name = "query_begin";
  ASSERT_TRUE(writeTinyPlan(folder_ / "a", plan, TinyModel()).isOk());
  Driver driver(folder_ / "a", {.threads = 1});
  EXPECT_EQ(driver.status().code(), StatusCode::InvalidData);
  EXPECT_THAT(driver.status().toString(), HasSubstr("field 'query_begin' of the step block"));
}

} // namespace
