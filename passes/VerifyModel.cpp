// verify-model: one chain from embedding to sampling.
#include "passes/PassOrder.h"
#include "passes/Passes.h"
#include "runtime/base/CheckedMath.h"

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

/// Which ops a layer of each kind may hold. The head runs over gathered rows, which have a sequence
/// but no position, and it may run several times over what one body left: nothing but the gather
/// may read those rows. Ids stand on the first stage alone, so only the embedding embeds.
LogicalResult verifyOps(LayerOp layer) {
  LayerKind kind = layer.getKind();
  for (Operation &op : layer.getBody().front()) {
    bool pointwise =
        isa<RmsNormOp, LinearOp, GatedOp, RowGatedOp, ActivationOp, AddOp, YieldOp>(op);
    // Experts sort all rows of a body; the head may run over some of them.
    bool positional = isa<RopeOp, KvWriteOp, AttentionOp, ConvOp, SsmScanOp, HeadLinearOp, RouterOp,
                          ExpertsOp, LatentDownOp, LatentUpOp>(op);
    bool ofHead = isa<GatherRowsOp, LogitsOp, SampleOp>(op);
    bool allowed = pointwise || (kind == LayerKind::embedding && isa<EmbedOp>(op)) ||
                   (kind == LayerKind::decoder && positional) ||
                   (kind == LayerKind::head && ofHead);
    if (!allowed)
      return op.emitOpError() << "does not belong in the " << stringifyLayerKind(kind);
    for (Value result : op.getResults())
      if (auto type = dyn_cast<RankedTensorType>(result.getType()); type && !type.isDynamicDim(0))
        return op.emitOpError() << "makes " << type << ", whose rows must be symbolic (?)";
    if (kind != LayerKind::head || isa<GatherRowsOp>(op))
      continue;
    for (Value operand : op.getOperands())
      if (isa<BlockArgument>(operand) && !isa<StepType>(operand.getType()))
        return op.emitOpError() << "reads the head's rows before they are gathered; gather first";
  }
  return success();
}

/// What attention reads was written, by its own layer or an earlier one, and no state is held in
/// vain.
LogicalResult verifyState(ModelOp model, ForwardOp forward) {
  llvm::DenseSet<std::pair<Attribute, int64_t>> written;
  WalkResult walk = forward.walk([&](Operation *op) {
    auto writes = [&](auto write) {
      written.insert({write.getStateAttr(), write.getLayer()});
      return WalkResult::advance();
    };
    if (auto write = dyn_cast<KvWriteOp>(op))
      return writes(write);
    if (auto conv = dyn_cast<ConvOp>(op))
      return writes(conv);
    if (auto scan = dyn_cast<SsmScanOp>(op))
      return writes(scan);
    auto attention = dyn_cast<AttentionOp>(op);
    if (!attention || written.contains({attention.getStateAttr(), attention.getLayer()}))
      return WalkResult::advance();
    attention.emitOpError() << "reads layer " << attention.getLayer() << " of "
                            << attention.getStateAttr() << " before a strata.kv_write of it";
    return WalkResult::interrupt();
  });
  if (walk.wasInterrupted())
    return failure();
  for (StateOp state : model.getOps<StateOp>())
    for (int64_t layer : state.getLayers())
      if (!written.contains({FlatSymbolRefAttr::get(state.getSymNameAttr()), layer}))
        return state.emitOpError() << "(@" << state.getSymName() << ") holds layer " << layer
                                   << ", which nothing writes";
  return success();
}

/// The pools' blocks are numbered with 32 bits and their bytes with 64.
LogicalResult verifyStateSize(ModelOp model, StateOp state) {
  auto blocks = checkedMul<uint64_t>(
      static_cast<uint64_t>(state.getBlocksPerSequence(model.getMaxContext(), model.getMaxRows())),
      static_cast<uint64_t>(model.getMaxSequences()));
  if (!blocks || *blocks > UINT32_MAX ||
      !checkedMul<uint64_t>(*blocks * 2, static_cast<uint64_t>(state.getBlockBytes())))
    return state.emitOpError() << "needs too many blocks of " << state.getBlockTokens()
                               << " tokens for " << model.getMaxSequences() << " sequences of "
                               << model.getMaxContext() << " tokens";
  return success();
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
    if (failed(verifyOps(layer)))
      return failure();
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
      auto sample = *layer.getBody().front().getOps<SampleOp>().begin();
      if (sample.getLogits().getType() != logits.getResult().getType())
        return sample.emitOpError() << "draws from " << sample.getLogits().getType()
                                    << ", the logits are " << logits.getResult().getType();
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
    for (StateOp state : model.getOps<StateOp>())
      if (failed(verifyStateSize(model, state)))
        return failure();
    return failure(failed(verifyChain(model, forwards[0])) ||
                   failed(verifyState(model, forwards[0])));
  }
};

} // namespace
} // namespace strata
