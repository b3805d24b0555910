// verify-placement: stages are disjoint, complete and own what they use.
#include "passes/PassOrder.h"
#include "passes/Passes.h"

using namespace mlir;

namespace strata {
#define GEN_PASS_DEF_VERIFYPLACEMENT
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

/// Names used by any op below `root`.
llvm::DenseSet<StringAttr> namesUsed(Operation *root) {
  llvm::DenseSet<StringAttr> names;
  root->walk([&](Operation *op) {
    for (NamedAttribute attribute : op->getAttrs())
      if (auto name = dyn_cast<FlatSymbolRefAttr>(attribute.getValue()))
        names.insert(name.getAttr());
  });
  return names;
}

LogicalResult verifyLayers(StageOp stage, ForwardOp forward) {
  int64_t next = stage.getFirstLayer();
  bool embedding = false, head = false;
  for (LayerOp layer : forward.getOps<LayerOp>()) {
    embedding |= layer.getKind() == LayerKind::embedding;
    head |= layer.getKind() == LayerKind::head;
    if (layer.getKind() == LayerKind::decoder && layer.getIndex() != next++)
      return layer.emitOpError() << "(" << layer.getUnitName() << ") stands where layer "
                                 << next - 1 << " must";
  }
  if (next != stage.getEndLayer())
    return stage.emitOpError() << "says layers " << stage.getFirstLayer() << " to "
                               << stage.getEndLayer() << " but ends with layer " << next - 1;
  if (embedding != stage.getEmbedding() || head != stage.getHead())
    return stage.emitOpError() << "says " << (stage.getEmbedding() ? "" : "no ") << "embedding and "
                               << (stage.getHead() ? "a" : "no")
                               << " head, its layers say otherwise";
  return success();
}

/// A stage holds exactly the layers of a table that it reads.
LogicalResult verifyTables(StageOp stage, ForwardOp forward) {
  llvm::DenseSet<std::pair<StringAttr, int64_t>> read;
  forward.walk([&](Operation *op) {
    if (auto layer = tableLayer(op))
      read.insert({op->getAttrOfType<FlatSymbolRefAttr>("weight").getAttr(), *layer});
  });
  for (WeightOp weight : stage.getOps<WeightOp>())
    if (auto layers = weight.getLayers())
      for (int64_t layer = layers->getFirst(); layer < layers->getEnd(); ++layer)
        if (!read.contains({weight.getSymNameAttr(), layer}))
          return weight.emitOpError() << "is held by @" << stage.getSymName() << " with layer "
                                      << layer << ", which is not read there";
  return success();
}

struct VerifyPlacementPass
    : OrderedPass<impl::VerifyPlacementBase<VerifyPlacementPass>, VerifyPlacementPass> {
  LogicalResult runOnModel(ModelOp model) {
    SmallVector<StageOp> stages(model.getOps<StageOp>());
    if (stages.size() != model.getDevices().size())
      return model.emitOpError() << "has " << stages.size() << " stages for "
                                 << model.getDevices().size() << " devices";
    int64_t next = 0;
    for (auto [index, stage] : llvm::enumerate(stages)) {
      if (stage.getFirstLayer() != next)
        return stage.emitOpError()
               << "begins at layer " << stage.getFirstLayer() << ", must begin at " << next;
      next = stage.getEndLayer();
      if (stage.getEmbedding() != (index == 0) || stage.getHead() != (index + 1 == stages.size()))
        return stage.emitOpError() << "is stage " << index << " of " << stages.size()
                                   << ": the first embeds and the last has the head, no other";
      SmallVector<ForwardOp> forwards(stage.getOps<ForwardOp>());
      if (forwards.size() != 1)
        return stage.emitOpError() << "has " << forwards.size() << " forwards, must have one";
      if (failed(verifyLayers(stage, forwards[0])))
        return failure();
      llvm::DenseSet<StringAttr> used = namesUsed(forwards[0]);
      for (Operation &op : stage.getRegion().front())
        if (isa<WeightOp, StateOp, PortOp>(op) &&
            !used.contains(cast<SymbolOpInterface>(op).getNameAttr()))
          return op.emitOpError() << "is held by @" << stage.getSymName() << " but not used there";
      if (failed(verifyTables(stage, forwards[0])))
        return failure();
    }
    if (next != model.getLayers())
      return model.emitOpError() << "has " << model.getLayers() << " layers, its stages hold "
                                 << next;
    return verifyHandoffs(model, stages);
  }

private:
  LogicalResult verifyHandoffs(ModelOp model, ArrayRef<StageOp> stages) {
    llvm::DenseSet<Attribute> joined;
    auto indexOf = [&](SymbolRefAttr port) {
      return llvm::find_if(
                 stages,
                 [&](StageOp stage) { return stage.getSymNameAttr() == port.getRootReference(); }) -
             stages.begin();
    };
    for (HandoffOp handoff : model.getOps<HandoffOp>()) {
      for (SymbolRefAttr port : {handoff.getProducer(), handoff.getConsumer()})
        if (!joined.insert(port).second)
          return handoff.emitOpError() << "joins " << port << ", which is joined already";
      if (indexOf(handoff.getConsumer()) != indexOf(handoff.getProducer()) + 1)
        return handoff.emitOpError() << "does not lead to the next stage";
    }
    for (StageOp stage : stages)
      for (PortOp port : stage.getOps<PortOp>()) {
        auto name = SymbolRefAttr::get(stage.getSymNameAttr(), FlatSymbolRefAttr::get(port));
        if (!joined.contains(name))
          return port.emitOpError() << "is joined by no handoff";
      }
    return success();
  }
};

} // namespace
} // namespace strata
