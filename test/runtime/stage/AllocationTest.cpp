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

TEST(Allocation, NoneInAStep) {
  for (uint32_t stages : {1, 2}) {
    TemporaryFolder folder;
    fb::PlanT plan = tinyPlan({.stages = stages});
    ASSERT_TRUE(writeTinyPlan(folder / "a", plan, TinyModel()).isOk());
    Driver driver(folder / "a", {.threads = 2});
    ASSERT_TRUE(driver.isBooted());
    std::vector<Driver::Part> pair = {{0, {1}, true}, {1, {2}, true}}, next = {{0, {-1}, true}},
                              chunk = {{2, {4, 5, 6, 7}}};
    std::vector<int32_t> heads = {3, 0};
    uint64_t before = allocations;
    driver.run(R2S2, pair);
    driver.run(R4S1, chunk);
    driver.runHead(H2, heads);
    for (int i = 0; i < 10; ++i)
      driver.run(R1S1, next);
    EXPECT_EQ(allocations, before);
  }
}

} // namespace
