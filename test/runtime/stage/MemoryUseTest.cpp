// Commands touch what their slots say and nothing else, and the arena is used to its last byte.
#include <vector>

#include <gtest/gtest.h>

#include "test/runtime/stage/Driver.h"
#include "test/runtime/stage/MemoryWatch.h"

using namespace strata;
using namespace strata::test;

namespace {

void runEverything(Driver &driver) {
  driver.run(R2S2, {{0, {1}, true}, {1, {2}, true}});
  driver.run(R1S1, {{0, {-1}, true}});
  driver.run(R4S1, {{2, {4, 5, 6, 7}}});
  driver.runHead(H2, {3, 0});
  driver.runHead(H1, {1});
}

#if defined(__SANITIZE_ADDRESS__)

TEST(MemoryUse, NothingButOperandsIsTouched) {
  for (uint32_t stages : {1, 2}) {
    TemporaryFolder folder;
    fb::PlanT plan = tinyPlan({.stages = stages});
    ASSERT_TRUE(writeTinyPlan(folder / "a", plan, TinyModel()).isOk());
    Poisoner poisoner;
    Driver *booted = nullptr;
    Driver driver(folder / "a", {.threads = 2, .observer = [&](const CommandSite &site) {
                                   poisoner(booted->executor(), site);
                                 }});
    ASSERT_TRUE(driver.isBooted()) << driver.status().toString();
    booted = &driver;
    runEverything(driver);
    EXPECT_GT(poisoner.commands, 50u);
  }
}

// The check above can fail: a command that reads past what it is given is caught.
TEST(MemoryUseDeathTest, ATouchedNeighbourIsFound) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  TemporaryFolder folder;
  fb::PlanT plan = tinyPlan();
  ASSERT_TRUE(writeTinyPlan(folder / "a", plan, TinyModel()).isOk());
  auto run = [&] {
    Poisoner poisoner;
    Driver *booted = nullptr;
    auto halveTheFirst = [&](const CommandSite &site) {
      std::vector<Operand> operands(site.operands.begin(), site.operands.end());
      if (!operands.empty())
        operands.front().bytes /= 2;
      CommandSite said = site;
      said.operands = operands;
      poisoner(booted->executor(), said);
    };
    Driver driver(folder / "a", {.threads = 1, .observer = halveTheFirst});
    booted = &driver;
    driver.run(R1S1, {{0, {1}, true}});
  };
  EXPECT_DEATH(run(), "use-after-poison");
}

#endif

// With a full bucket the peak read from the pattern that a launch leaves is the plan's.
TEST(MemoryUse, Row15HighWaterMarkIsThePlannedPeak) {
  for (uint32_t stages : {1, 2}) {
    TemporaryFolder folder;
    fb::PlanT plan = tinyPlan({.stages = stages});
    ASSERT_TRUE(writeTinyPlan(folder / "a", plan, TinyModel()).isOk());
    HighWater water;
    for (std::byte pattern : {std::byte{0xA5}, std::byte{0x5A}}) {
      water.pattern = pattern;
      Driver *booted = nullptr;
      Driver driver(folder / "a", {.threads = 2, .observer = [&](const CommandSite &site) {
                                     water(booted->executor(), site);
                                   }});
      ASSERT_TRUE(driver.isBooted()) << driver.status().toString();
      booted = &driver;
      runEverything(driver);
    }
    for (uint32_t s = 0; s < stages; ++s)
      for (auto &forward : plan.stages[s]->forwards)
        EXPECT_EQ(water.mark(s, forward->bucket), forward->peak)
            << "stage " << s << ", bucket " << forward->bucket;
  }
}

} // namespace
