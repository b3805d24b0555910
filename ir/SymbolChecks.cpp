#include "ir/SymbolChecks.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace strata::ir {
namespace {

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

} // namespace

int64_t widthOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape().back(); }

LogicalResult checkWeight(Operation *op, SymbolTableCollection &tables, FlatSymbolRefAttr name,
                          ArrayRef<int64_t> shape, bool mustBeF32, std::optional<int64_t> layer) {
  auto weight = resolve<WeightOp>(op, tables, name);
  if (failed(weight) || failed(checkLayerOf(op, *weight, layer)))
    return failure();
  RankedTensorType type = weight->getLayerType();
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

LogicalResult checkLayerOf(Operation *op, WeightOp weight, std::optional<int64_t> layer) {
  auto layers = weight.getLayers();
  if (layers.has_value() == layer.has_value() && (!layer || layers->contains(*layer)))
    return success();
  InFlightDiagnostic diagnostic = op->emitOpError();
  if (!layer)
    diagnostic << "must say which layer of table @" << weight.getSymName() << " it reads";
  else if (!layers)
    diagnostic << "reads layer " << *layer << " of @" << weight.getSymName()
               << ", which is no table of layers";
  else
    diagnostic << "reads layer " << *layer << " of table @" << weight.getSymName()
               << ", of which layers " << layers->getFirst() << " to " << layers->getEnd()
               << " are held here";
  diagnostic.attachNote(weight.getLoc()) << "the weight is declared here";
  return diagnostic;
}

FailureOr<std::array<int64_t, 3>> expertShape(Operation *op, SymbolTableCollection &tables,
                                              FlatSymbolRefAttr name) {
  auto weight = resolve<WeightOp>(op, tables, name);
  if (failed(weight))
    return failure();
  if (failed(checkLayerOf(op, *weight, std::nullopt)))
    return failure();
  RankedTensorType type = weight->getTensorType();
  if (type.getRank() == 3)
    return std::array<int64_t, 3>{type.getDimSize(0), type.getDimSize(1), type.getDimSize(2)};
  InFlightDiagnostic diagnostic =
      op->emitOpError() << "needs " << name << " as experts x rows x columns, found " << type;
  diagnostic.attachNote(weight->getLoc()) << "the weight is declared here";
  return diagnostic;
}

} // namespace strata::ir
