// choose-layouts: one physical layout for each weight.

#include "passes/PassOrder.h"
#include "passes/Passes.h"

using namespace mlir;

namespace strata {
#define GEN_PASS_DEF_CHOOSELAYOUTS
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

struct ChooseLayoutsPass
    : OrderedPass<impl::ChooseLayoutsBase<ChooseLayoutsPass>, ChooseLayoutsPass> {
  LogicalResult runOnModel(ModelOp model) {
    for (StageOp stage : model.getOps<StageOp>()) {
      int64_t weights = 0;
      for (WeightOp weight : stage.getOps<WeightOp>()) {
        // Every plain kernel reads rows of blocks, so one layout serves all readers.
        weight.setLayout("rows");
        ++weights;
      }
      decided(stage, "strata-choose-layouts", "rows")
          << remark::metric("Stage", stage.getSymName()) << remark::metric("Weights", weights);
    }
    return success();
  }
};

} // namespace
} // namespace strata
