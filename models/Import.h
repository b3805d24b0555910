// From a checkpoint to the model level of the dialect.
#pragma once

#include <string>
#include <vector>

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include "models/ImportOptions.h"
#include "runtime/base/Status.h"
#include "runtime/checkpoint/Checkpoint.h"

namespace strata {

struct ImportedModel {
  mlir::OwningOpRef<mlir::ModuleOp> module; ///< Holds one `strata.model`, verified.
  std::vector<std::string> notes;           ///< What a person may want to know, a sentence each.
};

/// Builds the model that the checkpoint's configuration states, by the family that claims it. The
/// module is a function of the checkpoint and the options alone.
/// Errors: Unimplemented (a family, key or value without a definition, by name), InvalidData
/// (values out of range, tensors that are not the model's, by name), InvalidArgument (options that
/// this model cannot meet), and those of `Checkpoint::vocabulary`.
Result<ImportedModel> importModel(mlir::MLIRContext &context, const Checkpoint &checkpoint,
                                  const ImportOptions &options);

} // namespace strata
