#include "runtime/stage/PlanExecutor.h"

#include <algorithm>
#include <thread>

#include "runtime/base/CheckedMath.h"
#include "runtime/plan/PlanAccess.h"

namespace strata {

Result<std::unique_ptr<PlanExecutor>> PlanExecutor::create(std::shared_ptr<const PlanFile> file,
                                                           const ExecutorOptions &options) {
  std::unique_ptr<PlanExecutor> executor(new PlanExecutor(std::move(file), options));
  if (Status status = executor->boot(); !status.isOk())
    return std::move(status).at("plan", executor->file_->path());
  return executor;
}

PlanExecutor::~PlanExecutor() = default;

Status PlanExecutor::boot() {
  const fb::Plan &plan = file_->plan();
  groups_ = stateGroups(plan);
  if (options_.randomWeightsSeed && plan.weights_place() != fb::WeightsPlace::None)
    return makeError(StatusCode::InvalidArgument,
                     "random weights (--random-weights) fill a plan without weights, but this one "
                     "has its own; leave the seed out");
  for (const fb::Stage *stage : *plan.stages())
    STRATA_RETURN_IF_ERROR(Stage::check(plan, *stage));
  STRATA_RETURN_IF_ERROR(countBlocks());

  uint32_t threads = options_.threads;
  if (threads == 0)
    threads = std::max(1u, std::thread::hardware_concurrency());
  STRATA_ASSIGN_OR_RETURN(std::shared_ptr<WorkerPool> pool, WorkerPool::create(threads));
  for (uint32_t i = 0; i < plan.stages()->size(); ++i) {
    std::string name = plan.stages()->size() == 1 ? "cpu" : fmt::format("cpu {}", i);
    std::string_view target = text(plan.stages()->Get(i)->target());
    STRATA_ASSIGN_OR_RETURN(auto device, CpuDevice::create(std::move(name), target, pool));
    devices_.push_back(std::move(device));
  }
  STRATA_RETURN_IF_ERROR(takeRings());
  for (uint32_t i = 0; i < plan.stages()->size(); ++i) {
    STRATA_ASSIGN_OR_RETURN(auto stage,
                            Stage::load(*file_, i, *devices_[i],
                                        {.rings = rings_,
                                         .blockCounts = blockCounts_,
                                         .randomWeightsSeed = options_.randomWeightsSeed,
                                         .keepOperands = bool(options_.observer)}));
    stages_.push_back(std::move(stage));
    devices_[i]->lock();
    if (options_.observer)
      observe(i);
  }
  return {};
}

// The promise, or what the options ask for; a lone sequence of max_context tokens always fits.
Status PlanExecutor::countBlocks() {
  const fb::Plan &plan = file_->plan();
  if (options_.sequences > plan.max_sequences())
    return makeError(
        StatusCode::InvalidArgument,
        "state for {} sequences was asked for but the plan has room for {}; compile with "
        "a larger --max-seqs",
        options_.sequences, plan.max_sequences());
  for (const fb::StateGroup *group : groups_) {
    // A window's table is wider than the blocks that a sequence holds at once.
    uint64_t perSequence = group->kind() == fb::StateKind::Window
                               ? ceilDiv(group->promised_blocks(), plan.max_sequences())
                               : group->blocks_per_sequence();
    uint64_t blocks = group->promised_blocks();
    if (options_.sequences > 0)
      blocks = perSequence * options_.sequences;
    if (options_.kvTokens > 0 && group->kind() == fb::StateKind::Paged) {
      uint64_t asked = ceilDiv(options_.kvTokens, group->block_tokens());
      blocks = std::max(options_.sequences > 0 ? blocks : perSequence, asked);
    }
    if (blocks > uint64_t(INT32_MAX))
      return makeError(StatusCode::InvalidArgument,
                       "state '{}' would have {} blocks; {} can be numbered", text(group->name()),
                       blocks, INT32_MAX);
    blockCounts_.push_back(uint32_t(blocks));
  }
  return {};
}

Status PlanExecutor::takeRings() {
  const auto *handoffs = file_->plan().handoffs();
  for (uint32_t i = 0; i < count(handoffs); ++i) {
    const fb::Handoff &handoff = *handoffs->Get(i);
    uint64_t bytes = handoff.slot_bytes() * handoff.slots();
    STRATA_ASSIGN_OR_RETURN(std::byte * base,
                            devices_[handoff.consumer()]->allocate(
                                fmt::format("handoff '{}'", text(handoff.name())), bytes));
    rings_.emplace_back(base, bytes);
  }
  return {};
}

void PlanExecutor::observe(uint32_t index) {
  devices_[index]->observe([this, index](LineId line, uint32_t command) {
    uint32_t bucket = stages_[index]->bucketOf(line);
    options_.observer({index, bucket, command, stages_[index]->operands(bucket, command)});
  });
}

uint64_t PlanExecutor::takenBytes() const {
  uint64_t bytes = 0;
  for (const auto &device : devices_)
    bytes += device->takenBytes();
  return bytes;
}

Status PlanExecutor::run(const Step &step, StepResult &result) {
  STRATA_RETURN_IF_ERROR(checkStep(step, result));
  const fb::Bucket &bucket = *file_->plan().buckets()->Get(step.bucket);
  std::fill_n(result.nonfiniteLayer.begin(), step.validSequences, -1);
  logits_ = {};
  for (const auto &stage : stages_) {
    if (!stage->hasForward(step.bucket))
      continue;
    STRATA_RETURN_IF_ERROR(stage->run(step, options_.stall));
    stage->out().readNonfinite(stage->memory().out.data(), step.validSequences, result);
  }
  if (!bucket.head())
    return {};
  const Stage &head = *stages_.back();
  head.out().readHead(head.memory().out.data(), step.validHeadRows, result);
  if (const float *logits = head.logits(step.bucket))
    logits_ = {logits, size_t(step.validHeadRows) * file_->plan().vocabulary_size()};
  // Sampled ids go back to where the next step embeds them.
  if (stages_.size() > 1 && !stages_.front()->lastIds().empty())
    std::ranges::copy(head.lastIds(), stages_.front()->lastIds().begin());
  return {};
}

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

// Kernels trust the step block, so what reaches it is checked here: a few comparisons a row.
Status PlanExecutor::checkStep(const Step &step, const StepResult &result) const {
  const fb::Plan &plan = file_->plan();
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
  if (step.sampling.size() < step.validSequences ||
      result.nonfiniteLayer.size() < step.validSequences || result.id.size() < step.validHeadRows ||
      result.logProbability.size() < step.validHeadRows ||
      result.topId.size() < size_t(step.validHeadRows) * topTokens ||
      result.topLogProbability.size() < size_t(step.validHeadRows) * topTokens)
    return refuse("the step or its result is sized below {} sequences and {} head rows",
                  step.validSequences, step.validHeadRows);
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
  STRATA_RETURN_IF_ERROR(checkStarts(step));
  return bucket.body() ? checkBlocks(step) : Status();
}

Status PlanExecutor::checkStarts(const Step &step) const {
  const fb::Plan &plan = file_->plan();
  for (const SequenceStart &start : step.starts) {
    uint64_t words = start.allowed.empty() ? 0 : maskWords(plan.vocabulary_size());
    if (start.slot < 0 || uint32_t(start.slot) >= plan.max_sequences() ||
        start.ids.size() > plan.max_context() || start.biases.size() > maxLogitBiases ||
        start.allowed.size() != words)
      return refuse("a sequence starts in slot {} of {} with {} tokens of {}, {} biases of {} and "
                    "{} words of mask for {}",
                    start.slot, plan.max_sequences(), start.ids.size(), plan.max_context(),
                    start.biases.size(), maxLogitBiases, start.allowed.size(), words);
  }
  return {};
}

// The blocks that a row's attention or its KV write reaches are in the pool.
Status PlanExecutor::checkBlocks(const Step &step) const {
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

} // namespace strata
