#include "runtime/schedule/Replay.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/runtime/schedule/Harness.h"

namespace strata::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr ReplayLimits limits{97, 64};

TEST(Replay, ReadsEveryKey) {
  auto parsed = parseReplay("# a trace\n"
                            "{\"prompt\": [1, 2, 96]}\r\n"
                            "\n"
                            R"({"arrival": 3, "prompt_length": 5, "seed": 9, "max_tokens": 4,)"
                            R"( "temperature": 0.5, "top_k": 3, "top_p": 0.9, "min_p": 0.1,)"
                            R"( "ignore_eos": true, "cancel": 7})",
                            limits);
  ASSERT_TRUE(parsed.isOk()) << parsed.status().toString();
  ASSERT_EQ(parsed->size(), 2u);
  const ReplayRequest &first = (*parsed)[0], &second = (*parsed)[1];
  EXPECT_THAT(first.request.prompt, ElementsAre(1, 2, 96));
  EXPECT_EQ(first.arrival, 0u);
  EXPECT_FALSE(first.cancel);
  EXPECT_EQ(second.arrival, 3u);
  EXPECT_EQ(second.cancel, 7u);
  EXPECT_EQ(second.request.prompt.size(), 5u);
  EXPECT_EQ(second.request.maxTokens, 4u);
  EXPECT_EQ(second.request.sampling.temperature, 0.5f);
  EXPECT_EQ(second.request.sampling.topK, 3);
  EXPECT_EQ(second.request.sampling.topP, 0.9f);
  EXPECT_EQ(second.request.sampling.minP, 0.1f);
  EXPECT_EQ(second.request.sampling.seed, 9u);
  EXPECT_TRUE(second.request.ignoreEndOfGeneration);
}

TEST(Replay, DrawnPromptsDependOnTheSeedAlone) {
  auto prompt = [](int seed) {
    auto parsed = parseReplay(fmt::format(R"({{"prompt_length": 20, "seed": {}}})", seed), limits);
    return (*parsed)[0].request.prompt;
  };
  EXPECT_EQ(prompt(1), prompt(1));
  EXPECT_NE(prompt(1), prompt(2));
  for (int32_t id : prompt(3))
    EXPECT_TRUE(id >= 0 && id < 97);
}

TEST(Replay, BadLinesAreNamed) {
  auto refusal = [](std::string line) {
    auto parsed = parseReplay("{\"prompt\": [1]}\n\n" + line + "\n", limits);
    return parsed.isOk() ? std::string("accepted") : parsed.status().toString();
  };
  EXPECT_THAT(refusal("{"), HasSubstr("line 3: not a JSON object"));
  EXPECT_THAT(refusal("[1]"), HasSubstr("line 3: not a JSON object"));
  EXPECT_THAT(refusal("{}"), AllOf(HasSubstr("line 3"), HasSubstr("prompt_length")));
  EXPECT_THAT(refusal(R"({"prompt": [1], "prompt_length": 2})"), HasSubstr("exactly one"));
  EXPECT_THAT(refusal(R"({"prompt": []})"), HasSubstr("1 to 64"));
  EXPECT_THAT(refusal(R"({"prompt": "text"})"), HasSubstr("\"text\""));
  EXPECT_THAT(refusal(R"({"prompt": [97]})"), HasSubstr("holds 97"));
  EXPECT_THAT(refusal(R"({"prompt": [-1]})"), HasSubstr("holds -1"));
  EXPECT_THAT(refusal(R"({"prompt": [1.5]})"), HasSubstr("holds 1.5"));
  EXPECT_THAT(refusal(R"({"prompt_length": 4000000000})"), HasSubstr("1 to 64"));
  EXPECT_THAT(refusal(R"({"prompt": [1], "max_tokens": 0})"), HasSubstr("'max_tokens' is 0"));
  EXPECT_THAT(refusal(R"({"prompt": [1], "temperature": "hot"})"), HasSubstr("'temperature'"));
  EXPECT_THAT(refusal(R"({"prompt": [1], "ignore_eos": 1})"), HasSubstr("'ignore_eos'"));
  EXPECT_THAT(refusal(R"({"prompt": [1], "arrival": 5, "cancel": 4})"), HasSubstr("'cancel' is 4"));
  EXPECT_THAT(refusal(R"({"prompt": [1], "top_kk": 4})"), HasSubstr("key 'top_kk' is not known"));
  EXPECT_EQ(refusal(R"({"prompt": [1], "cancel": null})"), "accepted");
}

TEST(Replay, AMissingFileIsNamed) {
  EXPECT_EQ(loadReplay("no-such-trace.jsonl", limits).status().code(), StatusCode::NotFound);
}

TEST(Replay, TwoHundredRequestsEqualThoseGeneratedAlone) {
  ScheduleConfig config = makeConfig({"r1s1", "r4s4", "b16s4", "b32s1", "h1", "h4"}, 4, 64);
  addWindowGroup(config, 9);
  addBinaryTails(config);
  shuffleBlocks(config, 5);
  auto engine = Engine::create(std::make_unique<FakeExecutor>(config), config);
  ASSERT_TRUE(engine.isOk()) << engine.status().toString();

  std::mt19937 random(7);
  std::vector<ReplayRequest> requests(200);
  for (ReplayRequest &entry : requests) {
    entry.arrival = random() % 900;
    if (random() % 4 == 0)
      entry.cancel = entry.arrival + random() % 20;
    entry.request.prompt = makePrompt(1 + random() % 50, random());
    entry.request.maxTokens = 1 + random() % 13;
    entry.request.sampling.seed = random();
  }
  requests.back().arrival = 1'000'000'000'000; // steps without work are skipped
  requests.back().cancel.reset();
  auto outcomes = replay(**engine, requests);
  ASSERT_TRUE(outcomes.isOk()) << outcomes.status().toString();
  int cancelled = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    const ReplayOutcome &outcome = (*outcomes)[i];
    Generation alone = generateAlone(config, requests[i].request);
    if (outcome.finish == FinishReason::Cancelled) {
      ++cancelled;
      EXPECT_TRUE(requests[i].cancel);
      ASSERT_LE(outcome.ids.size(), alone.ids.size());
      alone.ids.resize(outcome.ids.size());
      alone.finish = FinishReason::Cancelled;
    }
    EXPECT_EQ(outcome.ids, alone.ids);
    EXPECT_EQ(outcome.finish, alone.finish);
    EXPECT_GE(outcome.finishedStep, requests[i].arrival);
  }
  EXPECT_GT(cancelled, 10);
  EXPECT_LT(cancelled, 60);
}

TEST(Replay, ARefusedRequestIsNamed) {
  ScheduleConfig config = makeConfig({"r4s4"}, 4, 64);
  auto engine = Engine::create(std::make_unique<FakeExecutor>(config), config);
  std::vector<ReplayRequest> requests(3);
  requests[0].request.prompt = requests[1].request.prompt = {1};
  EXPECT_THAT(replay(**engine, requests).status().toString(),
              AllOf(HasSubstr("empty"), HasSubstr("request '2'")));
}

} // namespace
} // namespace strata::test
