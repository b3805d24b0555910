#include "passes/planner/Search.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace strata::planner {

namespace {
constexpr Bytes kNone = std::numeric_limits<Bytes>::max();
constexpr uint32_t kNoItem = std::numeric_limits<uint32_t>::max();
constexpr int kRounds = 4;
} // namespace

Search::Search(const Component &component, const Overlaps &overlaps)
    : component_(component), overlaps_(overlaps) {
  const std::vector<Item> &items = component.items;
  beginOf_.assign(component.sections + 1, 0);
  for (const Item &item : items)
    ++beginOf_[item.first + 1];
  for (size_t s = 1; s < beginOf_.size(); ++s)
    beginOf_[s] += beginOf_[s - 1];
  twin_.assign(items.size(), -1);
  for (size_t k = 1; k < items.size(); ++k)
    if (items[k].first == items[k - 1].first && items[k].last == items[k - 1].last &&
        items[k].size == items[k - 1].size)
      twin_[k] = int64_t(k) - 1;
}

template <class Visit> void Search::forEachOpen(uint32_t first, uint32_t last, Visit visit) const {
  uint32_t begin = beginOf_[first], end = beginOf_[last + 1];
  for (uint32_t word = begin / 64; word * 64 < end; ++word) {
    uint64_t bits = open_[word];
    if (word == begin / 64)
      bits &= ~uint64_t(0) << (begin % 64);
    for (; bits; bits &= bits - 1) {
      uint32_t item = word * 64 + uint32_t(std::countr_zero(bits));
      if (item >= end)
        return;
      visit(item);
    }
  }
}

Outcome Search::run(Bytes capacity, const std::vector<uint32_t> &rank, uint64_t nodeLimit) {
  const std::vector<Item> &items = component_.items;
  capacity_ = capacity;
  rank_ = rank;
  // Interchangeable items are neighbours, and the first of them goes first.
  for (size_t k = 0, end; k < items.size(); k = end) {
    for (end = k + 1; end < items.size() && twin_[end] >= 0; ++end)
      ;
    std::sort(rank_.begin() + k, rank_.begin() + end);
  }
  stopAtNode_ = nodes_ + nodeLimit;
  stopAtWork_ = work_ + std::min(nodeLimit, uint64_t(kNone) / kWorkOfNode) * kWorkOfNode;
  outOfNodes_ = false;
  open_.assign((items.size() + 63) / 64, 0);
  offsets_.assign(items.size(), 0);
  left_.assign(component_.sections, 0);
  crossing_.assign(component_.sections, 0);
  stacks_.assign(component_.sections, {});
  earliest_.assign(items.size(), 0);
  failures_.assign(component_.sections, 0);
  placed_.clear();
  undo_.clear();
  candidates_.clear();
  for (uint32_t k = 0; k < items.size(); ++k) {
    open_[k / 64] |= uint64_t(1) << (k % 64);
    for (uint32_t s = items[k].first; s <= items[k].last; ++s) {
      left_[s] += items[k].size;
      crossing_[s] += s < items[k].last;
    }
  }
  if (solveParts(0, component_.sections - 1, {}))
    return Outcome::Found;
  return outOfNodes_ ? Outcome::Limit : Outcome::Exhausted;
}

/// Open items in first..last may fall into parts that no open item connects: each is a problem of
/// its own, and failure in one is never retried in another.
bool Search::solveParts(uint32_t first, uint32_t last, Level level) {
  std::vector<Range> parts;
  for (uint32_t s = first; s <= last; ++s) {
    if (left_[s] == 0)
      continue;
    uint32_t begin = s;
    while (s < last && crossing_[s] > 0)
      ++s;
    parts.push_back({begin, s, 0});
  }
  if (parts.size() == 1)
    return solveRange(parts[0].first, parts[0].last, level);

  for (Range &part : parts)
    forEachOpen(part.first, part.last, [&](uint32_t) { ++part.items; });
  std::ranges::stable_sort(parts, {}, &Range::items);
  size_t undoMark = undo_.size(), placedMark = placed_.size();
  for (const Range &part : parts)
    if (!solveRange(part.first, part.last, level)) {
      undoTo(undoMark, placedMark);
      return false;
    }
  return true;
}

