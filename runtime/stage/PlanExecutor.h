// The Executor that runs a plan: its stages in order on the calling thread, each on its device.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/base/Status.h"
#include "runtime/device/CpuDevice.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/stage/Executor.h"
#include "runtime/stage/Stage.h"

namespace strata {

/// Which command is about to run, and what it may touch. After a forward's last command it is
/// called once more, with `command` equal to their number and no operands.
struct CommandSite {
  uint32_t stage;
  uint32_t bucket;
  uint32_t command;
  std::span<const Operand> operands;
};
using CommandObserver = std::function<void(const CommandSite &)>;

struct ExecutorOptions {
  uint32_t threads = 0;   ///< Worker threads; 0: one a core.
  uint32_t sequences = 0; ///< State is taken for this many sequences; 0: the plan's promise.
  uint64_t kvTokens = 0;  ///< Paged state for at least this many tokens in all; 0: as above.
  std::optional<uint64_t> randomWeightsSeed; ///< Fills the weights of a plan that holds none.
  std::chrono::nanoseconds stall =
      std::chrono::seconds(60); ///< The most that one command may take.
  CommandObserver observer;     ///< For debugging; commands then run one by one.
};

/// Used from one thread at a time; after create() nothing is allocated.
class PlanExecutor final : public Executor {
public:
  /// Takes all memory and threads, in the plan's order, and locks the devices. Errors:
  /// InvalidArgument (more sequences than the plan has; more blocks than can be numbered; a seed
  /// for a plan with weights), FailedPrecondition (a lesser CPU than the plan's target; no weights
  /// and no seed), ResourceExhausted (memory or threads), InvalidData (step fields that this build
  /// cannot fill).
  static Result<std::unique_ptr<PlanExecutor>> create(std::shared_ptr<const PlanFile> file,
                                                      const ExecutorOptions &options);
  ~PlanExecutor() override;

  /// See Executor. `result.nonfiniteLayer` is filled after every launch. Errors: Internal (a step
  /// that is not consistent with the plan: what, found and allowed), DeadlineExceeded (a command
  /// that hangs, with stage, forward and command named; the executor then refuses all further
  /// steps).
  Status run(const Step &step, StepResult &result) override;
  std::span<const float> logits() const override { return logits_; }
  uint32_t blockCount(uint32_t group) const override { return blockCounts_[group]; }

  std::span<const uint32_t> blockCounts() const { return blockCounts_; }
  uint32_t threads() const { return devices_.front()->workers(); }
  uint64_t takenBytes() const; ///< By all devices; weights that are mapped are not counted.
  const Stage &stage(uint32_t index) const { return *stages_[index]; }

private:
  PlanExecutor(std::shared_ptr<const PlanFile> file, const ExecutorOptions &options)
      : file_(std::move(file)), options_(options) {}
  Status boot();
  Status countBlocks();
  Status takeRings();
  void observe(uint32_t stage);
  Status checkStep(const Step &step, const StepResult &result) const;
  Status checkStarts(const Step &step) const;
  Status checkBlocks(const Step &step) const;

  std::shared_ptr<const PlanFile> file_;
  ExecutorOptions options_;
  std::vector<const fb::StateGroup *> groups_;
  std::vector<uint32_t> blockCounts_;
  std::vector<std::unique_ptr<CpuDevice>> devices_; ///< One a stage; they share the workers.
  std::vector<Ring> rings_;
  std::vector<std::unique_ptr<Stage>> stages_;
  std::span<const float> logits_;
};

} // namespace strata
