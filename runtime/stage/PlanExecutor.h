// The Executor that runs a plan: each stage on a device of its own, launches passing through all of
// them one behind the other.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/base/Status.h"
#include "runtime/device/Device.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/stage/Executor.h"
#include "runtime/stage/Flow.h"
#include "runtime/stage/Stage.h"
#include "runtime/stage/StepCheck.h"

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
  uint32_t threads = 0;   ///< Worker threads of a stage; 0: the cores shared out among the stages.
  uint32_t sequences = 0; ///< State is taken for this many sequences; 0: the plan's promise.
  uint64_t kvTokens = 0;  ///< Paged state for at least this many tokens in all; 0: as above.
  std::vector<std::string> devices;          ///< EngineOptions::devices.
  bool useGraphs = true;                     ///< EngineOptions::useGraphs.
  std::optional<uint64_t> randomWeightsSeed; ///< Fills the weights of a plan that holds none.
  std::chrono::nanoseconds stall =
      std::chrono::seconds(60); ///< The most that one command may take.
  /// For debugging; commands then run one by one. Called on the threads of the stages, those of
  /// several launches at once.
  CommandObserver observer;
  /// For tests: what stands between a stage and its device.
  std::function<std::unique_ptr<Device>(uint32_t stage, std::unique_ptr<Device>)> wrapDevice;
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

  uint32_t stages() const override { return uint32_t(stages_.size()); }
  /// Errors: Internal (a step that is not consistent with the plan: what, found and allowed; more
  /// launches out than may be), FailedPrecondition (after a failure), those of the devices.
  Status submit(const Step &step) override;
  /// `result.nonfiniteLayer` is filled after every launch. Errors: DeadlineExceeded (a stage that
  /// hangs, with what every stage is at), those of the devices, with stage, forward and, where the
  /// device is at one, command named. The executor then refuses all further steps.
  Status wait(StepResult &result) override;
  Result<std::span<const float>> logits() override;
  uint32_t blockCount(uint32_t group) const override { return blockCounts_[group]; }

  std::span<const uint32_t> blockCounts() const { return blockCounts_; }
  uint32_t threads() const { return devices_.front()->workers(); }
  uint64_t takenBytes() const; ///< By all devices; weights that are mapped are not counted.
  const Stage &stage(uint32_t index) const { return *stages_[index]; }

private:
  /// A launch that is out.
  struct Pending {
    uint64_t number = 0;
    uint32_t bucket = 0, rows = 0, sequences = 0, headRows = 0;
    std::unique_ptr<bool[]> runs; ///< By stage.
  };
  /// What the host keeps of each launch that is out, for one stage: the device copies from it and
  /// to it.
  struct Channel {
    std::vector<std::byte *> steps, outs; ///< One a launch.
    std::vector<std::vector<SequenceTable::Staged>> starts;
    std::vector<DeviceLaunch> launches;
    std::byte *clearedOut = nullptr;
  };

  PlanExecutor(std::shared_ptr<const PlanFile> file, const ExecutorOptions &options);
  Status boot();
  Status countBlocks();
  Result<std::vector<std::string>> deviceNames() const;
  Status takeDevices();
  Status takeRings();
  Status openChannels();
  Status openChannel(uint32_t stage, uint32_t depth);
  void fillLaunch(uint32_t stage, uint32_t place, const Step &step);
  Status awaitStage(uint32_t stage, const Pending &pending, const TimelineValue &ended);
  std::optional<uint32_t> findStalled();
  std::string stallReport() const;
  std::string describe(uint32_t stage) const;
  std::string describeWait(const TimelineValue &wait) const;
  std::string describeEdge(uint32_t edge) const;
  std::string edgeName(uint32_t edge) const;
  Status placed(Status status, uint32_t stage, const Pending &pending) const;
  Status fail(Status status);

  std::shared_ptr<const PlanFile> file_;
  ExecutorOptions options_;
  Flow flow_;
  std::vector<const fb::StateGroup *> groups_;
  std::vector<uint32_t> blockCounts_;
  std::optional<StepCheck> check_;
  std::unique_ptr<Timeline[]> timelines_;        ///< By the flow's numbers.
  std::vector<std::unique_ptr<Device>> devices_; ///< One a stage.
  std::vector<Ring> rings_;
  std::vector<std::unique_ptr<Stage>> stages_;
  std::vector<Channel> channels_;       ///< One a stage.
  std::vector<std::span<int32_t>> ids_; ///< Sampled ids on their way back: one a slot.
  std::vector<Flow::Leg> legs_;         ///< One a stage: of the launch being submitted.
  std::vector<Pending> pending_;        ///< Launch n lies at n % size.
  std::vector<uint64_t> progress_;      ///< By stage, for a wait that takes long.
  std::vector<std::chrono::steady_clock::time_point> since_;
  uint64_t submitted_ = 0, retired_ = 0;
  std::span<const float> logits_; ///< On the head's device.
  std::span<float> logitsCopy_;   ///< Of the host, where that is another memory.
  bool hasFailed_ = false;
  bool hasStalled_ = false;
};

} // namespace strata
