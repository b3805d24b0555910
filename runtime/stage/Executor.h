// What stands between the schedule and the devices: a step in host form goes in, sampled ids come
// out.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/Status.h"
#include "runtime/sampling/Sampler.h"

namespace strata {

/// What the tables of a sequence slot are given when a sequence takes it. The spans belong to the
/// request and stay until its launch has been waited for.
struct SequenceStart {
  int32_t slot = 0;
  std::span<const int32_t> ids;      ///< Its tokens so far: positions 0 on.
  std::span<const LogitBias> biases; ///< At most maxLogitBiases.
  std::span<const uint32_t> allowed; ///< maskWords(vocabulary) words, or empty: all.
};

/// A block of a state group takes what another holds, and that one is cleared. On every stage it
/// happens between the launches before and the launch that it comes with.
struct StateMove {
  uint32_t group = 0; ///< In the order of stateGroups().
  int32_t from = 0;
  int32_t to = 0;
};

constexpr uint32_t maxStateMoves = 64; ///< With one launch.

/// One launch of one bucket, in host form. Filled by the schedule, copied into every stage's step
/// block by the executor. Vectors are sized once, to the plan's maxima, and never grow.
struct Step {
  uint32_t bucket = 0; ///< Index into the plan's buckets.
  uint32_t validRows = 0;
  uint32_t validSequences = 0;
  uint32_t validHeadRows = 0;

  // One entry a row; rows of a sequence stand together, in order of position.
  std::vector<int32_t> rowId; ///< A token, or -1: the id last sampled for the row's sequence.
  std::vector<int32_t> rowPosition;
  std::vector<int32_t> rowSequence; ///< Index into the per-sequence entries of this step.

  // One entry a sequence of this step.
  std::vector<int32_t> queryStart;     ///< First row; one entry more than sequences.
  std::vector<int32_t> sequenceLength; ///< Tokens in the state after this step.
  std::vector<int32_t> sequenceSlot;   ///< Index into the device tables.
  std::vector<SamplingParameters> sampling;
  /// [state group][sequence * blocks_per_sequence + logical block]: block numbers in the pool.
  std::vector<std::vector<int32_t>> blockTables;

  std::vector<SequenceStart> starts; ///< Written to the tables before the launch; none as a rule.
  std::vector<StateMove> moves;      ///< In order, before the launch of a body; none as a rule.

  // One entry a head row.
  std::vector<int32_t> headRow;      ///< Row of the body whose hidden state is read.
  std::vector<int32_t> headSequence; ///< Index into the per-sequence entries.

  /// No further launch of this step samples: its ids are what a later row of -1 stands for.
  bool returnsIds = false;
};

constexpr uint32_t topTokens = 20;

/// What a launch with a head reports, one entry a head row unless said otherwise.
struct StepResult {
  std::vector<int32_t> id;
  std::vector<float> logProbability;
  std::vector<int32_t> topId; ///< [head rows, topTokens], likeliest first; -1 past the vocabulary.
  std::vector<float> topLogProbability;
  std::vector<int32_t>
      nonfiniteLayer; ///< One a sequence: first layer with a non-finite row, or -1.
};

/// Runs launches in order, several at once. The real one drives the plan's stages; tests put a fake
/// one under the schedule.
class Executor {
public:
  virtual ~Executor() = default;

  /// Stages that launches pass through, one behind the other: launchesInFlight() of them may be
  /// out.
  virtual uint32_t stages() const = 0;

  /// Begins `step` on every stage that has a forward for its bucket; done with `step` when it
  /// returns. Rows of -1 stand for ids of launches submitted before, ended or not. A body without a
  /// head leaves its rows where the next head bucket's gather finds them. Allocates nothing.
  virtual Status submit(const Step &step) = 0;

  /// Returns when the oldest launch out has ended on every stage. After a bucket with a head,
  /// `result` is filled; `result.nonfiniteLayer` after every bucket. Allocates nothing.
  virtual Status wait(StepResult &result) = 0;

  /// submit() and wait(), where nothing else is out.
  Status run(const Step &step, StepResult &result) {
    STRATA_RETURN_IF_ERROR(submit(step));
    return wait(result);
  }

  /// F32 logits [valid head rows, vocabulary] of the last launch that was waited for, where it had
  /// a head; valid until the next submit(). Only where no launch came after it.
  virtual Result<std::span<const float>> logits() = 0;

  /// Blocks in the pool of state group `group`, the same on every stage.
  virtual uint32_t blockCount(uint32_t group) const = 0;
};

} // namespace strata
