// What a GPU's driver refuses is reported once, where it happened, and what was taken is released:
// on a driver of the test's own, which fails at every call in turn.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/device/cuda/Driver.h"
#include "test/runtime/device/FakeDriver.h"

namespace strata::cuda {
namespace {

using namespace std::chrono_literals;
using test::driverObjects, test::injectFault, test::removeFault, test::resetDriver;
using testing::AllOf, testing::HasSubstr, testing::Not;

constexpr uint64_t gpuBytes = 1 << 20;
constexpr float first = 3;

DeviceCommand command(const char *function, const std::byte *memory) {
  DeviceCommand command;
  command.op = function;
  command.kernel = "scale";
  command.slots = {reinterpret_cast<uint64_t>(memory + 256)};
  command.validRows = reinterpret_cast<uint64_t>(memory);
  command.code = {function, 1, 1, 32, 1024};
  return command;
}

/// A device with what a stage needs, and a line of every kind.
struct Stage {
  std::unique_ptr<Device> device;
  std::byte *memory = nullptr, *host = nullptr;
  LineId sound = 0, faulty = 0;
  Timeline ended;

  Status open(bool useGraphs) {
    STRATA_ASSIGN_OR_RETURN(
        device, createCudaDevice("cuda:0", 0, "cuda:sm_90", {.depth = 2, .useGraphs = useGraphs}));
    STRATA_RETURN_IF_ERROR(device->loadModule({}));
    STRATA_ASSIGN_OR_RETURN(memory, device->allocate("rows", 4096));
    STRATA_ASSIGN_OR_RETURN(host, device->allocateHost("host", 4096));
    return {};
  }

  Status prepare() {
    STRATA_ASSIGN_OR_RETURN(
        sound, device->prepare("sound line", {command("twice", memory), command("twice", memory)}));
    STRATA_ASSIGN_OR_RETURN(faulty, device->prepare("faulty line", {command("faulty", memory)}));
    device->lock();
    uint32_t valid = 1;
    return device->write(memory, std::as_bytes(std::span(&valid, 1)));
  }

  /// What the line of two makes of `first`.
  Result<float> run(uint32_t number) {
    std::memcpy(host, &first, sizeof first);
    DeviceLaunch launch{.line = sound,
                        .copiesIn = {{memory + 256, host, 4}, {memory + 512, nullptr, 64}},
                        .copiesOut = {{host + 64, memory + 256, 4}},
                        .signals = {{&ended, number}}};
    STRATA_RETURN_IF_ERROR(device->enqueue(launch));
    STRATA_ASSIGN_OR_RETURN(bool isOver, device->wait({&ended, number}, 20s));
    if (!isOver)
      return makeError(StatusCode::DeadlineExceeded, "the launch does not end");
    float found = 0;
    STRATA_RETURN_IF_ERROR(
        device->read(std::as_writable_bytes(std::span(&found, 1)), memory + 256));
    float copied = 0;
    std::memcpy(&copied, host + 64, sizeof copied);
    EXPECT_EQ(copied, found);
    return found;
  }
};

/// All of it, from the start to two launches; no fault strikes once it is over.
Status runAll(bool useGraphs, bool &hasStruck) {
  Stage stage;
  Status status = [&]() -> Status {
    STRATA_RETURN_IF_ERROR(stage.open(useGraphs));
    STRATA_RETURN_IF_ERROR(stage.prepare());
    for (uint32_t number : {1, 2}) {
      STRATA_ASSIGN_OR_RETURN(float found, stage.run(number));
      EXPECT_EQ(found, 4 * first);
    }
    return {};
  }();
  hasStruck = removeFault();
  return status;
}

TEST(CudaFault, Row20WhatIsRefusedDoesNotComeUpAgain) {
  resetDriver(gpuBytes);
  Stage stage;
  ASSERT_TRUE(stage.open(true).isOk());
  Status refused = stage.device->allocate("state 'kv'", 2 * gpuBytes).status();
  EXPECT_EQ(refused.code(), StatusCode::ResourceExhausted);
  EXPECT_THAT(refused.toString(), AllOf(HasSubstr("state 'kv' takes 2097152 bytes"),
                                        HasSubstr("the GPU has 1044480 left of 1048576")));
  EXPECT_TRUE(stage.device->allocate("state 'kv'", gpuBytes / 2).isOk());
  Status status = stage.prepare();
  ASSERT_TRUE(status.isOk()) << status.toString();
  // Nor does one of a copy, which the host asks for beside the launches.
  injectFault({"cuMemcpyDtoH"});
  EXPECT_EQ(stage.run(1).status().code(), StatusCode::Internal);
  EXPECT_TRUE(removeFault());
  for (uint32_t number : {2, 3}) {
    Result<float> found = stage.run(number);
    ASSERT_TRUE(found.isOk()) << found.status().toString();
    EXPECT_EQ(*found, 4 * first);
  }
}

// A GPU that has faulted refuses every call: the one that says so first is a later launch's, which
// is not at fault.
TEST(CudaFault, Row20AFaultIsTheLaunchsThatMadeIt) {
  resetDriver(gpuBytes);
  Stage stage;
  ASSERT_TRUE(stage.open(true).isOk());
  ASSERT_TRUE(stage.prepare().isOk());
  Timeline gate;
  DeviceLaunch wrong{.line = stage.faulty, .waits = {{&gate, 1}}, .signals = {{&stage.ended, 1}}};
  DeviceLaunch behind{.line = stage.sound, .signals = {{&stage.ended, 2}}};
  ASSERT_TRUE(stage.device->enqueue(wrong).isOk());
  ASSERT_TRUE(stage.device->enqueue(behind).isOk());
  gate.advance(1);
  auto names =
      AllOf(HasSubstr("ILLEGAL_ADDRESS"), HasSubstr("faulty line"), Not(HasSubstr("sound line")));
  for (uint32_t number : {1, 2})
    EXPECT_THAT(stage.device->wait({&stage.ended, number}, 20s).status().toString(), names);
  EXPECT_THAT(stage.device->enqueue(behind).toString(), names);
}

// What a message has of a call that fails, where it is not the call's name.
std::string saidOf(std::string_view call) {
  if (call == "cuEventQuery")
    return "running the line";
  if (call == "cuStreamSynchronize")
    return "running the kernel";
  if (call == "cuModuleGetFunction")
    return "has no function";
  if (call == "cuFuncGetParamInfo")
    return "does not take the 16 bytes";
  return std::string(call);
}

TEST(CudaFault, Row27AtEveryCallIsNamedAndReleasesEverything) {
#define STRATA_NAME(name) #name,
  constexpr const char *calls[] = {STRATA_DRIVER_FUNCTIONS(STRATA_NAME)};
#undef STRATA_NAME
  for (bool useGraphs : {true, false}) {
    uint32_t faults = 0;
    for (const char *call : calls)
      for (uint32_t number = 0;; ++number) {
        SCOPED_TRACE(fmt::format("{} {}, {} graphs", call, number, useGraphs ? "with" : "without"));
        resetDriver(gpuBytes);
        injectFault({call, number});
        bool hasStruck = false;
        Status status = runAll(useGraphs, hasStruck);
        EXPECT_EQ(driverObjects(), 0);
        if (!hasStruck) {
          EXPECT_TRUE(status.isOk()) << status.toString();
          break;
        }
        EXPECT_THAT(status.toString(), HasSubstr(saidOf(call)));
        ++faults;
        ASSERT_LT(number, 100u);
      }
    EXPECT_GT(faults, 40u);
  }
}

} // namespace
} // namespace strata::cuda
