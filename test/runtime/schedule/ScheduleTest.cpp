// What a client and an executor see of the schedule: who runs, in which bucket, and how it ends.
#include "runtime/schedule/Schedule.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/runtime/schedule/Harness.h"

namespace strata::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Request request(uint32_t promptLength, uint32_t maxTokens, uint32_t seed = 1) {
  Request request;
  request.prompt = makePrompt(promptLength, seed);
  request.maxTokens = maxTokens;
  request.sampling.seed = seed;
  request.ignoreEndOfGeneration = true;
  return request;
}

const std::vector<std::string> powers = {"r1s1",  "r2s2", "r4s4", "r8s8", "b16s8", "b32s1",
                                         "b32s8", "h1",   "h2",   "h4",   "h8"};

TEST(Schedule, TakesTheSmallestBucketThatHoldsTheBatch) {
  Harness harness(makeConfig(powers, 8, 64));
  harness.submit(request(3, 3));
  harness.submit(request(2, 2));
  harness.run();
  EXPECT_THAT(harness.launches, ElementsAre(Launch{"r8s8", 5, 2, 2}, // 3 + 2 prompt rows
                                            Launch{"r2s2", 2, 2, 2}, // both generate
                                            Launch{"r1s1", 1, 1, 1}));
}

TEST(Schedule, ALoneChunkTakesTheNarrowBucketAndItsHeadFollows) {
  Harness harness(makeConfig(powers, 8, 128));
  harness.submit(request(32 + 12, 1));
  harness.run();
  EXPECT_THAT(harness.launches,
              ElementsAre(Launch{"b32s1", 32, 1, 0}, // the chunk; no row of it is sampled
                          Launch{"b16s8", 12, 1, 0}, Launch{"h1", 0, 1, 1}));
}

TEST(Schedule, ChunksFillWhatGeneratingSequencesLeave) {
  Harness harness(makeConfig(powers, 8, 128));
  harness.submit(request(4, 10));
  ASSERT_TRUE(harness.launch());
  harness.submit(request(40, 1, 2));
  harness.submit(request(3, 1, 3));
  for (int i = 0; i < 4; ++i)
    ASSERT_TRUE(harness.launch());
  EXPECT_THAT(harness.launches,
              ElementsAre(Launch{"r4s4", 4, 1, 1},
                          Launch{"b32s8", 32, 2, 0}, // 1 generating + 31 of 40; none left for 3
                          Launch{"h1", 0, 1, 1}, Launch{"b16s8", 13, 3, 0}, // 1 generating + 9 + 3
                          Launch{"h4", 0, 3, 3}));
  harness.run();
}

TEST(Schedule, HeadsPastTheLargestHeadBucketGoInSlices) {
  Harness harness(makeConfig({"b16s5", "h2s1", "h3s2"}, 5, 64));
  for (uint32_t seed = 1; seed <= 5; ++seed)
    harness.submit(request(2, 1, seed));
  harness.run();
  // Three rows would be of three sequences, which no head bucket takes.
  EXPECT_THAT(harness.launches, ElementsAre(Launch{"b16s5", 10, 5, 0}, Launch{"h3s2", 0, 2, 2},
                                            Launch{"h3s2", 0, 2, 2}, Launch{"h2s1", 0, 1, 1}));
}

TEST(Schedule, ALoneRemainderFollowsTheTailTable) {
  ScheduleConfig config = makeConfig({"r1s1", "r4s4", "r8s8", "r32s1"}, 4, 128);
  addBinaryTails(config);
  Harness harness(config);
  harness.submit(request(32 + 13, 1));
  harness.run();
  EXPECT_THAT(harness.launches, ElementsAre(Launch{"r32s1", 32, 1, 0}, Launch{"r8s8", 8, 1, 0},
                                            Launch{"r4s4", 4, 1, 0}, Launch{"r1s1", 1, 1, 1}));
}

