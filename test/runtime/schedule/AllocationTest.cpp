// Between construction and the last token the schedule allocates nothing. malloc itself is counted.
#include <array>
#include <cstdlib>

#include <gtest/gtest.h>

#include "test/AllocationHook.h"
#include "test/runtime/schedule/Harness.h"

namespace {
uint64_t allocations = 0;
} // namespace

void strata::test::onAllocation() { ++allocations; }

namespace strata::test {
namespace {

TEST(Allocation, IsCounted) {
  uint64_t before = allocations;
  std::free(std::malloc(1));
  delete new int;
  EXPECT_GE(allocations, before + 1);
}

TEST(Allocation, NoneInStepsAndCancels) {
  ScheduleConfig config = makeConfig({"r1s1", "r4s4", "b16s8", "b32s1", "h1", "h3"}, 6, 96);
  addWindowGroup(config, 9);
  addBinaryTails(config);
  FakeExecutor executor(config);
  auto schedule = std::move(*Schedule::create(config));
  Step step = schedule->makeStep();
  StepResult result = schedule->makeResult();
  for (uint32_t i = 0; i < 60; ++i) {
    Request request;
    request.prompt = makePrompt(1 + i * 7 % 80, i);
    request.maxTokens = 1 + i % 20;
    ASSERT_TRUE(schedule->submit(std::move(request)).isOk());
  }
  ASSERT_TRUE(schedule->submitScoring(makePrompt(96, 1)).isOk());

  std::array<bool, 62> ended{}; // a refused cancel would allocate the text of its refusal
  uint64_t before = allocations, launches = 0, events = 0, cancels = 0;
  bool ok = true;
  TokenEvent event;
  while (schedule->busy() && ok) {
    if (schedule->next(step)) {
      RequestId target = ++launches / 4 + 1;
      if (launches % 16 == 0 && target <= 60 && !ended[target] && ++cancels)
        ok = schedule->cancel(target).isOk();
      ok = ok && executor.run(step, result).isOk() && schedule->launchDone(result).isOk();
    }
    for (; schedule->takeEvent(event); ++events)
      ended[event.request] = event.finish != FinishReason::None;
  }
  uint64_t counted = allocations - before;
  EXPECT_TRUE(ok);
  EXPECT_GT(launches, 100u);
  EXPECT_GT(events, 100u);
  EXPECT_GT(cancels, 3u);
  EXPECT_EQ(counted, 0u);
}

} // namespace
} // namespace strata::test
