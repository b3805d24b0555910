// The schedule: requests in, launches out. A pure state machine with no threads, no clock and no
// device, so that a test can put it through every order of events.
//
//   while (schedule->next(step)) submit `step`;      as many as may be out
//   wait for the oldest; schedule->launchDone(result);
//   while (schedule->takeEvent(event)) ...
//
// Continuous batching, first come first served: a request is admitted when a sequence slot and
// every block that it can ever hold are free, never before an older one, and is never preempted. A
// step takes one row of each sequence that is generating and fills what the bucket leaves with
// prompt chunks of the oldest sequences still reading.
//
// As many launches are out as keep all stages busy, and one more. Chunks of a prompt follow each
// other without waiting. A sequence that generates needs its own last token, which stays on the
// devices: its next step is given out while the host still waits for that token, and is for nothing
// where the token turns out to be the sequence's last. Over `s` stages the sequences that generate
// form as many groups, each a step of its own, and a step takes none whose last one is among the
// `s - 1` before it: those have not come to their end when it begins. Launches run in order on
// every stage: a block or slot may be handed on as soon as the last launch that needs it has been
// given out.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "runtime/base/Status.h"
#include "runtime/schedule/BlockAllocator.h"
#include "runtime/schedule/Buckets.h"
#include "runtime/schedule/Request.h"
#include "runtime/schedule/ScheduleConfig.h"
#include "runtime/stage/Executor.h"
#include "runtime/stage/Flow.h"

namespace strata {

/// Used from one thread at a time. After construction only submit() and submitScoring() allocate,
/// and those only the request itself.
class Schedule {
public:
  /// Errors: those of ScheduleConfig::verify().
  static Result<std::unique_ptr<Schedule>> create(ScheduleConfig config);

  /// A step and a result sized to the largest launch, for next() and launchDone().
  Step makeStep() const;
  StepResult makeResult() const;

  /// Queues a request; ids count up from 1. Errors: InvalidArgument (a prompt that is empty, holds
  /// an id outside the vocabulary or leaves no room in the context; sampling out of range),
  /// ResourceExhausted (more blocks than the pool has), FailedPrecondition (after drain()).
  Result<RequestId> submit(Request request);

  /// Queues a prompt whose every position is put through the head and which generates nothing; it
  /// may fill the whole context. Its last event says Length. Errors: as submit().
  Result<RequestId> submitScoring(std::vector<int32_t> prompt);

  /// Withdraws a request; its Cancelled event is there at once.
  /// Errors: NotFound (unknown, or already ended).
  Status cancel(RequestId request);

  /// Refuses further requests; those accepted run on.
  void drain() { draining_ = true; }

  /// From the next step on, the state that running sequences hold moves into the blocks of the
  /// lowest numbers, up to maxStateMoves a step, until those that are free lie behind it.
  void compact() { compacting_ = true; }

  /// Fills `step` with the next launch. False where there is none: nothing to run that need not
  /// wait for a launch that is out, as many launches out as may be, or, before a new step, events
  /// not yet taken. A step is one launch, or a body followed by launches of the head alone over its
  /// rows. A launch of the head alone has no valid rows and its block tables mean nothing.
  bool next(Step &step);

  /// Reports the oldest launch that is out. What it says of a sequence that has ended meanwhile is
  /// dropped. Errors: FailedPrecondition (no launch is out; a part of it is of a sequence whose
  /// last token is not taken), Internal (a result that is too short or holds an id outside the
  /// vocabulary).
  Status launchDone(const StepResult &result);

  uint32_t launchesOut() const { return launchesOut_; }
  uint64_t stepsEnded() const { return stepsEnded_; } ///< Whose last launch was reported.

  /// Moves the oldest untaken event into `event`; false where there is none.
  bool takeEvent(TokenEvent &event);

  /// Some request's last event is not taken, or a launch that it is part of is out.
  bool busy() const { return !sequences_.empty(); }

  const ScheduleConfig &config() const { return config_; }
  const BlockAllocator &blocks(uint32_t group) const { return allocators_[group]; }
  uint32_t freeSlots() const { return static_cast<uint32_t>(freeSlots_.size()); }

private:
  enum class Phase : uint8_t { Queued, Running, Ended };

