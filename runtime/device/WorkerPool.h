// The threads of a CPU device: the one that runs a line of commands, and helpers that take part of
// the items of a command that is large enough to share.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <pthread.h>

#include "codegen/cpu/KernelTable.h"
#include "runtime/base/Status.h"
#include "runtime/device/Device.h"

namespace strata {

/// One command as workers run it; flat, so that nothing is followed but `slots`.
struct PoolCommand {
  cpu::KernelFunction function;
  const uint64_t *slots;
  fb::Items items;
  bool isShared = true; ///< False: too small to be worth another worker's attention.

  /// Items of one launch. The plan was checked to keep them below 2^32.
  uint32_t itemCount(const ItemCounts &counts) const {
    return items.row() * counts.rows + items.sequence() * counts.sequences +
           items.head_row() * counts.headRows + items.constant();
  }
};

/// Items are claimed in chunks, so that a helper that sleeps, or that the machine runs late, is not
/// waited for: what it has not claimed the others do. Which worker runs an item changes no result.
/// Helpers spin for some microseconds after their last chunk and sleep after.
class WorkerPool {
public:
  static constexpr size_t stackBytes = 256 << 10;

  /// Of `workers`, one is the thread that calls run(). Errors: InvalidArgument (no worker or more
  /// than 1024), ResourceExhausted (no thread to be had).
  static Result<std::unique_ptr<WorkerPool>> create(uint32_t workers, const std::string &name);
  ~WorkerPool();

  uint32_t workers() const { return uint32_t(helpers_.size()) + 1; }

  /// Runs `commands` in order on the calling thread, always the same, with the helpers' help. Ends
  /// early where `stop` becomes true.
  void run(std::span<const PoolCommand> commands, const ItemCounts &counts,
           const std::atomic<bool> &stop);

  /// While run() runs, from any thread: the command that it is at, and the first worker that has
  /// not ended its part of it.
  uint32_t command() const { return command_.load(std::memory_order_relaxed); }
  uint32_t busyWorker() const;

private:
  struct alignas(64) Helper {
    WorkerPool *pool = nullptr;
    uint32_t worker = 0;
    pthread_t thread{};
    std::atomic<bool> isBusy{false};
  };

  explicit WorkerPool(uint32_t helpers) : helpers_(helpers) {}
  static void *helperMain(void *argument);
  void share(const PoolCommand &command, uint32_t items);
  bool runChunk(uint32_t worker);
  void awaitHelpers();

  std::vector<Helper> helpers_;
  uint32_t started_ = 0;

  // The shared command. Written by the caller of run() while no chunk of the one before is claimed
  // and unfinished, read by whoever has claimed a chunk.
  const PoolCommand *shared_ = nullptr;
  uint32_t items_ = 0;
  uint32_t chunks_ = 0;

  /// Number of the shared command (upper half) and chunks that nobody has claimed.
  alignas(64) std::atomic<uint64_t> ticket_{0};
  alignas(64) std::atomic<uint32_t> done_{0}; ///< Chunks that have ended.
  std::atomic<bool> callerSleeps_{false};
  alignas(64) std::atomic<uint32_t> bell_{0}; ///< Rung to wake helpers.
  std::atomic<uint32_t> sleepers_{0};
  std::atomic<bool> stop_{false};
  alignas(64) std::atomic<uint32_t> command_{0};
  std::atomic<bool> callerIsBusy_{false};
};

} // namespace strata
