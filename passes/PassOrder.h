// Every pass checks that it comes next and records that it ran, so that text stopped anywhere can
// be finished and a pass is never fed a level that it does not know.
#pragma once

#include "mlir/IR/Remarks.h"

#include "ir/Strata.h"

namespace strata {

/// Emits an error on `model` unless the pass before `pass` (both without `strata-`) ran last.
mlir::LogicalResult enterPass(ir::ModelOp model, llvm::StringRef pass);

/// Records that `pass` ran.
void leavePass(ir::ModelOp model, llvm::StringRef pass);

/// A remark on what a pass did, or measured, about `op`. Silent while profile-units plans a copy of
/// the model: those decisions are of no plan.
mlir::remark::detail::InFlightRemark decided(mlir::Operation *op, llvm::StringRef category,
                                             llvm::StringRef name);
mlir::remark::detail::InFlightRemark measured(mlir::Operation *op, llvm::StringRef category,
                                              llvm::StringRef name);

/// Gives a pass its entry check and exit mark around `runOnModel()`.
// NOLINTNEXTLINE(bugprone-crtp-constructor-accessibility): the constructors are those of Base
template <class Base, class Derived> class OrderedPass : public Base {
public:
  using Base::Base;

  void runOnOperation() final {
    ir::ModelOp model = this->getOperation();
    llvm::StringRef name = this->getArgument();
    name.consume_front("strata-");
    if (mlir::failed(enterPass(model, name)) ||
        mlir::failed(static_cast<Derived *>(this)->runOnModel(model)))
      return this->signalPassFailure();
    leavePass(model, name);
  }
};

} // namespace strata
