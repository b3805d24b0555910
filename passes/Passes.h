// The pipeline: from a model-level `strata.model` to the planned level.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

#include "ir/Strata.h"

namespace strata {

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

/// Names of the pipeline's passes without the `strata-` prefix, in the order in which they run.
std::span<const std::string_view> pipelinePasses();

/// The levels that tools print, and the pass after which each is reached.
constexpr std::string_view placedLevelPass = "verify-placement";
constexpr std::string_view plannedLevelPass = "verify-plan";

/// Adds the passes that still have to run on a model whose last pass was `after` (empty: none yet),
/// up to and including `until` (empty: all). Fails where a name is unknown or `until` is past
/// already.
mlir::LogicalResult addPipeline(mlir::OpPassManager &modelManager, llvm::StringRef after,
                                llvm::StringRef until, llvm::raw_ostream &errors);

/// Registers `strata-pipeline`, which runs whatever still has to run.
void registerStrataPipelines();

} // namespace strata
