#include "passes/planner/Ordering.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace strata::planner {
namespace {

/// Live bytes at each command depend only on which commands ran before, not on their order: so the
/// best order of a set of commands extends to the best order of a larger one.
class Search {
public:
  explicit Search(const OrderProblem &problem) : problem(problem) {}

  /// Bytes alive while `command` runs after the set `done` (bit c: command c ran).
  int64_t liveAt(uint64_t done, size_t command) const {
    int64_t bytes = 0;
    uint64_t now = uint64_t(1) << command;
    for (const OrderBuffer &buffer : problem.buffers) {
      bool began = buffer.aliveBefore, pending = buffer.aliveAfter, touches = false;
      for (size_t c : buffer.commands) {
        began |= (done >> c & 1) != 0;
        touches |= c == command;
        pending |= ((done | now) >> c & 1) == 0;
      }
      if (touches || (began && pending))
        bytes += buffer.bytes;
    }
    return bytes;
  }

  bool ready(uint64_t done, size_t command) const {
    return std::ranges::all_of(problem.before[command],
                               [&](size_t c) { return (done >> c & 1) != 0; });
  }

  /// Breadth first over the sets reachable in dependency order; empty where they are too many.
  std::vector<size_t> exact() const {
    struct Reached {
      int64_t peak;
      uint64_t from;
      size_t last;
    };
    std::vector<std::unordered_map<uint64_t, Reached>> levels(problem.commands + 1);
    levels[0][0] = {0, 0, 0};
    size_t states = 1;
    for (size_t count = 0; count < problem.commands; ++count) {
      // In order of the sets, so that ties fall the same way everywhere.
      std::vector<uint64_t> sets;
      for (const auto &[set, reached] : levels[count])
        sets.push_back(set);
      std::ranges::sort(sets);
      for (uint64_t set : sets) {
        int64_t peak = levels[count][set].peak;
        for (size_t command = 0; command < problem.commands; ++command) {
          if ((set >> command & 1) != 0 || !ready(set, command))
            continue;
          uint64_t next = set | uint64_t(1) << command;
          Reached candidate{std::max(peak, liveAt(set, command)), set, command};
          auto [entry, isNew] = levels[count + 1].try_emplace(next, candidate);
          if (!isNew && candidate.peak < entry->second.peak)
            entry->second = candidate;
          states += isNew;
        }
      }
      if (states > problem.stateLimit)
        return {};
    }
    std::vector<size_t> order(problem.commands);
    uint64_t set = problem.commands == 64 ? ~uint64_t(0) : (uint64_t(1) << problem.commands) - 1;
    for (size_t count = problem.commands; count > 0; --count) {
      const Reached &reached = levels[count][set];
      order[count - 1] = reached.last;
      set = reached.from;
    }
    return order;
  }

  /// Always the ready command that leaves the fewest bytes alive.
  std::vector<size_t> greedy() const {
    std::vector<size_t> order;
    uint64_t done = 0;
    while (order.size() < problem.commands) {
      size_t best = problem.commands;
      int64_t bestLive = 0;
      for (size_t command = 0; command < problem.commands; ++command) {
        if ((done >> command & 1) != 0 || !ready(done, command))
          continue;
        int64_t live = liveAt(done, command);
        if (best == problem.commands || live < bestLive) {
          best = command;
          bestLive = live;
        }
      }
      order.push_back(best);
      done |= uint64_t(1) << best;
    }
    return order;
  }

private:
  const OrderProblem &problem;
};

} // namespace

int64_t peakOf(const OrderProblem &problem, const std::vector<size_t> &order) {
  // Positions, since problems may have more commands than a set has bits.
  std::vector<size_t> position(problem.commands);
  for (size_t i = 0; i < order.size(); ++i)
    position[order[i]] = i;
  std::vector<int64_t> change(problem.commands + 1, 0);
  for (const OrderBuffer &buffer : problem.buffers) {
    size_t first = buffer.aliveBefore ? 0 : problem.commands, last = 0;
    for (size_t command : buffer.commands) {
      first = std::min(first, position[command]);
      last = std::max(last, position[command]);
    }
    if (buffer.aliveAfter)
      last = problem.commands - 1;
    change[first] += buffer.bytes;
    change[last + 1] -= buffer.bytes;
  }
  int64_t live = 0, peak = 0;
  for (int64_t delta : change)
    peak = std::max(peak, live += delta);
  return peak;
}

std::vector<size_t> orderToLowerPeak(const OrderProblem &problem) {
  std::vector<size_t> given(problem.commands);
  std::iota(given.begin(), given.end(), 0);
  if (problem.commands < 2 || problem.commands > 64)
    return given;
  Search search(problem);
  std::vector<size_t> order = search.exact();
  if (order.empty())
    order = search.greedy();
  return peakOf(problem, order) < peakOf(problem, given) ? order : given;
}

} // namespace strata::planner
