// Placements in polynomial time: what most problems need, and where the search begins.
#pragma once

#include "passes/planner/Component.h"

namespace strata::planner {

/// Takes items in the order of time and gives each the smallest free block that holds it. Needs no
/// overlaps: O(n log n). Returns offsets in units.
std::vector<Bytes> placeInTimeOrder(const Component &component, bool backward);

/// Runs every other order and then repairs the best one, until a peak is <= `goal` or the work
/// (visited pairs, not seconds) is used up. Improves `offsets`, a valid placement; units.
void improveByOrders(const Component &component, const Overlaps &overlaps, Bytes goal,
                     std::vector<Bytes> &offsets);

} // namespace strata::planner
