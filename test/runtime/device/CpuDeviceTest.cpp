// The CPU device: memory that ends at READY, lines of commands, and waits that end.
#include "runtime/device/CpuDevice.h"

#include <atomic>
#include <cstring>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace strata;
using namespace std::chrono_literals;
using testing::HasSubstr;

namespace {

std::string hostTarget() { return "cpu:" + std::string(cpu::isaName(cpu::hostIsa())); }

std::unique_ptr<CpuDevice> makeDevice(uint32_t workers, uint32_t depth = 1) {
  auto device = CpuDevice::create("cpu", hostTarget(), {.workers = workers, .depth = depth});
  EXPECT_TRUE(device.isOk()) << device.status().toString();
  return std::move(*device);
}

/// Runs `line` once, to its end.
Status launch(Device &device, LineId line, const ItemCounts &counts) {
  static Timeline ended; // outlives every device
  static uint32_t launches = 0;
  DeviceLaunch launch{.line = line, .counts = counts, .signals = {{&ended, launches + 1}}};
  STRATA_RETURN_IF_ERROR(device.enqueue(launch));
  STRATA_ASSIGN_OR_RETURN(bool isReached, device.wait({&ended, ++launches}, 30s));
  EXPECT_TRUE(isReached);
  return {};
}

uint64_t address(const void *pointer) { return reinterpret_cast<uint64_t>(pointer); }

TEST(CpuDevice, MemoryIsZeroedAlignedAndEndsAtReady) {
  auto device = makeDevice(1);
  auto memory = device->allocate("the arena", 5000);
  ASSERT_TRUE(memory.isOk());
  EXPECT_EQ(address(*memory) % 4096, 0u);
  for (size_t i = 0; i < 5000; ++i)
    ASSERT_EQ((*memory)[i], std::byte{0});
  EXPECT_EQ(device->takenBytes(), 8192u);
  device->lock();
  Status late = device->allocate("the arena", 64).status();
  EXPECT_EQ(late.code(), StatusCode::Internal);
  EXPECT_THAT(late.toString(), HasSubstr("the arena asks for 64 bytes after READY"));
  EXPECT_EQ(device->prepare("r1s1", {}).status().code(), StatusCode::Internal);
}

TEST(CpuDevice, WhatDoesNotFitIsNamed) {
  auto device = makeDevice(1);
  Status status = device->allocate("state 'kv'", uint64_t(1) << 47).status();
  EXPECT_EQ(status.code(), StatusCode::ResourceExhausted);
  EXPECT_THAT(status.toString(), HasSubstr("state 'kv' takes 140737488355328 bytes"));
}

TEST(CpuDevice, RefusesAnotherMachinesTarget) {
  EXPECT_EQ(CpuDevice::create("cpu", "cuda:sm_90", {}).status().code(), StatusCode::Unimplemented);
  Status status = CpuDevice::create("cpu", "cpu:x86-64-v4", {}).status();
  if (cpu::hostRuns(cpu::Isa::X86_64_v4)) {
    EXPECT_TRUE(status.isOk());
  } else {
    EXPECT_EQ(status.code(), StatusCode::FailedPrecondition);
    EXPECT_THAT(status.toString(), HasSubstr("compiled for x86-64-v4 but this CPU runs x86-64-v3"));
  }
}

// Adds two rows of numbers through the real kernel, over several commands that depend on each
// other.
TEST(CpuDevice, RunsALineInOrderOnAllWorkers) {
  constexpr uint32_t rows = 37, width = 16;
  for (uint32_t workers : {1, 2, 3, 8}) {
    auto device = makeDevice(workers);
    auto memory = device->allocate("rows", 2 * rows * width * sizeof(float));
    ASSERT_TRUE(memory.isOk());
    auto *a = reinterpret_cast<float *>(*memory), *b = a + rows * width;
    std::vector<DeviceCommand> commands;
    // b = b + a, then a = a + b, ten times: Fibonacci numbers.
    for (int i = 0; i < 10; ++i) {
      commands.push_back({"b", "add", {address(b), address(a), address(b), width}, {1, 0, 0, 0}});
      commands.push_back({"a", "add", {address(a), address(b), address(a), width}, {1, 0, 0, 0}});
    }
    auto line = device->prepare("fibonacci", commands);
    ASSERT_TRUE(line.isOk());
    device->lock();
    for (int repeat = 0; repeat < 50; ++repeat) {
      std::fill_n(a, rows * width, 1.0f);
      std::fill_n(b, rows * width, 0.0f);
      ASSERT_TRUE(launch(*device, *line, {.rows = rows - 1}).isOk());
      for (uint32_t i = 0; i < (rows - 1) * width; ++i)
        ASSERT_EQ(a[i], 10946.0f) << i; // the 21st number
      for (uint32_t i = (rows - 1) * width; i < rows * width; ++i)
        ASSERT_EQ(a[i], 1.0f) << "an item that is not valid ran";
    }
  }
}

TEST(CpuDevice, ObserverSeesEveryCommandOnce) {
  auto device = makeDevice(2);
  auto memory = device->allocate("rows", 256);
  ASSERT_TRUE(memory.isOk());
  uint64_t at = address(*memory);
  auto line = device->prepare("two", {{"first", "add", {at, at, at, 4}, {1, 0, 0, 0}},
                                      {"second", "add", {at, at, at, 4}, {1, 0, 0, 0}}});
  ASSERT_TRUE(line.isOk());
  std::vector<uint32_t> seen;
  device->observe([&](LineId, uint32_t command) { seen.push_back(command); });
  ASSERT_TRUE(launch(*device, *line, {.rows = 1}).isOk());
  EXPECT_THAT(seen, testing::ElementsAre(0, 1, 2));
}

TEST(CpuDevice, UnknownKernelIsNamed) {
  auto device = makeDevice(1);
  Status status = device->prepare("r1s1", {{"layer 0", "linear.q0", {}, {}}}).status();
  EXPECT_THAT(status.toString(), HasSubstr("there is no kernel 'linear.q0'"));
  EXPECT_EQ(launch(*device, 7, {}).code(), StatusCode::Internal);
}

// Launches wait for timelines and copy around their line, in order.
TEST(CpuDevice, ALaunchWaitsCopiesAndSignals) {
  Timeline given, ended;
  std::vector<DeviceLaunch> launches(2);
  auto device = makeDevice(1, 2);
  auto memory = device->allocate("rows", 256);
  ASSERT_TRUE(memory.isOk());
  auto *values = reinterpret_cast<float *>(*memory);
  uint64_t at = address(values);
  auto line = device->prepare("double", {{"double", "add", {at, at, at, 4}, {1, 0, 0, 0}}});
  ASSERT_TRUE(line.isOk());
  float in[2][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}}, out[2][4] = {};
  for (uint32_t i = 0; i < 2; ++i) {
    launches[i] = {.line = *line,
                   .counts = {.rows = 1},
                   .waits = {{&given, 1 + i}},
                   .copiesIn = {{*memory, reinterpret_cast<std::byte *>(in[i]), 16}},
                   .copiesOut = {{reinterpret_cast<std::byte *>(out[i]), *memory, 16}},
                   .signals = {{&ended, 1 + i}}};
    ASSERT_TRUE(device->enqueue(launches[i]).isOk());
  }
  EXPECT_EQ(device->enqueue(launches[0]).code(), StatusCode::Internal) << "room for two";
  auto early = device->wait({&ended, 1}, 20ms);
  ASSERT_TRUE(early.isOk());
  EXPECT_FALSE(*early);
  DeviceActivity activity;
  do
    activity = device->activity();
  while (activity.kind != DeviceActivity::Kind::Waiting);
  EXPECT_EQ(activity.launch, &launches[0]);
  EXPECT_EQ(activity.index, 0u);
  given.advance(1);
  EXPECT_TRUE(*device->wait({&ended, 1}, 30s));
  EXPECT_FALSE(ended.reached(2));
  given.advance(2);
  EXPECT_TRUE(*device->wait({&ended, 2}, 30s));
  for (uint32_t i = 0; i < 2; ++i)
    for (uint32_t j = 0; j < 4; ++j)
      EXPECT_EQ(out[i][j], 2 * in[i][j]);
  EXPECT_EQ(device->activity().kind, DeviceActivity::Kind::Idle);
}

