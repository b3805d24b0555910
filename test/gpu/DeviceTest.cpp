// The GPU as a device: the same promises as the CPU's (test/runtime/device). Runs on a GPU, by
// test/gpu/run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen/cuda/compile/Nvrtc.h"
#include "codegen/targets/cuda/CudaTarget.h"
#include "runtime/device/cuda/CudaDevice.h"

namespace strata::cuda {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

std::unique_ptr<Device> makeDevice(const CudaOptions &options = {}) {
  auto device = createCudaDevice("cuda:0", 0, "cuda:sm_90", options);
  EXPECT_TRUE(device.isOk()) << device.status().toString();
  return std::move(*device);
}

TEST(CudaDevice, MemoryIsZeroedAlignedAndEndsAtReady) {
  auto device = makeDevice();
  auto memory = device->allocate("the arena", 5000);
  ASSERT_TRUE(memory.isOk()) << memory.status().toString();
  EXPECT_EQ(reinterpret_cast<uint64_t>(*memory) % 256, 0u);
  std::vector<std::byte> found(5000, std::byte{1});
  ASSERT_TRUE(device->read(found, *memory).isOk());
  EXPECT_EQ(found, std::vector<std::byte>(5000));
  EXPECT_EQ(device->takenBytes(), 8192u);
  device->lock();
  Status late = device->allocate("the arena", 64).status();
  EXPECT_EQ(late.code(), StatusCode::Internal);
  EXPECT_THAT(late.toString(), HasSubstr("the arena asks for 64 bytes after READY"));
}

TEST(CudaDevice, WhatDoesNotFitIsNamed) {
  auto device = makeDevice();
  Status status = device->allocate("state 'kv'", uint64_t(1) << 42).status();
  EXPECT_EQ(status.code(), StatusCode::ResourceExhausted);
  EXPECT_THAT(status.toString(), HasSubstr("state 'kv' takes 4398046511104 bytes"));
}

TEST(CudaDevice, RefusesAnotherArchitecturesCode) {
  Status status = createCudaDevice("cuda:0", 0, "cuda:sm_80", {}).status();
  EXPECT_EQ(status.code(), StatusCode::FailedPrecondition);
  EXPECT_THAT(status.toString(), HasSubstr("compiled for cuda:sm_80"));
  EXPECT_EQ(createCudaDevice("cuda:99", 99, "cuda:sm_90", {}).status().code(),
            StatusCode::FailedPrecondition);
}

constexpr const char *twice = R"(
struct Slots { unsigned long long at[1]; const unsigned *valid; };
extern "C" __global__ void twice(const __grid_constant__ Slots slots) {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  float *x = reinterpret_cast<float *>(slots.at[0]);
  if (threadIdx.x < *slots.valid)
    x[threadIdx.x] *= 2;
}
extern "C" __global__ void wrong(int) {}
)";

// Ten times the double of what is copied in, through copies, a line of ten, and copies back; the
// launches of two devices wait for one another by timelines.
TEST(CudaDevice, RunsLinesInOrderOnBothWays) {
  auto code = compileModule(twice, cudaSm90);
  ASSERT_TRUE(code.isOk()) << code.status().toString();
  for (bool useGraphs : {true, false}) {
    auto device = makeDevice({.depth = 2, .useGraphs = useGraphs});
    ASSERT_TRUE(device->loadModule(std::as_bytes(std::span(*code))).isOk());
    auto memory = device->allocate("rows", 4096), host = device->allocateHost("host", 4096);
    ASSERT_TRUE(memory.isOk() && host.isOk());
    auto *count = reinterpret_cast<uint32_t *>(*host);
    auto *values = reinterpret_cast<float *>(*host + 256);
    *count = 7;
    for (int i = 0; i < 8; ++i)
      values[i] = float(i + 1);
    DeviceCommand command;
    command.op = command.kernel = "twice";
    command.slots = {reinterpret_cast<uint64_t>(*memory + 256)};
    command.validRows = reinterpret_cast<uint64_t>(*memory);
    command.code = {"twice", 1, 1, 32, 0};
    auto line = device->prepare("ten", std::vector<DeviceCommand>(10, command));
    ASSERT_TRUE(line.isOk()) << line.status().toString();
    device->lock();
    Timeline gate, ended;
    DeviceLaunch launch{.line = *line,
                        .waits = {{&gate, 1}},
                        .copiesIn = {{*memory, *host, 512}},
                        .copiesOut = {{*host + 1024, *memory, 512}},
                        .signals = {{&ended, 1}}};
    ASSERT_TRUE(device->enqueue(launch).isOk());
    auto early = device->wait({&ended, 1}, 10ms);
    ASSERT_TRUE(early.isOk());
    EXPECT_FALSE(*early);
    EXPECT_EQ(device->activity().kind, DeviceActivity::Kind::Waiting);
    gate.advance(1);
    auto reached = device->wait({&ended, 1}, 20s);
    ASSERT_TRUE(reached.isOk()) << reached.status().toString();
    ASSERT_TRUE(*reached);
    auto *results = reinterpret_cast<float *>(*host + 1024 + 256);
    for (int i = 0; i < 8; ++i)
      EXPECT_EQ(results[i], i < 7 ? 1024.0f * float(i + 1) : 8.0f) << i;
  }
}

TEST(CudaDevice, AFunctionThatTakesOtherParametersIsRefused) {
  auto code = compileModule(twice, cudaSm90);
  ASSERT_TRUE(code.isOk()) << code.status().toString();
  auto device = makeDevice();
  ASSERT_TRUE(device->loadModule(std::as_bytes(std::span(*code))).isOk());
  DeviceCommand command;
  command.op = "layer 3 add";
  command.kernel = "add";
  command.slots = {1, 2, 3};
  command.code = {"wrong", 1, 1, 32, 0};
  Status status = device->prepare("r1s1", {command}).status();
  EXPECT_EQ(status.code(), StatusCode::InvalidData);
  EXPECT_THAT(status.toString(), HasSubstr("layer 3 add"));
  command.code.function = "missing";
  EXPECT_THAT(device->prepare("r1s1", {command}).status().toString(), HasSubstr("'missing'"));
}

} // namespace
} // namespace strata::cuda
