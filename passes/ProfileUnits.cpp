// profile-units: measure each layer by planning it alone.
#include "mlir/IR/Builders.h"
#include "mlir/Pass/PassManager.h"

#include "codegen/targets/Target.h"
#include "passes/Buckets.h"
#include "passes/PassOrder.h"
#include "passes/Passes.h"

using namespace mlir;

namespace strata {
#define GEN_PASS_DEF_PROFILEUNITS
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

/// Time of a launch that reads `bytes` and multiplies `rows` rows with `elements` weights.
int64_t nanoseconds(const Target &target, double bytes, double rows, double elements) {
  return static_cast<int64_t>(
      1e9 * std::max(bytes / target.bytesPerSecond, 2 * rows * elements / target.flopsPerSecond));
}

/// The stacks of weights of which a row reads but some, with the part that it reads.
llvm::DenseMap<StringAttr, double> expertParts(LayerOp layer) {
  llvm::DenseMap<StringAttr, double> parts;
  layer.walk([&](ExpertsOp op) {
    auto width = [](Value value) {
      return static_cast<double>(cast<RankedTensorType>(value.getType()).getShape().back());
    };
    auto router = op.getRouting().getDefiningOp<RouterOp>();
    if (!router)
      return;
    double part = width(op.getRouting()) / 2 / width(router.getLogits());
    for (FlatSymbolRefAttr name : {op.getUpAttr(), op.getDownAttr(), op.getGateAttr()})
      if (name)
        parts[name.getAttr()] = part;
  });
  return parts;
}

/// What one stage of a planned model, which holds `layer`, takes.
UnitCostAttr measure(ModelOp model, StageOp stage, LayerOp layer, const Target &target) {
  int64_t weights = 0, state = 0, arena = 0, commands = 0;
  double elements = 0; // that a row is multiplied with
  llvm::DenseMap<StringAttr, double> parts = expertParts(layer);
  auto partOf = [&](WeightOp weight) {
    auto part = parts.find(weight.getSymNameAttr());
    return part == parts.end() ? 1.0 : part->second;
  };
  for (WeightOp weight : stage.getOps<WeightOp>()) {
    weights += weight.getBytes();
    elements += partOf(weight) * static_cast<double>(weight.getTensorType().getNumElements());
  }
  // Bytes that `rows` rows read at least: each weight once, of experts those that are used, were
  // all of them different.
  auto bytesRead = [&](int64_t rows) {
    double bytes = 0;
    for (WeightOp weight : stage.getOps<WeightOp>())
      bytes += std::min(1.0, partOf(weight) * static_cast<double>(rows)) *
               static_cast<double>(weight.getBytes());
    return bytes;
  };
  for (StateOp group : stage.getOps<StateOp>())
    state += group.getBlockBytes() *
             group.getBlocksPerSequence(model.getMaxContext(), model.getMaxRows()) *
             model.getMaxSequences();
  for (ForwardOp forward : stage.getOps<ForwardOp>()) {
    ArenaOp placed = *forward.getBlock().getOps<ArenaOp>().begin();
    arena = std::max<int64_t>(arena, placed.getPeak());
    auto dispatches = forward.getBlock().getOps<DispatchOp>();
    commands = std::max<int64_t>(commands, std::distance(dispatches.begin(), dispatches.end()));
  }
  // A decode step has a row a sequence, a prompt chunk one sequence; a head computes no other rows.
  auto time = [&](int64_t rows, int64_t sequences) {
    if (stage.getEmbedding()) // a row of the table for every row
      return nanoseconds(target, 4.0 * static_cast<double>(rows * model.getHidden()), 0, 0);
    return nanoseconds(target, bytesRead(rows),
                       static_cast<double>(stage.getHead() ? sequences : rows), elements);
  };
  // A CPU's is one a worker, known at boot; a GPU's one a head row.
  int64_t scratch = target.library.isCpu()
                        ? 0
                        : stage.getScratch().value_or(0) * mostHeadRows(bucketShapes(model));
  int64_t sequences = model.getMaxSequences();
  return UnitCostAttr::get(model.getContext(), weights, state, arena, commands,
                           time(sequences, sequences), time(model.getMaxRows(), 1), scratch);
}

struct ProfileUnitsPass : OrderedPass<impl::ProfileUnitsBase<ProfileUnitsPass>, ProfileUnitsPass> {
  LogicalResult runOnModel(ModelOp model) {
    auto target = findTarget(cast<StringAttr>(model.getDevices()[0]).str());
    if (!target.isOk())
      return model.emitOpError() << target.status().toString();
    SmallVector<LayerOp> layers((*model.getOps<ForwardOp>().begin()).getOps<LayerOp>());

    // The same model with every unit on a stage of its own, planned by the very passes that plan
    // the whole.
    OpBuilder builder = OpBuilder::atBlockEnd(&model.getBody().front());
    auto alone = cast<ModelOp>(builder.clone(*model));
    int64_t units = static_cast<int64_t>(layers.size());
    alone.setDevicesAttr(
        builder.getArrayAttr(SmallVector<Attribute>(units, model.getDevices()[0])));
    alone.setDeviceBytes(SmallVector<int64_t>(units, 0));
    SmallVector<int64_t> split(units, 1);
    split.front() = split.back() = 0;
    alone.setSplit(split);
    // Of buckets found by doubling the largest takes the most; the user's are measured as they are.
    if (!model.getBuckets())
      alone.setBuckets(SmallVector<int64_t>{model.getMaxRows(),
                                            std::min(model.getMaxRows(), model.getMaxSequences())});
    leavePass(alone, "profile-units");
    OpPassManager manager(ModelOp::getOperationName());
    std::string text;
    llvm::raw_string_ostream errors(text);
    if (failed(addPipeline(manager, "profile-units", "plan-memory", errors)))
      return model.emitOpError() << text;
    if (failed(runPipeline(manager, alone)))
      return failure();

    for (auto [layer, stage] : llvm::zip(layers, alone.getOps<StageOp>()))
      layer.setCostAttr(measure(alone, stage, layer, *target));
    alone.erase();
    measured(model, "strata-profile-units", "units") << remark::metric("Units", units);
    return success();
  }
};

} // namespace
} // namespace strata
