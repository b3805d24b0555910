// A device that fails once, at every call that can: one error names the place, everything taken is
// given back, and nothing runs after it.
#include <filesystem>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/runtime/stage/Driver.h"

using namespace strata;
using namespace strata::test;
using testing::AnyOf;
using testing::HasSubstr;

namespace {

/// Calls of all devices are counted; the one of number `failing` fails, as the device it stands for
/// would.
struct Faults {
  uint32_t calls = 0;
  uint32_t failing = 0; ///< From 1; 0: none.
  uint32_t devices = 0; ///< Alive.
  std::string failed;   ///< Which call that was: "allocate".
  std::string what;     ///< What for: "the arena".
  std::string device;   ///< And whose.
  std::string command;  ///< That the device says it was at: "1: norm".
};

class FaultyDevice final : public Device {
public:
  FaultyDevice(Faults &faults, std::unique_ptr<Device> device)
      : Device(std::string(device->name())), faults_(faults), device_(std::move(device)) {
    ++faults_.devices;
  }
  ~FaultyDevice() override { --faults_.devices; }

  uint32_t workers() const override { return device_->workers(); }
  Result<std::byte *> allocate(std::string_view what, uint64_t bytes) override {
    STRATA_RETURN_IF_ERROR(call("allocate", what));
    return device_->allocate(what, bytes);
  }
  Result<const std::byte *> placeConstant(std::string_view what,
                                          std::span<const std::byte> bytes) override {
    STRATA_RETURN_IF_ERROR(call("upload", what));
    return device_->placeConstant(what, bytes);
  }
  Result<std::byte *> allocateHost(std::string_view what, uint64_t bytes) override {
    STRATA_RETURN_IF_ERROR(call("allocate", what));
    return device_->allocateHost(what, bytes);
  }
  Status write(std::byte *to, std::span<const std::byte> bytes) override {
    return device_->write(to, bytes);
  }
  Status read(std::span<std::byte> to, const std::byte *from) override {
    return device_->read(to, from);
  }
  Status loadModule(std::span<const std::byte> code) override { return device_->loadModule(code); }
  Result<LineId> prepare(std::string name, std::vector<DeviceCommand> commands) override {
    STRATA_RETURN_IF_ERROR(call("prepare", name));
    return device_->prepare(std::move(name), std::move(commands));
  }
  Status enqueue(const DeviceLaunch &launch) override {
    STRATA_RETURN_IF_ERROR(call("launch", "a line"));
    launches_.push_back(&launch);
    return device_->enqueue(launch);
  }
  Result<bool> wait(const TimelineValue &value, std::chrono::nanoseconds timeout) override {
    Status status = call("wait", "a launch");
    if (status.isOk())
      return device_->wait(value, timeout);
    for (const DeviceLaunch *launch : launches_)
      if (launch->signals.back().timeline == value.timeline &&
          launch->signals.back().value == value.value)
        failedAt_ = launch;
    faults_.command = fmt::format("1: {}", device_->op(failedAt_->line, 1));
    return status;
  }
  /// A launch that fails stays at its second command.
  DeviceActivity activity() const override {
    if (!failedAt_)
      return device_->activity();
    return {.kind = DeviceActivity::Kind::Running, .launch = failedAt_, .index = 1};
  }
  std::string_view op(LineId line, uint32_t index) const override {
    return device_->op(line, index);
  }
  void stop() override { device_->stop(); }
  bool rests(std::chrono::nanoseconds patience) override { return device_->rests(patience); }

private:
  Status call(std::string kind, std::string_view what) {
    if (++faults_.calls != faults_.failing)
      return {};
    faults_.failed = kind;
    faults_.what = what;
    faults_.device = name();
    return makeError(StatusCode::ResourceExhausted, "{} of {} fails", kind, what)
        .at("device", name());
  }

  Faults &faults_;
  std::unique_ptr<Device> device_;
  std::vector<const DeviceLaunch *> launches_;
  const DeviceLaunch *failedAt_ = nullptr;
};

size_t threadsNow() {
  std::filesystem::directory_iterator tasks("/proc/self/task");
  return size_t(std::distance(begin(tasks), end(tasks)));
}

class Fault : public testing::TestWithParam<uint32_t> {
protected:
  void SetUp() override {
    fb::PlanT plan = tinyPlan({.stages = GetParam()});
    ASSERT_TRUE(writeTinyPlan(folder_ / "a", plan, TinyModel()).isOk());
  }

