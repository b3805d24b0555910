// A sequence's ids do not depend on how it was cut, batched or placed: each equals the one that the
// fake model generates alone.
#include <random>

#include <gtest/gtest.h>

#include "test/runtime/schedule/Harness.h"

namespace strata::test {
namespace {

struct Variant {
  BucketSet set;
  bool window;
  bool tails;
};

std::vector<Variant> variants() {
  std::vector<Variant> all;
  for (const BucketSet &set : bucketSets())
    for (bool window : {false, true})
      for (bool tails : {false, true})
        all.push_back({set, window, tails});
  return all;
}

class Sequences : public testing::TestWithParam<Variant> {
protected:
  ScheduleConfig makeVariant(uint32_t sequences, uint32_t context) const {
    ScheduleConfig config = makeConfig(GetParam().set.buckets, sequences, context);
    if (GetParam().window)
      addWindowGroup(config, 7);
    if (GetParam().tails)
      addBinaryTails(config);
    shuffleBlocks(config, 11);
    return config;
  }
};

Request randomRequest(std::mt19937 &random, uint32_t longest, uint32_t maxTokens) {
  Request request;
  request.prompt = makePrompt(1 + random() % longest, random());
  request.maxTokens = 1 + random() % maxTokens;
  request.sampling.seed = random();
  request.ignoreEndOfGeneration = random() % 4 == 0;
  return request;
}

TEST_P(Sequences, EveryPromptLength) {
  ScheduleConfig config = makeVariant(1, 208);
  Harness harness(config);
  for (uint32_t length = 1; length <= 200; ++length) {
    Request request;
    request.prompt = makePrompt(length, length);
    request.maxTokens = 4;
    RequestId id = harness.submit(request);
    harness.run();
    ASSERT_EQ(harness.outcomes[id], generateAlone(config, request)) << "prompt of " << length;
  }
}

TEST_P(Sequences, TwoAndFiveAtOnce) {
  for (uint32_t sequences : {2u, 5u}) {
    ScheduleConfig config = makeVariant(sequences, 96);
    Harness harness(config);
    std::mt19937 random(sequences);
    for (int round = 0; round < 10; ++round) {
      std::map<RequestId, Request> requests;
      for (uint32_t i = 0; i < sequences; ++i) {
        Request request = randomRequest(random, 80, 20);
        requests[harness.submit(request)] = request;
      }
      harness.run();
      for (const auto &[id, request] : requests)
        ASSERT_EQ(harness.outcomes[id], generateAlone(config, request));
    }
    EXPECT_TRUE(std::is_sorted(harness.firstTokens.begin(), harness.firstTokens.end()));
  }
}

TEST_P(Sequences, RandomArrivalsAndCancels) {
  ScheduleConfig config = makeVariant(4, 64);
  config.groups[0].blocks = 33; // two long sequences at most: admission waits for blocks too
  config.groups[0].blockOrder.clear();
  Harness harness(config);
  std::mt19937 random(2024);
  std::map<RequestId, Request> requests;
  std::map<RequestId, bool> cancelled;
  while (requests.size() < 200 || harness.schedule->busy()) {
    if (requests.size() < 200 && random() % 3 == 0) {
      Request request = randomRequest(random, 60, 12);
      requests[harness.submit(request)] = request;
    }
    if (!requests.empty() && random() % 8 == 0) {
      RequestId id = 1 + random() % requests.size();
      bool found = harness.schedule->cancel(id).isOk();
      ASSERT_EQ(found, harness.outcomes[id].finish == FinishReason::None && !cancelled[id]);
      cancelled[id] |= found;
    }
    harness.takeEvents();
    harness.launch();
    ASSERT_FALSE(HasFailure());
  }
  harness.run();
  int completed = 0;
  for (const auto &[id, request] : requests) {
    Generation alone = generateAlone(config, request);
    if (cancelled[id]) {
      EXPECT_EQ(harness.outcomes[id].finish, FinishReason::Cancelled);
      alone.ids.resize(harness.outcomes[id].ids.size());
      alone.finish = FinishReason::Cancelled;
    } else {
      ++completed;
    }
    ASSERT_EQ(harness.outcomes[id], alone) << "request " << id;
  }
  EXPECT_GT(completed, 50);
  EXPECT_LT(completed, 200);
  EXPECT_TRUE(std::is_sorted(harness.firstTokens.begin(), harness.firstTokens.end()));
}

INSTANTIATE_TEST_SUITE_P(, Sequences, testing::ValuesIn(variants()), [](const auto &info) {
  return std::string(info.param.set.name) + (info.param.window ? "Window" : "") +
         (info.param.tails ? "Tails" : "");
});

} // namespace
} // namespace strata::test
