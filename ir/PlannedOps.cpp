// Verifiers of invocations, dispatches and the allocation problem.
#include "ir/Strata.h"
#include "ir/SymbolChecks.h"

#include <limits>

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "ir/StrataOps.cpp.inc"

namespace strata::ir {
namespace {

/// Every symbol that a slot names must be the stage's own.
LogicalResult checkSlots(Operation *op, SymbolTableCollection &tables, FlatSymbolRefAttr kernel,
                         ArrayAttr slots) {
  if (!tables.lookupNearestSymbolFrom<KernelOp>(op, kernel))
    return op->emitOpError() << "runs " << kernel << ", which is no kernel of its stage";
  for (auto [index, slot] : llvm::enumerate(slots)) {
    FlatSymbolRefAttr name;
    bool found = true;
    if (auto weight = dyn_cast<WeightSlotAttr>(slot)) {
      name = weight.getWeight();
      auto weightOp = tables.lookupNearestSymbolFrom<WeightOp>(op, name);
      found = weightOp != nullptr;
      if (found && failed(checkLayerOf(op, weightOp, weight.getLayer())))
        return failure();
    } else if (auto state = dyn_cast<StateSlotAttr>(slot)) {
      name = state.getState();
      auto stateOp = tables.lookupNearestSymbolFrom<StateOp>(op, name);
      found = stateOp && stateOp.getComponentOffset(state.getLayer(), state.getComponent());
    } else if (auto constant = dyn_cast<StateConstantSlotAttr>(slot)) {
      name = constant.getState();
      found = tables.lookupNearestSymbolFrom<StateOp>(op, name) != nullptr;
    } else if (auto port = dyn_cast<PortSlotAttr>(slot)) {
      name = port.getPort();
      found = tables.lookupNearestSymbolFrom<PortOp>(op, name) != nullptr;
    }
    if (found)
      continue;
    InFlightDiagnostic diagnostic = op->emitOpError() << "slot " << index << " (" << slot
                                                      << ") names what its stage does not hold";
    if (auto model = op->getParentOfType<ModelOp>())
      model.walk([&](SymbolOpInterface other) {
        if (other.getName() == name.getValue())
          diagnostic.attachNote(other.getLoc()) << "a symbol of that name is held here";
      });
    return diagnostic;
  }
  return success();
}

LogicalResult checkBufferSlots(Operation *op, ArrayAttr slots, int64_t buffers) {
  for (auto [index, slot] : llvm::enumerate(slots))
    if (auto buffer = dyn_cast<BufferSlotAttr>(slot))
      if (buffer.getIndex() < 0 || buffer.getIndex() >= buffers)
        return op->emitOpError() << "slot " << index << " is buffer " << buffer.getIndex() << " of "
                                 << buffers;
  return success();
}

template <class Op> LogicalResult checkIntervals(Op op) {
  if (op.getIntervals().size() != op.getBuffers().size())
    return op.emitOpError() << op.getIntervals().size() << " intervals for "
                            << op.getBuffers().size() << " buffers";
  for (auto [attribute, buffer] : llvm::zip(op.getIntervals(), op.getBuffers())) {
    auto interval = cast<IntervalAttr>(attribute);
    if (interval.getLower() < 0 || interval.getUpper() <= interval.getLower())
      return op.emitOpError() << "buffer '" << interval.getName() << "' lives in ["
                              << interval.getLower() << ", " << interval.getUpper()
                              << "), an empty or negative span";
    if (interval.getBytes() <= 0 || interval.getBytes() % 64 != 0)
      return op.emitOpError() << "buffer '" << interval.getName() << "' has " << interval.getBytes()
                              << " bytes, not a positive multiple of 64";
    if (cast<BufferType>(buffer.getType()).getBytes() != interval.getBytes())
      return op.emitOpError() << "buffer '" << interval.getName() << "' has " << interval.getBytes()
                              << " bytes but type " << buffer.getType();
  }
  return success();
}

} // namespace

void InvokeOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  for (Attribute slot : getSlots()) {
    if (isa<StateSlotAttr, TableSlotAttr, OutSlotAttr, PortSlotAttr>(slot)) {
      effects.emplace_back(MemoryEffects::Read::get());
      effects.emplace_back(MemoryEffects::Write::get());
      return;
    }
  }
}

LogicalResult InvokeOp::verify() {
  if (getTied().size() != getOutputs().size())
    return emitOpError() << "ties " << getTied().size() << " of " << getOutputs().size()
                         << " results";
  for (auto [result, operand] : llvm::enumerate(getTied())) {
    if (operand < -1 || operand >= static_cast<int64_t>(getInputs().size()))
      return emitOpError() << "ties result " << result << " to operand " << operand << " of "
                           << getInputs().size();
    if (operand >= 0 && getInputs()[operand].getType() != getOutputs()[result].getType())
      return emitOpError() << "ties result " << result << " to an operand of another type";
  }
  return checkBufferSlots(*this, getSlots(), getInputs().size() + getOutputs().size());
}

LogicalResult InvokeOp::verifySymbolUses(SymbolTableCollection &tables) {
  return checkSlots(*this, tables, getKernelAttr(), getSlots());
}

LogicalResult DispatchOp::verify() {
  return checkBufferSlots(*this, getSlots(), getBuffers().size());
}

LogicalResult DispatchOp::verifySymbolUses(SymbolTableCollection &tables) {
  return checkSlots(*this, tables, getKernelAttr(), getSlots());
}

LogicalResult PackOp::verify() { return checkIntervals(*this); }

LogicalResult ArenaOp::verify() {
  if (failed(checkIntervals(*this)))
    return failure();
  if (getOffsets().size() != getIntervals().size())
    return emitOpError() << getOffsets().size() << " offsets for " << getIntervals().size()
                         << " buffers";
  int64_t end = 0;
  for (auto [attribute, offset] : llvm::zip(getIntervals(), getOffsets())) {
    auto interval = cast<IntervalAttr>(attribute);
    if (offset < 0 || offset % 64 != 0)
      return emitOpError() << "buffer '" << interval.getName() << "' stands at " << offset
                           << ", not a multiple of 64";
    if (offset > std::numeric_limits<int64_t>::max() - interval.getBytes())
      return emitOpError() << "buffer '" << interval.getName() << "' of " << interval.getBytes()
                           << " bytes stands at " << offset << ", past 64 bits";
    end = std::max(end, offset + interval.getBytes());
  }
  if (end != getPeak())
    return emitOpError() << "peak is " << getPeak() << " but the buffers end at " << end;
  return success();
}

} // namespace strata::ir