TEST(Schedule, ATailIsFollowedAsItStandsAndPadded) {
  ScheduleConfig config = makeConfig({"r4s4", "r8s8", "r16s1"}, 4, 128);
  config.tails.resize(15, {2});
  config.tails[10] = {0, 1}; // 11 = 4 + 7 of 8, though 7 alone would be cut otherwise
  config.tails[6] = {0, 0};
  Harness harness(config);
  harness.submit(request(11, 1));
  harness.run();
  EXPECT_THAT(harness.launches, ElementsAre(Launch{"r4s4", 4, 1, 0}, Launch{"r8s8", 7, 1, 1}));
}

TEST(Schedule, AStepThatOthersShareTakesTheRestOfATail) {
  ScheduleConfig config = makeConfig({"r1s1", "r2s2", "r4s4", "r8s8", "r16s1"}, 4, 128);
  addBinaryTails(config);
  Harness harness(config);
  harness.submit(request(15, 1)); // 8 + 4 + 2 + 1
  ASSERT_TRUE(harness.launch());
  harness.submit(request(2, 1, 2));
  harness.run();
  EXPECT_THAT(harness.launches,
              ElementsAre(Launch{"r8s8", 8, 1, 0}, Launch{"r8s8", 8, 2, 1}, // 7 and 1 of 2
                          Launch{"r1s1", 1, 1, 1}));
}

TEST(Schedule, AdmissionNeverOvertakes) {
  ScheduleConfig config = makeConfig({"r8s8"}, 3, 32);
  config.groups[0].blocks = 9; // of 4 tokens
  Harness harness(config);
  RequestId first = harness.submit(request(4, 20));  // 24 tokens: 6 blocks
  RequestId second = harness.submit(request(4, 12)); // 4 blocks: must wait for the first
  RequestId third = harness.submit(request(2, 2));   // 1 block: would fit, but stands behind
  ASSERT_TRUE(harness.launch());
  EXPECT_EQ(harness.schedule->freeSlots(), 2u);
  harness.run();
  EXPECT_THAT(harness.firstTokens, ElementsAre(first, second, third));
  EXPECT_EQ(harness.launches.size(), 20u + 12u);
}

TEST(Schedule, AGroupThatIsShortLeavesNothingReservedInTheOthers) {
  ScheduleConfig config = makeConfig({"r8s8"}, 2, 32);
  addWindowGroup(config, 6);
  config.groups[1].blocks = config.blocksNeeded(config.groups[1], 24, 4);
  Harness harness(config);
  RequestId first = harness.submit(request(4, 20)), second = harness.submit(request(4, 20, 2));
  ASSERT_TRUE(harness.launch());
  EXPECT_EQ(harness.schedule->blocks(0).reservedBlocks(), 6u); // 24 tokens of the first alone
  harness.run();
  EXPECT_EQ(harness.outcomes[first], generateAlone(config, request(4, 20)));
  EXPECT_EQ(harness.outcomes[second], generateAlone(config, request(4, 20, 2)));
}

TEST(Schedule, AFullContextEndsWithLength) {
  ScheduleConfig config = makeConfig({"r8s8"}, 2, 16);
  Harness harness(config);
  RequestId full = harness.submit(request(15, 1000));
  RequestId half = harness.submit(request(8, 0xFFFFFFFF));
  harness.run();
  EXPECT_EQ(harness.outcomes[full].ids.size(), 1u); // 15 + 1 = 16
  EXPECT_EQ(harness.outcomes[half].ids.size(), 8u);
  EXPECT_EQ(harness.outcomes[half].finish, FinishReason::Length);
}

