// Exact search: does a component fit in so many bytes?
//
// The search looks only at canonical placements: every item lies at 0 or on top of another, and
// items are placed in the order of their offsets. Any placement sinks into such a one without a
// higher peak. M. D. Moffitt, "MiniMalloc", ASPLOS 2023, describes the space and the inference on
// sections.
#pragma once

#include "passes/planner/Component.h"

namespace strata::planner {

enum class Outcome {
  Found,     ///< `offsets` hold a placement within the capacity.
  Exhausted, ///< There is none.
  Limit,     ///< The nodes ran out first.
};

class Search {
public:
  Search(const Component &component, const Overlaps &overlaps);

  /// Looks for a placement of peak <= `capacity` (units) in at most `nodeLimit` nodes (fewer where
  /// nodes are large: a node pays for at most kWorkOfNode visits). Among items that could be placed
  /// next at the same offset, the lowest `rank` is tried first.
  Outcome run(Bytes capacity, const std::vector<uint32_t> &rank, uint64_t nodeLimit);

  const std::vector<Bytes> &offsets() const { return offsets_; }
  uint64_t nodes() const { return nodes_; } ///< Over all runs.

  /// How often each section was full too early in the last run.
  const std::vector<uint64_t> &failures() const { return failures_; }

  static constexpr uint64_t kWorkOfNode = 20'000;

private:
  /// The item that was placed last on the way to a node. Those after it come in the order of
  /// (offset, rank), so that a placement is reached in one way only.
  struct Level {
    Bytes offset = 0;
    uint32_t rank = 0;
  };
  struct Candidate {
    Bytes offset;
    uint32_t rank;
    uint32_t item;
    auto operator<=>(const Candidate &) const = default;
  };
  struct Range {
    uint32_t first;
    uint32_t last;
    uint32_t items;
  };
  /// The open items of a section, by where they can lie at the lowest.
  struct Stack {
    Bytes bottom;
    Bytes second;    ///< Of the others.
    uint32_t lowest; ///< The item at the bottom.
  };
  struct Undo {
    Bytes *where;
    Bytes old;
  };

  bool solveRange(uint32_t first, uint32_t last, Level level);
  bool solveParts(uint32_t first, uint32_t last, Level level);
  bool collectCandidates(uint32_t first, uint32_t last, Level level);
  bool isHopeless(uint32_t first, uint32_t last, Level level);
  bool couldSinkBelowSupport(uint32_t item) const;
  bool stacksFit(uint32_t first, uint32_t last);
  bool raiseAboveForced(uint32_t first, uint32_t last, bool &hopeless);
  bool isOpen(uint32_t item) const { return open_[item / 64] >> (item % 64) & 1; }
  void place(uint32_t item);
  void undoTo(size_t undoMark, size_t placedMark);
  void set(Bytes &where, Bytes value) {
    undo_.push_back({&where, where});
    where = value;
  }
  template <class Visit> void forEachOpen(uint32_t first, uint32_t last, Visit visit) const;

  const Component &component_;
  const Overlaps &overlaps_;
  std::vector<uint32_t> beginOf_; ///< Section -> the first item that starts in it.
  std::vector<int64_t> twin_;     ///< The item before, where it is interchangeable; else -1.

  Bytes capacity_ = 0;
  std::vector<uint32_t> rank_;
  uint64_t nodes_ = 0, stopAtNode_ = 0, work_ = 0, stopAtWork_ = 0;
  bool outOfNodes_ = false;

  std::vector<uint64_t> open_;     ///< A bit for each item that is not yet placed.
  std::vector<Bytes> offsets_;     ///< Placed: where; open: the lowest offset that is left.
  std::vector<Bytes> left_;        ///< Section -> sum of the open items.
  std::vector<Bytes> crossing_;    ///< Section -> open items live in it and in the next.
  std::vector<uint64_t> failures_; ///< By section.
  // Of one node:
  std::vector<Bytes> earliest_; ///< Open item -> the lowest offset it can end at.
  std::vector<uint32_t> order_; ///< Open items.
  std::vector<Stack> stacks_;   ///< By section.
  std::vector<uint32_t> placed_;
  std::vector<Undo> undo_;
  std::vector<Candidate> candidates_;
};

} // namespace strata::planner
