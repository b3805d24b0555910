// Verifiers of routing, experts and latent space.
#include "ir/SymbolChecks.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace strata::ir {
namespace {

constexpr StringRef routingSpace = "routing", latentSpace = "latent";
constexpr int64_t maxExperts = 1 << 16;

StringRef spaceOf(Value value) {
  auto space = dyn_cast_or_null<SpaceAttr>(cast<RankedTensorType>(value.getType()).getEncoding());
  return space ? space.getName() : StringRef();
}

LogicalResult expectSpace(Operation *op, StringRef what, Value value, StringRef space) {
  if (spaceOf(value) == space)
    return success();
  return op->emitOpError() << what << " is " << value.getType() << ", must be of space '" << space
                           << "'";
}

/// Weights of the experts of one op, which agree with each other and with rows of `width`.
struct ExpertShapes {
  int64_t experts, inner, width;
};

FailureOr<ExpertShapes> checkExperts(ExpertsOp op, SymbolTableCollection &tables) {
  auto up = expertShape(op, tables, op.getUpAttr());
  if (failed(up))
    return failure();
  ExpertShapes shapes{(*up)[0], (*up)[1], (*up)[2]};
  if (failed(checkWeight(op, tables, op.getDownAttr(),
                         {shapes.experts, shapes.width, shapes.inner})) ||
      (op.getGateAttr() && failed(checkWeight(op, tables, op.getGateAttr(),
                                              {shapes.experts, shapes.inner, shapes.width}))))
    return failure();
  return shapes;
}

LogicalResult checkTables(Operation *op, SymbolTableCollection &tables, FlatSymbolRefAttr slots,
                          FlatSymbolRefAttr labels, int64_t experts) {
  if (failed(checkWeight(op, tables, slots, {experts}, /*mustBeF32=*/true)))
    return failure();
  return labels ? checkWeight(op, tables, labels, {experts}, /*mustBeF32=*/true) : success();
}

/// Rows have one group of `width`, or several where they are labelled.
LogicalResult checkGroups(Operation *op, Value rows, int64_t width, bool labelled) {
  int64_t found = widthOf(rows);
  if (labelled ? found % width == 0 : found == width)
    return success();
  return op->emitOpError() << "has rows of " << found << " for experts of width " << width
                           << (labelled ? ", which is no whole number of groups" : "");
}

template <class Op>
LogicalResult checkPart(Op op, SymbolTableCollection &tables, Value wide, Value narrow) {
  auto shape = expertShape(op, tables, op.getWeightAttr());
  if (failed(shape))
    return failure();
  auto [experts, outputs, columns] = *shape;
  bool isUp = wide == op.getResult();
  if (widthOf(wide) != (isUp ? outputs : columns))
    return op.emitOpError() << "has entries of " << widthOf(wide) << " for experts of "
                            << (isUp ? outputs : columns);
  if (op.getFirst() < 0 || op.getCount() < 1 || op.getUsed() < 1 ||
      op.getFirst() + op.getCount() > experts)
    return op.emitOpError() << "runs " << op.getCount() << " experts from " << op.getFirst()
                            << ", of " << experts << ", " << op.getUsed() << " a row";
  if (failed(checkTables(op, tables, op.getSlotsAttr(), op.getLabelsAttr(), experts)))
    return failure();
  return checkGroups(op, narrow, isUp ? columns : outputs, op.getLabelsAttr() != nullptr);
}

} // namespace

LogicalResult RouterOp::verifySymbolUses(SymbolTableCollection &tables) {
  int64_t experts = widthOf(getLogits()), used = getUsed(), groups = getGroups();
  if (experts > maxExperts)
    return emitOpError() << "chooses among " << experts << " experts, at most " << maxExperts;
  if (groups < 1 || experts % groups != 0 || getGroupsUsed() < 1 || getGroupsUsed() > groups)
    return emitOpError() << "cannot use " << getGroupsUsed() << " of " << groups << " groups of "
                         << experts << " experts";
  int64_t candidates = experts / groups * getGroupsUsed();
  if (used < 1 || used > candidates)
    return emitOpError() << "uses " << used << " of " << candidates << " experts";
  if (getGroupTop() < 1 || getGroupTop() > experts / groups)
    return emitOpError() << "scores a group by its " << getGroupTop() << " best of "
                         << experts / groups << " experts";
  if (failed(expectSpace(*this, "the result", getResult(), routingSpace)))
    return failure();
  if (widthOf(getResult()) != 2 * used)
    return emitOpError() << "makes rows of " << widthOf(getResult()) << ", must be " << 2 * used
                         << ": number and weight of " << used << " experts";
  if (getBiasAttr())
    return checkWeight(*this, tables, getBiasAttr(), {experts}, /*mustBeF32=*/true);
  return success();
}

