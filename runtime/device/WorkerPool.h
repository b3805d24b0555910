// The threads of a CPU device: they run a line of commands side by side, each taking its share of
// every command's items, and meet at a barrier after each command.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

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

  /// Items of one launch. The plan was checked to keep them below 2^32.
  uint32_t itemCount(const ItemCounts &counts) const {
    return items.row() * counts.rows + items.sequence() * counts.sequences +
           items.head_row() * counts.headRows + items.constant();
  }
};

/// A command that did not end in time.
struct Stall {
  uint32_t command; ///< Index into the line.
  uint32_t worker;  ///< The first that has not come to the barrier.
};

/// Used from one thread at a time. Workers spin for some microseconds when they wait and sleep
/// after.
class WorkerPool {
public:
  static constexpr size_t stackBytes = 256 << 10;

  /// Errors: InvalidArgument (no worker or more than 1024), ResourceExhausted (no thread to be
  /// had).
  static Result<std::shared_ptr<WorkerPool>> create(uint32_t workers);

  /// A worker that hangs in a kernel cannot be ended: it is left behind, with what it may still
  /// touch (isStuck() tells the owner to leave its memory as well).
  ~WorkerPool();

  uint32_t workers() const { return workers_; }

  /// Runs `commands` in order, each by all workers. Returns the command that hangs, where one takes
  /// longer than `stall`; from then on nothing runs and every call returns it again. `commands` and
  /// all that they name stay alive until the pool is gone.
  std::optional<Stall> run(std::span<const PoolCommand> commands, const ItemCounts &counts,
                           std::chrono::nanoseconds stall);

  bool isStuck() const { return stall_.has_value(); }

private:
  struct Shared;
  struct Worker;

  explicit WorkerPool(uint32_t workers);
  static void *workerMain(void *argument);

  uint32_t workers_;
  std::shared_ptr<Shared> shared_; ///< Threads hold it too: one left behind may still look at it.
  std::vector<pthread_t> threads_;
  uint32_t launches_ = 0;
  std::optional<Stall> stall_;
};

} // namespace strata