TEST(Schedule, TheEndTokenStopsUnlessIgnored) {
  ScheduleConfig config = makeConfig({"r8s8"}, 2, 256);
  Harness harness(config);
  Request stopping = request(3, 200);
  stopping.ignoreEndOfGeneration = false;
  RequestId stopped = harness.submit(stopping);
  RequestId ignoring = harness.submit(request(3, 200));
  harness.run();
  const Generation &stop = harness.outcomes[stopped], &all = harness.outcomes[ignoring];
  ASSERT_EQ(stop.finish, FinishReason::Stop);
  EXPECT_THAT(stop.ids.back(), testing::AnyOf(5, 11));
  EXPECT_EQ(all.finish, FinishReason::Length);
  ASSERT_EQ(all.ids.size(), 200u);
  EXPECT_TRUE(std::equal(stop.ids.begin(), stop.ids.end(), all.ids.begin()));
}

TEST(Schedule, AWindowGroupReusesTheBlocksBehindIt) {
  ScheduleConfig config = makeConfig({"r1s1", "r8s2"}, 2, 256);
  addWindowGroup(config, 10);
  // The window and a chunk span 10 - 1 + 8 = 17 tokens: ceil(16 / 3) + 1 = 7 blocks of 3.
  ASSERT_EQ(config.groups[1].blocks, 2u * 7u);
  Harness harness(config);
  RequestId a = harness.submit(request(100, 150)), b = harness.submit(request(30, 200, 2));
  uint32_t most = 0;
  while (harness.launch())
    most = std::max(most, harness.schedule->blocks(1).heldBlocks());
  harness.run();
  EXPECT_LE(most, 14u);
  EXPECT_EQ(harness.outcomes[a], generateAlone(config, request(100, 150)));
  EXPECT_EQ(harness.outcomes[b], generateAlone(config, request(30, 200, 2)));
}

TEST(Schedule, ANonFiniteLayerEndsOnlyItsOwnSequence) {
  ScheduleConfig config = makeConfig({"b8s4", "h1", "h4"}, 4, 64);
  Harness harness(config);
  RequestId bad = harness.submit(request(3, 8)), good = harness.submit(request(3, 8, 2));
  ASSERT_TRUE(harness.launch() && harness.launch()); // slots go out in ascending order
  harness.executor.poison(0, 7);
  ASSERT_TRUE(harness.schedule->next(harness.step));
  ASSERT_TRUE(harness.executor.run(harness.step, harness.result).isOk());
  ASSERT_TRUE(harness.schedule->launchDone(harness.result).isOk());
  ASSERT_TRUE(harness.schedule->next(harness.step));
  ASSERT_TRUE(harness.executor.run(harness.step, harness.result).isOk());
  ASSERT_TRUE(harness.schedule->launchDone(harness.result).isOk());
  TokenEvent event;
  ASSERT_TRUE(harness.schedule->takeEvent(event));
  EXPECT_EQ(event.request, bad);
  EXPECT_EQ(event.finish, FinishReason::NonFinite);
  EXPECT_EQ(event.nonfiniteLayer, 7);
  EXPECT_EQ(event.id, -1);
  harness.run();
  EXPECT_EQ(harness.outcomes[good], generateAlone(config, request(3, 8, 2)));
}

TEST(Schedule, ANonFiniteLayerIsSeenBeforeAnythingIsSampled) {
  Harness harness(makeConfig({"b8s4", "h1"}, 1, 64));
  RequestId bad = harness.submit(request(20, 8));
  harness.executor.poison(0, 2);
  ASSERT_TRUE(harness.launch());
  EXPECT_EQ(harness.outcomes[bad].finish, FinishReason::NonFinite);
  harness.run();
  EXPECT_EQ(harness.launches.size(), 1u);
}

