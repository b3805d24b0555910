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
  step.moves.reserve(maxStateMoves);
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
  if (launchesOut_ == launches_.size())
    return false;
  step.starts.clear();
  step.moves.clear();
  uint32_t bucket;
  if (batchesOut_ > 0 && newestBatch().headsLaunched < newestBatch().heads.size()) {
    bucket = fillHeadAlone(step, newestBatch());
  } else {
    if (firstEvent_)
      return false;
    admit();
    Batch &batch = batches_[(firstBatch_ + batchesOut_) % batches_.size()];
    if (!chooseParts(batch))
      return false;
    bucket = chooseBucket(batch);
    ++batchesOut_;
    batch.number = ++stepsBegun_;
    fillBody(step, batch, bucket);
  }
  Batch &batch = newestBatch();
  step.bucket = bucket;
  step.returnsIds = !batch.heads.empty() && batch.headsLaunched == batch.heads.size();
  launches_[(firstLaunch_ + launchesOut_++) % launches_.size()] = {&batch, bucket,
                                                                   step.validHeadRows};
  return true;
}

void Schedule::addPart(Batch &batch, Sequence &sequence, uint32_t rows) {
  batch.parts.push_back({.sequence = &sequence, .rows = rows, .begin = sequence.position});
  batch.rows += rows;
}

bool Schedule::chooseParts(Batch &batch) {
  batch.parts.clear();
  batch.heads.clear();
  batch.rows = batch.headsLaunched = batch.headsDone = 0;
  chooseGroup(batch, config_.stages);
  batch.generates = !batch.parts.empty();
  for (Sequence *sequence : running_) {
    if (!sequence->isReading())
      continue;
    uint32_t budget = buckets_.rowsFor(static_cast<uint32_t>(batch.parts.size()) + 1);
    if (budget <= batch.rows)
      break;
    addPart(batch, *sequence, std::min(sequence->promptLeft(), budget - batch.rows));
  }
  // Nothing is there that need not wait: a step that will, ready when its ids are.
  if (batch.parts.empty()) {
    chooseGroup(batch, 1);
    batch.generates = !batch.parts.empty();
  }
  return !batch.parts.empty();
}

// One row of each sequence of a group, of those whose last step has ended or is `distance` steps
// back. On one stage all that generate are the group, and every one of them was once part of a
// batch as large, which only gave room to prompts after all that generated: a bucket for them
// exists. A group of several may have grown past every bucket.
void Schedule::chooseGroup(Batch &batch, uint32_t distance) {
  uint32_t generating = 0;
  ready_.clear();
  for (Sequence *sequence : running_) {
    if (!sequence->isGenerating())
      continue;
    ++generating;
    bool isFar = sequence->lastStep + distance <= stepsBegun_ + 1;
    if (sequence->stepsOut == 0 || (sequence->stepsOut == 1 && isFar))
      ready_.push_back(sequence);
  }
  // Whoever waits longest goes first, then whoever was admitted first.
  std::ranges::sort(ready_, {}, [](const Sequence *sequence) {
    return std::pair(sequence->lastStep, sequence->event.request);
  });
  uint32_t groupsNear = 0;
  for (uint32_t i = 0; i < batchesOut_; ++i) {
    const Batch &out = batches_[(firstBatch_ + i) % batches_.size()];
    groupsNear += out.generates && out.number + distance > stepsBegun_ + 1;
  }
  // As many groups as stages, of sizes that differ by one.
  auto most = static_cast<uint32_t>(std::min(ceilDiv(generating, config_.stages),
                                             ceilDiv(ready_.size(), config_.stages - groupsNear)));
  for (Sequence *sequence : ready_) {
    auto size = static_cast<uint32_t>(batch.parts.size());
    if (size == most || buckets_.rowsFor(size + 1) <= size)
      return;
    addPart(batch, *sequence, 1);
  }
}

uint32_t Schedule::chooseBucket(Batch &batch) {
  Part &first = batch.parts.front();
  if (batch.parts.size() == 1 && first.sequence->isReading() &&
      first.sequence->promptLeft() <= config_.tails.size()) {
    uint32_t bucket = followTail(*first.sequence);
    batch.rows = first.rows = std::min(first.rows, config_.buckets[bucket].rows);
    return bucket;
  }
  for (Part &part : batch.parts)
    part.sequence->tail = part.sequence->tailIndex =
        0; // a tail begun goes on from here, if it does
  bool wantsHead = std::any_of(batch.parts.begin(), batch.parts.end(), [](const Part &part) {
    return part.sequence->scoring || part.rows >= part.sequence->promptLeft();
  });
  return buckets_.body(batch.rows, static_cast<uint32_t>(batch.parts.size()), wantsHead);
}

