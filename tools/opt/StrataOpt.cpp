// strata-opt: runs any part of the pipeline on text of any level.
//
//   strata-opt model.mlir --strata-pipeline=until=verify-placement
//   strata-opt placed.mlir
//   --pass-pipeline='builtin.module(strata.model(strata-instantiate-buckets))'
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

#include "ir/Strata.h"
#include "passes/Passes.h"

int main(int argc, char **argv) {
  if (argc == 2 && llvm::StringRef(argv[1]) == "--list-passes") {
    for (std::string_view name : strata::pipelinePasses())
      llvm::outs() << llvm::StringRef(name.data(), name.size()) << "\n";
    return 0;
  }
  mlir::DialectRegistry registry;
  registry.insert<strata::ir::StrataDialect>();
  strata::registerStrataPasses();
  strata::registerStrataPipelines();
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "Runs passes of the strata dialect\n", registry));
}
