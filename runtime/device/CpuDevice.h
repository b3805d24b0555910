// The CPU as a device: kernels linked into the program, host memory, a thread that runs the queue
// and helpers that share large commands with it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "codegen/cpu/KernelTable.h"
#include "runtime/device/Device.h"
#include "runtime/device/WorkerPool.h"

namespace strata {

class CpuDevice final : public Device {
public:
  struct Options {
    uint32_t workers = 1; ///< Threads that run kernels: the one of the queue and its helpers.
    uint32_t depth = 1;   ///< Launches that may be queued at once.
  };

  /// `target` is a plan's ("cpu:x86-64-v4"). Several devices are virtual devices of one machine,
  /// with memory and threads of their own. Errors: Unimplemented (no CPU target),
  /// FailedPrecondition (this CPU lacks its instructions), ResourceExhausted (threads).
  static Result<std::unique_ptr<CpuDevice>> create(std::string name, std::string_view target,
                                                   const Options &options);
  /// A worker that hangs in a kernel cannot be ended: it is left behind, with what it may still
  /// touch of this device.
  ~CpuDevice() override;

  uint32_t workers() const override { return queue_->pool->workers(); }

  Result<std::byte *> allocate(std::string_view what, uint64_t bytes) override;
  Result<std::byte *> allocateHost(std::string_view what, uint64_t bytes) override;
  Status write(std::byte *to, std::span<const std::byte> bytes) override;
  Status read(std::span<std::byte> to, const std::byte *from) override;
  Status loadModule(std::span<const std::byte> code) override;
  Result<const std::byte *> placeConstant(std::string_view what,
                                          std::span<const std::byte> bytes) override;
  Result<LineId> prepare(std::string name, std::vector<DeviceCommand> commands) override;
  Status enqueue(const DeviceLaunch &launch) override;
  Result<bool> wait(const TimelineValue &value, std::chrono::nanoseconds timeout) override;
  DeviceActivity activity() const override;
  std::string_view op(LineId line, uint32_t index) const override;
  void stop() override;
  bool rests(std::chrono::nanoseconds patience) override;

  /// For debugging: `observer` is called on the queue's thread before each command, while no worker
  /// runs, and once after the last with `command` equal to the line's length. Set before the first
  /// launch. Launching gets slower.
  using Observer = std::function<void(LineId line, uint32_t command)>;
  void observe(Observer observer) { queue_->observer = std::move(observer); }

private:
  struct Line {
    std::string name;
    std::vector<std::string> ops;
    std::vector<uint64_t> slots; ///< Of all commands, one after the other.
    std::vector<PoolCommand> commands;
  };

  /// What the queue's thread and its owner share.
  struct Queue {
    std::vector<std::span<std::byte>> allocations;
    std::vector<std::unique_ptr<std::byte[]>> hostAllocations;
    std::vector<std::unique_ptr<Line>> lines;
    std::unique_ptr<WorkerPool> pool;
    Observer observer;
    std::vector<const DeviceLaunch *> ring; ///< Launch n lies at n % size.
    Timeline queued;                        ///< Launches ever queued.
    Timeline ended;                         ///< Launches ever ended.
    std::atomic<bool> stop{false};
    std::atomic<uint64_t> state{0}; ///< What the thread is at: see pack().
    std::atomic<uint32_t> observed{0};
    pthread_t thread{};
    bool isStarted = false;

    ~Queue();
    static void *threadMain(void *argument);
    bool runLaunch(uint32_t number);
    void runLine(const Line &line, LineId id, const ItemCounts &counts);
    void at(DeviceActivity::Kind kind, uint32_t number, uint32_t index);
  };

  CpuDevice(std::string name, cpu::Isa isa)
      : Device(std::move(name)), isa_(isa), queue_(std::make_unique<Queue>()) {}

  cpu::Isa isa_;
  std::unique_ptr<Queue> queue_;
  uint32_t queued_ = 0;
};

} // namespace strata
