// Commands touch what their slots say and nothing else, and the arena is used to its last byte.
#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "test/runtime/stage/Driver.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

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

/// Poisons a stage's memory except what the command about to run is given. AddressSanitizer tells
/// the parts of an 8-byte granule apart only at its end, so what a poisoned granule holds of a
/// neighbour stays readable; the planned places are multiples of that.
class Poisoner {
public:
  void operator()(const PlanExecutor &executor, const CommandSite &site) {
    const StageMemory &memory = executor.stage(site.stage).memory();
    auto forEach = [&](auto apply) {
      for (std::span<const std::byte> part :
           {std::span<const std::byte>(memory.arena), std::span<const std::byte>(memory.scratch),
            std::span<const std::byte>(memory.step), std::span<const std::byte>(memory.out),
            std::span<const std::byte>(memory.table)})
        apply(part.data(), part.size());
      for (auto &state : memory.states)
        apply(state.data(), state.size());
      for (auto &segment : memory.segments)
        apply(segment.data(), segment.size());
    };
    if (site.operands.empty()) { // the forward is over
      forEach([](const void *data, size_t bytes) { __asan_unpoison_memory_region(data, bytes); });
      return;
    }
    forEach([](const void *data, size_t bytes) { __asan_poison_memory_region(data, bytes); });
    for (const Operand &operand : site.operands)
      for (uint32_t i = 0; i < operand.count; ++i)
        __asan_unpoison_memory_region(operand.begin + i * operand.stride, operand.bytes);
    ++commands;
  }
  uint32_t commands = 0;
};

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

/// The last byte of the arena that differs from `pattern`, plus one.
uint64_t highWater(std::span<const std::byte> arena, std::byte pattern) {
  auto last = std::find_if(arena.rbegin(), arena.rend(), [&](std::byte b) { return b != pattern; });
  return uint64_t(arena.rend() - last);
}

// With a full bucket the peak read from the pattern that a launch leaves is the plan's.
TEST(MemoryUse, HighWaterMarkIsThePlannedPeak) {
  for (uint32_t stages : {1, 2}) {
    TemporaryFolder folder;
    fb::PlanT plan = tinyPlan({.stages = stages});
    ASSERT_TRUE(writeTinyPlan(folder / "a", plan, TinyModel()).isOk());
    // Two patterns: a byte that happens to be written with one of them shows under the other.
    std::map<std::pair<uint32_t, uint32_t>, uint64_t> marks;
    for (std::byte pattern : {std::byte{0xA5}, std::byte{0x5A}}) {
      Driver *booted = nullptr;
      Driver driver(folder / "a", {.threads = 2, .observer = [&](const CommandSite &site) {
                                     std::span<std::byte> arena =
                                         booted->executor().stage(site.stage).memory().arena;
                                     if (site.command == 0)
                                       std::ranges::fill(arena, pattern);
                                     if (!site.operands.empty())
                                       return;
                                     uint64_t &mark = marks[{site.stage, site.bucket}];
                                     mark = std::max(mark, highWater(arena, pattern));
                                   }});
      ASSERT_TRUE(driver.isBooted()) << driver.status().toString();
      booted = &driver;
      runEverything(driver);
    }
    for (uint32_t s = 0; s < stages; ++s)
      for (auto &forward : plan.stages[s]->forwards)
        EXPECT_EQ((marks[{s, forward->bucket}]), forward->peak)
            << "stage " << s << ", bucket " << forward->bucket;
  }
}

} // namespace
