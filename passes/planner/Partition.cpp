#include "passes/planner/Partition.h"

#include <algorithm>
#include <limits>
#include <set>

namespace strata::planner {

static void addUnit(const PartitionProblem &problem, const Unit &unit, std::set<size_t> &held,
                    StageBytes &bytes) {
  for (size_t weight : unit.weights)
    if (held.insert(weight).second)
      bytes.weights += problem.weightBytes[weight];
  bytes.state += unit.stateBytes;
  bytes.arena = std::max(bytes.arena, unit.arenaBytes);
  bytes.scratch = std::max(bytes.scratch, unit.scratchBytes);
}

StageBytes stageBytes(const PartitionProblem &problem, size_t first, size_t end) {
  StageBytes bytes;
  std::set<size_t> held;
  for (size_t i = first; i < end; ++i)
    addUnit(problem, problem.units[i], held, bytes);
  if (problem.blockBytes)
    bytes.blocks = problem.blockBytes(first, end);
  return bytes;
}

namespace {

constexpr int64_t unlimited = std::numeric_limits<int64_t>::max();

/// Splits whose stages fit their devices and pass neither time limit, from the last device back.
class Search {
public:
  explicit Search(const PartitionProblem &problem)
      : problem(problem), units(problem.units.size()), devices(problem.capacity.size()) {}

  int64_t decodeLimit = unlimited;
  int64_t prefillLimit = unlimited;

  /// Least maximum of `time` over the allowed splits; nothing where there is none.
  std::optional<int64_t> leastMaximum(int64_t Unit::*time) const {
    // best[u]: devices d.. take units u.. ; one row, overwritten device by device.
    std::vector<std::optional<int64_t>> best(units + 1);
    best[units] = 0;
    for (size_t device = devices; device-- > 0;) {
      std::vector<std::optional<int64_t>> next(units + 1);
      for (size_t first = 0; first < units; ++first)
        forEachEnd(device, first, [&](size_t end, int64_t decode, int64_t prefill) {
          int64_t own = time == &Unit::decodeTime ? decode : prefill;
          if (best[end] && (!next[first] || std::max(own, *best[end]) < *next[first]))
            next[first] = std::max(own, *best[end]);
        });
      best = std::move(next);
    }
    return best[0];
  }

  /// The allowed split with the earliest cuts.
  std::vector<size_t> earliest() const {
    std::vector<std::vector<size_t>> firstEnd(devices, std::vector<size_t>(units + 1, 0));
    std::vector<bool> possible(units + 1, false);
    possible[units] = true;
    for (size_t device = devices; device-- > 0;) {
      std::vector<bool> next(units + 1, false);
      for (size_t first = 0; first < units; ++first)
        forEachEnd(device, first, [&](size_t end, int64_t, int64_t) {
          if (possible[end] && !next[first]) {
            next[first] = true;
            firstEnd[device][first] = end;
          }
        });
      possible = std::move(next);
    }
    std::vector<size_t> cuts{0};
    for (size_t device = 0; device < devices; ++device)
      cuts.push_back(firstEnd[device][cuts.back()]);
    return cuts;
  }

private:
  /// Calls `visit(end, decode, prefill)` for every stage [first, end) that `device` may take. Bytes
  /// and times only grow with the end, so the first that does not fit is the last looked at.
  template <class Visit> void forEachEnd(size_t device, size_t first, Visit visit) const {
    std::set<size_t> held;
    StageBytes bytes;
    int64_t decode = 0, prefill = 0;
    for (size_t end = first + 1; end <= units; ++end) {
      const Unit &unit = problem.units[end - 1];
      addUnit(problem, unit, held, bytes);
      if (problem.blockBytes)
        bytes.blocks = problem.blockBytes(first, end);
      decode += unit.decodeTime;
      prefill += unit.prefillTime;
      if (!problem.fits(device, bytes.total()) || decode > decodeLimit || prefill > prefillLimit)
        return;
      visit(end, decode, prefill);
    }
  }

  const PartitionProblem &problem;
  size_t units, devices;
};

} // namespace

std::optional<std::vector<size_t>> partition(const PartitionProblem &problem) {
  if (problem.capacity.empty() || problem.capacity.size() > problem.units.size())
    return std::nullopt;
  Search search(problem);
  auto decode = search.leastMaximum(&Unit::decodeTime);
  if (!decode)
    return std::nullopt;
  search.decodeLimit = *decode;
  search.prefillLimit = *search.leastMaximum(&Unit::prefillTime);
  return search.earliest();
}

} // namespace strata::planner
