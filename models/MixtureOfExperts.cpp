#include "models/MixtureOfExperts.h"

namespace strata {

MixtureOfExperts::MixtureOfExperts(ModelBuilder &model, const Mixture &mixture,
                                   const MixtureNames &names, int64_t layer, int64_t hidden,
                                   Weight slots)
    : model_(model), mixture_(mixture), names_(names), layer_(layer) {
  router_ = matrix("router", "ffn_gate_inp", "gate", mixture.experts, hidden);
  if (mixture.hasBias) {
    std::string name =
        names.prefix + (names.isGguf ? "exp_probs_b.bias" : "gate.e_score_correction_bias");
    bias_ = model.vector(symbol("router_bias"), name, mixture.experts, layerUnit(layer));
  }
  if (mixture.latent) {
    latentDown_ =
        matrix("latent_down", "ffn_latent_down", "fc1_latent_proj", mixture.latent, hidden);
    latentUp_ = matrix("latent_up", "ffn_latent_up", "fc2_latent_proj", hidden, mixture.latent);
  }
  declareExperts(mixture.latent ? mixture.latent : hidden);
  experts_.function = mixture.function;
  experts_.slots = slots;
  if (mixture.sharedInner)
    declareShared(hidden);
}

std::string MixtureOfExperts::symbol(const char *name) const {
  return fmt::format("l{}.{}", layer_, name);
}

std::string MixtureOfExperts::tensor(const char *gguf, const char *huggingFace) const {
  return fmt::format("{}{}.weight", names_.prefix, names_.isGguf ? gguf : huggingFace);
}

Weight MixtureOfExperts::matrix(const char *name, const char *gguf, const char *huggingFace,
                                int64_t rows, int64_t columns) {
  return model_.matrix(symbol(name), tensor(gguf, huggingFace), rows, columns, layerUnit(layer_));
}

/// One matrix of every expert: a tensor of all of them, or one tensor each.
Weight MixtureOfExperts::stack(const char *name, const char *gguf, const char *huggingFace,
                               int64_t rows, int64_t columns) {
  int64_t experts = mixture_.experts;
  WeightSource source;
  source.tensor = names_.prefix + (names_.isGguf ? fmt::format("{}.weight", gguf)
                                                 : fmt::format("experts.{}", huggingFace));
  source.shape = {experts, rows, columns};
  if (!names_.isGguf && !model_.stores(source.tensor)) {
    source.tensor = fmt::format("{}experts.*.{}.weight", names_.prefix, huggingFace);
    source.shape = {rows, columns};
    source.stack = experts;
  }
  return model_.weight(symbol(name), source, {experts, rows, columns}, layerUnit(layer_));
}

/// Gate or up of a tensor that holds both, the gate's rows first.
Weight MixtureOfExperts::half(const char *name, bool isUp, int64_t columns) {
  int64_t experts = mixture_.experts, inner = mixture_.inner;
  WeightSource source;
  source.tensor =
      names_.prefix + (names_.isGguf ? "ffn_gate_up_exps.weight" : "experts.gate_up_proj");
  source.shape = {experts, 2 * inner, columns};
  source.part = {isUp ? inner : 0, 2 * inner};
  return model_.weight(symbol(name), source, {experts, inner, columns}, layerUnit(layer_));
}

void MixtureOfExperts::declareExperts(int64_t width) {
  int64_t inner = mixture_.inner;
  bool isFused =
      mixture_.isGated && model_.stores(names_.prefix + (names_.isGguf ? "ffn_gate_up_exps.weight"
                                                                       : "experts.gate_up_proj"));
  if (isFused) {
    experts_.gate = half("experts_gate", false, width);
    experts_.up = half("experts_up", true, width);
  } else {
    if (mixture_.isGated)
      experts_.gate = stack("experts_gate", "ffn_gate_exps", "gate_proj", inner, width);
    experts_.up = stack("experts_up", "ffn_up_exps", "up_proj", inner, width);
  }
  experts_.down = stack("experts_down", "ffn_down_exps", "down_proj", width, inner);
}

void MixtureOfExperts::declareShared(int64_t hidden) {
  auto shared = [&](const char *part) { return fmt::format("{}.{}_proj", names_.shared, part); };
  int64_t inner = mixture_.sharedInner;
  if (mixture_.isGated)
    sharedGate_ = matrix("shared_gate", "ffn_gate_shexp", shared("gate").c_str(), inner, hidden);
  sharedUp_ = matrix("shared_up", "ffn_up_shexp", shared("up").c_str(), inner, hidden);
  sharedDown_ = matrix("shared_down", "ffn_down_shexp", shared("down").c_str(), hidden, inner);
  if (!mixture_.hasSharedGate)
    return;
  WeightSource source;
  source.tensor = tensor("ffn_gate_inp_shexp", "shared_expert_gate");
  if (names_.isGguf)
    source.shape = {hidden};
  else
    source.shape = {1, hidden};
  sharedWeight_ = model_.weight(symbol("shared_weight"), source, {1, hidden}, layerUnit(layer_));
}

mlir::Value MixtureOfExperts::build(LayerBuilder &ops, mlir::Value n) const {
  mlir::Value logits = ops.linear(n, router_, {}, "experts");
  mlir::Value routing = ops.router(logits, mixture_.routing, bias_);
  mlir::Value y;
  if (mixture_.latent)
    y = ops.latentUp(ops.experts(ops.latentDown(n, latentDown_, 1), routing, experts_), latentUp_,
                     1, "hidden");
  else
    y = ops.experts(n, routing, experts_);
  if (!mixture_.sharedInner)
    return y;
  mlir::Value up = ops.linear(n, sharedUp_, {}, "intermediate");
  mlir::Value inner =
      mixture_.isGated
          ? ops.gated(mixture_.function, ops.linear(n, sharedGate_, {}, "intermediate"), up)
          : ops.activation(mixture_.function, up);
  mlir::Value shared = ops.linear(inner, sharedDown_, {}, "hidden");
  if (mixture_.hasSharedGate)
    shared = ops.rowGated(ir::Function::sigmoid, ops.linear(n, sharedWeight_, {}, "gate"), shared);
  return ops.add(y, shared);
}

} // namespace strata