TEST(CpuDevice, AWaitingLaunchLeavesAtTheEnd) {
  Timeline never, ended;
  DeviceLaunch launch{.waits = {{&never, 1}}, .signals = {{&ended, 1}}};
  auto device = makeDevice(1);
  auto line = device->prepare("empty", {});
  ASSERT_TRUE(line.isOk());
  launch.line = *line;
  ASSERT_TRUE(device->enqueue(launch).isOk());
  while (device->activity().kind != DeviceActivity::Kind::Waiting)
    std::this_thread::yield();
  device->stop();
  EXPECT_FALSE(device->rests(20ms)) << "it waits";
  never.close();
  EXPECT_TRUE(device->rests(30s));
  EXPECT_FALSE(ended.reached(1));
}

TEST(Timeline, WrapsAround) {
  Timeline timeline;
  for (uint32_t value = 0; value < 0xC0000000; value += 0x10000000)
    timeline.advance(value);
  timeline.advance(0xFFFFFFFF);
  EXPECT_FALSE(timeline.reached(2));
  EXPECT_TRUE(timeline.reached(0xFFFFFFFE));
  EXPECT_FALSE(timeline.wait(2, 1ms));
  timeline.advance(2);
  EXPECT_TRUE(timeline.reached(0xFFFFFFFF));
  timeline.advance(1);
  EXPECT_EQ(timeline.value(), 2u) << "never back";
  timeline.close();
  EXPECT_TRUE(timeline.wait(1000));
}

// Kernels for the pool's own tests; a slot points to what they need.
void countItems(const uint64_t *slots, uint32_t begin, uint32_t end, uint32_t) {
  auto *counts = reinterpret_cast<std::atomic<uint32_t> *>(slots[0]);
  for (uint32_t i = begin; i < end; ++i)
    ++counts[i];
}

