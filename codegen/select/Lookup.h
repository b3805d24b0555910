// What selection asks of an op's values and symbols.
#pragma once

#include "ir/Strata.h"

namespace strata {

inline int64_t widthOf(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType()).getShape().back();
}

template <class SymbolOp> SymbolOp lookupSymbol(mlir::Operation *op, mlir::FlatSymbolRefAttr name) {
  return mlir::SymbolTable::lookupNearestSymbolFrom<SymbolOp>(op, name);
}

/// "bf16", of an element type.
inline std::string typeName(mlir::Type type) { return std::string(ir::weightTypeOf(type)->name); }

/// "q4_1", of the weight that `op` reads.
inline std::string weightTypeName(mlir::Operation *op, mlir::FlatSymbolRefAttr weight) {
  return typeName(lookupSymbol<ir::WeightOp>(op, weight).getTensorType().getElementType());
}

} // namespace strata
