// replicate-constants: list the stages that hold each weight.
#include <map>
#include <set>

#include "mlir/IR/Builders.h"

#include "passes/PassOrder.h"
#include "passes/Passes.h"

using namespace mlir;

namespace strata {
#define GEN_PASS_DEF_REPLICATECONSTANTS
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

struct ReplicateConstantsPass
    : OrderedPass<impl::ReplicateConstantsBase<ReplicateConstantsPass>, ReplicateConstantsPass> {
  LogicalResult runOnModel(ModelOp model) {
    llvm::DenseMap<StringAttr, std::set<int64_t>> readers;
    auto forward = *model.getOps<ForwardOp>().begin();
    for (LayerOp layer : forward.getOps<LayerOp>()) {
      if (!layer.getStage())
        return layer.emitOpError() << "(" << layer.getUnitName() << ") has no stage";
      layer.walk([&](Operation *op) {
        for (NamedAttribute attribute : op->getAttrs())
          if (auto name = dyn_cast<FlatSymbolRefAttr>(attribute.getValue()))
            readers[name.getAttr()].insert(*layer.getStage());
      });
    }
    for (WeightOp weight : model.getOps<WeightOp>()) {
      const std::set<int64_t> &stages = readers[weight.getSymNameAttr()];
      if (stages.empty())
        return weight.emitOpError() << "is read by no layer";
      weight.setStages(SmallVector<int64_t>(stages.begin(), stages.end()));
      if (stages.size() > 1)
        measured(weight, "strata-replicate-constants", "replicated")
            << remark::metric("Weight", weight.getSymName())
            << remark::metric("Replicas", stages.size())
            << remark::metric("BytesEach", *weightBytes(weight.getTensorType()));
    }
    return success();
  }
};

} // namespace
} // namespace strata