uint32_t Schedule::followTail(Sequence &sequence) {
  // Once begun, a tail is followed to its end or to a step that others share.
  if (sequence.tail == 0)
    sequence.tail = sequence.promptLeft();
  return config_.tails[sequence.tail - 1][sequence.tailIndex++];
}

void Schedule::setSequence(Step &step, uint32_t index, const Sequence &sequence, uint32_t length) {
  step.sequenceLength[index] = static_cast<int32_t>(length);
  step.sequenceSlot[index] = static_cast<int32_t>(sequence.slot);
  step.sampling[index] = sequence.request.sampling;
}

void Schedule::fillSequence(Step &step, Batch &batch, uint32_t index, uint32_t firstRow) {
  Part &part = batch.parts[index];
  Sequence &sequence = *part.sequence;
  uint32_t begin = part.begin, end = begin + part.rows;
  for (size_t i = 0; i < allocators_.size(); ++i) {
    const ScheduleConfig::Group &group = config_.groups[i];
    uint32_t visible = group.window && begin >= group.window ? begin - (group.window - 1) : 0;
    allocators_[i].hold(sequence.slot, visible / group.blockTokens,
                        static_cast<uint32_t>(ceilDiv(end, group.blockTokens)));
    std::ranges::copy(allocators_[i].table(sequence.slot),
                      step.blockTables[i].begin() + size_t{index} * group.blocksPerSequence);
  }
  bool reading = sequence.isReading();
  part.isLast = part.rows >= sequence.promptLeft();
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
    if (sequence.scoring || part.isLast)
      batch.heads.push_back({firstRow + i, index});
  sequence.drawn += part.isLast && !sequence.scoring;
  sequence.position = end;
  sequence.lastStep = stepsBegun_;
  ++sequence.stepsOut;
}

// Launches run in order on every stage: those that are out read a block before it moves, and what
// it leaves is free for this one.
void Schedule::fillMoves(Step &step) {
  for (uint32_t g = 0; compacting_ && g < allocators_.size(); ++g)
    for (StateMove move{.group = g};
         step.moves.size() < maxStateMoves && allocators_[g].compact(move.from, move.to);)
      step.moves.push_back(move);
  compacting_ = step.moves.size() == maxStateMoves;
}

void Schedule::fillBody(Step &step, Batch &batch, uint32_t bucket) {
  fillMoves(step);
  uint32_t row = 0;
  for (uint32_t i = 0; i < batch.parts.size(); ++i) {
    fillSequence(step, batch, i, row);
    row += batch.parts[i].rows;
  }
  step.queryStart[batch.parts.size()] = static_cast<int32_t>(row);
  step.validRows = row;
  step.validSequences = static_cast<uint32_t>(batch.parts.size());
  batch.headsLaunched =
      config_.buckets[bucket].head ? static_cast<uint32_t>(batch.heads.size()) : 0;
  step.validHeadRows = batch.headsLaunched;
  for (uint32_t i = 0; i < batch.headsLaunched; ++i) {
    step.headRow[i] = static_cast<int32_t>(batch.heads[i].row);
    step.headSequence[i] = static_cast<int32_t>(batch.heads[i].part);
  }
}

uint32_t Schedule::fillHeadAlone(Step &step, Batch &batch) {
  const std::vector<HeadRow> &heads = batch.heads;
  uint32_t begin = batch.headsLaunched;
  uint32_t rows =
      std::min(static_cast<uint32_t>(heads.size()) - begin, buckets_.maxHeadAloneRows());
  auto sequencesOf = [&](uint32_t count) {
    uint32_t sequences = 1;
    for (uint32_t i = 1; i < count; ++i)
      sequences += heads[begin + i].part != heads[begin + i - 1].part;
    return sequences;
  };
  std::optional<uint32_t> bucket;
  while (!(bucket = buckets_.headAlone(rows, sequencesOf(rows))))
    --rows; // One row of one sequence fits any bucket.

  uint32_t sequences = 0;
  step.queryStart[0] = 0;
  for (uint32_t i = 0; i < rows; ++i) {
    const HeadRow &head = heads[begin + i];
    if (i == 0 || head.part != heads[begin + i - 1].part) {
      const Part &part = batch.parts[head.part];
      setSequence(step, sequences, *part.sequence, part.begin + part.rows);
      step.queryStart[++sequences] = 0;
    }
    step.headRow[i] = static_cast<int32_t>(head.row);
    step.headSequence[i] = static_cast<int32_t>(sequences - 1);
  }
  step.validRows = 0;
  step.validSequences = sequences;
  step.validHeadRows = rows;
  batch.headsLaunched = begin + rows;
  return *bucket;
}

} // namespace strata
