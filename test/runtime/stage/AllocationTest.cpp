// After boot no step allocates, on the caller's thread or a worker's. malloc itself is counted.
#include <atomic>
#include <cstdlib>

#include <gtest/gtest.h>

#include "test/AllocationHook.h"
#include "test/runtime/stage/Driver.h"

namespace {
std::atomic<uint64_t> allocations{0};
} // namespace

void strata::test::onAllocation() { ++allocations; }

using namespace strata;
using namespace strata::test;

namespace {

TEST(Allocation, IsCounted) {
  uint64_t before = allocations;
  std::free(std::malloc(1));
  EXPECT_GE(allocations, before + 1);
}

TEST(Allocation, Row21NoneInAStep) {
  for (uint32_t stages : {1, 2, 4}) {
    TemporaryFolder folder;
    fb::PlanT plan = tinyPlan({.stages = stages});
    ASSERT_TRUE(writeTinyPlan(folder / "a", plan, TinyModel()).isOk());
    Driver driver(folder / "a", {.threads = 2});
    ASSERT_TRUE(driver.isBooted());
    std::vector<Driver::Part> pair = {{0, {1}, true}, {1, {2}, true}}, next = {{0, {-1}, true}},
                              chunk = {{2, {4, 5, 6, 7}}}, other = {{1, {-1}, true}};
    std::vector<int32_t> heads = {3, 0};
    uint64_t before = allocations;
    driver.run(R2S2, pair);
    driver.run(R4S1, chunk);
    driver.runHead(H2, heads);
    for (int i = 0; i < 10; ++i)
      driver.run(R1S1, next);
    for (int i = 0; i < 5 && stages > 1; ++i) { // two launches out at once
      driver.fill(R1S1, next);
      ASSERT_TRUE(driver.executor().submit(driver.launch().step).isOk());
      driver.fill(R1S1, other);
      ASSERT_TRUE(driver.executor().submit(driver.launch().step).isOk());
      for (int j = 0; j < 2; ++j)
        ASSERT_TRUE(driver.executor().wait(driver.launch().result).isOk());
    }
    EXPECT_EQ(allocations, before);
  }
}

} // namespace
