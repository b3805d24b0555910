// A stage on a device that fails or hangs: the error says where.
#include "runtime/stage/Stage.h"

#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/runtime/stage/Driver.h"

using namespace strata;
using namespace strata::test;
using namespace std::chrono_literals;
using testing::HasSubstr;

namespace {

/// Memory of the host, no kernels; fails where told to.
class FaultyDevice final : public Device {
public:
  FaultyDevice() : Device("faulty") {}
  uint32_t workers() const override { return 1; }

  Result<std::byte *> allocate(std::string_view what, uint64_t bytes) override {
    if (++calls == failingCall)
      return makeError(StatusCode::ResourceExhausted, "{} takes {} bytes", what, bytes);
    memory_.push_back(std::make_unique<std::byte[]>(bytes));
    return memory_.back().get();
  }
  Result<const std::byte *> placeConstant(std::string_view what,
                                          std::span<const std::byte> bytes) override {
    if (++calls == failingCall)
      return makeError(StatusCode::ResourceExhausted, "{} takes {} bytes", what, bytes.size());
    return bytes.data();
  }
  Result<LineId> prepare(std::string name, std::vector<DeviceCommand> commands) override {
    if (++calls == failingCall)
      return makeError(StatusCode::ResourceExhausted, "line {}", name);
    lines.push_back(std::move(commands));
    return LineId(lines.size() - 1);
  }
  Status launch(LineId line, const ItemCounts &, std::chrono::nanoseconds) override {
    return makeError(StatusCode::DeadlineExceeded, "command {} hangs", lines[line].back().op);
  }

  uint32_t calls = 0, failingCall = 0;
  std::vector<std::vector<DeviceCommand>> lines;

private:
  std::vector<std::unique_ptr<std::byte[]>> memory_;
};

class StageFault : public testing::Test {
protected:
  void SetUp() override {
    fb::PlanT plan = tinyPlan();
    ASSERT_TRUE(writeTinyPlan(folder_ / "a", plan, TinyModel()).isOk());
    auto file = PlanFile::open(folder_ / "a");
    ASSERT_TRUE(file.isOk());
    file_ = *file;
  }
  Result<std::unique_ptr<Stage>> load(FaultyDevice &device) {
    static constexpr uint32_t blocks[] = {18};
    return Stage::load(*file_, 0, device, {.rings = {}, .blockCounts = blocks});
  }

  TemporaryFolder folder_;
  std::shared_ptr<const PlanFile> file_;
};

TEST_F(StageFault, EveryFailureAtBootNamesTheStage) {
  FaultyDevice whole;
  ASSERT_TRUE(load(whole).isOk());
  ASSERT_GT(whole.calls, 10u);
  for (uint32_t call = 1; call <= whole.calls; ++call) {
    FaultyDevice device;
    device.failingCall = call;
    Status status = load(device).status();
    EXPECT_EQ(status.code(), StatusCode::ResourceExhausted);
    EXPECT_THAT(status.toString(), HasSubstr("stage 's0'"));
  }
}

TEST_F(StageFault, AHungLaunchNamesForwardAndStage) {
  FaultyDevice device;
  auto stage = load(device);
  ASSERT_TRUE(stage.isOk());
  Launch launch;
  launch.step.bucket = R2S2;
  Status status = (*stage)->run(launch.step, 1s);
  EXPECT_EQ(status.code(), StatusCode::DeadlineExceeded);
  EXPECT_EQ(status.toString(), "command sample hangs (forward 'r2s2', stage 's0')");
}

} // namespace
