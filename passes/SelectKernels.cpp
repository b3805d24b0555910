// select-kernels: compute ops become invocations of kernels.
//
// Layers are inlined: what was a layer is from here on a run of invocations with the same layer
// number.
#include "mlir/IR/Builders.h"

#include "codegen/select/Fusion.h"
#include "passes/PassOrder.h"
#include "passes/Passes.h"

using namespace mlir;

namespace strata {
#define GEN_PASS_DEF_SELECTKERNELS
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

/// Declares `kernel` in the stage, once; returns its symbol.
std::string requireKernel(StageOp stage, const KernelLibrary &library, StringRef kernel) {
  std::string symbol = kernelSymbol(library, kernel);
  if (!stage.lookupSymbol<KernelOp>(symbol)) {
    OpBuilder builder = OpBuilder::atBlockBegin(&stage.getRegion().front());
    KernelOp::create(builder, stage.getLoc(), symbol);
  }
  return symbol;
}

DenseI64ArrayAttr gridAttr(OpBuilder &builder, const Selection &selection) {
  return selection.grid.empty() ? DenseI64ArrayAttr()
                                : builder.getDenseI64ArrayAttr(selection.grid);
}

/// Lowers the ops of one block (a layer's, or the ports' of a forward) into the forward that
/// `builder` stands in.
class BlockLowering {
public:
  BlockLowering(OpBuilder &builder, StageOp stage, const KernelLibrary &library, int64_t layer,
                std::string unit, DenseMap<Value, Value> &renamed)
      : builder(builder), stage(stage), library(library), layer(layer), unit(std::move(unit)),
        renamed(renamed) {}

  /// `residual` is the block's value at offset 0 of the arena when it begins, or null; `leaves` the
  /// value that must be there when it ends, or null.
  LogicalResult run(Block &block, Value residual, Value leaves);

  int64_t fusionCount() const { return static_cast<int64_t>(fusions.size()); }

private:
  LogicalResult findFusions(Block &block);
  void numberUses(Block &block);
  LogicalResult lower(Operation *op);
  /// Ties the selection's memory, then invokes it under the name of `op`, where `at` stands.
  /// `result` is the tensor value that it stands for; null where only the next selection reads it.
  LogicalResult emit(Operation *op, Operation *at, const Selection &selection, Value result);
  /// Selections that run one after the other; the last makes `result`.
  LogicalResult emitAll(Operation *op, Operation *at, ArrayRef<Selection> before,
                        const Selection &last, Value result);
  Value invoke(Operation *op, const Selection &selection, ArrayRef<Value> inputs, int64_t tied,
               bool carries, bool &failedSlots);

  bool isOfHead(Operation *op) const {
    return llvm::any_of(op->getOperands(), [&](Value v) { return gathered.contains(v); });
  }
  SelectionContext contextOf(Operation *op) const { return {stage, library, layer, isOfHead(op)}; }

  /// Whether no op after `op` reads `value`, nor the host, which takes logits after the launch.
  bool diesAt(Value value, Operation *op) const {
    auto last = lastUse.find(value);
    return value != leaves && !value.getDefiningOp<LogitsOp>() &&
           (last == lastUse.end() || last->second <= position.lookup(op));
  }

  OpBuilder &builder;
  StageOp stage;
  const KernelLibrary &library;
  int64_t layer;
  std::string unit;
  DenseMap<Value, Value> &renamed; // tensor values of compute ops to those of invocations