bool Search::solveRange(uint32_t first, uint32_t last, Level level) {
  size_t begin = candidates_.size();
  if (!collectCandidates(first, last, level))
    return false;
  std::sort(candidates_.begin() + begin, candidates_.end());
  size_t end = candidates_.size();
  size_t undoMark = undo_.size(), placedMark = placed_.size();
  for (size_t k = begin; k < end; ++k) {
    if (nodes_ >= stopAtNode_ || work_ >= stopAtWork_) {
      outOfNodes_ = true;
      break;
    }
    ++nodes_;
    Candidate candidate = candidates_[k];
    place(candidate.item);
    if (solveParts(first, last, {candidate.offset, candidate.rank})) {
      candidates_.resize(begin);
      return true;
    }
    undoTo(undoMark, placedMark);
    if (outOfNodes_)
      break;
  }
  candidates_.resize(begin);
  return false;
}

/// Adds the items that can come next; false where the node cannot lead to an answer.
bool Search::collectCandidates(uint32_t first, uint32_t last, Level level) {
  const std::vector<Item> &items = component_.items;
  // Dominance: what lies above the top of an open item at its lowest place leaves room to sink that
  // item. Of all placements that fit, take the one with the least sum of weight * offset, where an
  // item's weight is its size times a factor that falls with its rank: there is no such room in it.
  Bytes lowestTop = kNone;
  forEachOpen(first, last, [&](uint32_t item) {
    lowestTop = std::min(lowestTop, offsets_[item] + items[item].size);
  });
  if (lowestTop <= level.offset || isHopeless(first, last, level))
    return false;

  forEachOpen(first, last, [&](uint32_t item) {
    Bytes offset = offsets_[item];
    if (offset < level.offset || offset >= lowestTop || offset < earliest_[item] ||
        (offset == level.offset && rank_[item] < level.rank))
      return;
    if (twin_[item] >= 0 && isOpen(uint32_t(twin_[item])))
      return;
    if (couldSinkBelowSupport(item))
      return;
    for (uint32_t s = items[item].first; s <= items[item].last; ++s)
      if (offset + left_[s] > capacity_)
        return;
    candidates_.push_back({offset, rank_[item], item});
  });
  return true;
}

/// Dominance: where an item rests on one of a later rank alone, covers it in time, and would lie as
/// low as that one without it, the two can change places: no top rises, and the sum of weight *
/// offset (see collectCandidates) falls, by size * size * (difference of the factors).
bool Search::couldSinkBelowSupport(uint32_t item) const {
  const std::vector<Item> &items = component_.items;
  Bytes highest = 0, second = 0;
  uint32_t support = kNoItem;
  for (uint32_t other : overlaps_.of(item)) {
    if (isOpen(other))
      continue;
    Bytes top = offsets_[other] + items[other].size;
    if (top > highest) {
      second = highest;
      highest = top;
      support = other;
    } else {
      second = std::max(second, top);
    }
  }
  return support != kNoItem && rank_[item] < rank_[support] &&
         items[support].first >= items[item].first && items[support].last <= items[item].last &&
         second <= offsets_[support];
}

/// Finds the lowest offset that each open item can have (`earliest_`); whether one has none.
bool Search::isHopeless(uint32_t first, uint32_t last, Level level) {
  const std::vector<Item> &items = component_.items;
  order_.clear();
  bool hopeless = false;
  forEachOpen(first, last, [&](uint32_t item) {
    Bytes offset = offsets_[item];
    if (offset < level.offset) {
      // It must still be lifted by an item that lies no lower than the level.
      Bytes lifted = kNone;
      for (uint32_t other : overlaps_.of(item))
        if (isOpen(other))
          lifted = std::min(lifted, std::max(offsets_[other], level.offset) + items[other].size);
      offset = lifted;
    }
    hopeless |= offset > capacity_ - items[item].size;
    earliest_[item] = offset;
    order_.push_back(item);
  });
  for (int round = 0; !hopeless && round < kRounds; ++round) {
    if (!stacksFit(first, last))
      return true;
    if (!raiseAboveForced(first, last, hopeless))
      break;
  }
  return hopeless;
}

