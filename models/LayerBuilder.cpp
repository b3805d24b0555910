#include "models/ModelBuilder.h"

using namespace mlir;

namespace strata {

Type LayerBuilder::rows(int64_t width, StringRef space) {
  return ir::activationType(builder_.getContext(), ShapedType::kDynamic, width, space);
}

Value LayerBuilder::embed(Weight table, StringRef space, double scale) {
  return ir::EmbedOp::create(builder_, location_, rows(table.columns, space), table.symbol, step_,
                             builder_.getF64FloatAttr(scale));
}

Value LayerBuilder::rmsNorm(Value input, Weight weight, double epsilon, int64_t heads) {
  return ir::RmsNormOp::create(builder_, location_, input.getType(), input, weight.symbol,
                               builder_.getF64FloatAttr(epsilon),
                               heads ? builder_.getI64IntegerAttr(heads) : IntegerAttr(),
                               /*grouped=*/UnitAttr());
}

Value LayerBuilder::groupedRmsNorm(Value input, Weight weight, double epsilon, int64_t groups) {
  return ir::RmsNormOp::create(
      builder_, location_, input.getType(), input, weight.symbol, builder_.getF64FloatAttr(epsilon),
      builder_.getI64IntegerAttr(groups), /*grouped=*/builder_.getUnitAttr());
}

Value LayerBuilder::linear(Value input, Weight weight, Weight bias, StringRef space) {
  return ir::LinearOp::create(builder_, location_, rows(weight.rows, space), input, weight.symbol,
                              bias.symbol);
}

Value LayerBuilder::rope(Value input, Weight frequencies, ir::RopePairs pairs, int64_t heads,
                         double magnitude, int64_t first) {
  return ir::RopeOp::create(builder_, location_, input.getType(), input, frequencies.symbol, step_,
                            ir::RopePairsAttr::get(builder_.getContext(), pairs),
                            builder_.getI64IntegerAttr(heads),
                            builder_.getI64IntegerAttr(2 * frequencies.rows),
                            builder_.getF64FloatAttr(magnitude), builder_.getI64IntegerAttr(first));
}

Value LayerBuilder::headLinear(Value input, Weight weight, bool isTransposed, int64_t tail,
                               int64_t width, StringRef space) {
  return ir::HeadLinearOp::create(builder_, location_, rows(width, space), input, weight.symbol,
                                  builder_.getI64IntegerAttr(tail),
                                  isTransposed ? builder_.getUnitAttr() : UnitAttr());
}

Value LayerBuilder::latentAttention(Value query, AttentionState state, int64_t layer,
                                    int64_t queryHeads, double scale, int64_t width,
                                    StringRef space) {
  return ir::AttentionOp::create(builder_, location_, rows(width, space), query, state.symbol,
                                 step_, builder_.getI64IntegerAttr(layer),
                                 builder_.getI64IntegerAttr(queryHeads),
                                 builder_.getI64IntegerAttr(1), builder_.getF64FloatAttr(scale),
                                 IntegerAttr(), builder_.getUnitAttr());
}

void LayerBuilder::kvWrite(Value key, Value value, AttentionState state, int64_t layer) {
  ir::KvWriteOp::create(builder_, location_, key, value, state.symbol, step_,
                        builder_.getI64IntegerAttr(layer));
}

Value LayerBuilder::attention(Value query, AttentionState state, int64_t layer, int64_t queryHeads,
                              int64_t kvHeads, double scale, int64_t width, StringRef space) {
  return ir::AttentionOp::create(
      builder_, location_, rows(width, space), query, state.symbol, step_,
      builder_.getI64IntegerAttr(layer), builder_.getI64IntegerAttr(queryHeads),
      builder_.getI64IntegerAttr(kvHeads), builder_.getF64FloatAttr(scale),
      state.window ? builder_.getI64IntegerAttr(state.window) : IntegerAttr(), UnitAttr());
}

Value LayerBuilder::gated(ir::Function function, Value gate, Value up) {
  return ir::GatedOp::create(builder_, location_, gate.getType(), function, gate, up);
}

Value LayerBuilder::rowGated(ir::Function function, Value gate, Value input) {
  return ir::RowGatedOp::create(builder_, location_, input.getType(), function, gate, input);
}

Value LayerBuilder::activation(ir::Function function, Value input) {
  return ir::ActivationOp::create(builder_, location_, input.getType(), function, input);
}

Value LayerBuilder::router(Value logits, const Routing &routing, Weight bias) {
  auto integer = [&](int64_t value) { return builder_.getI64IntegerAttr(value); };
  return ir::RouterOp::create(
      builder_, location_, rows(2 * routing.used, "routing"),
      ir::GateFunctionAttr::get(builder_.getContext(), routing.function), logits, bias.symbol,
      integer(routing.used), integer(routing.groups), integer(routing.groupsUsed),
      integer(routing.groupTop), routing.normalise ? builder_.getUnitAttr() : UnitAttr(),
      builder_.getF64FloatAttr(routing.leastSum), builder_.getF64FloatAttr(routing.scale));
}

Value LayerBuilder::experts(Value input, Value routing, const ExpertWeights &weights) {
  return ir::ExpertsOp::create(builder_, location_, input.getType(),
                               ir::FunctionAttr::get(builder_.getContext(), weights.function),
                               input, routing, weights.gate.symbol, weights.up.symbol,
                               weights.down.symbol, weights.slots.symbol, weights.labels.symbol);
}

IntegerAttr LayerBuilder::layerOf(const Weight &weight) {
  return weight.layer ? builder_.getI64IntegerAttr(*weight.layer) : IntegerAttr();
}

Value LayerBuilder::latentDown(Value input, Weight weight, int64_t groups) {
  return ir::LatentDownOp::create(builder_, location_, rows(weight.rows, "latent"), input,
                                  weight.symbol, layerOf(weight),
                                  builder_.getI64IntegerAttr(groups));
}

Value LayerBuilder::latentUp(Value input, Weight weight, int64_t groups, StringRef space) {
  return ir::LatentUpOp::create(builder_, location_, rows(weight.rows, space), input, weight.symbol,
                                layerOf(weight), builder_.getI64IntegerAttr(groups));
}

Value LayerBuilder::conv(Value input, Weight weight, Weight bias, SlotState state, int64_t layer) {
  return ir::ConvOp::create(builder_, location_, input.getType(), input, weight.symbol, bias.symbol,
                            state.symbol, step_, builder_.getI64IntegerAttr(layer));
}

Value LayerBuilder::ssmScan(Value input, Value dt, const ScanWeights &weights, SlotState state,
                            int64_t layer) {
  return ir::SsmScanOp::create(
      builder_, location_, rows(weights.heads * weights.headWidth, "inner"), input, dt,
      weights.a.symbol, weights.skip.symbol, weights.dtBias.symbol, state.symbol, step_,
      builder_.getI64IntegerAttr(layer), builder_.getI64IntegerAttr(weights.heads),
      builder_.getI64IntegerAttr(weights.groups), builder_.getI64IntegerAttr(weights.stateWidth),
      builder_.getF64FloatAttr(weights.leastDt), builder_.getF64FloatAttr(weights.mostDt));
}

Value LayerBuilder::add(Value lhs, Value rhs) {
  return ir::AddOp::create(builder_, location_, lhs.getType(), lhs, rhs);
}

Value LayerBuilder::gatherRows(Value input) {
  return ir::GatherRowsOp::create(builder_, location_, input.getType(), input, step_);
}

Value LayerBuilder::logits(Value input, Weight weight, StringRef space) {
  return ir::LogitsOp::create(builder_, location_, rows(weight.rows, space), input, weight.symbol,
                              FlatSymbolRefAttr());
}

void LayerBuilder::sample(Value logits) {
  ir::SampleOp::create(builder_, location_, logits, step_);
}

void LayerBuilder::yield(ValueRange values) { ir::YieldOp::create(builder_, location_, values); }

} // namespace strata
