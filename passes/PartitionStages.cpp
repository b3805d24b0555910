// partition-stages: give every layer its stage.
#include "mlir/IR/Builders.h"
#include "llvm/Support/FormatVariadic.h"

#include "codegen/blocks/BlockLayouts.h"
#include "codegen/targets/DriverMemory.h"
#include "passes/Buckets.h"
#include "passes/Handoffs.h"
#include "passes/PassOrder.h"
#include "passes/Passes.h"
#include "passes/planner/Partition.h"
#include "runtime/plan/LaunchMemory.h"

using namespace mlir;

namespace strata {
#define GEN_PASS_DEF_PARTITIONSTAGES
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

/// What is promised: it decides sizes of state and blocks.
struct Promise {
  int64_t context; // tokens of a sequence
  int64_t sequences;
};

bool holds(StateOp state, LayerOp layer) {
  return layer.getKind() == LayerKind::decoder &&
         llvm::is_contained(state.getLayers(), layer.getIndex());
}

/// Bytes of a layer's state.
int64_t stateBytes(ModelOp model, LayerOp layer, Promise promise) {
  int64_t bytes = 0;
  for (StateOp state : model.getOps<StateOp>())
    if (holds(state, layer))
      bytes += state.getBlockBytes() / static_cast<int64_t>(state.getLayers().size()) *
               state.getBlocksPerSequence(promise.context, model.getMaxRows()) * promise.sequences;
  return bytes;
}

/// What a stage takes for its blocks, the handoff that it reads, and the launches that are out:
/// what the writer and the runtime will make of it.
class BlockSizes {
public:
  BlockSizes(ModelOp model, ArrayRef<LayerOp> layers, Promise promise) {
    std::vector<BucketShape> shapes = bucketShapes(model);
    BlockBounds bounds{
        static_cast<uint64_t>(mostBodyRows(shapes)), static_cast<uint64_t>(promise.sequences),
        static_cast<uint64_t>(mostHeadRows(shapes)), static_cast<uint64_t>(promise.context),
        static_cast<uint64_t>(model.getVocabulary())};
    step = stepFields({}, bounds).bytes;
    out = outFields(bounds).bytes;
    table = tableFields(/*hasHead=*/false, bounds).bytes;
    headTable = tableFields(/*hasHead=*/true, bounds).bytes;
    sequences = bounds.sequences;
    stages = static_cast<uint32_t>(model.getDevices().size());
    // Beside a CPU a GPU is charged with what the host keeps, too.
    hostCounts = llvm::any_of(model.getDevices().getAsValueRange<StringAttr>(),
                              [](StringRef device) { return device.starts_with("cpu"); });
    for (LayerOp layer : layers)
      rings.push_back(layer.getInputs().empty()
                          ? 0
                          : ringSlots * handoffSlotBytes(widthOf(layer.getInputs()[0].getType()),
                                                         model.getMaxRows()));
    for (StateOp state : model.getOps<StateOp>()) {
      std::vector<size_t> before{0};
      for (LayerOp layer : layers)
        before.push_back(before.back() + holds(state, layer));
      tables.push_back({stepFields({state}, bounds).bytes - step, std::move(before)});
    }
  }

  int64_t operator()(size_t first, size_t end) const {
    uint64_t ownStep = step;
    for (const StateTable &state : tables)
      if (state.layersBefore[end] > state.layersBefore[first])
        ownStep += state.bytes;
    uint64_t bytes = ownStep + out + (end == rings.size() ? headTable : table);
    if (first > 0)
      bytes += rings[first];
    if (hostCounts)
      bytes += launchBytes(stages, first == 0, ownStep, out, sequences);
    return static_cast<int64_t>(bytes);
  }

private:
  static int64_t widthOf(Type type) { return cast<RankedTensorType>(type).getShape().back(); }

