#include "ir/Strata.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include "ir/StrataDialect.cpp.inc"
#include "ir/StrataEnums.cpp.inc"

namespace strata::ir {

void StrataDialect::initialize() {
  registerTypes();
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "ir/StrataOps.cpp.inc"
      >();
}

} // namespace strata::ir
