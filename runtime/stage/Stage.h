// One stage of a plan on its device: arena, weights, state, blocks, and a prepared line of commands
// for every bucket, with each address resolved and checked at load.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/Status.h"
#include "runtime/device/Device.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/stage/SequenceTable.h"
#include "runtime/stage/StepBlock.h"

namespace strata {

/// Memory that a command touches: `count` extents of `bytes`, `stride` apart (one a block, for
/// state).
struct Operand {
  const std::byte *begin;
  uint64_t bytes;
  uint64_t stride;
  uint32_t count;
  fb::Access access;
};

/// Everything that a stage holds.
struct StageMemory {
  std::span<std::byte> arena, scratch, step, out, table;
  std::vector<std::span<std::byte>> states;        ///< One a state group of the stage.
  std::vector<std::span<const std::byte>> weights; ///< One a run of WeightPlaces.
};

/// Where stages may find memory that is not theirs: the ring of each handoff of the plan.
using Ring = std::span<std::byte>;

class Stage {
public:
  struct Options {
    std::span<const Ring> rings;           ///< One a handoff, allocated by the consumer's device.
    std::span<const uint32_t> blockCounts; ///< One a state group, in the order of stateGroups().
    std::optional<uint64_t> randomWeightsSeed;
    uint32_t period = 1;       ///< Lines of a body, one for each combination of handoff slots.
    bool keepOperands = false; ///< For operands().
  };

  /// What can be found wrong without taking memory: the fields of step, out and table blocks. Call
  /// for every stage before load() of any.
  static Status check(const fb::Plan &plan, const fb::Stage &stage);

  /// Takes all memory on `device`, fills or maps the weights and prepares every forward. `file` and
  /// `device` outlive the stage. Errors: ResourceExhausted, FailedPrecondition (no weights and no
  /// seed), Internal (an address outside what the stage owns, naming forward, command and slot).
  static Result<std::unique_ptr<Stage>> load(const PlanFile &file, uint32_t index, Device &device,
                                             const Options &options);

  std::string_view name() const;
  const fb::Stage &plan() const { return *plan_; }
  const StageMemory &memory() const { return memory_; }
  bool hasForward(uint32_t bucket) const { return !lines_[bucket].empty(); }
  /// The line that runs `bucket` on the slots of this handoff number.
  LineId line(uint32_t bucket, uint32_t handoffNumber) const {
    return lines_[bucket][handoffNumber % lines_[bucket].size()];
  }

  /// Appends the copies that move a block, where the stage has its group.
  void move(const StateMove &move, std::vector<DeviceCopy> &copies) const;

  const StepBlock &step() const { return step_; }
  const OutBlock &out() const { return out_; }
  const SequenceTable &table() const { return table_; }
  /// The logits of `bucket`'s forward, one row of the vocabulary a head row; nullptr where it has
  /// none.
  const float *logits(uint32_t bucket) const;
  /// The table's last sampled id of each sequence slot; empty where the stage keeps none.
  std::span<int32_t> lastIds() const { return table_.lastIds(memory_.table.data()); }

  /// Bucket whose forward is `line` on the device.
  uint32_t bucketOf(LineId line) const;
  /// What a command of `line` touches; with Options::keepOperands only.
  std::span<const Operand> operands(LineId line, uint32_t command) const;

private:
  /// Memory that commands of this stage may be given.
  struct Extent {
    const std::byte *begin;
    uint64_t bytes;
    bool isWritable;
  };

  Stage(const PlanFile &file, uint32_t index, Device &device, StepBlock step, OutBlock out,
        SequenceTable table);
  Status takeMemory(const Options &options);
  Status placeWeights(std::optional<uint64_t> seed);
  Status placeUnstoredWeight(const fb::Weight &weight, uint64_t seed, bool isNegative,
                             std::byte *to);
  Result<uint64_t> validRows(const fb::Command &command) const;
  Status prepareForward(const fb::Forward &forward, const Options &options);
  Status prepareLine(const fb::Forward &forward, uint32_t handoffNumber, const Options &options);
  Result<uint64_t> resolve(const fb::Slot &slot, uint32_t handoffNumber, const Options &options,
                           Operand &operand) const;
  Status checkOwned(const Operand &operand) const;
  std::string_view bucketName(uint32_t bucket) const;

  const PlanFile &file_;
  const fb::Stage *plan_;
  uint32_t index_;
  Device &device_;
  StepBlock step_;
  OutBlock out_;
  SequenceTable table_;
  StageMemory memory_;
  std::vector<uint32_t> groups_;           ///< The plan's number of each state group of the stage.
  std::vector<Extent> extents_;            ///< By where they begin.
  std::vector<const std::byte *> weights_; ///< Where each begins.
  std::vector<std::vector<LineId>> lines_; ///< [bucket of the plan][handoff number]
  std::vector<int64_t> logits_;            ///< Offset in the arena, one a bucket; -1: none.
  std::vector<std::vector<std::vector<Operand>>> operands_; ///< [line][command]
};

} // namespace strata