  /// The block table of a state in the step block.
  struct StateTable {
    uint64_t bytes;
    std::vector<size_t> layersBefore; // of the state, before each layer of the model
  };
  uint64_t step = 0, out = 0, table = 0, headTable = 0, sequences = 0;
  uint32_t stages = 0;
  bool hostCounts = false;
  std::vector<uint64_t> rings; // where the stage begins with this layer
  std::vector<StateTable> tables;
};

Promise promiseOf(ModelOp model) { return {model.getMaxContext(), model.getMaxSequences()}; }

planner::PartitionProblem describe(ModelOp model, ArrayRef<LayerOp> layers, Promise promise) {
  planner::PartitionProblem problem;
  // Each layer of a table is a weight of its own here: a stage holds those that it reads.
  llvm::DenseMap<std::pair<StringAttr, int64_t>, size_t> index;
  for (WeightOp weight : model.getOps<WeightOp>()) {
    constexpr int64_t whole = -1;
    auto layers = weight.getLayers();
    for (int64_t i = layers ? layers->getFirst() : whole; i < (layers ? layers->getEnd() : 0);
         ++i) {
      index[{weight.getSymNameAttr(), i}] = problem.weightBytes.size();
      problem.weightBytes.push_back(weight.getLayerStride());
    }
  }
  for (LayerOp layer : layers) {
    planner::Unit unit;
    llvm::SmallDenseSet<size_t> weights;
    layer.walk([&](Operation *op) {
      int64_t part = tableLayer(op).value_or(-1);
      for (NamedAttribute attribute : op->getAttrs())
        if (auto name = dyn_cast<FlatSymbolRefAttr>(attribute.getValue()))
          if (auto found = index.find({name.getAttr(), part}); found != index.end())
            if (weights.insert(found->second).second)
              unit.weights.push_back(found->second);
    });
    if (auto cost = layer.getCost()) {
      unit.stateBytes = stateBytes(model, layer, promise);
      unit.arenaBytes = cost->getArenaBytes();
      unit.scratchBytes = cost->getScratchBytes();
      unit.decodeTime = cost->getDecodeNanoseconds();
      unit.prefillTime = cost->getPrefillNanoseconds();
    }
    problem.units.push_back(std::move(unit));
  }
  problem.blockBytes = BlockSizes(model, layers, promise);
  for (auto [device, target] : llvm::enumerate(model.getDevices().getAsValueRange<StringAttr>())) {
    problem.capacity.push_back(model.getDeviceBytes().empty() ? 0 : model.getDeviceBytes()[device]);
    problem.reserved.push_back(static_cast<int64_t>(driverMemoryBytes(target.str())));
  }
  return problem;
}

/// The largest number in [1, limit) for which `fits` holds, or 0; `fits` holds for all smaller
/// ones.
int64_t largestThatFits(int64_t limit, llvm::function_ref<bool(int64_t)> fits) {
  int64_t known = 0;
  while (limit - known > 1) {
    int64_t middle = known + (limit - known) / 2;
    (fits(middle) ? known : limit) = middle;
  }
  return known;
}

double mebibytes(int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

struct PartitionStagesPass
    : OrderedPass<impl::PartitionStagesBase<PartitionStagesPass>, PartitionStagesPass> {
  LogicalResult runOnModel(ModelOp model) {
    ForwardOp forward = *model.getOps<ForwardOp>().begin();
    SmallVector<LayerOp> layers(forward.getOps<LayerOp>());
    size_t devices = model.getDevices().size();
    if (devices > layers.size())
      return model.emitOpError() << "cannot be cut into " << devices << " stages: it has "
                                 << layers.size() << " units (embedding, " << model.getLayers()
                                 << " layers, head); name at most " << layers.size() << " devices";

    planner::PartitionProblem problem = describe(model, layers, promiseOf(model));
    std::vector<size_t> cuts;
    if (model.getSplit()) {
      if (failed(cutAsAsked(model, cuts)))
        return failure();
      if (!fits(problem, cuts))
        return refuse(model, layers, problem, cuts);
    } else if (auto best = planner::partition(problem)) {
      cuts = *best;
    } else {
      return refuse(model, layers, problem, evenCuts(layers.size(), devices));
    }

    Builder builder(model.getContext());
    for (size_t stage = 0; stage < devices; ++stage) {
      for (size_t unit = cuts[stage]; unit < cuts[stage + 1]; ++unit)
        layers[unit].setStageAttr(builder.getI64IntegerAttr(static_cast<int64_t>(stage)));
      planner::StageBytes bytes = planner::stageBytes(problem, cuts[stage], cuts[stage + 1]);
      decided(model, "strata-partition-stages", "stage")
          << remark::metric("Stage", stage)
          << remark::metric("FirstUnit", layers[cuts[stage]].getUnitName())
          << remark::metric("LastUnit", layers[cuts[stage + 1] - 1].getUnitName())
          << remark::metric("WeightBytes", bytes.weights)
          << remark::metric("StateBytes", bytes.state) << remark::metric("ArenaBytes", bytes.arena)
          << remark::metric("BlockBytes", bytes.blocks)
          << remark::metric("ScratchBytes", bytes.scratch)
          << remark::metric("TotalBytes", bytes.total());
    }
    return success();
  }

private:
  LogicalResult cutAsAsked(ModelOp model, std::vector<size_t> &cuts) {
    ArrayRef<int64_t> split = *model.getSplit();
    int64_t sum = 0;
    for (auto [index, layers] : llvm::enumerate(split)) {
      if (layers < 0)
        return model.emitOpError() << "split gives stage " << index << " " << layers << " layers";
      bool end = index == 0 || index + 1 == split.size();
      if (layers == 0 && !end)
        return model.emitOpError() << "split gives stage " << index
                                   << " nothing; only the first (embedding) and the last (head) "
                                      "stage may have 0 layers";
      sum += layers;
    }
    if (sum != model.getLayers())
      return model.emitOpError() << "split adds up to " << sum << " layers, the model has "
                                 << model.getLayers();
    size_t unit = 0;
    cuts.push_back(0);
    for (auto [index, layers] : llvm::enumerate(split)) {
      unit += static_cast<size_t>(layers) + (index == 0) + (index + 1 == split.size());
      cuts.push_back(unit);
    }
    return success();
  }

  static bool fits(const planner::PartitionProblem &problem, ArrayRef<size_t> cuts) {
    for (size_t stage = 0; stage + 1 < cuts.size(); ++stage)
      if (!problem.fits(stage, planner::stageBytes(problem, cuts[stage], cuts[stage + 1]).total()))
        return false;
    return true;
  }

  static std::vector<size_t> evenCuts(size_t units, size_t devices) {
    std::vector<size_t> cuts;
    for (size_t device = 0; device <= devices; ++device)
      cuts.push_back(units * device / devices);
    return cuts;
  }

  /// The table, the shortfall and the smallest change that fits.
  LogicalResult refuse(ModelOp model, ArrayRef<LayerOp> layers,
                       const planner::PartitionProblem &problem, const std::vector<size_t> &cuts) {
    std::string table;
    llvm::raw_string_ostream stream(table);
    stream << llvm::formatv("\n{0,-8}{1,12}{2,12}{3,12}{4,12}{5,12}{6,12}{7,12}{8,12}\n", "stage",
                            "weights", "state", "arena", "blocks", "reserved", "sum", "device",
                            "short");
    int64_t worst = 0;
    for (size_t stage = 0; stage + 1 < cuts.size(); ++stage) {
      planner::StageBytes bytes = planner::stageBytes(problem, cuts[stage], cuts[stage + 1]);
      int64_t capacity = problem.capacity[stage], reserved = problem.reservedOf(stage);
      int64_t sum = bytes.total() + reserved;
      int64_t shortfall = capacity ? std::max<int64_t>(0, sum - capacity) : 0;
      worst = std::max(worst, shortfall);
      stream << llvm::formatv(
          "{0,-8}{1,12:f2}{2,12:f2}{3,12:f2}{4,12:f2}{5,12:f2}{6,12:f2}{7,12:f2}{8,12:f2}\n", stage,
          mebibytes(bytes.weights), mebibytes(bytes.state), mebibytes(bytes.arena),
          mebibytes(bytes.blocks + bytes.scratch), mebibytes(reserved), mebibytes(sum),
          mebibytes(capacity), mebibytes(shortfall));
    }
    InFlightDiagnostic diagnostic = model.emitOpError()
                                    << "does not fit its devices (MiB):" << table << "short by "
                                    << llvm::formatv("{0:f2} MiB", mebibytes(worst)).str() << "; ";
    auto wouldFit = [&](int64_t context, int64_t sequences) {
      return fitsAnyhow(model, describe(model, layers, {context, sequences}), cuts);
    };
    SmallVector<std::string> changes;
    auto offer = [&](StringRef what, int64_t fits, int64_t now) {
      if (fits > 0)
        changes.push_back(llvm::formatv(what.str().c_str(), fits, now).str());
    };
    int64_t context = model.getMaxContext(), sequences = model.getMaxSequences();
    int64_t lessContext =
        largestThatFits(context, [&](int64_t tokens) { return wouldFit(tokens, sequences); });
    int64_t lessSequences =
        largestThatFits(sequences, [&](int64_t count) { return wouldFit(context, count); });
    offer("a context of {0} tokens instead of {1}", lessContext, context);
    offer("{0} sequences instead of {1}", lessSequences, sequences);
    offer("a chunk of {0} rows instead of {1}", largestChunkThatFits(model, cuts),
          model.getMaxRows());
    int64_t each = leastDeviceThatFits(model, layers, cuts);
    if (each > 0)
      changes.push_back(llvm::formatv("devices of {0} bytes each", each).str());
    if (changes.empty())
      return diagnostic << "no smaller context, batch or chunk fits";
    llvm::interleave(
        changes, [&](const std::string &change) { diagnostic << change; },
        [&] { diagnostic << ", or "; });
    diagnostic << " would fit";
    return diagnostic;
  }

  static bool fitsAnyhow(ModelOp model, const planner::PartitionProblem &problem,
                         ArrayRef<size_t> cuts) {
    return model.getSplit() ? fits(problem, cuts) : planner::partition(problem).has_value();
  }

  /// Rows of the largest chunk, of those halved, that fits: each is measured as the model was.
  int64_t largestChunkThatFits(ModelOp model, ArrayRef<size_t> cuts) {
    if (model.getBuckets())
      return 0; // the buckets are the user's
    OpPassManager manager(ModelOp::getOperationName());
    std::string text;
    llvm::raw_string_ostream errors(text);
    if (failed(addPipeline(manager, "canonicalize", "profile-units", errors)))
      return 0;
    OpBuilder builder = OpBuilder::atBlockEnd(&model.getBody().front());
    for (int64_t rows = model.getMaxRows() / 2; rows >= 1; rows /= 2) {
      auto smaller = cast<ModelOp>(builder.clone(*model));
      smaller.setMaxRows(rows);
      leavePass(smaller, "canonicalize");
      SmallVector<LayerOp> layers((*smaller.getOps<ForwardOp>().begin()).getOps<LayerOp>());
      bool found = succeeded(runPipeline(manager, smaller)) &&
                   fitsAnyhow(smaller, describe(smaller, layers, promiseOf(smaller)), cuts);
      smaller.erase();
      if (found)
        return rows;
    }
    return 0;
  }

  /// The least size that would do for every limited device.
  int64_t leastDeviceThatFits(ModelOp model, ArrayRef<LayerOp> layers, ArrayRef<size_t> cuts) {
    planner::PartitionProblem problem = describe(model, layers, promiseOf(model));
    int64_t most = *std::ranges::max_element(problem.reserved);
    for (size_t unit = 0; unit < layers.size(); ++unit)
      most += planner::stageBytes(problem, unit, unit + 1).total();
    const std::vector<int64_t> given = problem.capacity;
    auto fitsIn = [&](int64_t bytes) {
      for (auto [capacity, before] : llvm::zip(problem.capacity, given))
        capacity = before == 0 ? 0 : bytes;
      return fitsAnyhow(model, problem, cuts);
    };
    return fitsIn(most)
               ? most - largestThatFits(most, [&](int64_t spared) { return fitsIn(most - spared); })
               : 0;
  }
};

} // namespace
} // namespace strata