TEST(Schedule, CancellingIsOnceAndEndsEveryPhase) {
  ScheduleConfig config = makeConfig({"b4s2", "h2"}, 1, 64);
  Harness harness(config);
  RequestId reading = harness.submit(request(9, 4)), queued = harness.submit(request(2, 2));
  ASSERT_TRUE(harness.launch()); // 4 of 9
  EXPECT_TRUE(harness.schedule->cancel(queued).isOk());
  EXPECT_EQ(harness.schedule->cancel(queued).code(), StatusCode::NotFound);
  EXPECT_TRUE(harness.schedule->cancel(reading).isOk());
  EXPECT_EQ(harness.schedule->cancel(99).code(), StatusCode::NotFound);
  harness.run();
  EXPECT_EQ(harness.outcomes[reading].finish, FinishReason::Cancelled);
  EXPECT_EQ(harness.outcomes[queued].finish, FinishReason::Cancelled);
  EXPECT_TRUE(harness.outcomes[queued].ids.empty());
  EXPECT_EQ(harness.schedule->cancel(reading).code(), StatusCode::NotFound);
}

TEST(Schedule, ACancelBetweenBodyAndHeadFreesTheSlot) {
  ScheduleConfig config = makeConfig({"b4s2", "h2"}, 2, 64);
  Harness harness(config);
  RequestId gone = harness.submit(request(2, 4)), stays = harness.submit(request(2, 4, 2));
  ASSERT_TRUE(harness.launch());
  ASSERT_EQ(harness.schedule->stepsEnded(), 0u);
  EXPECT_TRUE(harness.schedule->cancel(gone).isOk());
  EXPECT_EQ(harness.schedule->freeSlots(), 1u);
  ASSERT_TRUE(harness.launch()) << "the head of both";
  harness.run();
  EXPECT_EQ(harness.outcomes[gone].finish, FinishReason::Cancelled);
  EXPECT_EQ(harness.outcomes[stays], generateAlone(config, request(2, 4, 2)));
}

TEST(Schedule, AnUntakenTokenOfACancelledRequestIsItsLastEvent) {
  Harness harness(makeConfig({"r4s2"}, 2, 64));
  RequestId id = harness.submit(request(2, 4));
  ASSERT_TRUE(harness.schedule->next(harness.step));
  ASSERT_TRUE(harness.executor.run(harness.step, harness.result).isOk());
  ASSERT_TRUE(harness.schedule->launchDone(harness.result).isOk());
  EXPECT_FALSE(harness.schedule->next(harness.step)) << "its event is not taken";
  ASSERT_TRUE(harness.schedule->cancel(id).isOk());
  TokenEvent event;
  ASSERT_TRUE(harness.schedule->takeEvent(event));
  EXPECT_GE(event.id, 0);
  EXPECT_EQ(event.finish, FinishReason::Cancelled);
  EXPECT_FALSE(harness.schedule->takeEvent(event));
  harness.run();
}

TEST(Schedule, DrainRunsWhatWasAccepted) {
  Harness harness(makeConfig({"r4s2"}, 1, 64));
  RequestId running = harness.submit(request(2, 3)), queued = harness.submit(request(2, 3));
  harness.schedule->drain();
  EXPECT_EQ(harness.schedule->submit(request(2, 3)).status().code(),
            StatusCode::FailedPrecondition);
  harness.run();
  EXPECT_EQ(harness.outcomes[running].ids.size(), 3u);
  EXPECT_EQ(harness.outcomes[queued].ids.size(), 3u);
}

TEST(Schedule, CompactingChangesNoResult) {
  for (uint32_t seed = 0; seed < 10; ++seed) {
    ScheduleConfig config = makeConfig({"r4s4", "b16s2", "h1", "h4"}, 4, 64);
    addWindowGroup(config, 7);
    shuffleBlocks(config, seed);
    Harness harness(config);
    std::map<RequestId, Generation> expected;
    for (uint32_t i = 0; i < 9; ++i) {
      Request each = request(3 + 5 * i, 2 + i % 4 * 3);
      RequestId id = harness.submit(each);
      expected[id] = generateAlone(config, each);
    }
    for (bool more = true; more;) {
      harness.schedule->compact();
      more = harness.launch();
      for (uint32_t g = 0; g < 2; ++g) // what the step took after the moves may lie anywhere
        EXPECT_LE(harness.schedule->blocks(g).heldBlocks(), config.groups[g].blocks);
    }
    EXPECT_EQ(harness.outcomes, expected);
    EXPECT_GT(harness.executor.moves(), 10u);
    harness.checkIdle();
  }
}

