// verify-model: one chain from embedding to sampling.
#include "passes/PassOrder.h"
#include "passes/Passes.h"

using namespace mlir;

namespace strata {
#define GEN_PASS_DEF_VERIFYMODEL
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

LogicalResult expectResidual(LayerOp layer, Type type, int64_t hidden) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (tensor && tensor.getRank() == 2 && tensor.isDynamicDim(0) && tensor.getDimSize(1) == hidden)
    return success();
  return layer.emitOpError() << "passes " << type << " on, must be tensor<?x" << hidden << "xf32>";
}

template <class Op> LogicalResult expectOne(LayerOp layer) {
  auto ops = layer.getBody().front().template getOps<Op>();
  auto count = std::distance(ops.begin(), ops.end());
  if (count == 1)
    return success();
  return layer.emitOpError() << "(" << layer.getUnitName() << ") has " << count << " "
                             << Op::getOperationName() << ", must have one";
}

LogicalResult verifyChain(ModelOp model, ForwardOp forward) {
  int64_t hidden = model.getHidden(), layers = model.getLayers(), position = -1;
  ValueRange previous;
  for (Operation &op : forward.getBlock()) {
    auto layer = dyn_cast<LayerOp>(op);
    if (!layer)
      return op.emitOpError() << "stands outside a layer";
    LayerKind expected = position < 0        ? LayerKind::embedding
                         : position < layers ? LayerKind::decoder
                                             : LayerKind::head;
    if (position > layers)
      return layer.emitOpError() << "follows the head";
    if (layer.getKind() != expected ||
        (expected == LayerKind::decoder && layer.getIndex() != position))
      return layer.emitOpError() << "is '" << layer.getUnitName() << "' where the chain of "
                                 << layers << " layers needs its " << stringifyLayerKind(expected)
                                 << (expected == LayerKind::decoder ? " " + std::to_string(position)
                                                                    : std::string());
    if (!llvm::equal(layer.getInputs(), previous))
      return layer.emitOpError() << "(" << layer.getUnitName()
                                 << ") does not take exactly what the layer before yields";
    if (expected == LayerKind::head) {
      if (!layer.getOutputs().empty())
        return layer.emitOpError() << "(head) yields a value, must yield none";
      if (failed(expectOne<GatherRowsOp>(layer)) || failed(expectOne<LogitsOp>(layer)) ||
          failed(expectOne<SampleOp>(layer)))
        return failure();
      auto logits = *layer.getBody().front().getOps<LogitsOp>().begin();
      int64_t width = cast<RankedTensorType>(logits.getResult().getType()).getShape().back();
      if (width != model.getVocabulary())
        return logits.emitOpError()
               << "makes " << width << " logits for a vocabulary of " << model.getVocabulary();
    } else {
      if (layer.getOutputs().size() != 1)
        return layer.emitOpError()
               << "(" << layer.getUnitName() << ") yields " << layer.getOutputs().size()
               << " values, must yield the residual";
      if (failed(expectResidual(layer, layer.getOutputs()[0].getType(), hidden)))
        return failure();
      if (expected == LayerKind::embedding && failed(expectOne<EmbedOp>(layer)))
        return failure();
    }
    previous = layer.getOutputs();
    ++position;
  }
  if (position != layers + 1)
    return forward.emitOpError() << "ends before its head: " << position + 1 << " of " << layers + 2
                                 << " units";
  return success();
}

struct VerifyModelPass : OrderedPass<impl::VerifyModelBase<VerifyModelPass>, VerifyModelPass> {
  LogicalResult runOnModel(ModelOp model) {
    SmallVector<ForwardOp> forwards(model.getOps<ForwardOp>());
    if (forwards.size() != 1)
      return model.emitOpError() << "has " << forwards.size() << " forwards, must have one";
    if (forwards[0].getRows())
      return forwards[0].emitOpError() << "has static rows at the model level";
    for (Operation &op : *model.getBody().begin())
      if (!isa<WeightOp, StateOp, ForwardOp>(op))
        return op.emitOpError() << "does not belong to the model level";
    return verifyChain(model, forwards[0]);
  }
};

} // namespace
} // namespace strata
