// Which products a GPU's vendor library computes, and the types in which values are stored for
// them.
#pragma once

#include "codegen/select/Selection.h"

namespace strata {

/// The element type of the weights of `op` where it is a product of so many rows that the vendor's
/// library computes it (kernel `gemm`); null for every other op. Its input is read in that type.
mlir::Type gemmType(mlir::Operation *op, const KernelLibrary &library);

/// The element type in which a kernel of `library` stores `value`: of 16 bits where all its readers
/// are products that read it so, else F32.
mlir::Type storedType(mlir::Value value, const KernelLibrary &library);

/// Whether the weights lie one right behind the other in the plan, so that a product can read them
/// as one.
bool areAdjacent(llvm::ArrayRef<ir::WeightOp> weights);

/// The library's product of `input` and `weights`, which are adjacent, all of `gemmType()` `type`;
/// its result, in `resultType`, has their rows side by side. A conversion of `input` goes before it
/// where it is stored in another type.
Selections selectGemm(mlir::Value input, llvm::ArrayRef<mlir::FlatSymbolRefAttr> weights,
                      mlir::Type type, mlir::RankedTensorType resultType,
                      const SelectionContext &context);

/// Whether the rows of `attention` are taken in tiles of a sequence's (kernel `attention_prompt`).
bool runsAsPrompt(ir::AttentionOp attention, const KernelLibrary &library);

} // namespace strata