  Value residual, leaves, made; // `made` by the last selection
  SmallVector<Fusion, 0> fusions;
  DenseMap<Operation *, const Fusion *> fusionOf;
  DenseMap<Operation *, int64_t> position; // where an op runs, as part of its fusion if it has one
  DenseMap<Value, int64_t> lastUse;
  llvm::SmallDenseSet<Value> atOffsetZero; // values in the residual's memory
  llvm::SmallDenseSet<Value> gathered;
};

LogicalResult BlockLowering::findFusions(Block &block) {
  for (Operation &op : block)
    if (isa<GatherRowsOp>(op) || isOfHead(&op))
      gathered.insert(op.result_begin(), op.result_end());
  auto found = strata::findFusions(block, leaves, [&](Operation *op) { return contextOf(op); });
  if (failed(found))
    return failure();
  fusions = std::move(*found);
  for (const Fusion &fusion : fusions)
    for (Operation *op : fusion.ops)
      fusionOf[op] = &fusion;
  return success();
}

void BlockLowering::numberUses(Block &block) {
  int64_t next = 0;
  for (Operation &op : block)
    position[&op] = next++;
  for (auto [op, fusion] : fusionOf)
    position[op] = position.lookup(fusion->ops.back());
  for (Operation &op : block)
    for (Value operand : op.getOperands()) {
      int64_t &last = lastUse.try_emplace(operand, -1).first->second;
      last = std::max(last, position.lookup(&op));
    }
}

LogicalResult BlockLowering::run(Block &block, Value residualIn, Value leavesOut) {
  residual = residualIn;
  leaves = leavesOut;
  if (residual)
    atOffsetZero.insert(residual);
  if (failed(findFusions(block)))
    return failure();
  numberUses(block);
  for (Operation &op : block) {
    const Fusion *fusion = fusionOf.lookup(&op);
    if (isa<YieldOp, LayerOp>(op) || (fusion && fusion->ops.back() != &op))
      continue;
    if (failed(fusion ? emitAll(fusion->ops.front(), &op, fusion->before, fusion->selection,
                                fusion->result)
                      : lower(&op)))
      return failure();
  }
  if (!leaves || atOffsetZero.contains(leaves))
    return success();
  // The value that leaves was made elsewhere: move it to where the next layer looks.
  bool failedSlots = false;
  Operation *end = &block.back();
  Value moved =
      invoke(end, selectCopy(leaves, {stage, library, layer, false}), {renamed.lookup(leaves)}, -1,
             /*carries=*/true, failedSlots);
  renamed[leaves] = moved;
  return failure(failedSlots);
}

LogicalResult BlockLowering::lower(Operation *op) {
  if (auto carried = dyn_cast<CarriedOp>(op)) {
    Operation *clone = builder.clone(*op);
    renamed[carried.getResult()] = clone->getResult(0);
    atOffsetZero.insert(carried.getResult());
    return success();
  }
  auto selections = selectKernels(op, contextOf(op));
  if (failed(selections))
    return failure();
  return emitAll(op, op, ArrayRef(*selections).drop_back(), selections->back(),
                 op->getNumResults() ? op->getResult(0) : Value());
}

LogicalResult BlockLowering::emitAll(Operation *op, Operation *at, ArrayRef<Selection> before,
                                     const Selection &last, Value result) {
  for (const Selection &selection : before)
    if (failed(emit(op, at, selection, {})))
      return failure();
  return emit(op, at, last, result);
}

LogicalResult BlockLowering::emit(Operation *op, Operation *at, const Selection &selection,
                                  Value result) {
  bool failedSlots = false;
  SmallVector<Value> inputs;
  for (Value input : selection.inputs)
    inputs.push_back(input ? renamed.lookup(input) : made);

  int64_t tied = -1;
  if (selection.inPlace >= 0) {
    Value target = selection.inputs[selection.inPlace];
    tied = selection.inPlace;
    if (!diesAt(target, at))
      inputs[tied] =
          invoke(op, selectCopy(target, {stage, library, layer, gathered.contains(target)}),
                 {inputs[tied]}, -1, false, failedSlots);
    else if (atOffsetZero.contains(target))
      atOffsetZero.insert(result);
  } else if (selection.mayReuse) {
    // The residual's memory first, so that what leaves a layer need not be moved.
    for (bool wantResidual : {true, false})
      for (auto [index, input] : llvm::enumerate(selection.inputs))
        if (tied < 0 && input && diesAt(input, at) &&
            atOffsetZero.contains(input) == wantResidual && (wantResidual || result != leaves))
          tied = static_cast<int64_t>(index);
    if (tied >= 0 && atOffsetZero.contains(selection.inputs[tied]))
      atOffsetZero.insert(result);
  }

  // What leaves the layer is made at offset 0 right away, unless something there is still needed.
  bool carries = false;
  if (result && result == leaves && tied < 0) {
    carries = llvm::all_of(atOffsetZero, [&](Value value) {
      auto last = lastUse.find(value);
      return last == lastUse.end() || last->second < position.lookup(at);
    });
    if (carries)
      atOffsetZero.insert(result);
  }
  made = invoke(op, selection, inputs, tied, carries, failedSlots);
  if (result)
    renamed[result] = made;
  return failure(failedSlots);
}

Value BlockLowering::invoke(Operation *op, const Selection &selection, ArrayRef<Value> inputs,
                            int64_t tied, bool carries, bool &failedSlots) {
  auto slots = orderedSlots(op, selection);
  if (failed(slots)) {
    failedSlots = true;
    return {};
  }
  std::string kernel = requireKernel(stage, library, selection.kernel);
  std::string label = unit.empty() ? std::string() : unit + " ";
  if (!selection.label.empty()) {
    label += selection.label;
  } else {
    label += op->getName().stripDialect();
    for (StringRef name : {"weight", "table", "frequencies", "port"})
      if (auto symbol = op->getAttrOfType<FlatSymbolRefAttr>(name))
        label += (" " + symbol.getValue()).str();
  }
  SmallVector<Type, 1> results;
  SmallVector<int64_t, 1> ties;
  if (selection.result) {
    results.push_back(selection.result);
    ties.push_back(tied);
  }
  if (selection.workspace) {
    results.push_back(selection.workspace);
    ties.push_back(-1);
  }
  auto invocation =
      InvokeOp::create(builder, op->getLoc(), results, kernel, inputs, *slots, selection.items,
                       ties, gridAttr(builder, selection), label, layer, carries, selection.logits);
  for (Attribute slot : *slots)
    if (auto scratch = dyn_cast<ScratchSlotAttr>(slot))
      stage.setScratch(std::max<int64_t>(stage.getScratch().value_or(0), scratch.getBytes()));
  return results.empty() ? Value() : invocation.getResult(0);
}

struct SelectKernelsPass
    : OrderedPass<impl::SelectKernelsBase<SelectKernelsPass>, SelectKernelsPass> {
  LogicalResult runOnModel(ModelOp model) {
    for (StageOp stage : model.getOps<StageOp>()) {
      auto library = KernelLibrary::of(stage.getDevice().str());
      if (!library)
        return stage.emitOpError()
               << "is on " << stage.getDeviceAttr()
               << ", which is no target; known: " << KernelLibrary::knownTargets();
      int64_t fused = 0;
      stage.setScratch(0);
      for (ForwardOp forward : stage.getOps<ForwardOp>())
        if (failed(lowerForward(model, stage, *library, forward, fused)))
          return failure();
      auto kernels = stage.getOps<KernelOp>();
      decided(stage, "strata-select-kernels", "selected")
          << remark::metric("Stage", stage.getSymName())
          << remark::metric("Kernels", std::distance(kernels.begin(), kernels.end()))
          << remark::metric("Fusions", fused)
          << remark::metric("ScratchBytesPerWorker", *stage.getScratch());
    }
    return success();
  }

private:
  LogicalResult lowerForward(ModelOp model, StageOp stage, const KernelLibrary &library,
                             ForwardOp forward, int64_t &fused) {
    Block &block = forward.getBlock();
    SmallVector<Operation *> old;
    for (Operation &op : block)
      old.push_back(&op);
    OpBuilder builder = OpBuilder::atBlockEnd(&block);
    DenseMap<Value, Value> renamed;
    for (Operation *op : old) {
      auto layer = dyn_cast<LayerOp>(op);
      if (!layer) {
        if (failed(lowerPort(builder, stage, library, op, renamed)))
          return failure();
        continue;
      }
      int64_t number = layer.getKind() == LayerKind::embedding ? -1
                       : layer.getKind() == LayerKind::head    ? model.getLayers()
                                                               : layer.getIndex();
      Block &body = layer.getBody().front();
      for (auto [argument, input] : llvm::zip(body.getArguments(), layer.getInputs()))
        renamed[argument] = renamed.lookup(input);
      ValueRange yields = cast<YieldOp>(body.back()).getValues();
      BlockLowering lowering(builder, stage, library, number, layer.getUnitName(), renamed);
      if (failed(lowering.run(body, body.getNumArguments() ? body.getArgument(0) : Value(),
                              yields.empty() ? Value() : yields[0])))
        return failure();
      fused += lowering.fusionCount();
      for (auto [output, value] : llvm::zip(layer.getOutputs(), yields))
        renamed[output] = renamed.lookup(value);
    }
    for (Operation *op : llvm::reverse(old))
      op->erase();
    return success();
  }

  /// Ports and carried rows stand between the layers.
  LogicalResult lowerPort(OpBuilder &builder, StageOp stage, const KernelLibrary &library,
                          Operation *op, DenseMap<Value, Value> &renamed) {
    if (auto carried = dyn_cast<CarriedOp>(op)) {
      renamed[carried.getResult()] = builder.clone(*op)->getResult(0);
      return success();
    }
    SelectionContext context{stage, library, -1, false};
    auto selections = selectKernels(op, context);
    if (failed(selections))
      return failure();
    Selection &selection = selections->front();
    auto slots = orderedSlots(op, selection);
    if (failed(slots))
      return failure();
    std::string kernel = requireKernel(stage, library, selection.kernel);
    SmallVector<Value> inputs;
    for (Value input : selection.inputs)
      inputs.push_back(renamed.lookup(input));
    bool arrives = isa_and_present<ReceiveOp>(op);
    // Numbered as the neighbouring layer would be, so that order-ops leaves ports at the ends.
    int64_t number = arrives ? stage.getFirstLayer() - 1 : stage.getEndLayer();
    auto invocation = InvokeOp::create(
        builder, op->getLoc(), arrives ? TypeRange(selection.result) : TypeRange(), kernel, inputs,
        *slots, selection.items, arrives ? SmallVector<int64_t>{-1} : SmallVector<int64_t>{},
        gridAttr(builder, selection), arrives ? "receive" : "send", number, /*carries=*/arrives,
        /*logits=*/false);
    if (arrives)
      renamed[op->getResult(0)] = invocation.getResult(0);
    return success();
  }
};

} // namespace
} // namespace strata
