// replicate-constants: list the stages that hold each weight, and of a table the layers.
#include <map>

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
    struct Layers {
      int64_t first = INT64_MAX, end = 0; // of a table, those that are read
    };
    llvm::DenseMap<StringAttr, std::map<int64_t, Layers>> readers; // by stage
    auto forward = *model.getOps<ForwardOp>().begin();
    for (LayerOp layer : forward.getOps<LayerOp>()) {
      if (!layer.getStage())
        return layer.emitOpError() << "(" << layer.getUnitName() << ") has no stage";
      layer.walk([&](Operation *op) {
        for (NamedAttribute attribute : op->getAttrs())
          if (auto name = dyn_cast<FlatSymbolRefAttr>(attribute.getValue()))
            readers[name.getAttr()][*layer.getStage()];
        if (auto read = tableLayer(op)) {
          // An op that reads a table names nothing else.
          auto name = op->getAttrOfType<FlatSymbolRefAttr>("weight").getAttr();
          Layers &layers = readers[name][*layer.getStage()];
          layers = {std::min(layers.first, *read), std::max(layers.end, *read + 1)};
        }
      });
    }
    for (WeightOp weight : model.getOps<WeightOp>()) {
      SmallVector<int64_t> stages, ranges;
      for (auto &[stage, layers] : readers[weight.getSymNameAttr()]) {
        stages.push_back(stage);
        ranges.append({layers.first, layers.end});
      }
      if (stages.empty())
        return weight.emitOpError() << "is read by no layer";
      weight.setStages(stages);
      if (weight.isTable()) {
        weight.setRanges(ranges);
        for (size_t i = 0; i < stages.size(); ++i)
          decided(weight, "strata-replicate-constants", "trimmed")
              << remark::metric("Weight", weight.getSymName()) << remark::metric("Stage", stages[i])
              << remark::metric("FirstLayer", ranges[2 * i])
              << remark::metric("EndLayer", ranges[2 * i + 1]);
      } else if (stages.size() > 1) {
        measured(weight, "strata-replicate-constants", "replicated")
            << remark::metric("Weight", weight.getSymName())
            << remark::metric("Replicas", stages.size())
            << remark::metric("BytesEach", weight.getBytes());
      }
    }
    return success();
  }
};

} // namespace
} // namespace strata
