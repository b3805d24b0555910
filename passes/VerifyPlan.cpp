// verify-plan: the planned level as a whole.
#include "codegen/cpu/KernelTable.h"
#include "codegen/select/Selection.h"
#include "passes/Buckets.h"
#include "passes/PassOrder.h"
#include "passes/Passes.h"
#include "passes/planner/Planner.h"

using namespace mlir;

namespace strata {
#define GEN_PASS_DEF_VERIFYPLAN
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

/// What a slot may be filled with, by the kind that the signature wants.
bool fits(const SlotSpec &spec, Attribute slot) {
  auto isZero = [&] {
    auto constant = dyn_cast<ConstantSlotAttr>(slot);
    auto integer = constant ? dyn_cast<IntegerAttr>(constant.getValue()) : IntegerAttr();
    return integer && integer.getInt() == 0;
  };
  if (spec.optional && isZero())
    return true;
  switch (spec.kind) {
  case fb::SlotKind::Buffer:
    return isa<BufferSlotAttr, PortSlotAttr>(slot);
  case fb::SlotKind::Weight:
    return isa<WeightSlotAttr>(slot);
  case fb::SlotKind::State:
    return isa<StateSlotAttr>(slot);
  case fb::SlotKind::Table:
    return isa<TableSlotAttr>(slot);
  case fb::SlotKind::Step:
    return isa<StepSlotAttr>(slot);
  case fb::SlotKind::Out:
    return isa<OutSlotAttr>(slot);
  case fb::SlotKind::Scratch:
    return isa<ScratchSlotAttr>(slot);
  case fb::SlotKind::Constant:
    return isa<ConstantSlotAttr, ScratchStrideSlotAttr, StateConstantSlotAttr>(slot);
  case fb::SlotKind::HandoffIn:
  case fb::SlotKind::HandoffOut:
    return isa<PortSlotAttr>(slot);
  }
  return false;
}

/// A port is read where its rows arrive and written where they leave.
bool leadsTheRightWay(StageOp stage, const SlotSpec &spec, PortSlotAttr slot) {
  auto port = stage.lookupSymbol<PortOp>(slot.getPort().getAttr());
  return port && spec.access == (port.getDirection() == PortDirection::input ? fb::Access::Read
                                                                             : fb::Access::Write);
}

LogicalResult verifyDispatch(StageOp stage, DispatchOp dispatch, ArenaOp arena, int64_t position) {
  StringRef kernel = kernelName(dispatch.getKernel());
  const KernelSignature *signature = findSignature(std::string_view(kernel.data(), kernel.size()));
  bool unknown = !signature && isDryRun(dispatch);
  if (!unknown && (!signature || signature->slots.size() != dispatch.getSlots().size()))
    return dispatch.emitOpError() << "fills " << dispatch.getSlots().size() << " slots of kernel "
                                  << dispatch.getKernelAttr() << ", which takes "
                                  << (signature ? signature->slots.size() : 0);
  for (auto [spec, slot] :
       llvm::zip(unknown ? std::span<const SlotSpec>() : signature->slots, dispatch.getSlots())) {
    StringRef name(spec.name.data(), spec.name.size());
    auto port = dyn_cast<PortSlotAttr>(slot);
    if (!fits(spec, slot) || (port && !leadsTheRightWay(stage, spec, port)))
      return dispatch.emitOpError() << "fills slot '" << name << "' of kernel "
                                    << dispatch.getKernelAttr() << " with " << slot;
    if (auto scratch = dyn_cast<ScratchSlotAttr>(slot))
      if (scratch.getBytes() > stage.getScratch().value_or(0))
        return dispatch.emitOpError()
               << "needs " << scratch.getBytes() << " bytes of scratch, its stage has "
               << stage.getScratch().value_or(0);
  }
  for (Value buffer : dispatch.getBuffers()) {
    auto result = dyn_cast<OpResult>(buffer);
    if (!result || result.getOwner() != arena)
      return dispatch.emitOpError() << "uses a buffer that is not of its forward's arena";
    auto interval = cast<IntervalAttr>(arena.getIntervals()[result.getResultNumber()]);
    if (position < interval.getLower() || position >= interval.getUpper())
      return dispatch.emitOpError()
             << "(command " << position << ") uses buffer '" << interval.getName()
             << "', which lives in [" << interval.getLower() << ", " << interval.getUpper() << ")";
  }
  return success();
}

/// Only the residual, which stands at offset 0, outlives a unit. So an arena is the maximum of what
/// its units need, as `partition-stages` counts. `layerOf`: of each command.
LogicalResult verifyUnits(ArenaOp arena, ArrayRef<int64_t> layerOf) {
  for (auto [attribute, offset] : llvm::zip(arena.getIntervals(), arena.getOffsets())) {
    auto interval = cast<IntervalAttr>(attribute);
    auto lower = static_cast<size_t>(interval.getLower());
    auto upper = static_cast<size_t>(interval.getUpper());
    if (upper > layerOf.size())
      return arena.emitOpError() << "keeps buffer '" << interval.getName() << "' to command "
                                 << upper << " of " << layerOf.size();
    auto lives = layerOf.slice(lower, upper - lower);
    if (offset != 0 && !llvm::all_equal(lives))
      return arena.emitOpError() << "keeps buffer '" << interval.getName() << "' from layer "
                                 << lives.front() << " to layer " << lives.back()
                                 << "; only the residual outlives a layer";
  }
  return success();
}

LogicalResult verifyForward(StageOp stage, ForwardOp forward) {
  ArenaOp arena;
  int64_t position = 0;
  SmallVector<int64_t> layerOf; // of each command
  for (Operation &op : forward.getBlock()) {
    if (auto found = dyn_cast<ArenaOp>(op)) {
      if (arena || position > 0)
        return op.emitOpError() << "must stand once, before the dispatches";
      arena = found;
    } else if (auto dispatch = dyn_cast<DispatchOp>(op)) {
      if (!arena)
        return op.emitOpError() << "stands before the arena";
      if (failed(verifyDispatch(stage, dispatch, arena, position++)))
        return failure();
      layerOf.push_back(dispatch.getLayer());
    } else {
      return op.emitOpError() << "does not belong to the planned level";
    }
  }
  if (!arena)
    return forward.emitOpError() << "has no arena";
  if (failed(verifyUnits(arena, layerOf)))
    return failure();
  std::vector<planner::Buffer> buffers;
  for (Attribute attribute : arena.getIntervals()) {
    auto interval = cast<IntervalAttr>(attribute);
    buffers.push_back({interval.getLower(), interval.getUpper(), interval.getBytes()});
  }
  std::vector<planner::Bytes> offsets(arena.getOffsets().begin(), arena.getOffsets().end());
  if (auto conflict = planner::check(buffers, offsets))
    return arena.emitOpError() << "places buffers " << arena.getIntervals()[conflict->first]
                               << " and " << arena.getIntervals()[conflict->second]
                               << " over one another";
  if (arena.getProven() && arena.getPeak() < arena.getLowerBound())
    return arena.emitOpError() << "has a peak of " << arena.getPeak() << " below its lower bound "
                               << arena.getLowerBound();
  return success();
}

/// What replicas have in common: all but the layers that a table was trimmed to.
DictionaryAttr identityOf(WeightOp weight) {
  NamedAttrList attributes(weight->getAttrDictionary());
  if (auto layers = weight.getLayers()) {
    attributes.set(weight.getTypeAttrName(), TypeAttr::get(weight.getLayerType()));
    attributes.set(weight.getLayersAttrName(), Builder(weight).getI64IntegerAttr(layers->getOf()));
  }
  return attributes.getDictionary(weight.getContext());
}

/// Replicas of one name are one weight: its bytes are packed once, for all stages.
LogicalResult verifyReplicas(ModelOp model) {
  llvm::DenseMap<StringAttr, WeightOp> first;
  for (StageOp stage : model.getOps<StageOp>())
    for (WeightOp weight : stage.getOps<WeightOp>()) {
      if (!weight.getLayout())
        return weight.emitOpError() << "has no layout";
      auto [entry, isNew] = first.try_emplace(weight.getSymNameAttr(), weight);
      if (isNew || identityOf(entry->second) == identityOf(weight))
        continue;
      InFlightDiagnostic diagnostic = weight.emitOpError()
                                      << "differs from its replica on another stage";
      diagnostic.attachNote(entry->second.getLoc()) << "the other replica is declared here";
      return diagnostic;
    }
  return success();
}

struct VerifyPlanPass : OrderedPass<impl::VerifyPlanBase<VerifyPlanPass>, VerifyPlanPass> {
  LogicalResult runOnModel(ModelOp model) {
    if (failed(verifyReplicas(model)))
      return failure();
    std::vector<BucketShape> shapes = bucketShapes(model);
    for (StageOp stage : model.getOps<StageOp>()) {
      SmallVector<ForwardOp> forwards(stage.getOps<ForwardOp>());
      size_t next = 0;
      for (const BucketShape &shape : shapes) {
        if (!shape.body && !stage.getHead())
          continue;
        if (next == forwards.size() || forwards[next].getSymName() != shape.name())
          return stage.emitOpError() << "lacks forward @" << shape.name();
        if (failed(verifyForward(stage, forwards[next++])))
          return failure();
      }
      if (next != forwards.size())
        return forwards[next].emitOpError() << "is of no bucket";
    }
    if (!model.getTails() ||
        static_cast<int64_t>(model.getTails()->size()) != mostBodyRows(shapes) - 1)
      return model.emitOpError() << "has no complete tail table";
    return success();
  }
};

} // namespace
} // namespace strata
