// One independent part of an allocation problem in a canonical form that depends neither on the
// order of its buffers, nor on the direction of time, nor on the unit of the sizes.
#pragma once

#include <compare>
#include <span>

#include "passes/planner/Planner.h"

namespace strata::planner {

/// A buffer that is live in the sections first..last (both included). `size` is in the component's
/// unit, `length` is upper - lower and serves only to order items.
struct Item {
  uint32_t first;
  uint32_t last;
  Bytes size;
  uint64_t length;
  auto operator<=>(const Item &) const = default;
};

/// Sections are the maximal sets of buffers that live at once, in the order of time: two items
/// overlap exactly where they share a section, and no section is implied by its neighbour.
struct Component {
  std::vector<Item> items; ///< Sorted.
  uint32_t sections = 0;
  Bytes unit = 1;       ///< Bytes per unit: the greatest common divisor of the sizes.
  Bytes lowerBound = 0; ///< Units; the largest sum of a section.
};

/// Builds the canonical form of `ids`, all connected in time, and sorts `ids` into the order of its
/// items.
Component makeComponent(const std::vector<Buffer> &buffers, std::vector<uint32_t> &ids);

/// Which items live together.
class Overlaps {
public:
  /// Costs one entry for each ordered pair; see countPairs.
  explicit Overlaps(const Component &component);

  std::span<const uint32_t> of(uint32_t item) const {
    return std::span(neighbours_).subspan(begin_[item], begin_[item + 1] - begin_[item]);
  }
  size_t size() const { return neighbours_.size(); }

  /// Number of ordered pairs of items that overlap.
  static uint64_t countPairs(const Component &component);

private:
  std::vector<size_t> begin_;
  std::vector<uint32_t> neighbours_;
};

/// max(offset + size) in units.
Bytes peakOf(const Component &component, const std::vector<Bytes> &offsets);

} // namespace strata::planner
