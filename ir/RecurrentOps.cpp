// Verifiers of the convolution and the state-space scan.
#include "ir/SymbolChecks.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace strata::ir {
namespace {

/// The state is one slot a sequence, with `component` in F32.
LogicalResult checkSlotState(Operation *op, SymbolTableCollection &tables, FlatSymbolRefAttr name,
                             int64_t layer, StringRef component, int64_t width) {
  StateOp state;
  if (failed(checkState(op, tables, name, layer, state)) ||
      failed(checkComponent(op, state, component, width)))
    return failure();
  if (state.getKind() == StateKind::slot && state.findComponent(component).getType() == "f32")
    return success();
  InFlightDiagnostic diagnostic = op->emitOpError()
                                  << "needs component '" << component
                                  << "' in f32 and in one slot a sequence, which is not what "
                                  << name << " keeps";
  diagnostic.attachNote(state.getLoc()) << "the state is declared here";
  return diagnostic;
}

constexpr int64_t maxTaps = 64;

} // namespace

LogicalResult ConvOp::verifySymbolUses(SymbolTableCollection &tables) {
  int64_t width = widthOf(getInput());
  if (failed(checkWeight(*this, tables, getWeightAttr(), {width, ShapedType::kDynamic},
                         /*mustBeF32=*/true)) ||
      (getBiasAttr() &&
       failed(checkWeight(*this, tables, getBiasAttr(), {width}, /*mustBeF32=*/true))))
    return failure();
  auto weight = tables.lookupNearestSymbolFrom<WeightOp>(*this, getWeightAttr());
  int64_t taps = weight.getTensorType().getDimSize(1);
  if (taps < 2 || taps > maxTaps)
    return emitOpError() << "has " << taps << " taps, must be 2 to " << maxTaps;
  return checkSlotState(*this, tables, getStateAttr(), getLayer(), "conv", (taps - 1) * width);
}

LogicalResult SsmScanOp::verifySymbolUses(SymbolTableCollection &tables) {
  int64_t heads = getHeads(), groups = getGroups(), states = getStateWidth();
  int64_t inner = widthOf(getResult());
  if (heads < 1 || groups < 1 || states < 1 || heads % groups != 0 || inner % heads != 0)
    return emitOpError() << "cannot scan " << heads << " heads in " << groups << " groups with "
                         << states << " states an element on rows of " << inner;
  if (widthOf(getInput()) != inner + 2 * groups * states || widthOf(getDt()) != heads)
    return emitOpError() << "takes rows of " << widthOf(getInput()) << " and " << widthOf(getDt())
                         << ", must be " << inner + 2 * groups * states << " (x, B, C) and "
                         << heads << " (dt)";
  for (FlatSymbolRefAttr weight : {getAAttr(), getSkipAttr(), getDtBiasAttr()})
    if (failed(checkWeight(*this, tables, weight, {heads}, /*mustBeF32=*/true)))
      return failure();
  return checkSlotState(*this, tables, getStateAttr(), getLayer(), "ssm", inner * states);
}

} // namespace strata::ir
