// insert-handoffs: outline each stage and join them.
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

#include "passes/Handoffs.h"
#include "passes/PassOrder.h"
#include "passes/Passes.h"

using namespace mlir;

namespace strata {
#define GEN_PASS_DEF_INSERTHANDOFFS
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

struct InsertHandoffsPass
    : OrderedPass<impl::InsertHandoffsBase<InsertHandoffsPass>, InsertHandoffsPass> {
  LogicalResult runOnModel(ModelOp model) {
    ForwardOp forward = *model.getOps<ForwardOp>().begin();
    SmallVector<WeightOp> weights(model.getOps<WeightOp>());
    SmallVector<StateOp> states(model.getOps<StateOp>());
    int64_t stages = static_cast<int64_t>(model.getDevices().size());

    OpBuilder builder = OpBuilder::atBlockEnd(&model.getBody().front());
    for (int64_t index = 0; index < stages; ++index)
      outline(builder, model, forward, weights, states, index);
    for (int64_t index = 1; index < stages; ++index)
      join(builder, model, index);

    forward.erase();
    for (StateOp state : states)
      state.erase();
    for (WeightOp weight : weights)
      weight.erase();
    return success();
  }

private:
  static std::string stageName(int64_t index) { return "s" + std::to_string(index); }

  void outline(OpBuilder &builder, ModelOp model, ForwardOp forward, ArrayRef<WeightOp> weights,
               ArrayRef<StateOp> states, int64_t index) {
    SmallVector<LayerOp> layers;
    for (LayerOp layer : forward.getOps<LayerOp>())
      if (layer.getStage() == index)
        layers.push_back(layer);

    int64_t first = INT64_MAX, end = 0;
    bool embedding = false, head = false;
    for (LayerOp layer : layers) {
      embedding |= layer.getKind() == LayerKind::embedding;
      head |= layer.getKind() == LayerKind::head;
      if (layer.getKind() == LayerKind::decoder) {
        first = std::min(first, layer.getIndex());
        end = layer.getIndex() + 1;
      }
    }
    if (first == INT64_MAX) // no decoder layer: an empty range where the stage stands
      first = end = embedding ? 0 : model.getLayers();

    auto device = cast<StringAttr>(model.getDevices()[index]);
    auto stage = StageOp::create(builder, forward.getLoc(), stageName(index), device.getValue(),
                                 first, end, embedding, head, IntegerAttr());
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&stage.getRegion().emplaceBlock());

    for (WeightOp weight : weights) {
      const int64_t *found = llvm::find(*weight.getStages(), index);
      if (found == weight.getStages()->end())
        continue;
      auto replica = cast<WeightOp>(builder.clone(*weight));
      replica.removeStagesAttr();
      replica.removeRangesAttr();
      if (weight.isTable()) {
        ptrdiff_t number = 2 * (found - weight.getStages()->begin());
        replica.trimTo((*weight.getRanges())[number], (*weight.getRanges())[number + 1]);
      }
    }
    for (StateOp state : states)
      cloneState(builder, state, layers);

    Type crossing =
        layers.front().getInputs().empty() ? Type() : layers.front().getInputs()[0].getType();
    if (crossing)
      PortOp::create(builder, stage.getLoc(), "in", PortDirection::input, widthOf(crossing));
    Type leaving =
        layers.back().getOutputs().empty() ? Type() : layers.back().getOutputs()[0].getType();
    if (leaving)
      PortOp::create(builder, stage.getLoc(), "out", PortDirection::output, widthOf(leaving));

    auto body = ForwardOp::create(builder, forward.getLoc(), "body", IntegerAttr(), IntegerAttr(),
                                  false, false);
    Block &block = body.getRegion().emplaceBlock();
    Value step = block.addArgument(StepType::get(builder.getContext()), forward.getLoc());
    builder.setInsertionPointToStart(&block);
    IRMapping mapping;
    mapping.map(forward.getStep(), step);
    if (crossing)
      mapping.map(layers.front().getInputs()[0],
                  ReceiveOp::create(builder, layers.front().getLoc(), crossing, "in").getResult());
    for (LayerOp layer : layers) {
      auto clone = cast<LayerOp>(builder.clone(*layer, mapping));
      clone.removeStageAttr();
    }
    if (leaving)
      SendOp::create(builder, layers.back().getLoc(), mapping.lookup(layers.back().getOutputs()[0]),
                     "out");
  }

  /// A stage keeps the part of a group that its layers use.
  void cloneState(OpBuilder &builder, StateOp state, ArrayRef<LayerOp> layers) {
    SmallVector<int64_t> held;
    for (LayerOp layer : layers)
      if (layer.getKind() == LayerKind::decoder &&
          llvm::is_contained(state.getLayers(), layer.getIndex()))
        held.push_back(layer.getIndex());
    if (held.empty())
      return;
    cast<StateOp>(builder.clone(*state)).setLayers(held);
  }

  void join(OpBuilder &builder, ModelOp model, int64_t consumer) {
    auto port = [&](int64_t stage, StringRef name) {
      return SymbolRefAttr::get(builder.getContext(), stageName(stage),
                                FlatSymbolRefAttr::get(builder.getContext(), name));
    };
    auto handoff = HandoffOp::create(
        builder, model.getLoc(), "h" + std::to_string(consumer - 1) + "_rows",
        port(consumer - 1, "out"), port(consumer, "in"), model.getMaxRows(), ringSlots);
    decided(handoff, "strata-insert-handoffs", "handoff")
        << remark::metric("Handoff", handoff.getSymName())
        << remark::metric("Rows", handoff.getRows());
  }

  static int64_t widthOf(Type type) { return cast<RankedTensorType>(type).getShape().back(); }
};

} // namespace
} // namespace strata
