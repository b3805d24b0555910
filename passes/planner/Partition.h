// Which consecutive units of a chain each device takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace strata::planner {

/// A unit of the chain: the embedding, a layer or the head.
struct Unit {
  std::vector<size_t> weights; ///< Indices into PartitionProblem::weightBytes.
  int64_t stateBytes = 0;
  int64_t arenaBytes = 0;
  int64_t decodeTime = 0;  ///< Any unit of time, the same for all.
  int64_t prefillTime = 0; ///< Breaks ties.
  int64_t scratchBytes = 0;
};

struct PartitionProblem {
  /// What a stage of units [first, end) takes beside weights, state and arena; no less for a later
  /// end. Empty: nothing.
  std::function<int64_t(size_t first, size_t end)> blockBytes;
  std::vector<Unit> units;
  std::vector<int64_t> weightBytes; ///< A weight is held once a device, however many units read it.
  std::vector<int64_t> capacity;    ///< Bytes a device; 0: not limited.
  std::vector<int64_t> reserved;    ///< Bytes a device of which no stage has any; empty: none.

  /// Whether `device` holds a stage of so many bytes beside what is reserved.
  bool fits(size_t device, int64_t bytes) const {
    return capacity[device] == 0 || bytes <= capacity[device] - reservedOf(device);
  }
  int64_t reservedOf(size_t device) const { return reserved.empty() ? 0 : reserved[device]; }
};

struct StageBytes {
  int64_t weights = 0;
  int64_t state = 0;
  int64_t arena = 0;   ///< Maximum over the units: only declared values cross layers.
  int64_t scratch = 0; ///< Maximum over the units, too.
  int64_t blocks = 0;
  int64_t total() const { return weights + state + arena + scratch + blocks; }
};

/// Bytes of the stage that holds units [first, end).
StageBytes stageBytes(const PartitionProblem &problem, size_t first, size_t end);

/// firstUnit[s] for each device s, and one past the last unit at the end: device s takes units
/// [firstUnit[s], firstUnit[s + 1]), at least one each. Least maximum decode time, then least
/// maximum prefill time, then the earlier cuts, among the splits that fit. Nothing where none fits.
/// Exact, by dynamic programming in O(devices * units^2).
std::optional<std::vector<size_t>> partition(const PartitionProblem &problem);

} // namespace strata::planner
