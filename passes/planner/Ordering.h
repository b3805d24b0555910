// The order of a few dependent commands that keeps the fewest bytes alive at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace strata::planner {

/// Memory that commands share: alive from the first command that touches it to the last.
struct OrderBuffer {
  std::vector<size_t> commands; ///< Indices of the commands that touch it, at least one.
  int64_t bytes = 0;
  bool aliveBefore = false; ///< Holds a value when the first command runs.
  bool aliveAfter = false;  ///< Its value is needed when the last command has run.
};

struct OrderProblem {
  size_t commands = 0;
  std::vector<std::vector<size_t>> before; ///< before[c]: commands that must run before c.
  std::vector<OrderBuffer> buffers;
  size_t stateLimit = 100'000; ///< Sets of commands visited before the search turns greedy.
};

/// Peak of live bytes when the commands run in `order`.
int64_t peakOf(const OrderProblem &problem, const std::vector<size_t> &order);

/// An order of least peak where all sets of commands fit the state limit, else the best of the
/// given order and a greedy one. Never worse than the order 0, 1, 2, ..., which must satisfy
/// `before`, and that order itself where nothing is gained.
std::vector<size_t> orderToLowerPeak(const OrderProblem &problem);

} // namespace strata::planner
