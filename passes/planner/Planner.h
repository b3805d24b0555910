// The allocation problem of one arena: buffers with lifetimes and sizes, to be placed at offsets so
// that no two that live at once overlap, in as few bytes as can be.
//
// This folder knows nothing of the compiler: integers in, offsets out.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace strata::planner {

using Time = int64_t; ///< A position in the order of commands.
using Bytes = int64_t;

/// A buffer lives in [lower, upper): it exists before command `lower` runs and is free once command
/// `upper - 1` has run. lower < upper, size > 0.
struct Buffer {
  Time lower;
  Time upper;
  Bytes size;
};

struct Problem {
  std::vector<Buffer> buffers;
  std::optional<Bytes> capacity; ///< Stop at the first placement whose peak fits; absent: minimise.
  uint64_t nodeLimit =
      2'000'000; ///< Search nodes, never seconds: the answer is the same everywhere.
};

struct Solution {
  std::vector<Bytes> offsets; ///< One a buffer, in the problem's order.
  Bytes peak = 0;             ///< max(offset + size).
  Bytes lowerBound = 0;       ///< Maximum over time of the live bytes (or better).
  bool proven = false;        ///< peak equals the lower bound, or the search was exhausted.
  uint64_t nodes = 0;         ///< Search nodes visited.
};

/// Never fails: where the search ends at its limit the best placement found is returned, unproven.
/// Where no placement fits `capacity`, a lower bound above it says so. The sum of all sizes must
/// fit Bytes. Every offset is a sum of sizes, so sizes that are multiples of an alignment give
/// aligned offsets; a buffer that lives throughout lies at the bottom. The peak depends neither on
/// the order of the buffers nor on the direction of time. Near-linear where heuristics reach the
/// lower bound.
Solution solve(const Problem &problem);

/// Maximum over time of the sum of live sizes.
Bytes maximumLiveBytes(const std::vector<Buffer> &buffers);

/// The first pair of buffers that overlap in time and in bytes, or an offset below 0; independent
/// of the solver.
struct Conflict {
  size_t first;
  size_t second; ///< Equal to `first` where that buffer itself is at fault.
};
std::optional<Conflict> check(const std::vector<Buffer> &buffers,
                              const std::vector<Bytes> &offsets);

} // namespace strata::planner
