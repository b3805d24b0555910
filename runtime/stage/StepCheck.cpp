#include "runtime/stage/StepCheck.h"

#include "runtime/plan/PlanAccess.h"
#include "runtime/plan/PlanFile.h"

namespace strata {
namespace {

template <class... Args> Status refuse(fmt::format_string<Args...> format, Args &&...args) {
  return makeError(StatusCode::Internal, format, std::forward<Args>(args)...);
}

/// The first `valid` entries exist and lie in [least, limit).
Status checkEntries(std::string_view what, const std::vector<int32_t> &entries, size_t valid,
                    int64_t least, int64_t limit) {
  if (entries.size() < valid)
    return refuse("the step has {} entries of {} for {}", entries.size(), what, valid);
  for (size_t i = 0; i < valid; ++i)
    if (entries[i] < least || entries[i] >= limit)
      return refuse("{} {} of the step is {}; {} to {} are allowed", what, i, entries[i], least,
                    limit - 1);
  return {};
}

} // namespace

// The blocks that a row's attention or its KV write reaches are in the pool.
Status StepCheck::blocks(const Step &step) const {
  if (step.blockTables.size() < groups_.size())
    return refuse("the step has block tables of {} state groups; the plan has {}",
                  step.blockTables.size(), groups_.size());
  for (size_t g = 0; g < groups_.size(); ++g) {
    const fb::StateGroup &group = *groups_[g];
    uint64_t perSequence = group.blocks_per_sequence();
    const std::vector<int32_t> &table = step.blockTables[g];
    if (table.size() < perSequence * step.validSequences)
      return refuse("the block table of state '{}' has {} entries; {} sequences need {}",
                    text(group.name()), table.size(), step.validSequences,
                    perSequence * step.validSequences);
    if (group.kind() == fb::StateKind::SlotPerSequence)
      STRATA_RETURN_IF_ERROR(runs(step));
    for (uint32_t row = 0; row < step.validRows; ++row) {
      uint64_t position = uint64_t(step.rowPosition[row]);
      uint64_t sequence = uint64_t(step.rowSequence[row]);
      bool isFirst = row == 0 || step.rowSequence[row - 1] != step.rowSequence[row];
      uint64_t last = position / group.block_tokens();
      uint64_t first = last;
      if (isFirst) // later rows of the sequence see no older token than its first
        first = group.window() > position || group.window() == 0
                    ? 0
                    : (position - group.window() + 1) / group.block_tokens();
      if (group.kind() == fb::StateKind::SlotPerSequence)
        first = last = 0;
      if (last >= perSequence)
        return refuse("row {} at position {} is past the {} blocks of state '{}'", row, position,
                      perSequence, text(group.name()));
      for (uint64_t logical = first; logical <= last; ++logical) {
        int32_t block = table[sequence * perSequence + logical];
        if (block < 0 || uint32_t(block) >= blockCounts_[g])
          return refuse(
              "row {} at position {} needs block {} of state '{}', which is number {} of a "
              "pool of {}",
              row, position, logical, text(group.name()), block, blockCounts_[g]);
      }
    }
  }
  return {};
}

// Recurrences walk a sequence's rows by query_start, and know their slot by the sequence.
Status StepCheck::runs(const Step &step) const {
  for (uint32_t sequence = 0; sequence < step.validSequences; ++sequence) {
    int32_t begin = step.queryStart[sequence], end = step.queryStart[sequence + 1];
    bool isOwn = begin <= end && uint32_t(end) <= step.validRows;
    for (int32_t row = begin; isOwn && row < end; ++row)
      isOwn = uint32_t(step.rowSequence[row]) == sequence;
    if (!isOwn)
      return refuse("sequence {} of the step has rows {} to {} of {}, which are not its own",
                    sequence, begin, end, step.validRows);
  }
  return {};
}

Status StepCheck::step(const Step &step) const {
  const fb::Plan &plan = plan_;
  if (step.bucket >= plan.buckets()->size())
    return refuse("bucket {} of {} launched", step.bucket, plan.buckets()->size());
  const fb::Bucket &bucket = *plan.buckets()->Get(step.bucket);
  uint32_t rows = bucket.body() ? bucket.rows() : plan.max_rows();
  uint32_t sequences = bucket.body() ? bucket.sequences() : plan.max_sequences();
  uint32_t heads = bucket.head() ? bucket.rows() : 0;
  if (step.validRows > rows || step.validSequences > sequences || step.validHeadRows > heads)
    return refuse("bucket '{}' was given {} rows of {}, {} sequences of {} and {} head rows of {}",
                  text(bucket.name()), step.validRows, rows, step.validSequences, sequences,
                  step.validHeadRows, heads);
  if (step.sampling.size() < step.validSequences)
    return refuse("the step has sampling parameters of {} sequences; it needs those of {}",
                  step.sampling.size(), step.validSequences);
  const uint32_t valid = step.validRows;
  STRATA_RETURN_IF_ERROR(checkEntries("sequence_slot", step.sequenceSlot, step.validSequences, 0,
                                      plan.max_sequences()));
  STRATA_RETURN_IF_ERROR(checkEntries("sequence_length", step.sequenceLength, step.validSequences,
                                      0, int64_t(plan.max_context()) + 1));
  STRATA_RETURN_IF_ERROR(
      checkEntries("query_start", step.queryStart, step.validSequences + 1, 0, int64_t(rows) + 1));
  STRATA_RETURN_IF_ERROR(
      checkEntries("head_row", step.headRow, step.validHeadRows, 0, plan.max_rows()));
  STRATA_RETURN_IF_ERROR(
      checkEntries("head_sequence", step.headSequence, step.validHeadRows, 0, step.validSequences));
  STRATA_RETURN_IF_ERROR(checkEntries("row_id", step.rowId, valid, -1, plan.vocabulary_size()));
  STRATA_RETURN_IF_ERROR(
      checkEntries("row_position", step.rowPosition, valid, 0, plan.max_context()));
  STRATA_RETURN_IF_ERROR(
      checkEntries("row_sequence", step.rowSequence, valid, 0, step.validSequences));
  STRATA_RETURN_IF_ERROR(starts(step));
  STRATA_RETURN_IF_ERROR(moves(step, bucket.body()));
  return bucket.body() ? blocks(step) : Status();
}

Status StepCheck::moves(const Step &step, bool isBody) const {
  if (step.moves.size() > (isBody ? maxStateMoves : 0))
    return refuse("{} blocks move before bucket '{}'; {} may", step.moves.size(),
                  text(plan_.buckets()->Get(step.bucket)->name()), isBody ? maxStateMoves : 0);
  for (const StateMove &move : step.moves) {
    if (move.group >= groups_.size())
      return refuse("a block of state group {} of {} moves", move.group, groups_.size());
    int64_t blocks = blockCounts_[move.group];
    if (move.from < 0 || move.from >= blocks || move.to < 0 || move.to >= blocks ||
        move.from == move.to)
      return refuse("block {} of state '{}' moves to block {} of a pool of {}", move.from,
                    text(groups_[move.group]->name()), move.to, blocks);
  }
  return {};
}

Status StepCheck::starts(const Step &step) const {
  if (step.starts.size() > plan_.max_sequences())
    return refuse("{} sequences start of {}", step.starts.size(), plan_.max_sequences());
  for (const SequenceStart &start : step.starts) {
    uint64_t words = start.allowed.empty() ? 0 : maskWords(plan_.vocabulary_size());
    if (start.slot < 0 || uint32_t(start.slot) >= plan_.max_sequences() ||
        start.ids.size() > plan_.max_context() || start.biases.size() > maxLogitBiases ||
        start.allowed.size() != words)
      return refuse("a sequence starts in slot {} of {} with {} tokens of {}, {} biases of {} and "
                    "{} words of mask for {}",
                    start.slot, plan_.max_sequences(), start.ids.size(), plan_.max_context(),
                    start.biases.size(), maxLogitBiases, start.allowed.size(), words);
  }
  return {};
}

Status StepCheck::result(const StepResult &result, uint32_t sequences, uint32_t headRows) const {
  size_t tops = size_t(headRows) * topTokens;
  if (result.nonfiniteLayer.size() < sequences || result.id.size() < headRows ||
      result.logProbability.size() < headRows || result.topId.size() < tops ||
      result.topLogProbability.size() < tops)
    return refuse("the result is sized below {} sequences and {} head rows", sequences, headRows);
  return {};
}

} // namespace strata
