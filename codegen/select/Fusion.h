// Fusion: several ops of a block that one kernel runs.
#pragma once

#include "codegen/select/Selection.h"

namespace strata {

struct Fusion {
  llvm::SmallVector<mlir::Operation *>
      ops;            ///< In the block's order; it runs where the last stands.
  mlir::Value result; ///< The one value that others read.
  Selections before;  ///< What runs first, each on the result of the one before it.
  Selection selection;
};

/// Where an op stands.
using ContextOf = llvm::function_ref<SelectionContext(mlir::Operation *)>;

/// The fusions of `block` that its target has kernels for; none share an op. What an op reads stays
/// as it is until the fusion runs, and only its result is read elsewhere, later. `leaves` is the
/// value that leaves the block, or null.
mlir::FailureOr<llvm::SmallVector<Fusion, 0>> findFusions(mlir::Block &block, mlir::Value leaves,
                                                          ContextOf contextOf);

} // namespace strata
