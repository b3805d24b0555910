// The feed-forward part of models with experts: router, experts, shared experts, latent space.
//
//   r = route(Wrouter n); z = n, or D n in latent space
//   y = sum_k w_k down_k(f(up_k z)) or sum_k w_k down_k(f(gate_k z) * up_k z); y = U y out of
//   latent space out = y + shared(n), or y + sigmoid(g . n) shared(n)
//
// One graph for every family that has experts; what differs is in Mixture.
#pragma once

#include "models/ModelBuilder.h"

namespace strata {

/// What a configuration says about the experts of a layer.
struct Mixture {
  int64_t experts = 0;     ///< 0: the model has none.
  int64_t inner = 0;       ///< Width inside an expert.
  int64_t latent = 0;      ///< Width of the latent space that they work in; 0: the hidden space.
  int64_t sharedInner = 0; ///< Width inside the shared experts together; 0: none.
  bool isGated = true;
  bool hasBias = false;       ///< The router has a correction bias.
  bool hasSharedGate = false; ///< The shared expert is weighted by a gate.
  ir::Function function = ir::Function::silu;
  Routing routing;
};

/// How a checkpoint calls the tensors of one layer.
struct MixtureNames {
  bool isGguf = false;
  std::string prefix; ///< `blk.3.`, `model.layers.3.mlp.`
  std::string shared; ///< Hugging Face's word: `shared_expert`, `shared_experts`.
};

class MixtureOfExperts {
public:
  /// Declares the weights of layer `layer`. `slots` is the table of all layers' experts.
  MixtureOfExperts(ModelBuilder &model, const Mixture &mixture, const MixtureNames &names,
                   int64_t layer, int64_t hidden, Weight slots);

  /// From normed rows to what is added to the residual.
  mlir::Value build(LayerBuilder &ops, mlir::Value n) const;

private:
  std::string symbol(const char *name) const;
  std::string tensor(const char *gguf, const char *huggingFace) const;
  Weight matrix(const char *name, const char *gguf, const char *huggingFace, int64_t rows,
                int64_t columns);
  Weight stack(const char *name, const char *gguf, const char *huggingFace, int64_t rows,
               int64_t columns);
  Weight half(const char *name, bool isUp, int64_t columns);
  void declareExperts(int64_t width);
  void declareShared(int64_t hidden);

  ModelBuilder &model_;
  const Mixture &mixture_;
  MixtureNames names_;
  int64_t layer_;
  Weight router_, bias_, latentDown_, latentUp_, sharedGate_, sharedUp_, sharedDown_, sharedWeight_;
  ExpertWeights experts_;
};

} // namespace strata
