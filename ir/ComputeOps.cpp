// Verifiers of the compute ops: every weight and state that an op names exists where the op stands
// and has the shape that the op needs.
#include "ir/SymbolChecks.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace strata::ir {
namespace {

template <class LinearOp> LogicalResult checkLinear(LinearOp op, SymbolTableCollection &tables) {
  for (Value rows : {Value(op.getInput()), Value(op.getResult())})
    if (auto space =
            dyn_cast_or_null<SpaceAttr>(cast<RankedTensorType>(rows.getType()).getEncoding());
        space && space.getName() == "latent")
      return op.emitOpError() << "maps " << op.getInput().getType() << " to "
                              << op.getResult().getType()
                              << "; only strata.latent_down leads into latent space and only "
                                 "strata.latent_up out of it";
  int64_t outputs = widthOf(op.getResult());
  if (failed(checkWeight(op, tables, op.getWeightAttr(), {outputs, widthOf(op.getInput())})))
    return failure();
  if (op.getBiasAttr())
    return checkWeight(op, tables, op.getBiasAttr(), {outputs}, /*mustBeF32=*/true);
  return success();
}

} // namespace

LogicalResult EmbedOp::verifySymbolUses(SymbolTableCollection &tables) {
  return checkWeight(*this, tables, getTableAttr(), {ShapedType::kDynamic, widthOf(getResult())});
}

LogicalResult RmsNormOp::verifySymbolUses(SymbolTableCollection &tables) {
  int64_t heads = getHeads().value_or(1), width = widthOf(getResult());
  if (heads < 1 || width % heads != 0)
    return emitOpError() << "cannot cut a row of " << width << " into " << heads << " heads";
  return checkWeight(*this, tables, getWeightAttr(), {getGrouped() ? width : width / heads},
                     /*mustBeF32=*/true);
}

OpFoldResult RmsNormOp::fold(FoldAdaptor) {
  if (getHeads() != 1)
    return {};
  removeHeadsAttr();
  setGrouped(false);
  return getResult();
}

LogicalResult LinearOp::verifySymbolUses(SymbolTableCollection &tables) {
  return checkLinear(*this, tables);
}

LogicalResult LogitsOp::verifySymbolUses(SymbolTableCollection &tables) {
  return checkLinear(*this, tables);
}

LogicalResult RopeOp::verifySymbolUses(SymbolTableCollection &tables) {
  int64_t heads = getHeads(), width = widthOf(getResult()), rotary = getRotaryWidth();
  if (heads < 1 || width % heads != 0)
    return emitOpError() << "cannot cut a row of " << width << " into " << heads << " heads";
  if (rotary < 2 || rotary % 2 != 0 || rotary > width / heads)
    return emitOpError() << "rotary width " << rotary << " must be even and at most the head width "
                         << width / heads;
  if (getFirst() < 0 || getFirst() > width / heads - rotary)
    return emitOpError() << "rotates elements " << getFirst() << "..+" << rotary << " of heads of "
                         << width / heads;
  return checkWeight(*this, tables, getFrequenciesAttr(), {rotary / 2}, /*mustBeF32=*/true);
}

/// What is written of each token cannot be kept once a sequence.
static LogicalResult checkKeepsTokens(Operation *op, StateOp state) {
  if (state.getKind() != StateKind::slot)
    return success();
  InFlightDiagnostic diagnostic =
      op->emitOpError() << "needs a state that keeps every token, not one slot a sequence";
  diagnostic.attachNote(state.getLoc()) << "the state is declared here";
  return diagnostic;
}

LogicalResult KvWriteOp::verifySymbolUses(SymbolTableCollection &tables) {
  StateOp state;
  if (failed(checkState(*this, tables, getStateAttr(), getLayer(), state)) ||
      failed(checkKeepsTokens(*this, state)) ||
      failed(checkComponent(*this, state, "k", widthOf(getKey()))))
    return failure();
  return checkComponent(*this, state, "v", widthOf(getValue()));
}

int64_t AttentionOp::keyWidth() {
  int64_t value = widthOf(getResult()) / getQueryHeads();
  return widthOf(getQuery()) / getQueryHeads() - (getLatent() ? value : 0);
}

LogicalResult HeadLinearOp::verifySymbolUses(SymbolTableCollection &tables) {
  auto shape = expertShape(*this, tables, getWeightAttr());
  if (failed(shape))
    return failure();
  auto [heads, rows, columns] = *shape;
  int64_t from = getTransposed() ? rows : columns, to = getTransposed() ? columns : rows;
  if (getTail() < 0 || widthOf(getInput()) != heads * (from + getTail()) ||
      widthOf(getResult()) != heads * (to + getTail()))
    return emitOpError() << "maps rows of " << widthOf(getInput()) << " to " << widthOf(getResult())
                         << " by " << heads << " heads of " << from << " to " << to
                         << " and a tail of " << getTail();
  return success();
}

LogicalResult AttentionOp::verifySymbolUses(SymbolTableCollection &tables) {
  int64_t queryHeads = getQueryHeads(), kvHeads = getKvHeads(), width = widthOf(getQuery());
  if (queryHeads < 1 || kvHeads < 1 || queryHeads % kvHeads != 0 || width % queryHeads != 0)
    return emitOpError() << "cannot attend with " << queryHeads << " query heads over " << kvHeads
                         << " KV heads on rows of " << width;
  if (widthOf(getResult()) % queryHeads != 0)
    return emitOpError() << "cannot cut a result row of " << widthOf(getResult()) << " into "
                         << queryHeads << " heads";
  if (getWindow() && *getWindow() < 1)
    return emitOpError() << "window " << *getWindow() << " must be at least 1";
  StateOp state;
  if (failed(checkState(*this, tables, getStateAttr(), getLayer(), state)) ||
      failed(checkKeepsTokens(*this, state)) ||
      failed(checkComponent(*this, state, "k", keyWidth() * kvHeads)) ||
      failed(checkComponent(*this, state, "v", widthOf(getResult()) / queryHeads * kvHeads)))
    return failure();
  if (state.getWindow() && (!getWindow() || *getWindow() > *state.getWindow()))
    return emitOpError() << "sees more than the " << *state.getWindow()
                         << " tokens that its state keeps";
  return success();
}

OpFoldResult AttentionOp::fold(FoldAdaptor) {
  auto model = (*this)->getParentOfType<ModelOp>();
  auto state = SymbolTable::lookupNearestSymbolFrom<StateOp>(*this, getStateAttr());
  if (!getWindow() || !model || !state || state.getWindow() || *getWindow() < model.getMaxContext())
    return {};
  removeWindowAttr();
  return getResult();
}

LogicalResult GatherRowsOp::verify() {
  auto input = cast<RankedTensorType>(getInput().getType());
  auto result = cast<RankedTensorType>(getResult().getType());
  if (widthOf(getInput()) != widthOf(getResult()) || input.getEncoding() != result.getEncoding())
    return emitOpError() << "gathers rows of " << input << " into " << result;
  return success();
}

} // namespace strata::ir