  struct Sequence {
    Request request;
    bool scoring = false;
    Phase phase = Phase::Queued;
    uint32_t stepsOut = 0; ///< That it is part of: it is kept until they have ended.
    uint64_t lastStep = 0; ///< Number of the one that it was last part of.
    uint32_t slot = 0;
    uint32_t position = 0; ///< Tokens in the state once the steps that are out have ended.
    uint32_t drawn = 0;    ///< Tokens generated once the steps that are out have ended.
    uint32_t generated = 0;
    uint32_t limit = 0;     ///< Tokens to generate at most.
    uint32_t tail = 0;      ///< Prompt rows that the tail being followed cuts; 0: none is.
    uint32_t tailIndex = 0; ///< Next bucket of that tail.
    bool hasEvent = false;
    TokenEvent event;
    Sequence *nextEvent = nullptr;

    uint32_t promptLeft() const {
      auto size = static_cast<uint32_t>(request.prompt.size());
      return position < size ? size - position : 0;
    }
    bool isReading() const { return promptLeft() > 0; }
    bool isGenerating() const { return !isReading() && drawn < limit; }
  };

  /// A sequence's part of a step, and what the head said of it.
  struct Part {
    Sequence *sequence;
    uint32_t rows;
    uint32_t begin = 0;  ///< Position of its first row.
    bool isLast = false; ///< Its prompt is read with these rows, or was before.
    bool sampled = false;
    int32_t id = -1;
    float logProbability = 0;
    int32_t nonfiniteLayer = -1;
  };

  struct HeadRow {
    uint32_t row;  ///< Of the body.
    uint32_t part; ///< Index into parts_.
  };

  /// A step that is out. Head rows [0, headsLaunched) have been launched, those before headsDone
  /// reported.
  struct Batch {
    std::vector<Part> parts;
    std::vector<HeadRow> heads;
    uint64_t number = 0; ///< Of the step, from 1.
    uint32_t rows = 0;
    uint32_t headsLaunched = 0;
    uint32_t headsDone = 0;
    bool generates = false; ///< Some part is of a sequence that generates.
  };

  /// A launch that is out.
  struct Launch {
    Batch *batch;
    uint32_t bucket;
    uint32_t headRows;
  };

  explicit Schedule(ScheduleConfig config);

  Status checkRequest(const Request &request, bool scoring) const;
  Result<RequestId> enqueue(Request request, bool scoring);
  void skipToQueued();
  void admit();
  bool reserveBlocks(const Sequence &sequence, uint32_t slot);
  bool chooseParts(Batch &batch);
  void chooseGroup(Batch &batch, uint32_t distance);
  uint32_t chooseBucket(Batch &batch);
  uint32_t followTail(Sequence &sequence);
  void addPart(Batch &batch, Sequence &sequence, uint32_t rows);
  void fillBody(Step &step, Batch &batch, uint32_t bucket);
  void fillSequence(Step &step, Batch &batch, uint32_t index, uint32_t firstRow);
  void fillMoves(Step &step);
  uint32_t fillHeadAlone(Step &step, Batch &batch);
  void setSequence(Step &step, uint32_t index, const Sequence &sequence, uint32_t length);
  Batch &newestBatch() { return batches_[(firstBatch_ + batchesOut_ - 1) % batches_.size()]; }
  void noteNonfinite(Part &part, const StepResult &result, uint32_t sequence);
  void finishStep(const Batch &batch);
  void finishPart(const Part &part);
  void end(Sequence &sequence, FinishReason reason);
  void pushEvent(Sequence &sequence);
  void forget(Sequence &sequence);

  ScheduleConfig config_;
  Buckets buckets_;
  std::vector<BlockAllocator> allocators_; ///< By state group.

  std::map<RequestId, Sequence> sequences_;       ///< Until the last event is taken.
  std::map<RequestId, Sequence>::iterator queue_; ///< The oldest request that is queued.
  RequestId lastId_ = 0;
  std::vector<Sequence *> running_; ///< In order of admission.
  std::vector<uint32_t> freeSlots_; ///< A stack.
  bool draining_ = false;
  bool compacting_ = false;

  std::vector<Sequence *> ready_; ///< For chooseGroup().

  // Rings: what is out, oldest first.
  std::vector<Batch> batches_;
  std::vector<Launch> launches_;
  uint32_t firstBatch_ = 0, batchesOut_ = 0;
  uint32_t firstLaunch_ = 0, launchesOut_ = 0;
  uint64_t stepsBegun_ = 0, stepsEnded_ = 0;

  Sequence *firstEvent_ = nullptr;
  Sequence *lastEvent_ = nullptr;
};

} // namespace strata
