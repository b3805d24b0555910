// Verifiers of the compute ops: every weight and state that an op names exists where the op stands
// and has the shape that the op needs.
#include "ir/Strata.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace strata::ir {
namespace {

int64_t widthOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape().back(); }

/// Finds the symbol in the op's own stage or model.
template <class SymbolOp>
FailureOr<SymbolOp> resolve(Operation *op, SymbolTableCollection &tables, FlatSymbolRefAttr name) {
  if (auto found = tables.lookupNearestSymbolFrom<SymbolOp>(op, name))
    return found;
  InFlightDiagnostic diagnostic = op->emitOpError()
                                  << "names " << name << ", which is not a "
                                  << SymbolOp::getOperationName() << " of its own stage or model";
  // Where another stage holds it, point there: the use is foreign, not misspelt.
  if (auto model = op->getParentOfType<ModelOp>())
    model.walk([&](SymbolOp other) {
      if (other.getSymName() == name.getValue())
        diagnostic.attachNote(other.getLoc()) << "a symbol of that name is held here";
    });
  return diagnostic;
}

LogicalResult checkWeight(Operation *op, SymbolTableCollection &tables, FlatSymbolRefAttr name,
                          ArrayRef<int64_t> shape, bool mustBeF32 = false) {
  auto weight = resolve<WeightOp>(op, tables, name);
  if (failed(weight))
    return failure();
  RankedTensorType type = weight->getTensorType();
  bool matches = type.getRank() == static_cast<int64_t>(shape.size());
  for (size_t i = 0; matches && i < shape.size(); ++i)
    matches = ShapedType::isDynamic(shape[i]) || type.getDimSize(i) == shape[i];
  if (matches && (!mustBeF32 || type.getElementType().isF32()))
    return success();
  InFlightDiagnostic diagnostic = op->emitOpError() << "needs " << name << " as ";
  llvm::interleave(
      shape, diagnostic,
      [&](int64_t size) {
        if (ShapedType::isDynamic(size))
          diagnostic << "?";
        else
          diagnostic << size;
      },
      "x");
  if (mustBeF32)
    diagnostic << "xf32";
  diagnostic << ", found " << type;
  diagnostic.attachNote(weight->getLoc()) << "the weight is declared here";
  return diagnostic;
}

LogicalResult checkState(Operation *op, SymbolTableCollection &tables, FlatSymbolRefAttr name,
                         int64_t layer, StateOp &state) {
  auto found = resolve<StateOp>(op, tables, name);
  if (failed(found))
    return failure();
  state = *found;
  if (llvm::is_contained(state.getLayers(), layer))
    return success();
  InFlightDiagnostic diagnostic = op->emitOpError()
                                  << "uses layer " << layer << " of " << name << ", which has none";
  diagnostic.attachNote(state.getLoc()) << "the state is declared here";
  return diagnostic;
}

LogicalResult checkComponent(Operation *op, StateOp state, StringRef name, int64_t width) {
  ComponentAttr component = state.findComponent(name);
  if (component && component.getWidth() == width)
    return success();
  InFlightDiagnostic diagnostic = op->emitOpError()
                                  << "needs component '" << name << "' of width " << width;
  if (component)
    diagnostic << ", found width " << component.getWidth();
  diagnostic.attachNote(state.getLoc()) << "the state is declared here";
  return diagnostic;
}

template <class LinearOp> LogicalResult checkLinear(LinearOp op, SymbolTableCollection &tables) {
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
  return checkWeight(*this, tables, getWeightAttr(), {width / heads}, /*mustBeF32=*/true);
}

OpFoldResult RmsNormOp::fold(FoldAdaptor) {
  if (getHeads() != 1)
    return {};
  removeHeadsAttr();
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
  return checkWeight(*this, tables, getFrequenciesAttr(), {rotary / 2}, /*mustBeF32=*/true);
}

LogicalResult KvWriteOp::verifySymbolUses(SymbolTableCollection &tables) {
  StateOp state;
  if (failed(checkState(*this, tables, getStateAttr(), getLayer(), state)) ||
      failed(checkComponent(*this, state, "k", widthOf(getKey()))))
    return failure();
  return checkComponent(*this, state, "v", widthOf(getValue()));
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
      failed(checkComponent(*this, state, "k", width / queryHeads * kvHeads)) ||
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
