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

/// The rows that a weight takes of its source: of every `of` rows those from `first` on.
struct SourcePart {
  uint64_t first;
  uint64_t of;
};

/// How a weight of the plan is made (`strata.weight` says what each field means).
struct WeightRecipe {
  std::string name;
  const WeightType *type;
  std::vector<uint64_t> shape; ///< Outermost first.
  std::string source;          ///< Tensor of the checkpoint; empty where only computed.
  uint64_t stack = 0;          ///< Tensors that the source's `*` stands for; 0: it is one name.
  std::optional<SourcePart> part;
  uint64_t join = 1;
  std::optional<RopeFrequencies> computed;
  bool isIdentity = false;            ///< Element i is i; no source.
  bool isNegativeExponential = false; ///< -exp of every element; F32 weights only.
  float plus = 0;                     ///< Added to every element; F32 weights only.

  /// Whether its bytes follow from the recipe alone.
  bool isKnown() const { return source.empty() && (isIdentity || computed); }

  /// The tensors that it is made of, in order.
  std::vector<std::string> sources() const;
};

/// Whether `recipe` can be packed from `checkpoint`: its tensors are there, have the elements and
/// the innermost dimension, and have the type itself or one that converts to F32. Errors: NotFound,
/// InvalidData.
Status checkRecipe(const WeightRecipe &recipe, const Checkpoint &checkpoint);

/// Streams the weight in layout `rows`: row-major blocks. `checkpoint` may be null for a recipe
/// without a source. Errors: as checkRecipe, and the sink's.
Status packWeight(const WeightRecipe &recipe, const Checkpoint *checkpoint, SegmentSink &sink);

/// F32 [width / 2]: theta^(-2j / width), scaled (sources: the RoPE papers of each scaling; ramps
/// are evaluated in F64). `divisors`, where not empty, replace the scaling.
std::vector<float> ropeFrequencies(const RopeFrequencies &rope, std::span<const float> divisors);

} // namespace strata
