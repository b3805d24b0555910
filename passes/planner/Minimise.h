// One component from its first placement to the best that the heuristics and the search find.
#pragma once

#include "passes/planner/Component.h"

namespace strata::planner {

/// In units of the component.
struct Attempt {
  std::vector<Bytes> offsets; ///< One an item; always a valid placement.
  Bytes peak = 0;
  Bytes lowerBound = 0; ///< No placement has a lower peak.
};

struct MinimiseOptions {
  Bytes goal = 0;          ///< Units; a peak at or below it is good enough.
  bool decideOnly = false; ///< Nothing is gained by a peak above `goal`.
  uint64_t nodeLimit = 0;
};

/// The better of the two sweeps over time.
Attempt firstAttempt(const Component &component);

/// Improves `attempt`; returns the number of search nodes.
uint64_t minimise(const Component &component, const MinimiseOptions &options, Attempt &attempt);

} // namespace strata::planner
