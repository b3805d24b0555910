// Verifiers of stages, ports and handoffs.
#include "ir/Strata.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace strata::ir {

LogicalResult StageOp::verify() {
  if (getFirstLayer() < 0 || getEndLayer() < getFirstLayer())
    return emitOpError() << "holds layers " << getFirstLayer() << " to " << getEndLayer();
  return success();
}

LogicalResult HandoffOp::verifySymbolUses(SymbolTableCollection &tables) {
  auto find = [&](SymbolRefAttr name, PortDirection direction) -> PortOp {
    auto port = dyn_cast_or_null<PortOp>(tables.lookupSymbolIn((*this)->getParentOp(), name));
    if (!port)
      emitOpError() << "names " << name << ", which is no port";
    else if (port.getDirection() != direction) {
      InFlightDiagnostic diagnostic = emitOpError() << "needs " << name << " as an "
                                                    << stringifyPortDirection(direction) << " port";
      diagnostic.attachNote(port.getLoc()) << "the port is declared here";
      return {};
    }
    return port;
  };
  PortOp producer = find(getProducer(), PortDirection::output);
  PortOp consumer = producer ? find(getConsumer(), PortDirection::input) : PortOp();
  if (!producer || !consumer)
    return failure();
  if (producer.getWidth() != consumer.getWidth()) {
    InFlightDiagnostic diagnostic = emitOpError() << "joins a port of width " << producer.getWidth()
                                                  << " to one of width " << consumer.getWidth();
    diagnostic.attachNote(consumer.getLoc()) << "the consumer is declared here";
    return diagnostic;
  }
  if (getRows() < 1 || getSlots() < 1)
    return emitOpError() << "needs at least one row and one slot";
  return success();
}

static LogicalResult checkPort(Operation *op, SymbolTableCollection &tables, FlatSymbolRefAttr name,
                               PortDirection direction, Type rows) {
  auto port = tables.lookupNearestSymbolFrom<PortOp>(op, name);
  if (!port)
    return op->emitOpError() << "names " << name << ", which is no port of its stage";
  int64_t width = cast<RankedTensorType>(rows).getShape().back();
  if (port.getDirection() == direction && port.getWidth() == width)
    return success();
  InFlightDiagnostic diagnostic = op->emitOpError() << "needs " << name << " as an "
                                                    << stringifyPortDirection(direction)
                                                    << " port of width " << width;
  diagnostic.attachNote(port.getLoc()) << "the port is declared here";
  return diagnostic;
}

LogicalResult ReceiveOp::verifySymbolUses(SymbolTableCollection &tables) {
  return checkPort(*this, tables, getPortAttr(), PortDirection::input, getResult().getType());
}

LogicalResult SendOp::verifySymbolUses(SymbolTableCollection &tables) {
  return checkPort(*this, tables, getPortAttr(), PortDirection::output, getInput().getType());
}

} // namespace strata::ir