LogicalResult ExpertsOp::verifySymbolUses(SymbolTableCollection &tables) {
  auto shapes = checkExperts(*this, tables);
  if (failed(shapes) || failed(expectSpace(*this, "the routing", getRouting(), routingSpace)))
    return failure();
  int64_t used = widthOf(getRouting()) / 2;
  if (used > shapes->experts)
    return emitOpError() << "is routed to " << used << " of " << shapes->experts << " experts";
  if (failed(checkTables(*this, tables, getSlotsAttr(), getLabelsAttr(), shapes->experts)))
    return failure();
  return checkGroups(*this, getInput(), shapes->width, getLabelsAttr() != nullptr);
}

LogicalResult LatentDownOp::verifySymbolUses(SymbolTableCollection &tables) {
  if (failed(expectSpace(*this, "the result", getResult(), latentSpace)))
    return failure();
  if (spaceOf(getInput()) == latentSpace)
    return emitOpError() << "takes " << getInput().getType()
                         << ", which is in latent space already";
  int64_t width = widthOf(getResult());
  if (getGroups() < 1 || width % getGroups() != 0)
    return emitOpError() << "cannot cut a row of " << width << " into " << getGroups() << " groups";
  return checkWeight(*this, tables, getWeightAttr(), {width, widthOf(getInput())},
                     /*mustBeF32=*/false, getLayer());
}

LogicalResult LatentUpOp::verifySymbolUses(SymbolTableCollection &tables) {
  if (failed(expectSpace(*this, "the input", getInput(), latentSpace)))
    return failure();
  if (spaceOf(getResult()) == latentSpace)
    return emitOpError() << "makes " << getResult().getType() << ", which is still in latent space";
  int64_t width = widthOf(getInput());
  if (getGroups() < 1 || width % getGroups() != 0)
    return emitOpError() << "cannot cut a row of " << width << " into " << getGroups() << " groups";
  return checkWeight(*this, tables, getWeightAttr(), {widthOf(getResult()), width},
                     /*mustBeF32=*/false, getLayer());
}

std::optional<int64_t> tableLayer(Operation *op) {
  if (auto down = dyn_cast<LatentDownOp>(op))
    return down.getLayer();
  if (auto up = dyn_cast<LatentUpOp>(op))
    return up.getLayer();
  return std::nullopt;
}

LogicalResult RowGatedOp::verify() {
  if (widthOf(getGate()) == 1)
    return success();
  return emitOpError() << "has gates of width " << widthOf(getGate()) << ", must be 1";
}

LogicalResult ExpertListsOp::verifySymbolUses(SymbolTableCollection &) {
  auto routing = cast<RankedTensorType>(getRouting().getType());
  if (routing.isDynamicDim(0) || getExperts() < 1)
    return emitOpError() << "needs static rows and experts";
  int64_t entries = routing.getDimSize(0) * (routing.getDimSize(1) / 2);
  int64_t words = 2 * getExperts() + 2 + 2 * entries;
  if (widthOf(getResult()) != words)
    return emitOpError() << "makes " << widthOf(getResult()) << " words, must be " << words;
  return success();
}

LogicalResult ExpertUpOp::verifySymbolUses(SymbolTableCollection &tables) {
  if (getGated() && (getGated().getType() != getResult().getType() || !getFunction()))
    return emitOpError() << "gates " << getGated().getType() << " into " << getResult().getType()
                         << (getFunction() ? "" : " by no function");
  return checkPart(*this, tables, getResult(), getInput());
}

LogicalResult ExpertDownOp::verifySymbolUses(SymbolTableCollection &tables) {
  if (getOnto() && getOnto().getType() != getResult().getType())
    return emitOpError() << "adds to " << getOnto().getType() << " and makes "
                         << getResult().getType();
  return checkPart(*this, tables, getInput(), getResult());
}

} // namespace strata::ir
