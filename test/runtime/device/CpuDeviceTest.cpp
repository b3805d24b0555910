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

std::unique_ptr<CpuDevice> makeDevice(uint32_t workers) {
  auto pool = WorkerPool::create(workers);
  EXPECT_TRUE(pool.isOk());
  auto device = CpuDevice::create("cpu", hostTarget(), *pool);
  EXPECT_TRUE(device.isOk()) << device.status().toString();
  return std::move(*device);
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
  auto pool = WorkerPool::create(1);
  ASSERT_TRUE(pool.isOk());
  EXPECT_EQ(CpuDevice::create("cpu", "cuda:sm_90", *pool).status().code(),
            StatusCode::Unimplemented);
  Status status = CpuDevice::create("cpu", "cpu:x86-64-v4", *pool).status();
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
      ASSERT_TRUE(device->launch(*line, {.rows = rows - 1}, 30s).isOk());
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
  ASSERT_TRUE(device->launch(*line, {.rows = 1}, 30s).isOk());
  EXPECT_THAT(seen, testing::ElementsAre(0, 1, 2));
}

TEST(CpuDevice, UnknownKernelIsNamed) {
  auto device = makeDevice(1);
  Status status = device->prepare("r1s1", {{"layer 0", "linear.q0", {}, {}}}).status();
  EXPECT_THAT(status.toString(), HasSubstr("there is no kernel 'linear.q0'"));
  EXPECT_EQ(device->launch(7, {}, 1s).code(), StatusCode::Internal);
}

// Kernels for the pool's own tests; a slot points to what they need.
void countItems(const uint64_t *slots, uint32_t begin, uint32_t end, uint32_t) {
  auto *counts = reinterpret_cast<std::atomic<uint32_t> *>(slots[0]);
  for (uint32_t i = begin; i < end; ++i)
    ++counts[i];
}

void waitForRelease(const uint64_t *slots, uint32_t, uint32_t, uint32_t worker) {
  auto *release = reinterpret_cast<std::atomic<bool> *>(slots[0]);
  while (worker == 1 && !release->load())
    std::this_thread::sleep_for(1ms);
}

TEST(WorkerPool, EveryItemRunsOnce) {
  std::vector<std::atomic<uint32_t>> counts(101);
  uint64_t slot = address(counts.data());
  auto pool = WorkerPool::create(7);
  ASSERT_TRUE(pool.isOk());
  for (uint32_t items : {1u, 6u, 7u, 8u, 101u}) {
    for (auto &count : counts)
      count = 0;
    PoolCommand command{countItems, &slot, {2, 3, 5, 0}};
    command.items = fb::Items(0, 0, 0, items);
    EXPECT_FALSE((*pool)->run({&command, 1}, {}, 30s));
    for (uint32_t i = 0; i < counts.size(); ++i)
      EXPECT_EQ(counts[i], i < items ? 1u : 0u);
  }
}

TEST(WorkerPool, ItemsFollowTheStep) {
  PoolCommand command{countItems, nullptr, {2, 3, 5, 7}};
  EXPECT_EQ(command.itemCount({.rows = 10, .sequences = 100, .headRows = 1000}),
            5327u); // 20 + 300 + 5000 + 7
}

TEST(WorkerPool, AHungWorkerIsReportedByItsDeadline) {
  std::atomic<bool> release{false};
  std::vector<std::atomic<uint32_t>> counts(4);
  uint64_t slots[] = {address(counts.data()), address(&release)};
  PoolCommand commands[] = {{countItems, &slots[0], {0, 0, 0, 4}},
                            {waitForRelease, &slots[1], {0, 0, 0, 4}},
                            {countItems, &slots[0], {0, 0, 0, 4}}};
  auto pool = WorkerPool::create(2);
  ASSERT_TRUE(pool.isOk());
  auto begin = std::chrono::steady_clock::now();
  auto stall = (*pool)->run(commands, {}, 50ms);
  auto took = std::chrono::steady_clock::now() - begin;
  ASSERT_TRUE(stall);
  EXPECT_EQ(stall->command, 1u);
  EXPECT_EQ(stall->worker, 1u);
  EXPECT_LT(took, 5s);
  EXPECT_TRUE((*pool)->isStuck());
  EXPECT_TRUE((*pool)->run(commands, {}, 50ms)) << "nothing runs after a stall";
  release = true; // the worker ends, and so does the pool
}

TEST(WorkerPool, ALongLineThatMovesIsNoStall) {
  std::atomic<bool> release{true};
  uint64_t slot = address(&release);
  auto sleep = [](const uint64_t *, uint32_t, uint32_t, uint32_t) {
    std::this_thread::sleep_for(20ms);
  };
  std::vector<PoolCommand> commands(10, {sleep, &slot, {0, 0, 0, 2}});
  auto pool = WorkerPool::create(2);
  ASSERT_TRUE(pool.isOk());
  EXPECT_FALSE((*pool)->run(commands, {}, 150ms)); // 200 ms in all
}

TEST(WorkerPool, RefusesNoWorkers) {
  EXPECT_EQ(WorkerPool::create(0).status().code(), StatusCode::InvalidArgument);
  EXPECT_EQ(WorkerPool::create(4000).status().code(), StatusCode::InvalidArgument);
}

TEST(WorkerPool, SleepersWake) {
  std::vector<std::atomic<uint32_t>> counts(4);
  uint64_t slot = address(counts.data());
  PoolCommand command{countItems, &slot, {0, 0, 0, 4}};
  auto pool = WorkerPool::create(4);
  ASSERT_TRUE(pool.isOk());
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(3ms); // long past spinning
    ASSERT_FALSE((*pool)->run({&command, 1}, {}, 30s));
  }
  EXPECT_EQ(counts[3], 20u);
}

} // namespace