TEST(Schedule, OneStepMovesABoundedNumberOfBlocks) {
  ScheduleConfig config = makeConfig({"r1s1", "b400s1", "h1"}, 1, 404);
  for (uint32_t i = config.groups[0].blocks; i-- > 0;)
    config.groups[0].blockOrder.push_back(i); // from the back
  config.groups[0].blocks *= 2;
  for (uint32_t i = config.groups[0].blocks / 2; i < config.groups[0].blocks; ++i)
    config.groups[0].blockOrder.insert(config.groups[0].blockOrder.begin(), i);
  Harness harness(config);
  harness.submit(request(400, 3));
  ASSERT_TRUE(harness.launch());
  harness.schedule->compact();
  std::vector<size_t> moves;
  while (harness.launch())
    moves.push_back(harness.step.moves.size());
  EXPECT_THAT(moves, testing::ElementsAre(0, 64, 37)); // a head alone; 100 blocks and one more
}

// The token that a step needs stays on the device.
TEST(Schedule, TheNextStepIsOutBeforeItsTokenIsKnown) {
  ScheduleConfig config = makeConfig({"r4s2"}, 2, 64);
  Harness harness(config);
  RequestId id = harness.submit(request(2, 3));
  for (uint32_t out = 1; out <= 2; ++out) {
    ASSERT_TRUE(harness.schedule->next(harness.step));
    EXPECT_EQ(harness.step.rowId[0] < 0, out == 2);
    ASSERT_TRUE(harness.executor.submit(harness.step).isOk());
    EXPECT_EQ(harness.schedule->launchesOut(), out);
  }
  EXPECT_FALSE(harness.schedule->next(harness.step));
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(harness.executor.wait(harness.result).isOk());
    ASSERT_TRUE(harness.schedule->launchDone(harness.result).isOk());
    harness.takeEvents();
  }
  harness.run();
  EXPECT_EQ(harness.outcomes[id], generateAlone(config, request(2, 3)));
  EXPECT_EQ(harness.launches.size(), 1u) << "none for a token past the last";
}

TEST(Schedule, AStepAfterTheEndTokenIsForNothing) {
  ScheduleConfig config = makeConfig({"r4s2"}, 1, 64);
  Request ends = request(2, 20);
  ends.ignoreEndOfGeneration = false;
  while (generateAlone(config, ends).finish != FinishReason::Stop)
    ++ends.sampling.seed;
  Generation expected = generateAlone(config, ends);
  Harness harness(config);
  RequestId id = harness.submit(ends), next = harness.submit(request(3, 2));
  uint32_t done = 0;
  while (harness.outcomes[id].finish == FinishReason::None) {
    while (harness.schedule->next(harness.step))
      ASSERT_TRUE(harness.executor.submit(harness.step).isOk());
    ASSERT_TRUE(harness.executor.wait(harness.result).isOk());
    ASSERT_TRUE(harness.schedule->launchDone(harness.result).isOk());
    ++done;
    harness.takeEvents();
  }
  EXPECT_EQ(done, expected.ids.size());
  EXPECT_EQ(harness.outcomes[id], expected);
  EXPECT_EQ(harness.schedule->launchesOut(), 1u);
  EXPECT_EQ(harness.schedule->freeSlots(), 1u) << "whoever gets the slot comes after that launch";
  ASSERT_TRUE(harness.schedule->next(harness.step));
  ASSERT_TRUE(harness.executor.submit(harness.step).isOk());
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(harness.executor.wait(harness.result).isOk());
    ASSERT_TRUE(harness.schedule->launchDone(harness.result).isOk());
    harness.takeEvents();
  }
  harness.run();
  EXPECT_EQ(harness.outcomes[id], expected) << "and gives nothing";
  EXPECT_EQ(harness.outcomes[next], generateAlone(config, request(3, 2)));
}

