// A stage that hangs: what the report says of every stage and handoff as they are.
#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/runtime/stage/Driver.h"

using namespace strata;
using namespace strata::test;
using namespace std::chrono_literals;

namespace {

/// Numbers of seconds such as "12.3 s" depend on the machine: each becomes "T s".
std::string withoutTimes(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    size_t number = std::min(text.find_first_not_of("0123456789."), text.size());
    bool isTime = number > 2 && text[number - 2] == '.' && text.substr(number, 2) == " s";
    if (isTime)
      result += 'T';
    else
      result += text.substr(0, std::max<size_t>(number, 1));
    text.remove_prefix(std::max<size_t>(number, 1));
  }
  return result;
}

class Stall : public testing::Test {
protected:
  void write(uint32_t stages) {
    fb::PlanT plan = tinyPlan({.stages = stages});
    ASSERT_TRUE(writeTinyPlan(folder_ / "a", plan, TinyModel()).isOk());
  }
  /// Hangs in command 2 of stage `hanging` until the end of the test.
  std::unique_ptr<Driver> boot(uint32_t hanging) {
    return std::make_unique<Driver>(
        folder_ / "a", ExecutorOptions{.threads = 1,
                                       .stall = 200ms,
                                       .observer = [this, hanging](const CommandSite &site) {
                                         if (site.stage == hanging && site.command == 2)
                                           while (!release_)
                                             std::this_thread::sleep_for(1ms);
                                       }});
  }

  TemporaryFolder folder_;
  std::atomic<bool> release_{false};
};

TEST_F(Stall, Row13OneStageNamesItsCommand) {
  write(1);
  auto driver = boot(0);
  ASSERT_TRUE(driver->isBooted()) << driver->status().toString();
  driver->fill(R2S2, {{0, {1}, true}, {1, {2}, true}});
  Launch &launch = driver->launch();
  Status status = driver->executor().run(launch.step, launch.result);
  EXPECT_EQ(status.code(), StatusCode::DeadlineExceeded);
  EXPECT_EQ(withoutTimes(status.toString()),
            "nothing has come to its end within T s; stage 's0' has run command 2 (linear 0.q), "
            "worker 0 of 1, for T s in launch 0 ('r2s2' with 2 rows, 2 sequences, 2 head rows) "
            "(forward 'r2s2', stage 's0', device 'cpu')");
  EXPECT_EQ(driver->executor().run(launch.step, launch.result).code(),
            StatusCode::FailedPrecondition);
  release_ = true;
}

// Stage 1 hangs; stage 0 has filled both slots and waits for one.
TEST_F(Stall, Row14TheReportIsOfWhatEveryStageIsAt) {
  write(2);
  auto driver = boot(1);
  ASSERT_TRUE(driver->isBooted()) << driver->status().toString();
  Launch &launch = driver->launch();
  for (int i = 0; i < 3; ++i) {
    driver->fill(R4S1, {{0, {1, 2, 3}}});
    ASSERT_TRUE(driver->executor().submit(launch.step).isOk());
  }
  Status status = driver->executor().wait(launch.result);
  EXPECT_EQ(status.code(), StatusCode::DeadlineExceeded);
  EXPECT_EQ(withoutTimes(status.toString()),
            "nothing has come to its end within T s; stage 's0' has waited for slot 0 of handoff "
            "'s0 to s1' to be freed for T s in launch 2 ('r4s1' with 3 rows, 1 sequences, 0 head "
            "rows); stage 's1' has run command 2 (linear 1.q), worker 0 of 1, for T s in launch 0 "
            "('r4s1' with 3 rows, 1 sequences, 0 head rows); handoff 's0 to s1' holds slots 0, 1 "
            "of 2; the sampled ids holds nothing (forward 'r4s1', stage 's1', device 'cpu 1')");
  release_ = true;
}

// A worker that never comes back is left behind; the process can still go on to its end.
TEST_F(Stall, AHungStageIsLeftBehind) {
  write(2);
  auto driver = boot(0);
  ASSERT_TRUE(driver->isBooted());
  driver->fill(R1S1, {{0, {1}, true}});
  Launch &launch = driver->launch();
  Status status = driver->executor().run(launch.step, launch.result);
  EXPECT_EQ(status.code(), StatusCode::DeadlineExceeded);
  auto begin = std::chrono::steady_clock::now();
  std::thread later([&] {
    std::this_thread::sleep_for(50ms);
    release_ = true;
  });
  driver.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
  later.join();
}

} // namespace
