#include "models/Mamba2Mixer.h"

#include <limits>

namespace strata {

SlotState mambaState(ModelBuilder &model, const MambaShape &shape, llvm::ArrayRef<int64_t> layers) {
  return model.slotState(
      "recurrent",
      {{"conv", (shape.taps - 1) * shape.convWidth()}, {"ssm", shape.inner() * shape.stateWidth}},
      layers);
}

void readTimeStepLimit(ConfigReader &config, MambaShape &shape) {
  shape.mostDt = std::numeric_limits<double>::infinity();
  std::vector<double> limit = config.numbers("time_step_limit");
  if (limit.empty())
    return;
  if (limit.size() != 2 || !(limit[0] >= 0) || !(limit[1] >= limit[0]))
    config.fail("time_step_limit", "is not a lower and an upper limit, the lower at least 0");
  else
    shape.leastDt = limit[0], shape.mostDt = limit[1];
}

void checkMambaShape(ConfigReader &config, const MambaShape &shape, const std::string &groupsKey) {
  if (config.status().isOk() && shape.heads % shape.groups != 0)
    config.fail(groupsKey, fmt::format("is {}, which does not divide the {} heads", shape.groups,
                                       shape.heads));
}

Mamba2Mixer::Mamba2Mixer(ModelBuilder &model, const MambaShape &shape, bool isGguf,
                         const std::string &prefix, int64_t layer, int64_t hidden)
    : shape_(shape), layer_(layer) {
  std::string unit = layerUnit(layer);
  int64_t inner = shape.inner(), convWidth = shape.convWidth(), heads = shape.heads;
  auto symbol = [&](const char *name) { return fmt::format("l{}.{}", layer, name); };
  auto tensor = [&](const char *gguf, const char *huggingFace) {
    return prefix + (isGguf ? gguf : huggingFace);
  };
  // One projection makes three things of different spaces.
  int64_t rows = inner + convWidth + heads;
  auto projection = [&](const char *name, int64_t first, int64_t count) {
    WeightSource source;
    source.tensor = tensor("ssm_in.weight", "in_proj.weight");
    source.shape = {rows, hidden};
    source.part = {first, rows};
    return model.weight(symbol(name), source, {count, hidden}, unit);
  };
  inZ_ = projection("in_z", 0, inner);
  inConv_ = projection("in_conv", inner, convWidth);
  inDt_ = projection("in_dt", inner + convWidth, heads);

  auto stored = [&](const char *gguf, const char *huggingFace,
                    llvm::SmallVector<int64_t, 4> ggufShape,
                    llvm::SmallVector<int64_t, 4> huggingFaceShape) {
    WeightSource source;
    source.tensor = tensor(gguf, huggingFace);
    source.shape = isGguf ? ggufShape : huggingFaceShape;
    return source;
  };
  conv_ = model.floatWeight(symbol("conv"),
                            stored("ssm_conv1d.weight", "conv1d.weight", {convWidth, shape.taps},
                                   {convWidth, 1, shape.taps}),
                            {convWidth, shape.taps}, unit);
  if (shape.hasConvBias)
    convBias_ = model.vector(symbol("conv_bias"), tensor("ssm_conv1d.bias", "conv1d.bias"),
                             convWidth, unit);
  // GGUF files store -exp(A_log) as `ssm_a`.
  WeightSource a = stored("ssm_a", "A_log", {heads, 1}, {heads});
  a.isNegativeExponential = !isGguf;
  scan_.a = model.floatWeight(symbol("a"), a, {heads}, unit);
  scan_.skip =
      model.floatWeight(symbol("skip"), stored("ssm_d", "D", {heads, 1}, {heads}), {heads}, unit);
  scan_.dtBias = model.vector(symbol("dt_bias"), tensor("ssm_dt.bias", "dt_bias"), heads, unit);
  scan_.heads = heads;
  scan_.headWidth = shape.headWidth;
  scan_.groups = shape.groups;
  scan_.stateWidth = shape.stateWidth;
  scan_.leastDt = shape.leastDt;
  scan_.mostDt = shape.mostDt;
  norm_ = model.floatWeight(
      symbol("inner_norm"),
      stored("ssm_norm.weight", "norm.weight", {shape.groups, inner / shape.groups}, {inner}),
      {inner}, unit);
  out_ =
      model.matrix(symbol("out"), tensor("ssm_out.weight", "out_proj.weight"), hidden, inner, unit);
}

mlir::Value Mamba2Mixer::build(LayerBuilder &ops, mlir::Value n, SlotState state) const {
  mlir::Value z = ops.linear(n, inZ_, {}, "inner");
  mlir::Value c = ops.linear(n, inConv_, {}, "conv");
  mlir::Value dt = ops.linear(n, inDt_, {}, "heads");
  c = ops.activation(ir::Function::silu, ops.conv(c, conv_, convBias_, state, layer_));
  mlir::Value y = ops.gated(ir::Function::silu, z, ops.ssmScan(c, dt, scan_, state, layer_));
  y = ops.groupedRmsNorm(y, norm_, shape_.epsilon, shape_.normGroups);
  return ops.linear(y, out_, {}, "hidden");
}

} // namespace strata
