// Who waits for whom when launches pass through the stages: a pure state machine, with no thread,
// clock or device, so that a test can put it through every order of events.
//
// Every stage runs its launches in order. Between stages, handoffs are rings of slots: a producer
// fills a slot once the consumer has freed it (a credit), and a consumer reads one once it is
// filled. Sampled ids return from the last stage to the first by an edge of the same kind. Filled,
// freed and ended slots are counted on timelines; what a launch waits for and what it advances is
// decided here, when it is submitted, and depends on nothing that happens later. So a device needs
// no more than to keep its queue's order, and on a GPU the same waits become waits for events.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/plan/LaunchMemory.h"
#include "runtime/stage/Executor.h"

namespace strata {

/// Used from one thread at a time. Allocates nothing after construction.
class Flow {
public:
  /// Leads from a stage to a later one.
  struct Edge {
    uint32_t producer;
    uint32_t consumer;
    uint32_t slots;
  };
  /// A value of a timeline, by the timeline's number.
  struct Gate {
    uint32_t timeline;
    uint32_t value;
    bool operator==(const Gate &) const = default;
  };
  /// What a launch does on one stage. Vectors have room for what a stage can need.
  struct Leg {
    bool runs = false;
    uint32_t handoffNumber = 0; ///< Which slots it uses: see slot().
    std::vector<Gate> waits;
    std::vector<Gate> signals; ///< The last is the stage's own count of ended launches.
    int32_t idsFrom = -1;      ///< Slot of returned ids to read before the launch; -1: none.
    int32_t idsTo = -1;        ///< Slot to write the sampled ids to after it; -1: none.
  };
  /// What the launch's bucket has.
  struct Shape {
    bool body; ///< Passes through every edge.
    bool head; ///< Samples.
  };
  enum class TimelineKind : uint8_t { Filled, Freed, Ended };

  /// `sequences`: slots that sequences may have.
  Flow(uint32_t stages, std::vector<Edge> edges, uint32_t sequences);

  /// Adds a launch that `runs` on these stages: the first to the last, for a body. Fills one leg a
  /// stage. At most launchesInFlight() launches are out; retire() makes room.
  void submit(const Step &step, Shape shape, std::span<const bool> runs, std::span<Leg> legs);
  /// The oldest launch has ended on every stage.
  void retire();

  uint32_t stages() const { return stages_; }
  uint32_t inFlight() const { return uint32_t(submitted_ - retired_); }
  bool isFull() const { return inFlight() == launchesInFlight(stages_); }

  /// Handoffs first; where there are several stages, the edge of the ids is the last.
  std::span<const Edge> edges() const { return edges_; }
  bool returnsIds() const { return stages_ > 1; }
  uint32_t idsEdge() const { return uint32_t(edges_.size()) - 1; }
  /// Slot of `edge` that the body of this number uses.
  uint32_t slot(uint32_t edge, uint32_t handoffNumber) const {
    return handoffNumber % edges_[edge].slots;
  }
  /// After how many bodies stage `stage` is back at the same slots of all its handoffs.
  uint32_t period(uint32_t stage) const { return periods_[stage]; }

  uint32_t timelines() const { return 2 * uint32_t(edges_.size()) + stages_; }
  uint32_t filled(uint32_t edge) const { return 2 * edge; }
  uint32_t freed(uint32_t edge) const { return 2 * edge + 1; }
  uint32_t ended(uint32_t stage) const { return 2 * uint32_t(edges_.size()) + stage; }
  /// What a timeline counts, and of which edge or stage.
  TimelineKind kindOf(uint32_t timeline, uint32_t &of) const;

private:
  void passHandoffs(uint32_t stage, Leg &leg) const;
  void readIds(const Step &step, Leg &leg);
  void returnIds(Leg &leg) const;

  uint32_t stages_;
  std::vector<Edge> edges_;
  std::vector<uint32_t> periods_;
  uint64_t submitted_ = 0, retired_ = 0;
  uint64_t bodies_ = 0;         ///< Submitted before this launch.
  std::vector<uint64_t> ended_; ///< Launches ever submitted, by stage.
  // Launches that return ids are counted from 1.
  uint64_t idsSubmitted_ = 0, idsRetired_ = 0;
  uint64_t idsRead_ = 0;        ///< The newest that a body has been told to read.
  std::vector<uint64_t> drawn_; ///< By sequence slot: the one with its last id; 0: none.
  std::vector<bool> returning_; ///< Whether each launch in flight returns ids, by number.
};

} // namespace strata
