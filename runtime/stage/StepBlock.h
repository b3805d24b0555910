// The step and out blocks of a stage: their fields found by name once, then filled and read by
// copies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/base/Status.h"
#include "runtime/plan/Plan_generated.h"
#include "runtime/stage/Executor.h"

namespace strata {

/// Writes a Step into the step block. Fields (one element unless said otherwise; S: max_sequences,
/// R: max_rows, H: max_head_rows):
///   u32 valid_rows, valid_sequences, valid_head_rows, handoff_slot
///   i32 row_id, row_position, row_sequence [R]; query_start [S + 1]; sequence_length,
///       sequence_slot [S]; head_row, head_sequence [H]
///   i32 block_table.<state group> [S, blocks_per_sequence]
///   f32 temperature, top_p, min_p, repetition_penalty, presence_penalty, frequency_penalty [S];
///   i32 top_k, penalty_window [S]; u64 seed [S]
/// A stage has those of them that its kernels read.
class StepBlock {
public:
  /// Errors: InvalidData (a field of another type, too short, or of an unknown name: nothing would
  /// ever fill it). Reads the plan only.
  static Result<StepBlock> create(const fb::Plan &plan, const fb::BlockLayout &layout);

  /// Copies the valid part of each field to `block`. `handoffNumber` says which slots of its
  /// handoffs the launch uses (Flow::slot).
  void write(const Step &step, uint32_t handoffNumber, std::byte *block) const;

private:
  enum class Source : uint8_t;
  struct Known;
  struct Copy {
    Source source;
    uint64_t offset;
    uint32_t group; ///< For block tables.
    uint32_t blocksPerSequence;
  };
  static const Known known[];

  std::vector<Copy> copies_;
};

/// Reads what a launch reported: i32 id [H], f32 log_probability [H], i32 top_id [H, 20],
/// f32 top_log_probability [H, 20], i32 nonfinite_layer [S].
class OutBlock {
public:
  /// Errors: as StepBlock::create.
  static Result<OutBlock> create(const fb::Plan &plan, const fb::BlockLayout &layout);

  /// As a launch begins, no sequence has a non-finite layer (kernels lower the number).
  void clear(std::byte *block) const;
  /// Lowers `result.nonfiniteLayer` of the first `sequences` to what this stage found; an entry
  /// that is -1 counts as none.
  void readNonfinite(const std::byte *block, uint32_t sequences, StepResult &result) const;
  /// Copies the first `rows` head rows.
  void readHead(const std::byte *block, uint32_t rows, StepResult &result) const;

private:
  static constexpr uint64_t absent = UINT64_MAX;
  uint64_t id_ = absent, logProbability_ = absent, topId_ = absent, topLogProbability_ = absent;
  uint64_t nonfinite_ = absent;
  uint32_t sequences_ = 0;
};

/// Errors: InvalidData (`field` is of another type or has fewer than `least` elements).
Status checkField(const fb::Field &field, std::string_view type, uint64_t least);

} // namespace strata
