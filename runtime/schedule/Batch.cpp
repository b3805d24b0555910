// How the schedule builds a step: who takes part, which bucket runs it, what the launches hold.
#include <algorithm>
#include <cassert>

#include "runtime/base/CheckedMath.h"
#include "runtime/schedule/Schedule.h"

namespace strata {

Step Schedule::makeStep() const {
  Step step;
  for (auto *rows : {&step.rowId, &step.rowPosition, &step.rowSequence})
    rows->resize(buckets_.maxRows());
  step.queryStart.resize(config_.maxSequences + 1);
  step.sequenceLength.resize(config_.maxSequences);
  step.sequenceSlot.resize(config_.maxSequences);
  step.sampling.resize(config_.maxSequences);
  step.starts.reserve(config_.maxSequences);
  for (const ScheduleConfig::Group &group : config_.groups)
    step.blockTables.emplace_back(size_t{config_.maxSequences} * group.blocksPerSequence, -1);
  step.headRow.resize(buckets_.maxHeadRows());
  step.headSequence.resize(buckets_.maxHeadRows());
  return step;
}

StepResult Schedule::makeResult() const {
  StepResult result;
  uint32_t rows = buckets_.maxHeadRows();
  result.id.resize(rows);
  result.logProbability.resize(rows);
  result.topId.resize(size_t{rows} * topTokens);
  result.topLogProbability.resize(size_t{rows} * topTokens);
  result.nonfiniteLayer.resize(config_.maxSequences, -1);
  return result;
}

bool Schedule::next(Step &step) {
  if (launched_)
    return false;
  step.starts.clear();
  if (midStep_) {
    fillHeadAlone(step);
  } else {
    if (firstEvent_)
      return false;
    admit();
    if (!chooseParts())
      return false;
    bucket_ = chooseBucket();
    midStep_ = true;
    fillBody(step);
  }
  step.bucket = bucket_;
  launched_ = true;
  return true;
}

void Schedule::addPart(Sequence &sequence, uint32_t rows) {
  parts_.push_back({.sequence = &sequence, .rows = rows});
  batchRows_ += rows;
}

bool Schedule::chooseParts() {
  parts_.clear();
  batchRows_ = 0;
  // Every sequence that generates was once part of a batch as large as this one, which only gave
  // room to prompts after all that generated: a bucket for them exists.
  for (Sequence *sequence : running_)
    if (sequence->promptLeft() == 0)
      addPart(*sequence, 1);
  for (Sequence *sequence : running_) {
    if (sequence->promptLeft() == 0)
      continue;
    uint32_t budget = buckets_.rowsFor(static_cast<uint32_t>(parts_.size()) + 1);
    if (budget <= batchRows_)
      break;
    addPart(*sequence, std::min(sequence->promptLeft(), budget - batchRows_));
  }
  return !parts_.empty();
}

uint32_t Schedule::chooseBucket() {
  Part &first = parts_.front();
  if (parts_.size() == 1 && first.sequence->promptLeft() > 0 &&
      first.sequence->promptLeft() <= config_.tails.size()) {
    uint32_t bucket = followTail(*first.sequence);
    batchRows_ = first.rows = std::min(first.rows, config_.buckets[bucket].rows);
    return bucket;
  }
  bool wantsHead = std::any_of(parts_.begin(), parts_.end(), [](const Part &part) {
    return part.sequence->scoring || part.rows >= part.sequence->promptLeft();
  });
  return buckets_.body(batchRows_, static_cast<uint32_t>(parts_.size()), wantsHead);
}

uint32_t Schedule::followTail(Sequence &sequence) {
  // Once begun, a tail is followed to its end or to a step that others share. That step takes all
  // that is left: the sequence is the oldest one reading, and what is left is less than a chunk.
  if (sequence.tail == 0)
    sequence.tail = sequence.promptLeft();
  return config_.tails[sequence.tail - 1][sequence.tailIndex++];
}

void Schedule::setSequence(Step &step, uint32_t index, const Sequence &sequence, uint32_t length) {
  step.sequenceLength[index] = static_cast<int32_t>(length);
  step.sequenceSlot[index] = static_cast<int32_t>(sequence.slot);
  step.sampling[index] = sequence.request.sampling;
}

void Schedule::fillSequence(Step &step, uint32_t index, uint32_t firstRow) {
  const Part &part = parts_[index];
  Sequence &sequence = *part.sequence;
  uint32_t begin = sequence.position, end = begin + part.rows;
  for (size_t i = 0; i < allocators_.size(); ++i) {
    const ScheduleConfig::Group &group = config_.groups[i];
    uint32_t visible = group.window && begin >= group.window ? begin - (group.window - 1) : 0;
    allocators_[i].hold(sequence.slot, visible / group.blockTokens,
                        static_cast<uint32_t>(ceilDiv(end, group.blockTokens)));
    std::ranges::copy(allocators_[i].table(sequence.slot),
                      step.blockTables[i].begin() + size_t{index} * group.blocksPerSequence);
  }
  bool reading = sequence.promptLeft() > 0;
  for (uint32_t i = 0; i < part.rows; ++i) {
    step.rowId[firstRow + i] = reading ? sequence.request.prompt[begin + i] : -1;
    step.rowPosition[firstRow + i] = static_cast<int32_t>(begin + i);
    step.rowSequence[firstRow + i] = static_cast<int32_t>(index);
  }
  setSequence(step, index, sequence, end);
  if (begin == 0)
    step.starts.push_back({.slot = static_cast<int32_t>(sequence.slot),
                           .ids = sequence.request.prompt,
                           .biases = sequence.request.logitBias,
                           .allowed = sequence.request.allowedTokens});
  step.queryStart[index] = static_cast<int32_t>(firstRow);
  for (uint32_t i = sequence.scoring ? 0 : part.rows - 1; i < part.rows; ++i)
    if (sequence.scoring || part.rows >= sequence.promptLeft())
      heads_.push_back({firstRow + i, index});
  sequence.inStep = true;
}

void Schedule::fillBody(Step &step) {
  heads_.clear();
  uint32_t row = 0;
  for (uint32_t i = 0; i < parts_.size(); ++i) {
    fillSequence(step, i, row);
    row += parts_[i].rows;
  }
  step.queryStart[parts_.size()] = static_cast<int32_t>(row);
  step.validRows = row;
  step.validSequences = static_cast<uint32_t>(parts_.size());
  headsDone_ = 0;
  headsLaunched_ = config_.buckets[bucket_].head ? static_cast<uint32_t>(heads_.size()) : 0;
  step.validHeadRows = headsLaunched_;
  for (uint32_t i = 0; i < headsLaunched_; ++i) {
    step.headRow[i] = static_cast<int32_t>(heads_[i].row);
    step.headSequence[i] = static_cast<int32_t>(heads_[i].part);
  }
}

void Schedule::fillHeadAlone(Step &step) {
  uint32_t begin = headsLaunched_;
  uint32_t rows =
      std::min(static_cast<uint32_t>(heads_.size()) - begin, buckets_.maxHeadAloneRows());
  auto sequencesOf = [&](uint32_t count) {
    uint32_t sequences = 1;
    for (uint32_t i = 1; i < count; ++i)
      sequences += heads_[begin + i].part != heads_[begin + i - 1].part;
    return sequences;
  };
  std::optional<uint32_t> bucket;
  while (!(bucket = buckets_.headAlone(rows, sequencesOf(rows))))
    --rows; // One row of one sequence fits any bucket.
  bucket_ = *bucket;

  uint32_t sequences = 0;
  step.queryStart[0] = 0;
  for (uint32_t i = 0; i < rows; ++i) {
    const HeadRow &head = heads_[begin + i];
    if (i == 0 || head.part != heads_[begin + i - 1].part) {
      const Part &part = parts_[head.part];
      setSequence(step, sequences, *part.sequence, part.sequence->position + part.rows);
      step.queryStart[++sequences] = 0;
    }
    step.headRow[i] = static_cast<int32_t>(head.row);
    step.headSequence[i] = static_cast<int32_t>(sequences - 1);
  }
  step.validRows = 0;
  step.validSequences = sequences;
  step.validHeadRows = rows;
  headsLaunched_ = begin + rows;
}

} // namespace strata
