// What the verifiers of compute ops share: an op's weights and states exist where it stands and
// have the shape that it needs. Each check emits its error on the op, with a note at the
// declaration.
#pragma once

#include "ir/Strata.h"

namespace strata::ir {

int64_t widthOf(mlir::Value value); ///< Of a row.

/// The weight, or `layer` of a table, is `[shape...]` (dynamic: any size), and F32 where it must
/// be.
mlir::LogicalResult checkWeight(mlir::Operation *op, mlir::SymbolTableCollection &tables,
                                mlir::FlatSymbolRefAttr name, llvm::ArrayRef<int64_t> shape,
                                bool mustBeF32 = false, std::optional<int64_t> layer = {});

/// A table is read at a layer that it holds, any other weight as a whole.
mlir::LogicalResult checkLayerOf(mlir::Operation *op, WeightOp weight,
                                 std::optional<int64_t> layer);

/// The weight is `[a, b, c]`; gives its sizes.
mlir::FailureOr<std::array<int64_t, 3>>
expertShape(mlir::Operation *op, mlir::SymbolTableCollection &tables, mlir::FlatSymbolRefAttr name);

/// The state exists and holds `layer`.
mlir::LogicalResult checkState(mlir::Operation *op, mlir::SymbolTableCollection &tables,
                               mlir::FlatSymbolRefAttr name, int64_t layer, StateOp &state);

/// The state has the component, of that width.
mlir::LogicalResult checkComponent(mlir::Operation *op, StateOp state, llvm::StringRef name,
                                   int64_t width);

} // namespace strata::ir