  /// Boots and runs three launches, two of them out at once where there are several stages; the
  /// first error.
  Status run(Faults &faults) {
    Driver driver(folder_ / "a",
                  {.threads = 2, .wrapDevice = [&](uint32_t, std::unique_ptr<Device> device) {
                     return std::make_unique<FaultyDevice>(faults, std::move(device));
                   }});
    if (!driver.isBooted())
      return driver.status();
    PlanExecutor &executor = driver.executor();
    Launch &launch = driver.launch();
    Status status;
    uint32_t out = 0;
    for (uint32_t i = 0; i < 3 && status.isOk(); ++i) {
      driver.fill(R1S1, {{0, {int32_t(i)}, true}});
      status = executor.submit(launch.step);
      ++out;
      if (status.isOk() && (out == 2 || executor.stages() == 1)) {
        status = executor.wait(launch.result);
        --out;
      }
    }
    if (status.isOk() && out > 0)
      status = executor.wait(launch.result);
    if (!status.isOk()) {
      EXPECT_EQ(executor.submit(launch.step).code(), StatusCode::FailedPrecondition);
      EXPECT_EQ(executor.wait(launch.result).code(), StatusCode::FailedPrecondition);
    }
    return status;
  }

  TemporaryFolder folder_;
};

TEST_P(Fault, Row27AtEveryCallIsNamedAndReleasesEverything) {
  Faults none;
  Status status = run(none);
  ASSERT_TRUE(status.isOk()) << status.toString();
  size_t threads = threadsNow(); // a sanitizer has begun its own by now
  std::map<std::string, uint32_t> kinds;
  for (uint32_t call = 1; call <= none.calls; ++call) {
    Faults faults{.failing = call};
    status = run(faults);
    if (faults.failed.empty()) // waits are as many as it takes
      continue;
    ++kinds[faults.failed];
    EXPECT_EQ(status.code(), StatusCode::ResourceExhausted);
    std::string text = status.toString();
    EXPECT_THAT(text, HasSubstr(faults.failed + " of "));
    EXPECT_THAT(text, HasSubstr("device '" + faults.device + "'"));
    EXPECT_THAT(text, AnyOf(HasSubstr("stage 's"), HasSubstr("handoff 's")));
    if (faults.failed == "launch" || faults.failed == "wait" || faults.failed == "prepare") {
      EXPECT_THAT(text, HasSubstr("forward '"));
    }
    EXPECT_EQ(faults.devices, 0u);
    EXPECT_EQ(threadsNow(), threads);
  }
  for (const char *kind : {"allocate", "upload", "prepare", "launch", "wait"})
    EXPECT_GT(kinds[kind], 0u) << kind;
}

// What an error names is what failed: memory by what it is for, a launch by its stage and forward,
// and a command where the device was at one of that launch. Nothing is named twice.
TEST_P(Fault, Row22NamesWhatFailedAndNothingElse) {
  Faults none;
  ASSERT_TRUE(run(none).isOk());
  const std::string device = "device 'cpu( [0-9])?'", stage = "stage 's[0-9]'",
                    forward = "forward '[rh][0-9]+(s[0-9]+)?'", plan = "plan '[^']*'";
  for (uint32_t call = 1; call <= none.calls; ++call) {
    Faults faults{.failing = call};
    std::string text = run(faults).toString();
    if (faults.failed.empty())
      continue;
    std::string expected = fmt::format("{} of {} fails \\({}", faults.failed, faults.what, device);
    if (faults.failed == "prepare")
      expected += fmt::format(", {}, {}, {}", forward, stage, plan);
    else if (faults.failed == "launch")
      expected += fmt::format(", {}, {}", forward, stage);
    else if (faults.failed == "wait")
      expected += fmt::format(", command '{}', {}, {}", faults.command, forward, stage);
    else if (faults.what.starts_with("handoff"))
      expected += ", " + plan;
    else
      expected += fmt::format("(, {})?, {}", stage, plan);
    EXPECT_THAT(text, testing::MatchesRegex(expected + "\\)"));
  }
}

INSTANTIATE_TEST_SUITE_P(, Fault, testing::Values(1u, 2u, 4u));

} // namespace