/// Inference on sections: the open items of a section all lie above the lowest offset that any of
/// them can still have, so that offset and their sum must fit.
bool Search::stacksFit(uint32_t first, uint32_t last) {
  const std::vector<Item> &items = component_.items;
  std::fill(stacks_.begin() + first, stacks_.begin() + last + 1, Stack{kNone, kNone, kNoItem});
  for (uint32_t item : order_) {
    Bytes offset = earliest_[item];
    work_ += items[item].last - items[item].first + 1;
    for (uint32_t s = items[item].first; s <= items[item].last; ++s) {
      Stack &stack = stacks_[s];
      if (offset < stack.bottom) {
        stack.second = stack.bottom;
        stack.bottom = offset;
        stack.lowest = item;
      } else {
        stack.second = std::min(stack.second, offset);
      }
    }
  }
  for (uint32_t s = first; s <= last; ++s)
    if (left_[s] > 0 && stacks_[s].bottom > capacity_ - left_[s]) {
      ++failures_[s];
      return false;
    }
  return true;
}

/// Where only one item of a section can lie low enough for the rest to fit above, it is the lowest,
/// and what cannot lie below it lies above it. Returns whether that raised an item.
bool Search::raiseAboveForced(uint32_t first, uint32_t last, bool &hopeless) {
  const std::vector<Item> &items = component_.items;
  bool raised = false;
  uint32_t previous = kNoItem;
  Bytes previousLatest = 0;
  for (uint32_t s = first; s <= last; ++s) {
    Bytes latest = capacity_ - left_[s];
    const Stack &stack = stacks_[s];
    if (left_[s] == 0 || stack.second <= latest)
      continue;
    uint32_t lowest = stack.lowest;
    if (lowest == previous && latest >= previousLatest)
      continue;
    previous = lowest;
    previousLatest = latest;
    Bytes above = earliest_[lowest] + items[lowest].size;
    work_ += overlaps_.of(lowest).size();
    for (uint32_t other : overlaps_.of(lowest)) {
      if (!isOpen(other) || earliest_[other] >= above ||
          earliest_[other] + items[other].size <= latest)
        continue;
      earliest_[other] = above;
      hopeless |= above > capacity_ - items[other].size;
      raised = true;
    }
  }
  return raised;
}

void Search::place(uint32_t item) {
  const Item &placed = component_.items[item];
  open_[item / 64] &= ~(uint64_t(1) << (item % 64));
  placed_.push_back(item);
  for (uint32_t s = placed.first; s <= placed.last; ++s) {
    left_[s] -= placed.size;
    crossing_[s] -= s < placed.last;
  }
  Bytes top = offsets_[item] + placed.size;
  for (uint32_t other : overlaps_.of(item))
    if (isOpen(other) && offsets_[other] < top)
      set(offsets_[other], top);
}

void Search::undoTo(size_t undoMark, size_t placedMark) {
  for (; placed_.size() > placedMark; placed_.pop_back()) {
    uint32_t item = placed_.back();
    const Item &placed = component_.items[item];
    open_[item / 64] |= uint64_t(1) << (item % 64);
    for (uint32_t s = placed.first; s <= placed.last; ++s) {
      left_[s] += placed.size;
      crossing_[s] += s < placed.last;
    }
  }
  for (; undo_.size() > undoMark; undo_.pop_back())
    *undo_.back().where = undo_.back().old;
}

} // namespace strata::planner
