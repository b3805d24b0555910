// The CPU as a device: kernels linked into the program, host memory, a pool of worker threads.
#pragma once

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
  /// `target` is a plan's ("cpu:x86-64-v4"). Several devices may share a pool, where the thread
  /// that drives them runs one at a time: virtual devices with memory of their own. Errors:
  /// Unimplemented (no CPU target), FailedPrecondition (this CPU lacks its instructions).
  static Result<std::unique_ptr<CpuDevice>> create(std::string name, std::string_view target,
                                                   std::shared_ptr<WorkerPool> pool);
  ~CpuDevice() override;

  uint32_t workers() const override { return pool_->workers(); }

  Result<std::byte *> allocate(std::string_view what, uint64_t bytes) override;
  Result<const std::byte *> placeConstant(std::string_view what,
                                          std::span<const std::byte> bytes) override;
  Result<LineId> prepare(std::string name, std::vector<DeviceCommand> commands) override;
  Status launch(LineId line, const ItemCounts &counts, std::chrono::nanoseconds stall) override;

  /// For debugging: `observer` is called on the launching thread before each command, while no
  /// worker runs, and once after the last with `command` equal to the line's length. Launching gets
  /// slower.
  using Observer = std::function<void(LineId line, uint32_t command)>;
  void observe(Observer observer) { observer_ = std::move(observer); }

private:
  struct Line {
    std::string name;
    std::vector<std::string> ops;
    std::vector<uint64_t> slots; ///< Of all commands, one after the other.
    std::vector<PoolCommand> commands;
  };

  CpuDevice(std::string name, cpu::Isa isa, std::shared_ptr<WorkerPool> pool)
      : Device(std::move(name)), isa_(isa), pool_(std::move(pool)) {}
  std::optional<Stall> run(LineId line, const ItemCounts &counts, std::chrono::nanoseconds stall);

  cpu::Isa isa_;
  std::shared_ptr<WorkerPool> pool_;
  std::vector<std::span<std::byte>> allocations_;
  std::vector<std::unique_ptr<Line>> lines_;
  Observer observer_;
};

} // namespace strata