TEST(Schedule, ATokenThatIsNotTakenHoldsTheNextOneBack) {
  Harness harness(makeConfig({"r4s2"}, 1, 64));
  harness.submit(request(2, 3));
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(harness.schedule->next(harness.step));
    ASSERT_TRUE(harness.executor.submit(harness.step).isOk());
  }
  for (StatusCode expected : {StatusCode::Ok, StatusCode::FailedPrecondition}) {
    ASSERT_TRUE(harness.executor.wait(harness.result).isOk());
    EXPECT_EQ(harness.schedule->launchDone(harness.result).code(), expected);
  }
  harness.takeEvents();
  EXPECT_TRUE(harness.schedule->launchDone(harness.result).isOk());
}

TEST(Schedule, ALaunchThatNothingFollowsIsOutAlone) {
  Harness harness(makeConfig({"r4s2"}, 1, 64));
  EXPECT_FALSE(harness.schedule->next(harness.step));
  EXPECT_EQ(harness.schedule->launchDone(harness.result).code(), StatusCode::FailedPrecondition);
  harness.submit(request(2, 1));
  ASSERT_TRUE(harness.schedule->next(harness.step));
  EXPECT_FALSE(harness.schedule->next(harness.step));
  harness.result.id[0] = 97;
  EXPECT_THAT(harness.schedule->launchDone(harness.result).message(), HasSubstr("97"));
  StepResult empty;
  EXPECT_EQ(harness.schedule->launchDone(empty).code(), StatusCode::Internal);
}

TEST(Schedule, RefusalsNameTheNumbers) {
  ScheduleConfig config = makeConfig({"r8s8"}, 2, 64);
  config.groups[0].blocks = 5;
  Harness harness(config);
  auto refusal = [&](auto change) {
    Request bad = request(4, 4);
    change(bad);
    return harness.schedule->submit(std::move(bad)).status();
  };
  EXPECT_THAT(refusal([](Request &r) { r.prompt.clear(); }).message(), HasSubstr("empty"));
  Status tooLong = refusal([](Request &r) { r.prompt = makePrompt(65, 1); });
  EXPECT_EQ(tooLong.code(), StatusCode::InvalidArgument);
  EXPECT_THAT(tooLong.message(), testing::AllOf(HasSubstr("65"), HasSubstr("64")));
  EXPECT_THAT(refusal([](Request &r) { r.prompt = makePrompt(64, 1); }).message(),
              HasSubstr("no room"));
  EXPECT_THAT(refusal([](Request &r) { r.prompt[2] = 97; }).message(),
              testing::AllOf(HasSubstr("id 97"), HasSubstr("position 2")));
  EXPECT_THAT(refusal([](Request &r) { r.prompt[0] = -1; }).message(), HasSubstr("id -1"));
  EXPECT_THAT(refusal([](Request &r) { r.maxTokens = 0; }).message(), HasSubstr("maxTokens"));
  EXPECT_THAT(refusal([](Request &r) { r.sampling.temperature = NAN; }).message(),
              HasSubstr("temperature"));
  EXPECT_THAT(refusal([](Request &r) { r.sampling.topK = -1; }).message(), HasSubstr("top-k"));
  EXPECT_THAT(refusal([](Request &r) { r.sampling.topP = 0; }).message(), HasSubstr("top-p"));
  EXPECT_THAT(refusal([](Request &r) { r.sampling.minP = 1.5f; }).message(), HasSubstr("min-p"));
  Status tooMuch = refusal([](Request &r) { r.maxTokens = 17; }); // 21 tokens: 6 blocks of 4
  EXPECT_EQ(tooMuch.code(), StatusCode::ResourceExhausted);
  EXPECT_THAT(tooMuch.message(), testing::AllOf(HasSubstr("6 blocks"), HasSubstr("5")));
  EXPECT_FALSE(harness.schedule->busy());
}

} // namespace
} // namespace strata::test
