// Every order of submissions, launches and cancels of small systems.
#include <optional>

#include <gtest/gtest.h>

#include "test/runtime/schedule/Choices.h"
#include "test/runtime/schedule/Harness.h"

namespace strata::test {
namespace {

struct System {
  ScheduleConfig config;
  std::vector<Request> requests;
  std::vector<Generation> alone;
};

/// One run: at each point the next request is submitted, one request is cancelled (once a run), or
/// the launch is begun or ended.
void runOnce(const System &system, Choices &choices) {
  Harness harness(system.config);
  std::vector<RequestId> ids;
  std::optional<RequestId> cancelled;
  bool out = false;
  while (true) {
    bool more = ids.size() < system.requests.size();
    uint32_t cancels = cancelled ? 0 : static_cast<uint32_t>(ids.size());
    bool idle = !out && !harness.schedule->busy();
    if (idle && !more)
      break;
    // Cancelling when nothing runs is NotFound for everyone and leads nowhere.
    uint32_t choice = choices.choose((idle ? 0 : 1 + cancels) + more);
    if (idle || choice == 1 + cancels) {
      ids.push_back(harness.submit(system.requests[ids.size()]));
    } else if (choice > 0) {
      RequestId id = ids[choice - 1];
      bool ended = harness.outcomes[id].finish != FinishReason::None;
      ASSERT_EQ(harness.schedule->cancel(id).isOk(), !ended);
      cancelled = ended ? 0 : id;
      if (!out)
        harness.takeEvents();
    } else if (!out) {
      out = harness.schedule->next(harness.step);
      ASSERT_TRUE(out) << "a busy schedule with nothing to run";
      harness.checkInvariants();
    } else {
      Status ran = harness.executor.run(harness.step, harness.result);
      ASSERT_TRUE(ran.isOk()) << ran.toString();
      ASSERT_TRUE(harness.schedule->launchDone(harness.result).isOk());
      out = false;
      harness.takeEvents();
    }
  }
  harness.checkIdle();
  for (size_t i = 0; i < ids.size(); ++i) {
    Generation expected = system.alone[i];
    if (cancelled == ids[i]) {
      expected.finish = FinishReason::Cancelled;
      expected.ids.resize(std::min(expected.ids.size(), harness.outcomes[ids[i]].ids.size()));
    }
    ASSERT_EQ(harness.outcomes[ids[i]], expected) << "request " << i;
  }
  ASSERT_TRUE(std::is_sorted(harness.firstTokens.begin(), harness.firstTokens.end()));
}

uint64_t explore(const System &system) {
  Choices choices;
  uint64_t runs = 0;
  do {
    runOnce(system, choices);
    ++runs;
  } while (!testing::Test::HasFailure() && choices.advance());
  return runs;
}

System makeSystem(const std::vector<std::string> &bucketNames, uint32_t sequences,
                  const std::vector<std::pair<uint32_t, uint32_t>> &shapes) {
  System system{makeConfig(bucketNames, sequences, 8), {}, {}};
  system.config.endOfGeneration.clear();
  system.config.groups[0] = {"kv", 0, 2, 4, 4 * sequences, {}};
  addWindowGroup(system.config, 2);
  for (auto [prompt, maxTokens] : shapes) {
    Request request;
    request.prompt = makePrompt(prompt, static_cast<uint32_t>(system.requests.size()));
    request.maxTokens = maxTokens;
    system.alone.push_back(generateAlone(system.config, request));
    system.requests.push_back(request);
  }
  return system;
}

class Exploration : public testing::TestWithParam<std::vector<std::string>> {};

TEST_P(Exploration, EveryOrderOfThreeRequestsAndACancel) {
  uint64_t runs = 0;
  for (uint32_t sequences : {1u, 2u, 3u})
    for (uint32_t second : {1u, 4u})
      for (uint32_t third : {1u, 3u}) {
        System system = makeSystem(GetParam(), sequences, {{2, 2}, {second, 1}, {third, 2}});
        runs += explore(system);
        if (HasFailure())
          return;
      }
  EXPECT_GT(runs, 1000u);
  RecordProperty("runs", std::to_string(runs));
}

TEST_P(Exploration, BlocksThatAreShort) {
  System system = makeSystem(GetParam(), 3, {{3, 3}, {4, 2}, {1, 1}});
  system.config.groups[0].blocks = 4; // the second needs 3 of them while the first has 3
  explore(system);
}

INSTANTIATE_TEST_SUITE_P(, Exploration,
                         testing::Values(std::vector<std::string>{"r1s1"},
                                         std::vector<std::string>{"r4s3"},
                                         std::vector<std::string>{"b3s2", "h1"},
                                         std::vector<std::string>{"r1s1", "r2s2", "b4s1", "h2"}));

} // namespace
} // namespace strata::test
