// A model made of hashes under the schedule: its "state" is real blocks, so a wrong row, position,
// block, slot or bucket changes the ids or is refused by name.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/schedule/Request.h"
#include "runtime/schedule/ScheduleConfig.h"
#include "runtime/stage/Executor.h"

namespace strata::test {

/// Every row writes hash(id, position) into its block of each group and then reads all that it may
/// see; its hidden value is a hash of that. The id drawn is a hash of the hidden value, the seed
/// and the position. A launch runs as it is submitted. Allocates nothing after construction, so
/// that allocations can be counted around it.
class FakeExecutor : public Executor {
public:
  explicit FakeExecutor(const ScheduleConfig &config);

  uint32_t stages() const override { return config_.stages; }
  Status submit(const Step &step) override;
  Status wait(StepResult &result) override;
  Result<std::span<const float>> logits() override {
    return std::span<const float>(logits_.data(), logitsSize_);
  }
  uint32_t blockCount(uint32_t group) const override { return config_.groups[group].blocks; }

  /// From now on the sequence of this slot reports a non-finite layer.
  void poison(uint32_t slot, int32_t layer) { poisoned_[slot] = layer; }
  uint32_t moves() const { return moves_; } ///< Blocks that moved so far.
  void failWith(Status status) { failure_ = std::move(status); }

private:
  Status checkShape(const Step &step) const;
  Status checkSequence(const Step &step, uint32_t sequence) const;
  Status checkStarts(const Step &step) const;
  Status checkHeads(const Step &step) const;
  Status runMoves(const Step &step);
  Status runBody(const Step &step);
  Result<uint64_t> see(const Step &step, uint32_t row) const;
  void runHead(const Step &step, StepResult &result);

  ScheduleConfig config_;
  std::vector<std::vector<uint64_t>> pools_; ///< [group][block * blockTokens + token]
  std::vector<int32_t> lastId_;              ///< [slot]
  std::vector<int32_t> poisoned_;            ///< [slot]
  std::vector<uint64_t> hidden_;             ///< [row] of the last body.
  uint32_t hiddenRows_ = 0;
  std::vector<StepResult> results_; ///< A ring: of the launches that are out, oldest first.
  uint32_t first_ = 0, out_ = 0;
  std::vector<float> logits_;
  size_t logitsSize_ = 0;
  uint32_t moves_ = 0;
  Status failure_;
};

/// The finaliser of SplitMix64 over a running value.
uint64_t mix(uint64_t value, uint64_t next);
/// First position that a row at `position` sees.
uint32_t firstVisible(const ScheduleConfig::Group &group, uint32_t position);
/// The id that a hidden value stands for, where the sequence then has `length` tokens.
int32_t draw(uint64_t hidden, uint64_t seed, uint32_t length, uint32_t vocabulary);

/// What the fake model gives without any schedule: the hidden value at `position` of `ids`.
uint64_t hiddenAt(const ScheduleConfig &config, std::span<const int32_t> ids, uint32_t position);
float fakeLogit(uint64_t hidden, uint32_t id);

struct Generation {
  std::vector<int32_t> ids;
  FinishReason finish = FinishReason::None;
  bool operator==(const Generation &) const = default;
};

/// What `request` generates when nothing else runs and nobody cancels it.
Generation generateAlone(const ScheduleConfig &config, const Request &request);

} // namespace strata::test
