// From a checkpoint's tensor to the bytes that a kernel reads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/Status.h"
#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/plan/PlanWriter.h"

namespace strata {

/// Rope parameters as `#strata.rope_frequencies` states them.
struct RopeFrequencies {
  double theta;
  uint64_t width;
  std::string scaling; ///< none, linear, llama3, yarn
  double factor;
  double lowFrequencyFactor;
  double highFrequencyFactor;
  double originalContext;
  double betaFast;
  double betaSlow;
};

/// How a weight of the plan is made.
struct WeightRecipe {
  std::string name;
  const WeightType *type;
  std::vector<uint64_t> shape; ///< Outermost first.
  std::string source;          ///< Tensor of the checkpoint; empty where only computed.
  std::optional<RopeFrequencies> computed;
  float plus = 0; ///< Added to every element; F32 weights only.
};

/// Whether `recipe` can be packed from `checkpoint`: its tensor is there, has the shape, and has
/// the type itself or one that converts to F32. Errors: NotFound, InvalidData.
Status checkRecipe(const WeightRecipe &recipe, const Checkpoint &checkpoint);

/// Streams the weight in layout `rows`: row-major blocks. `checkpoint` may be null for a recipe
/// without a source. Errors: as checkRecipe, and the sink's.
Status packWeight(const WeightRecipe &recipe, const Checkpoint *checkpoint, SegmentSink &sink);

/// F32 [width / 2]: theta^(-2j / width), scaled (sources: the RoPE papers of each scaling; ramps
/// are evaluated in F64). `divisors`, where not empty, replace the scaling.
std::vector<float> ropeFrequencies(const RopeFrequencies &rope, std::span<const float> divisors);

} // namespace strata
