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

/// "q4_1", of the weight that `op` reads.
inline std::string weightTypeName(mlir::Operation *op, mlir::FlatSymbolRefAttr weight) {
  mlir::Type element = lookupSymbol<ir::WeightOp>(op, weight).getTensorType().getElementType();
  return std::string(ir::weightTypeOf(element)->name);
}

} // namespace strata
