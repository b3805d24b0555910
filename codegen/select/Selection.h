// Kernel selection: one compute op to one or more kernels of a target, with every slot filled.
#pragma once

#include <string>

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringMap.h"

#include "codegen/kernels/KernelLibrary.h"
#include "ir/Strata.h"

namespace strata {

/// A kernel chosen for an op, before its operands are renamed and its memory is tied.
struct Selection {
  std::string kernel;
  /// Tensor operands, in buffer-slot order; null: the result of the selection before it.
  llvm::SmallVector<mlir::Value> inputs;
  mlir::Type result;                      ///< Null where the kernel makes no tensor.
  mlir::Type workspace;                   ///< Of a second result, which no one reads; null: none.
  llvm::StringMap<mlir::Attribute> slots; ///< By the names of the kernel's signature.
  ir::ItemsAttr items;
  llvm::SmallVector<int64_t, 2> grid; ///< Of a GPU: blocks that cover the bucket's most items.
  int64_t inPlace = -1; ///< The kernel overwrites this input: it must die here, or be copied first.
  bool mayReuse = false; ///< The result may take the memory of any input that dies here.
  bool logits = false;   ///< The host reads the result after the launch.
  std::string label;     ///< What it is called beside its unit; empty: after its op.
};

/// Kernels have symbols of their own kind of device, `@cpu.linear.q4_1`, which no weight is called.
std::string kernelSymbol(const KernelLibrary &library, llvm::StringRef kernel);
llvm::StringRef kernelName(llvm::StringRef symbol);

/// On a model that is planned for its memory table alone: what the target has no kernel for is
/// taken as if it had one that works on the op's tensors. No plan is written from such a model.
constexpr llvm::StringLiteral dryRunAttribute = "strata.dry_run";
bool isDryRun(mlir::Operation *op); ///< Whether `op` stands in such a model, or is one.

/// Where an op stands, as far as its kernel depends on it.
struct SelectionContext {
  ir::StageOp stage;
  const KernelLibrary &library;
  int64_t layer; ///< -1 the embedding, the model's layer count the head.
  bool headRows; ///< The op's rows are gathered head rows.
};

using Selections = llvm::SmallVector<Selection, 2>;

/// Chooses kernels for `op`; several run in order (a KV write is one for K and one for V). Emits an
/// error on the op where the target has none, naming the kernel that is missing; in a dry run the
/// kernel is chosen all the same.
mlir::FailureOr<Selections> selectKernels(mlir::Operation *op, const SelectionContext &context);

/// The linear op with its result added to `residual`, in place.
mlir::FailureOr<Selections> selectLinearAdd(ir::LinearOp linear, mlir::Value residual,
                                            const SelectionContext &context);

/// Gives `selection`, which runs `op`, its grid; an error on `op` where the target has no such
/// kernel.
mlir::LogicalResult finishSelection(mlir::Operation *op, Selection &selection,
                                    const SelectionContext &context);

/// A copy of rows, as kernels that work in place need where their input lives on.
Selection selectCopy(mlir::Value rows, const SelectionContext &context);

/// The signature's slots in order; an error on `op` where one is not filled.
mlir::FailureOr<mlir::ArrayAttr> orderedSlots(mlir::Operation *op, const Selection &selection);

} // namespace strata
