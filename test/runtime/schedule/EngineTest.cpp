#include "runtime/Strata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/runtime/schedule/Harness.h"

namespace strata::test {
namespace {

struct Slices {
  const ScheduleConfig *config;
  std::vector<int32_t> ids;
  uint32_t next = 0;
  uint32_t most = 0;

  static void sink(void *context, uint32_t first, uint32_t rows, std::span<const float> values) {
    auto &self = *static_cast<Slices *>(context);
    ASSERT_EQ(first, self.next);
    ASSERT_EQ(values.size(), size_t{rows} * self.config->vocabularySize);
    for (uint32_t row = 0; row < rows; ++row) {
      uint64_t hidden = hiddenAt(*self.config, self.ids, first + row);
      for (uint32_t id = 0; id < self.config->vocabularySize; ++id)
        ASSERT_EQ(values[row * self.config->vocabularySize + id], fakeLogit(hidden, id));
    }
    self.next += rows;
    self.most = std::max(self.most, rows);
  }
};

std::unique_ptr<Engine> makeEngine(const ScheduleConfig &config, FakeExecutor **fake = nullptr) {
  auto executor = std::make_unique<FakeExecutor>(config);
  if (fake)
    *fake = executor.get();
  auto engine = Engine::create(std::move(executor), config, /*trace=*/true);
  EXPECT_TRUE(engine.isOk()) << engine.status().toString();
  return std::move(*engine);
}

Request request(uint32_t length, uint32_t maxTokens) {
  return {.prompt = makePrompt(length, 3),
          .maxTokens = maxTokens,
          .sampling = {},
          .ignoreEndOfGeneration = true};
}

TEST(Engine, LogitsAtEveryPositionInEverySetOfBuckets) {
  for (const BucketSet &set : bucketSets()) {
    ScheduleConfig config = makeConfig(set.buckets, 2, 120);
    addWindowGroup(config, 9);
    addBinaryTails(config);
    auto engine = makeEngine(config);
    for (uint32_t length : {1u, 2u, 31u, 33u, 119u, 120u}) {
      Slices slices{&config, makePrompt(length, 5)};
      Status status = engine->logits(slices.ids, Slices::sink, &slices);
      ASSERT_TRUE(status.isOk()) << status.toString();
      EXPECT_EQ(slices.next, length) << set.name;
      EXPECT_FALSE(engine->busy());
    }
  }
}

TEST(Engine, LogitsRefusals) {
  ScheduleConfig config = makeConfig({"r8s4"}, 2, 32);
  FakeExecutor *fake = nullptr;
  auto engine = makeEngine(config, &fake);
  Slices slices{&config, makePrompt(33, 5)};
  EXPECT_EQ(engine->logits(slices.ids, Slices::sink, &slices).code(), StatusCode::InvalidArgument);
  EXPECT_EQ(engine->logits({}, Slices::sink, &slices).code(), StatusCode::InvalidArgument);
  slices.ids.resize(12);
  fake->poison(0, 3);
  EXPECT_THAT(engine->logits(slices.ids, Slices::sink, &slices).message(),
              testing::HasSubstr("layer 3"));
  EXPECT_FALSE(engine->busy());
  ASSERT_TRUE(engine->submit(request(2, 2)).isOk());
  EXPECT_EQ(engine->logits(slices.ids, Slices::sink, &slices).code(),
            StatusCode::FailedPrecondition);
}

TEST(Engine, PollEndsOneStepWithItsHead) {
  ScheduleConfig config = makeConfig({"b8s4", "h2", "r1s1"}, 4, 64);
  auto engine = makeEngine(config);
  ASSERT_TRUE(engine->submit(request(3, 2)).isOk());
  TokenEvent events[8];
  auto count = engine->poll(events);
  ASSERT_TRUE(count.isOk());
  EXPECT_EQ(*count, 1u);
  EXPECT_THAT(engine->launches(), testing::ElementsAre(0u, 1u, 2u)) << "the next one is under way";
  count = engine->poll(events);
  EXPECT_EQ(*count, 1u);
  EXPECT_EQ(events[0].finish, FinishReason::Length);
  EXPECT_FALSE(engine->busy());
  EXPECT_EQ(*engine->poll(events), 0u);
  EXPECT_EQ(engine->launches().size(), 3u);
}

TEST(Engine, EventsWithoutRoomComeBeforeTheNextStep) {
  ScheduleConfig config = makeConfig({"r8s4"}, 4, 64);
  auto engine = makeEngine(config);
  std::vector<RequestId> ids;
  std::map<RequestId, Generation> outcomes;
  for (int i = 0; i < 7; ++i)
    ids.push_back(*engine->submit(request(2, 5)));
  ASSERT_TRUE(engine->cancel(ids[5]).isOk());
  ASSERT_TRUE(engine->cancel(ids[6]).isOk());
  EXPECT_EQ(engine->poll({}).status().code(), StatusCode::InvalidArgument);
  TokenEvent event[1];
  while (engine->busy()) {
    auto count = engine->poll(event);
    ASSERT_TRUE(count.isOk()) << count.status().toString();
    if (*count == 0)
      continue;
    if (event->id >= 0)
      outcomes[event->request].ids.push_back(event->id);
    outcomes[event->request].finish = event->finish;
  }
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(outcomes[ids[i]], generateAlone(config, request(2, 5)));
  EXPECT_EQ(outcomes[ids[6]].finish, FinishReason::Cancelled);
}

TEST(Engine, ADeviceErrorEndsIt) {
  ScheduleConfig config = makeConfig({"r8s4"}, 4, 64);
  FakeExecutor *fake = nullptr;
  auto engine = makeEngine(config, &fake);
  ASSERT_TRUE(engine->submit(request(2, 5)).isOk());
  fake->failWith(Status(StatusCode::DeadlineExceeded, "the card hung"));
  TokenEvent events[8];
  EXPECT_EQ(engine->poll(events).status().message(), "the card hung");
  fake->failWith(Status::ok());
  EXPECT_EQ(engine->poll(events).status().message(), "the card hung");
}

} // namespace
} // namespace strata::test
