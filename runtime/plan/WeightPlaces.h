// Where a stage's weights lie in the plan's segments, and a table's layers in a weight.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/plan/Plan_generated.h"

namespace strata {

/// Layers that a table holds; 1 for any other weight.
uint32_t layerCount(const fb::Weight &weight);

/// Bytes from one layer of a table to the next; those of any other weight, rounded up. The weight
/// has passed verifyPlan()'s checks of itself.
uint64_t layerStride(const fb::Weight &table);

/// Weights of a stage that lie one behind the other in a segment, which a device takes as one.
struct WeightRun {
  uint32_t segment;
  uint64_t begin; ///< Inside the segment.
  uint64_t bytes; ///< A multiple of 64: may end past the segment, by less.
};

/// Where the weights of `stage` lie, in the order of the stage: a run and the offset inside it.
struct WeightPlaces {
  struct Place {
    uint32_t run;
    uint64_t offset;
  };
  std::vector<WeightRun> runs;
  std::vector<Place> places;

  explicit WeightPlaces(const fb::Stage &stage);
  /// Each weight's bytes, rounded up to 64.
  uint64_t bytes() const;
};

} // namespace strata
