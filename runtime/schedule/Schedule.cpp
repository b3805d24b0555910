#include "runtime/schedule/Schedule.h"

#include <algorithm>
#include <cassert>

#include "runtime/base/CheckedMath.h"
#include "runtime/schedule/RequestChecks.h"

namespace strata {

Result<std::unique_ptr<Schedule>> Schedule::create(ScheduleConfig config) {
  STRATA_RETURN_IF_ERROR(config.verify());
  return std::unique_ptr<Schedule>(new Schedule(std::move(config)));
}

Schedule::Schedule(ScheduleConfig config)
    : config_(std::move(config)), buckets_(config_), queue_(sequences_.end()) {
  allocators_.reserve(config_.groups.size());
  for (const ScheduleConfig::Group &group : config_.groups)
    allocators_.emplace_back(group.blocks, config_.maxSequences, group.blocksPerSequence,
                             group.blockOrder);
  running_.reserve(config_.maxSequences);
  freeSlots_.reserve(config_.maxSequences);
  for (uint32_t slot = config_.maxSequences; slot-- > 0;)
    freeSlots_.push_back(slot);
  ready_.reserve(config_.maxSequences);
  launches_.resize(launchesInFlight(config_.stages));
  batches_.resize(launches_.size());
  for (Batch &batch : batches_) {
    batch.parts.reserve(config_.maxSequences);
    batch.heads.reserve(buckets_.maxRows());
  }
}

Result<RequestId> Schedule::submit(Request request) { return enqueue(std::move(request), false); }

Result<RequestId> Schedule::submitScoring(std::vector<int32_t> prompt) {
  Request request;
  request.prompt = std::move(prompt);
  return enqueue(std::move(request), true);
}

Status Schedule::checkRequest(const Request &request, bool scoring) const {
  if (draining_)
    return makeError(StatusCode::FailedPrecondition,
                     "the engine is draining and takes no further request");
  size_t length = request.prompt.size();
  if (length == 0)
    return makeError(StatusCode::InvalidArgument,
                     "the prompt is empty; at least one token is needed to start from");
  if (length > config_.maxContext)
    return makeError(
        StatusCode::InvalidArgument,
        "the prompt has {} tokens but the plan's context holds {}; shorten the prompt or "
        "compile with a larger --max-context",
        length, config_.maxContext);
  if (!scoring && length == config_.maxContext)
    return makeError(
        StatusCode::InvalidArgument,
        "the prompt has {} tokens and the plan's context holds {}, which leaves no room "
        "for an answer; shorten the prompt or compile with a larger --max-context",
        length, config_.maxContext);
  for (size_t i = 0; i < length; ++i)
    if (request.prompt[i] < 0 || uint32_t(request.prompt[i]) >= config_.vocabularySize)
      return makeError(StatusCode::InvalidArgument,
                       "id {} at position {} of the prompt is outside the vocabulary of {} tokens",
                       request.prompt[i], i, config_.vocabularySize);
  if (request.maxTokens == 0)
    return makeError(StatusCode::InvalidArgument, "maxTokens is 0; at least 1 token is generated");
  return checkSampling(request, config_.vocabularySize);
}

Result<RequestId> Schedule::enqueue(Request request, bool scoring) {
  STRATA_RETURN_IF_ERROR(checkRequest(request, scoring));
  auto length = static_cast<uint32_t>(request.prompt.size());
  uint32_t limit = scoring ? 0 : std::min(request.maxTokens, config_.maxContext - length);
  for (const ScheduleConfig::Group &group : config_.groups) {
    uint32_t needed =
        config_.blocksNeeded(group, length + limit, std::min(length, buckets_.maxRows()));
    if (needed > group.blocks)
      return makeError(
          StatusCode::ResourceExhausted,
          "a prompt of {} tokens and an answer of up to {} need {} blocks of state group "
          "'{}', which has {}; ask for fewer tokens or give the state more memory",
          length, limit, needed, group.name, group.blocks);
  }
  auto inserted = sequences_.try_emplace(sequences_.end(), ++lastId_);
  Sequence &sequence = inserted->second;
  sequence.request = std::move(request);
  sequence.scoring = scoring;
  sequence.limit = limit;
  sequence.event.request = lastId_;
  if (queue_ == sequences_.end())
    queue_ = inserted;
  return lastId_;
}

Status Schedule::cancel(RequestId request) {
  auto found = sequences_.find(request);
  if (found == sequences_.end() || found->second.phase == Phase::Ended)
    return makeError(StatusCode::NotFound, "request {} is unknown or has already ended", request);
  end(found->second, FinishReason::Cancelled);
  return Status::ok();
}

void Schedule::skipToQueued() {
  while (queue_ != sequences_.end() && queue_->second.phase != Phase::Queued)
    ++queue_;
}

bool Schedule::reserveBlocks(const Sequence &sequence, uint32_t slot) {
  auto length = static_cast<uint32_t>(sequence.request.prompt.size());
  for (size_t i = 0; i < allocators_.size(); ++i) {
    uint32_t needed = config_.blocksNeeded(config_.groups[i], length + sequence.limit,
                                           std::min(length, buckets_.maxRows()));
    if (allocators_[i].reserve(slot, needed))
      continue;
    for (size_t taken = 0; taken < i; ++taken)
      allocators_[taken].release(slot);
    return false;
  }
  return true;
}

void Schedule::admit() {
  while (queue_ != sequences_.end() && !freeSlots_.empty()) {
    Sequence &sequence = queue_->second;
    uint32_t slot = freeSlots_.back();
    if (!reserveBlocks(sequence, slot))
      return;
    freeSlots_.pop_back();
    sequence.slot = slot;
    sequence.phase = Phase::Running;
    running_.push_back(&sequence);
    skipToQueued();
  }
}

bool Schedule::takeEvent(TokenEvent &event) {
  if (!firstEvent_)
    return false;
  Sequence &sequence = *firstEvent_;
  firstEvent_ = sequence.nextEvent;
  if (!firstEvent_)
    lastEvent_ = nullptr;
  event = sequence.event;
  sequence.hasEvent = false;
  sequence.nextEvent = nullptr;
  sequence.event = {.request = event.request};
  forget(sequence);
  return true;
}

void Schedule::pushEvent(Sequence &sequence) {
  if (sequence.hasEvent)
    return;
  sequence.hasEvent = true;
  (lastEvent_ ? lastEvent_->nextEvent : firstEvent_) = &sequence;
  lastEvent_ = &sequence;
}

// What it holds may be handed on though a step that it is part of is out: whoever gets it is part
// of later launches alone.
void Schedule::end(Sequence &sequence, FinishReason reason) {
  if (sequence.phase == Phase::Running) {
    for (BlockAllocator &allocator : allocators_)
      allocator.release(sequence.slot);
    freeSlots_.push_back(sequence.slot);
    std::erase(running_, &sequence);
  }
  sequence.phase = Phase::Ended;
  // An untaken token of a request that is then cancelled becomes its last event.
  sequence.event.finish = reason;
  pushEvent(sequence);
  skipToQueued();
}

void Schedule::forget(Sequence &sequence) {
  if (sequence.phase == Phase::Ended && !sequence.hasEvent && sequence.stepsOut == 0)
    sequences_.erase(sequence.event.request);
}

Status Schedule::launchDone(const StepResult &result) {
  if (launchesOut_ == 0)
    return makeError(StatusCode::FailedPrecondition, "no launch is out");
  const Launch launch = launches_[firstLaunch_];
  Batch &batch = *launch.batch;
  for (const Part &part : batch.parts)
    if (part.sequence->hasEvent && part.sequence->phase == Phase::Running)
      return makeError(StatusCode::FailedPrecondition,
                       "the last token of request {} has not been taken; the next one comes with "
                       "this launch",
                       part.sequence->event.request);
  if (result.id.size() < launch.headRows || result.logProbability.size() < launch.headRows)
    return makeError(StatusCode::Internal, "the result has {} ids for {} head rows",
                     result.id.size(), launch.headRows);
  for (uint32_t i = 0; i < launch.headRows; ++i)
    if (result.id[i] < 0 || uint32_t(result.id[i]) >= config_.vocabularySize)
      return makeError(StatusCode::Internal, "sampled id {} is outside the vocabulary of {} tokens",
                       result.id[i], config_.vocabularySize);

  firstLaunch_ = (firstLaunch_ + 1) % launches_.size();
  --launchesOut_;
  bool headAlone = !config_.buckets[launch.bucket].body;
  for (uint32_t i = 0; !headAlone && i < batch.parts.size(); ++i)
    noteNonfinite(batch.parts[i], result, i);
  // A launch of the head alone numbers its sequences by appearance; its rows stand in their order.
  uint32_t sequence = 0;
  for (uint32_t i = 0; i < launch.headRows; ++i) {
    const HeadRow &head = batch.heads[batch.headsDone + i];
    Part &part = batch.parts[head.part];
    part.sampled = true;
    part.id = result.id[i];
    part.logProbability = result.logProbability[i];
    sequence += i > 0 && head.part != batch.heads[batch.headsDone + i - 1].part;
    if (headAlone)
      noteNonfinite(part, result, sequence);
  }
  batch.headsDone += launch.headRows;
  if (batch.headsDone == batch.heads.size())
    finishStep(batch);
  return Status::ok();
}

void Schedule::noteNonfinite(Part &part, const StepResult &result, uint32_t sequence) {
  if (sequence < result.nonfiniteLayer.size() && part.nonfiniteLayer < 0)
    part.nonfiniteLayer = result.nonfiniteLayer[sequence];
}

void Schedule::finishStep(const Batch &batch) {
  firstBatch_ = (firstBatch_ + 1) % batches_.size();
  --batchesOut_;
  ++stepsEnded_;
  for (const Part &part : batch.parts)
    finishPart(part);
}

void Schedule::finishPart(const Part &part) {
  Sequence &sequence = *part.sequence;
  --sequence.stepsOut;
  if (sequence.phase == Phase::Ended) // with the step before this one, or it was withdrawn
    return forget(sequence);
  if (part.nonfiniteLayer >= 0) {
    sequence.event.nonfiniteLayer = part.nonfiniteLayer;
    return end(sequence, FinishReason::NonFinite);
  }
  if (sequence.scoring) {
    if (part.isLast)
      end(sequence, FinishReason::Length);
    return;
  }
  if (!part.sampled)
    return;
  ++sequence.generated;
  sequence.event.id = part.id;
  sequence.event.logProbability = part.logProbability;
  const std::vector<int32_t> &ends = config_.endOfGeneration;
  if (!sequence.request.ignoreEndOfGeneration &&
      std::find(ends.begin(), ends.end(), part.id) != ends.end())
    return end(sequence, FinishReason::Stop);
  if (sequence.generated == sequence.limit)
    return end(sequence, FinishReason::Length);
  pushEvent(sequence);
}

} // namespace strata
