#include "passes/planner/Partition.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace strata::planner {

StageBytes stageBytes(const PartitionProblem &problem, size_t first, size_t end) {
  StageBytes bytes;
  std::set<size_t> held;
  for (size_t i = first; i < end; ++i) {
    const Unit &unit = problem.units[i];
    for (size_t weight : unit.weights)
      if (held.insert(weight).second)
        bytes.weights += problem.weightBytes[weight];
    bytes.state += unit.stateBytes;
    bytes.arena = std::max(bytes.arena, unit.arenaBytes);
  }
  return bytes;
}

std::optional<std::vector<size_t>> partition(const PartitionProblem &problem) {
  size_t units = problem.units.size(), devices = problem.capacity.size();
  if (devices == 0 || devices > units)
    return std::nullopt;

  // Bytes grow with the range, so what each device can take from `first` on ends at one point.
  struct Best {
    bool feasible = false;
    int64_t decode = 0;
    int64_t prefill = 0;
    size_t end = 0; // of the first stage of this suffix
  };
  // best[d][u]: devices d.. take units u.. .
  std::vector<std::vector<Best>> best(devices + 1, std::vector<Best>(units + 1));
  best[devices][units].feasible = true;
  for (size_t device = devices; device-- > 0;) {
    for (size_t first = 0; first < units; ++first) {
      Best &choice = best[device][first];
      std::set<size_t> held;
      StageBytes bytes;
      int64_t decode = 0, prefill = 0;
      for (size_t end = first + 1; end <= units; ++end) {
        const Unit &unit = problem.units[end - 1];
        for (size_t weight : unit.weights)
          if (held.insert(weight).second)
            bytes.weights += problem.weightBytes[weight];
        bytes.state += unit.stateBytes;
        bytes.arena = std::max(bytes.arena, unit.arenaBytes);
        decode += unit.decodeTime;
        prefill += unit.prefillTime;
        if (problem.capacity[device] > 0 && bytes.total() > problem.capacity[device])
          break;
        const Best &rest = best[device + 1][end];
        if (!rest.feasible)
          continue;
        Best candidate{true, std::max(decode, rest.decode), std::max(prefill, rest.prefill), end};
        if (!choice.feasible ||
            std::tie(candidate.decode, candidate.prefill) < std::tie(choice.decode, choice.prefill))
          choice = candidate;
      }
    }
  }
  if (!best[0][0].feasible)
    return std::nullopt;
  std::vector<size_t> cuts{0};
  for (size_t device = 0; device < devices; ++device)
    cuts.push_back(best[device][cuts.back()].end);
  return cuts;
}

} // namespace strata::planner
