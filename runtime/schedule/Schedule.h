// The schedule: requests in, launches out. A pure state machine with no threads, no clock and no
// device, so that a test can put it through every order of events.
//
//   while (schedule->next(step)) {
//     ... run `step` ...
//     schedule->stepDone(result);
//     while (schedule->takeEvent(event)) ...
//   }
//
// Continuous batching, first come first served: a request is admitted when a sequence slot and
// every block that it can ever hold are free, never before an older one, and is never preempted. A
// step takes one row of every sequence that is generating and fills what the bucket leaves with
// prompt chunks of the oldest sequences still reading.
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

namespace strata {

/// Used from one thread at a time. After construction only submit() and submitScoring() allocate,
/// and those only the request itself.
class Schedule {
public:
  /// Errors: those of ScheduleConfig::verify().
  static Result<std::unique_ptr<Schedule>> create(ScheduleConfig config);

  /// A step and a result sized to the largest launch, for next() and stepDone().
  Step makeStep() const;
  StepResult makeResult() const;

  /// Queues a request; ids count up from 1. Errors: InvalidArgument (a prompt that is empty, holds
  /// an id outside the vocabulary or leaves no room in the context; sampling out of range),
  /// ResourceExhausted (more blocks than the pool has), FailedPrecondition (after drain()).
  Result<RequestId> submit(Request request);

  /// Queues a prompt whose every position is put through the head and which generates nothing; it
  /// may fill the whole context. Its last event says Length. Errors: as submit().
  Result<RequestId> submitScoring(std::vector<int32_t> prompt);

  /// Withdraws a request. Its Cancelled event comes at once, or after the step that it is part of.
  /// Errors: NotFound (unknown, or already ended).
  Status cancel(RequestId request);

  /// Refuses further requests; those accepted run on.
  void drain() { draining_ = true; }

  /// Fills `step` with the next launch. False where there is none: nothing to run, a launch not yet
  /// reported by stepDone(), or, before a new step, events not yet taken. A step is one launch, or
  /// a body followed by launches of the head alone over its rows. A launch of the head alone has no
  /// valid rows and its block tables mean nothing.
  bool next(Step &step);

  /// Reports the launch that next() gave last.
  /// Errors: FailedPrecondition (no launch is out), Internal (a result that is too short or holds
  /// an id outside the vocabulary).
  Status stepDone(const StepResult &result);

  /// Moves the oldest untaken event into `event`; false where there is none.
  bool takeEvent(TokenEvent &event);

  bool busy() const { return !sequences_.empty(); } ///< Some request's last event is not taken.
  bool midStep() const { return midStep_; }         ///< Between a step's first launch and its end.

  const ScheduleConfig &config() const { return config_; }
  const BlockAllocator &blocks(uint32_t group) const { return allocators_[group]; }
  uint32_t freeSlots() const { return static_cast<uint32_t>(freeSlots_.size()); }

private:
  enum class Phase : uint8_t { Queued, Running, Ended };

  struct Sequence {
    Request request;
    bool scoring = false;
    Phase phase = Phase::Queued;
    bool cancelled = false; ///< Withdrawn while part of a step.
    bool inStep = false;
    uint32_t slot = 0;
    uint32_t position = 0; ///< Tokens in the state.
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
  };

  /// A sequence's part of the step under way, and what the head said of it.
  struct Part {
    Sequence *sequence;
    uint32_t rows;
    bool sampled = false;
    int32_t id = -1;
    float logProbability = 0;
    int32_t nonfiniteLayer = -1;
  };

  struct HeadRow {
    uint32_t row;  ///< Of the body.
    uint32_t part; ///< Index into parts_.
  };

  explicit Schedule(ScheduleConfig config);

  Status checkRequest(const Request &request, bool scoring) const;
  Result<RequestId> enqueue(Request request, bool scoring);
  void skipToQueued();
  void admit();
  bool reserveBlocks(const Sequence &sequence, uint32_t slot);
  bool chooseParts();
  uint32_t chooseBucket();
  uint32_t followTail(Sequence &sequence);
  void addPart(Sequence &sequence, uint32_t rows);
  void fillBody(Step &step);
  void fillSequence(Step &step, uint32_t index, uint32_t firstRow);
  void fillHeadAlone(Step &step);
  void setSequence(Step &step, uint32_t index, const Sequence &sequence, uint32_t length);
  void noteNonfinite(Part &part, const StepResult &result, uint32_t sequence);
  void finishStep();
  void finishPart(const Part &part);
  void end(Sequence &sequence, FinishReason reason);
  void pushEvent(Sequence &sequence);

  ScheduleConfig config_;
  Buckets buckets_;
  std::vector<BlockAllocator> allocators_; ///< By state group.

  std::map<RequestId, Sequence> sequences_;       ///< Until the last event is taken.
  std::map<RequestId, Sequence>::iterator queue_; ///< The oldest request that is queued.
  RequestId lastId_ = 0;
  std::vector<Sequence *> running_; ///< In order of admission.
  std::vector<uint32_t> freeSlots_; ///< A stack.
  bool draining_ = false;

  // The step under way. Head rows [0, headsLaunched_) have been launched, those before headsDone_
  // reported.
  bool midStep_ = false;
  bool launched_ = false;
  uint32_t batchRows_ = 0;
  uint32_t bucket_ = 0;
  std::vector<Part> parts_;
  std::vector<HeadRow> heads_;
  uint32_t headsLaunched_ = 0;
  uint32_t headsDone_ = 0;

  Sequence *firstEvent_ = nullptr;
  Sequence *lastEvent_ = nullptr;
};

} // namespace strata
