// From the planned level to the plan file.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "ir/Strata.h"
#include "runtime/base/Status.h"
#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/plan/Plan_generated.h"

namespace strata {

struct WriteOptions {
  std::string path;               ///< The plan file.
  std::string weights = "inside"; ///< `inside` the plan, `none`, or the folder of a store.
  /// Called as weights are packed.
  std::function<void(uint64_t bytes, uint64_t totalBytes)> progress = [](uint64_t, uint64_t) {};
};

/// Packs the weights and writes the plan. The file appears when it is complete and has passed the
/// loader's own checks; it is a function of the planned text and the checkpoint, byte for byte.
/// `checkpoint` may be null with `none`. Errors: InvalidArgument (the model is not at the planned
/// level), those of packing, and those of PlanWriter.
Status writePlan(ir::ModelOp model, const Checkpoint *checkpoint, const WriteOptions &options);

/// The plan's FlatBuffer alone, with sizes of weights but no bytes of them, and vocabulary left
/// out: what the memory table of the written plan would say. Takes a dry run's model too.
Result<flatbuffers::DetachedBuffer> describePlan(ir::ModelOp model);

} // namespace strata
