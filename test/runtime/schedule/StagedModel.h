// The fake model cut into stages, under the flow that the runtime links: each stage has state of
// its own and rows travel in slots, so that a row lost, a slot reused too early or a launch out of
// order changes the ids or is named.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "runtime/schedule/ScheduleConfig.h"
#include "runtime/stage/Executor.h"
#include "runtime/stage/Flow.h"
#include "test/runtime/schedule/FakeExecutor.h"

namespace strata::test {

/// Nothing happens by itself: the caller says which stage begins or ends its next launch, and when
/// the host submits and retires.
class StagedModel {
public:
  /// `slots` of every handoff.
  StagedModel(const ScheduleConfig &config, uint32_t slots);

  void submit(const Step &step);
  /// The oldest launch has ended on every stage that it runs on.
  bool canRetire() const;
  void retire(StepResult &result);

  bool canBegin(uint32_t stage) const; ///< Its next launch has all that it waits for.
  void begin(uint32_t stage);
  bool isRunning(uint32_t stage) const { return stages_[stage].isRunning; }
  void end(uint32_t stage);

  uint32_t stages() const { return flow_.stages(); }
  uint32_t out() const { return flow_.inFlight(); }
  uint64_t retired() const { return retired_; }
  uint32_t begun(uint32_t stage) const { return stages_[stage].begun; }
  uint32_t ended(uint32_t stage) const { return stages_[stage].ended; }

private:
  struct Launch {
    uint64_t number;
    Step step;
    std::vector<Flow::Leg> legs;
    std::vector<int32_t> ids;
  };
  /// A slot of a handoff, or of the ids that return.
  struct Slot {
    uint64_t launch = UINT64_MAX; ///< Whose values it holds; UINT64_MAX: none, or half written.
    std::vector<uint64_t> values;
  };
  struct Stage {
    std::vector<std::vector<uint64_t>> pools; ///< [group][block * blockTokens + token]
    std::vector<uint64_t> lastIds;            ///< [sequence slot]
    std::vector<uint64_t> hidden;             ///< [row] of the last body.
    std::deque<uint64_t> queue;               ///< Numbers of the launches to come.
    bool isRunning = false;
    uint32_t begun = 0, ended = 0;
  };

  Launch &launch(uint64_t number) { return launches_[number - retired_]; }
  const Launch &launch(uint64_t number) const { return launches_[number - retired_]; }
  bool isReached(const Flow::Gate &gate) const;
  Slot *slotIn(uint32_t stage, const Launch &launch);
  Slot *slotOut(uint32_t stage, const Launch &launch);
  void runBody(uint32_t stage, const Launch &launch, const Slot *in);
  void runHead(Launch &launch);

  ScheduleConfig config_;
  Flow flow_;
  std::vector<uint32_t> timelines_;
  std::vector<Stage> stages_;
  std::vector<std::vector<Slot>> rings_; ///< [edge][slot]
  std::deque<Launch> launches_;          ///< Out, oldest first.
  uint64_t submitted_ = 0, retired_ = 0;
};

/// What `request` generates on the staged model when nothing else runs and nobody cancels it.
Generation generateStaged(const ScheduleConfig &config, const Request &request);

} // namespace strata::test
