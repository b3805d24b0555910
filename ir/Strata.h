// The strata dialect: types, attributes and ops of all three levels.
#pragma once

#include <optional>
#include <string>

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/RegionKindInterface.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "runtime/checkpoint/WeightTypeTable.h"

#include "ir/StrataDialect.h.inc"
#include "ir/StrataEnums.h.inc"

#define GET_TYPEDEF_CLASSES
#include "ir/StrataTypes.h.inc"
#define GET_ATTRDEF_CLASSES
#include "ir/StrataAttrs.h.inc"
#define GET_OP_CLASSES
#include "ir/StrataOps.h.inc"

namespace strata::ir {

/// The weight-type row of an element type (f32, f16, bf16, `!strata.quant`); nullptr for others.
const WeightType *weightTypeOf(mlir::Type elementType);

/// The element type of a weight-type row.
mlir::Type elementTypeFor(mlir::MLIRContext *context, const WeightType &type);

/// Bytes of a weight of this tensor type in row-major blocks; nothing where rows are no whole
/// blocks.
std::optional<int64_t> weightBytes(mlir::RankedTensorType type);

/// Bytes that a tensor of numbers takes in the arena, a multiple of 64; its shape is static.
int64_t bufferBytes(mlir::RankedTensorType type);

/// The layer that `op` reads of a table of layers, where it reads one.
std::optional<int64_t> tableLayer(mlir::Operation *op);

/// `tensor<rows x width x f32, #strata.space<space>>`; rows may be dynamic.
mlir::RankedTensorType activationType(mlir::MLIRContext *context, int64_t rows, int64_t width,
                                      llvm::StringRef space);

} // namespace strata::ir