TEST(WorkerPool, EveryItemRunsOnce) {
  std::atomic<bool> stop{false};
  std::vector<std::atomic<uint32_t>> counts(101);
  uint64_t slot = address(counts.data());
  auto pool = WorkerPool::create(7, "test");
  ASSERT_TRUE(pool.isOk());
  for (uint32_t items : {1u, 6u, 7u, 8u, 101u}) {
    for (auto &count : counts)
      count = 0;
    PoolCommand command{countItems, &slot, {2, 3, 5, 0}};
    command.items = fb::Items(0, 0, 0, items);
    (*pool)->run({&command, 1}, {}, stop);
    for (uint32_t i = 0; i < counts.size(); ++i)
      EXPECT_EQ(counts[i], i < items ? 1u : 0u);
  }
}

TEST(WorkerPool, ItemsFollowTheStep) {
  PoolCommand command{countItems, nullptr, {2, 3, 5, 7}};
  EXPECT_EQ(command.itemCount({.rows = 10, .sequences = 100, .headRows = 1000}),
            5327u); // 20 + 300 + 5000 + 7
}

// Helpers that come late, or never, are not waited for; those that have begun are.
TEST(WorkerPool, ManyCommandsInARow) {
  std::atomic<bool> stop{false};
  std::vector<std::atomic<uint32_t>> counts(64);
  uint64_t slot = address(counts.data());
  // Each item is seen by its command exactly once before the next command begins.
  auto next = [](const uint64_t *slots, uint32_t begin, uint32_t end, uint32_t) {
    auto *counts = reinterpret_cast<std::atomic<uint32_t> *>(slots[0]);
    for (uint32_t i = begin; i < end; ++i)
      if (uint32_t value = counts[63 - i]++; value != counts[0] && value + 1 != counts[0])
        std::abort();
  };
  std::vector<PoolCommand> commands(500, {next, &slot, {0, 0, 0, 64}});
  for (size_t i = 0; i < commands.size(); i += 3)
    commands[i].isShared = false;
  auto pool = WorkerPool::create(4, "test");
  ASSERT_TRUE(pool.isOk());
  for (int i = 0; i < 20; ++i)
    (*pool)->run(commands, {}, stop);
  for (auto &count : counts)
    EXPECT_EQ(count, 10000u);
}

TEST(WorkerPool, SmallCommandsStayOnOneThread) {
  std::atomic<bool> stop{false};
  std::atomic<uint32_t> workers{0};
  uint64_t slot = address(&workers);
  auto note = [](const uint64_t *slots, uint32_t begin, uint32_t end, uint32_t worker) {
    if (worker == 0 && begin == 0 && end == 8)
      ++*reinterpret_cast<std::atomic<uint32_t> *>(slots[0]);
  };
  PoolCommand command{note, &slot, {0, 0, 0, 8}, false};
  auto pool = WorkerPool::create(2, "test");
  ASSERT_TRUE(pool.isOk());
  for (int i = 0; i < 100; ++i)
    (*pool)->run({&command, 1}, {}, stop);
  EXPECT_EQ(workers, 100u);
}

TEST(WorkerPool, RefusesNoWorkers) {
  EXPECT_EQ(WorkerPool::create(0, "test").status().code(), StatusCode::InvalidArgument);
  EXPECT_EQ(WorkerPool::create(4000, "test").status().code(), StatusCode::InvalidArgument);
}

TEST(WorkerPool, SleepersWake) {
  std::atomic<bool> stop{false};
  std::vector<std::atomic<uint32_t>> counts(4);
  uint64_t slot = address(counts.data());
  PoolCommand command{countItems, &slot, {0, 0, 0, 4}};
  auto pool = WorkerPool::create(4, "test");
  ASSERT_TRUE(pool.isOk());
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(3ms); // long past spinning
    (*pool)->run({&command, 1}, {}, stop);
  }
  EXPECT_EQ(counts[3], 20u);
}

// A sleeping helper comes when there is work for it: the caller waits for it in its own chunk.
TEST(WorkerPool, TwoWorkersMeet) {
  std::atomic<bool> stop{false};
  std::atomic<uint32_t> seen{0};
  uint64_t slot = address(&seen);
  auto meet = [](const uint64_t *slots, uint32_t, uint32_t, uint32_t worker) {
    auto *seen = reinterpret_cast<std::atomic<uint32_t> *>(slots[0]);
    *seen |= 1u << worker;
    while (*seen != 3)
      std::this_thread::yield();
  };
  PoolCommand command{meet, &slot, {0, 0, 0, 8}};
  auto pool = WorkerPool::create(2, "test");
  ASSERT_TRUE(pool.isOk());
  for (int i = 0; i < 10; ++i) {
    seen = 0;
    std::this_thread::sleep_for(2ms);
    (*pool)->run({&command, 1}, {}, stop);
    EXPECT_EQ(seen, 3u);
  }
}

} // namespace
