// Nemotron-H: each layer is one mixer behind one norm, x = x + mixer(norm(x)). A mixer is Mamba-2
// (Mamba2Mixer.h), attention without positions, relu^2 feed-forward, or experts, in latent space or
// not (MixtureOfExperts.h).
#include "models/Family.h"
#include "models/Mamba2Mixer.h"
#include "models/MixtureOfExperts.h"

#include <cmath>

#include <fmt/ranges.h>

namespace strata {
namespace {

constexpr int64_t maxWidth = int64_t{1} << 20;
constexpr int64_t maxContext = int64_t{1} << 30;
constexpr IntegerRange sizeRange{1, 1 << 16};
constexpr IntegerRange widthRange{1, maxWidth};

/// As `hybrid_override_pattern` spells them.
enum Kind : char { MambaLayer = 'M', AttentionLayer = '*', DenseLayer = '-', ExpertLayer = 'E' };

struct Hybrid {
  ModelShape shape;
  std::string kinds; ///< One a layer.
  int64_t heads = 0, kvHeads = 0, headWidth = 0, intermediate = 0;
  double epsilon = 0;
  MambaShape mamba;
  Mixture mixture;
  bool tied = false;

  bool has(Kind kind) const { return kinds.find(kind) != std::string::npos; }
};

/// What all of the family's experts have.
void fixMixture(Mixture &mixture) {
  mixture.isGated = false;
  mixture.hasBias = true;
  mixture.function = ir::Function::relu2;
  mixture.routing.function = ir::GateFunction::sigmoid;
}

void checkHybrid(ConfigReader &config, Hybrid &hybrid, const std::string &kvHeadsKey,
                 const std::string &expertsKey, const std::string &groupsKey) {
  if (!config.status().isOk())
    return;
  if (hybrid.has(AttentionLayer) && (hybrid.heads < 1 || hybrid.heads % hybrid.kvHeads != 0))
    config.fail(kvHeadsKey,
                fmt::format("is {}, which does not divide {} heads", hybrid.kvHeads, hybrid.heads));
  if (hybrid.has(MambaLayer))
    checkMambaShape(config, hybrid.mamba, groupsKey);
  if (!hybrid.has(ExpertLayer))
    return;
  Routing &routing = hybrid.mixture.routing;
  int64_t experts = hybrid.mixture.experts;
  if (experts % routing.groups != 0 || routing.groupsUsed > routing.groups ||
      routing.used > experts / routing.groups * routing.groupsUsed)
    config.fail(expertsKey, fmt::format("is {}, of which {} are used in {} of {} groups", experts,
                                        routing.used, routing.groupsUsed, routing.groups));
  else
    routing.groupTop = std::min<int64_t>(2, experts / routing.groups);
}

//===----------------------------------------------------------------------===//
// GGUF
//===----------------------------------------------------------------------===//

void readGgufExperts(const std::string &prefix, const Checkpoint &checkpoint, ConfigReader &config,
                     Hybrid &hybrid) {
  Mixture &mixture = hybrid.mixture;
  Routing &routing = mixture.routing;
  fixMixture(mixture);
  mixture.experts = config.integer(prefix + "expert_count", {1, 1 << 14});
  routing.used = config.integer(prefix + "expert_used_count", {1, 1 << 14});
  mixture.inner = config.integer(prefix + "expert_feed_forward_length", widthRange);
  int64_t shared = config.optionalInteger(prefix + "expert_shared_count", {0, 64}).value_or(1);
  mixture.sharedInner =
      config.optionalInteger(prefix + "expert_shared_feed_forward_length", {0, maxWidth})
          .value_or(0) *
      std::max<int64_t>(1, shared);
  routing.groups = config.optionalInteger(prefix + "expert_group_count", {1, 1 << 14}).value_or(1);
  routing.groupsUsed =
      config.optionalInteger(prefix + "expert_group_used_count", {1, 1 << 14}).value_or(1);
  routing.normalise = config.optionalBoolean(prefix + "expert_weights_norm").value_or(false);
  routing.scale = config.optionalNumber(prefix + "expert_weights_scale", {0, 1e6}).value_or(1);
  int64_t gate = config.optionalInteger(prefix + "expert_gating_func", {0, 255}).value_or(2);
  if (gate != 2)
    config.refuse(prefix + "expert_gating_func", std::to_string(gate), "2 (sigmoid)");
  for (const Tensor &tensor : checkpoint.tensors())
    if (tensor.name.ends_with(".ffn_latent_down.weight") && tensor.shape.size() == 2 &&
        tensor.shape[0] <= uint64_t(maxWidth))
      mixture.latent = int64_t(tensor.shape[0]);
}

void readGgufMamba(const std::string &prefix, const Checkpoint &checkpoint, ConfigReader &config,
                   Hybrid &hybrid) {
  MambaShape &mamba = hybrid.mamba;
  int64_t inner = config.integer(prefix + "ssm.inner_size", widthRange);
  mamba.heads = config.integer(prefix + "ssm.time_step_rank", sizeRange);
  mamba.stateWidth = config.integer(prefix + "ssm.state_size", sizeRange);
  mamba.groups = config.integer(prefix + "ssm.group_count", sizeRange);
  mamba.taps = config.integer(prefix + "ssm.conv_kernel", {2, 64});
  mamba.mostDt = std::numeric_limits<double>::infinity();
  if (config.status().isOk() && inner % mamba.heads != 0)
    config.fail(prefix + "ssm.time_step_rank",
                fmt::format("is {}, which does not divide the inner width {}", mamba.heads, inner));
  mamba.headWidth = inner / std::max<int64_t>(1, mamba.heads);
  mamba.hasConvBias = false;
  for (const Tensor &tensor : checkpoint.tensors())
    mamba.hasConvBias |= tensor.name.ends_with(".ssm_conv1d.bias");
}

/// The file states no kinds: two numbers a layer tell them, and a router where experts are.
void readGgufKinds(const std::string &prefix, const Checkpoint &checkpoint, ConfigReader &config,
                   Hybrid &hybrid) {
  auto layers = size_t(hybrid.shape.layers);
  std::vector<int64_t> kvHeads =
      config.integers(prefix + "attention.head_count_kv", layers, {0, 4096});
  std::vector<int64_t> inner =
      config.integers(prefix + "feed_forward_length", layers, {0, maxWidth});
  std::vector<int64_t> heads = config.integers(prefix + "attention.head_count", layers, {0, 4096});
  auto hasRouter = [&](size_t layer) {
    return checkpoint.find(fmt::format("blk.{}.ffn_gate_inp.weight", layer));
  };
  for (size_t i = 0; i < layers; ++i) {
    Kind kind = inner[i] > 0     ? hasRouter(i) ? ExpertLayer : DenseLayer
                : kvHeads[i] > 0 ? AttentionLayer
                                 : MambaLayer;
    hybrid.kinds += kind;
    int64_t &one = kind == AttentionLayer ? hybrid.kvHeads : hybrid.intermediate;
    int64_t found = kind == AttentionLayer ? kvHeads[i] : inner[i];
    if (kind == MambaLayer || kind == ExpertLayer)
      continue;
    if (one != 0 && one != found)
      config.refuse(
          prefix + (kind == AttentionLayer ? "attention.head_count_kv" : "feed_forward_length"),
          fmt::format("{} and {}", one, found), "one size for all layers of a kind");
    one = found;
    if (kind == AttentionLayer)
      hybrid.heads = heads[i];
  }
}

Hybrid readGguf(std::string_view name, const Checkpoint &checkpoint, ConfigReader &config) {
  std::string prefix = std::string(name) + ".";
  Hybrid hybrid;
  ModelShape &shape = hybrid.shape;
  shape.family = name;
  shape.hidden = config.integer(prefix + "embedding_length", widthRange);
  shape.layers = config.integer(prefix + "block_count", {1, 4096});
  shape.context = config.integer(prefix + "context_length", {1, maxContext});
  hybrid.epsilon = config.number(prefix + "attention.layer_norm_rms_epsilon", {0, 1});
  readGgufKinds(prefix, checkpoint, config, hybrid);
  hybrid.headWidth = config.optionalInteger(prefix + "attention.key_length", {1, 4096})
                         .value_or(shape.hidden / std::max<int64_t>(1, hybrid.heads));
  auto valueWidth = config.optionalInteger(prefix + "attention.value_length", {1, 4096});
  if (valueWidth && config.status().isOk() && *valueWidth != hybrid.headWidth)
    config.refuse(prefix + "attention.value_length", std::to_string(*valueWidth),
                  fmt::format("the width of a key, {}", hybrid.headWidth));
  if (hybrid.has(MambaLayer))
    readGgufMamba(prefix, checkpoint, config, hybrid);
  if (hybrid.has(ExpertLayer))
    readGgufExperts(prefix, checkpoint, config, hybrid);
  const Tensor *embedding = checkpoint.find("token_embd.weight");
  int64_t rows = embedding && embedding->shape.size() == 2 && embedding->shape[0] < (1u << 24)
                     ? int64_t(embedding->shape[0])
                     : 1;
  shape.vocabulary = config.optionalInteger(prefix + "vocab_size", {1, 1 << 24}).value_or(rows);
  hybrid.tied = !checkpoint.find("output.weight");
  checkHybrid(config, hybrid, prefix + "attention.head_count_kv", prefix + "expert_count",
              prefix + "ssm.group_count");
  // Nothing rotates, whatever a file says of rope; the layers that predict further tokens are left
  // out.
  for (const char *key :
       {"rope.dimension_count", "rope.freq_base", "rope.scaling.type", "rope.scaling.finetuned",
        "attention.layer_norm_epsilon", "nextn_predict_layers"})
    config.ignore({prefix + key});
  return hybrid;
}

//===----------------------------------------------------------------------===//
// Hugging Face
//===----------------------------------------------------------------------===//

/// From either spelling, which agree where both are there.
void readKinds(ConfigReader &config, Hybrid &hybrid) {
  std::string pattern = config.optionalString("hybrid_override_pattern").value_or("");
  std::string listed;
  for (const std::string &name : config.strings("layers_block_type")) {
    if (name == "mamba" || name == "linear_attention")
      listed += MambaLayer;
    else if (name == "attention" || name == "full_attention")
      listed += AttentionLayer;
    else if (name == "mlp")
      listed += DenseLayer;
    else if (name == "moe")
      listed += ExpertLayer;
    else
      config.refuse("layers_block_type", name,
                    "mamba, linear_attention, attention, "
                    "full_attention, mlp, moe");
  }
  for (char kind : pattern)
    if (std::string_view("M*-E").find(kind) == std::string_view::npos)
      config.refuse("hybrid_override_pattern", std::string_view(&kind, 1), "M, *, -, E");
  if (!pattern.empty() && !listed.empty() && pattern != listed)
    config.fail("layers_block_type", "and 'hybrid_override_pattern' say different things");
  hybrid.kinds = pattern.empty() ? listed : pattern;
  if (hybrid.kinds.empty())
    config.fail("hybrid_override_pattern",
                "is absent, and so is 'layers_block_type': which mixer a layer has is unknown");
  auto layers = config.optionalInteger("num_hidden_layers", {1, 4096});
  hybrid.shape.layers = int64_t(hybrid.kinds.size());
  if (config.status().isOk() && (layers.value_or(hybrid.shape.layers) != hybrid.shape.layers))
    config.fail("num_hidden_layers",
                fmt::format("is {}, but {} layers have a mixer", *layers, hybrid.shape.layers));
}

/// One key under one of two names.
int64_t eitherInteger(ConfigReader &config, const char *name, const char *other,
                      IntegerRange range) {
  return config.integer(config.has(name) || !config.has(other) ? name : other, range);
}

void readExperts(ConfigReader &config, Hybrid &hybrid) {
  Mixture &mixture = hybrid.mixture;
  Routing &routing = mixture.routing;
  fixMixture(mixture);
  mixture.experts = config.integer("n_routed_experts", {1, 1 << 14});
  routing.used = config.integer("num_experts_per_tok", {1, 1 << 14});
  mixture.inner = config.integer("moe_intermediate_size", widthRange);
  mixture.latent = config.optionalInteger("moe_latent_size", widthRange).value_or(0);
  int64_t shared = config.optionalInteger("n_shared_experts", {0, 64}).value_or(1);
  if (shared > 0)
    mixture.sharedInner =
        shared * config.integer("moe_shared_expert_intermediate_size", widthRange);
  routing.groups = config.optionalInteger("n_group", {1, 1 << 14}).value_or(1);
  routing.groupsUsed = config.optionalInteger("topk_group", {1, 1 << 14}).value_or(1);
  routing.normalise = config.optionalBoolean("norm_topk_prob").value_or(true);
  routing.scale = config.optionalNumber("routed_scaling_factor", {0, 1e6}).value_or(1);
}

Hybrid readHuggingFace(ConfigReader &config) {
  Hybrid hybrid;
  ModelShape &shape = hybrid.shape;
  shape.family = "nemotron_h";
  readKinds(config, hybrid);
  shape.hidden = config.integer("hidden_size", widthRange);
  shape.vocabulary = config.integer("vocab_size", {1, 1 << 24});
  shape.context = config.integer("max_position_embeddings", {1, maxContext});
  hybrid.epsilon = config.optionalNumber("layer_norm_epsilon", {0, 1})
                       .value_or(config.optionalNumber("rms_norm_eps", {0, 1}).value_or(1e-5));
  hybrid.heads = config.integer("num_attention_heads", {1, 4096});
  hybrid.kvHeads = config.integer("num_key_value_heads", {1, 4096});
  hybrid.headWidth = eitherInteger(config, "head_dim", "attention_head_dim", {1, 4096});
  hybrid.mamba.heads = config.integer("mamba_num_heads", sizeRange);
  hybrid.mamba.headWidth = config.integer("mamba_head_dim", sizeRange);
  hybrid.mamba.stateWidth = config.integer("ssm_state_size", sizeRange);
  hybrid.mamba.groups = eitherInteger(config, "n_groups", "mamba_n_groups", sizeRange);
  hybrid.mamba.taps = eitherInteger(config, "conv_kernel", "mamba_d_conv", {2, 64});
  hybrid.mamba.hasConvBias = config.optionalBoolean("use_conv_bias").value_or(true);
  readTimeStepLimit(config, hybrid.mamba);
  if (hybrid.has(DenseLayer))
    hybrid.intermediate = config.integer("intermediate_size", widthRange);
  if (hybrid.has(ExpertLayer))
    readExperts(config, hybrid);
  hybrid.tied = config.optionalBoolean("tie_word_embeddings").value_or(false);
  for (auto [key, known] : {std::pair("mamba_hidden_act", "silu"), {"mlp_hidden_act", "relu2"}})
    if (std::string found = config.optionalString(key).value_or(known); found != known)
      config.refuse(key, found, known);
  for (const char *key : {"mamba_proj_bias", "use_bias", "attention_bias", "mlp_bias"})
    if (config.optionalBoolean(key).value_or(false))
      config.refuse(key, "true", "false");
  if (config.has("sliding_window"))
    config.refuse("sliding_window", "a number", "null");
  checkHybrid(config, hybrid, "num_key_value_heads", "n_routed_experts", "n_groups");
  // Of training; of how other engines run the model and what they keep in which type; of layer
  // kinds that this model lacks; of the layers that predict further tokens, which are left out.
  // Nothing rotates, and the inner width is heads times head width, whatever `expand` says.
  config.ignore({"attention_dropout",
                 "hidden_dropout",
                 "initializer_range",
                 "rescale_prenorm_residual",
                 "time_step_min",
                 "time_step_max",
                 "time_step_floor",
                 "chunk_size",
                 "mamba_chunk_size",
                 "mamba_ssm_cache_dtype",
                 "residual_in_fp32",
                 "use_cache",
                 "use_mamba_kernels",
                 "num_logits_to_keep",
                 "moe_shared_expert_overlap",
                 "expand",
                 "rope_theta",
                 "partial_rotary_factor",
                 "num_nextn_predict_layers",
                 "mtp_hybrid_override_pattern",
                 "mtp_layers_block_type"});
  if (hybrid.mixture.sharedInner == 0)
    config.ignore({"moe_shared_expert_intermediate_size"});
  if (!hybrid.has(DenseLayer))
    config.ignore({"intermediate_size"});
  if (!hybrid.has(ExpertLayer))
    config.ignore({"n_routed_experts", "num_experts_per_tok", "moe_intermediate_size",
                   "moe_latent_size", "n_shared_experts", "moe_shared_expert_intermediate_size",
                   "n_group", "topk_group", "norm_topk_prob", "routed_scaling_factor"});
  return hybrid;
}

//===----------------------------------------------------------------------===//
// The graph
//===----------------------------------------------------------------------===//

class HybridBuilder {
public:
  HybridBuilder(Hybrid &hybrid, bool isGguf, ModelBuilder &model)
      : hybrid_(hybrid), gguf_(isGguf), model_(model) {
    hybrid.mamba.epsilon = hybrid.epsilon;
    hybrid.mamba.normGroups = hybrid.mamba.groups;
    root_ = model.stores("model.embeddings.weight") ? "model." : "backbone.";
  }

  void build() {
    const ModelShape &shape = hybrid_.shape;
    declareStates();
    Weight embedding =
        model_.matrix("embedding", gguf_ ? "token_embd.weight" : root_ + "embeddings.weight",
                      shape.vocabulary, shape.hidden, embeddingUnit);
    if (hybrid_.has(ExpertLayer))
      slots_ = model_.identity("expert_slot", hybrid_.mixture.experts);
    model_.embedding([&](LayerBuilder &ops) { return ops.embed(embedding, "hidden"); });
    for (int64_t i = 0; i < shape.layers; ++i)
      buildLayer(i);
    model_.head(root_ + "norm_f.weight", hybrid_.epsilon, hybrid_.tied ? embedding : Weight());
    model_.skipTensors(gguf_ ? fmt::format("blk.{}.", shape.layers) : "mtp.",
                       "layers that predict further tokens have no definition here");
  }

private:
  void declareStates() {
    std::vector<int64_t> attention, mamba;
    for (int64_t i = 0; i < hybrid_.shape.layers; ++i)
      if (hybrid_.kinds[size_t(i)] == AttentionLayer)
        attention.push_back(i);
      else if (hybrid_.kinds[size_t(i)] == MambaLayer)
        mamba.push_back(i);
    int64_t width = hybrid_.kvHeads * hybrid_.headWidth;
    if (!attention.empty())
      kv_ = model_.attentionState("kv", 0, width, width, attention);
    if (!mamba.empty())
      recurrent_ = mambaState(model_, hybrid_.mamba, mamba);
  }

  std::string prefix(int64_t i) const {
    return gguf_ ? fmt::format("blk.{}.", i) : fmt::format("{}layers.{}.mixer.", root_, i);
  }

  Weight matrix(int64_t i, const char *symbol, const char *gguf, const char *huggingFace,
                int64_t rows, int64_t columns) {
    return model_.matrix(fmt::format("l{}.{}", i, symbol),
                         fmt::format("{}{}.weight", prefix(i), gguf_ ? gguf : huggingFace), rows,
                         columns, layerUnit(i));
  }

  using Mixer = std::function<mlir::Value(LayerBuilder &, mlir::Value)>;

  Mixer declareAttention(int64_t i) {
    int64_t hidden = hybrid_.shape.hidden, heads = hybrid_.heads, kvHeads = hybrid_.kvHeads;
    int64_t qWidth = heads * hybrid_.headWidth, kvWidth = kvHeads * hybrid_.headWidth;
    Weight wq = matrix(i, "q", "attn_q", "q_proj", qWidth, hidden);
    Weight wk = matrix(i, "k", "attn_k", "k_proj", kvWidth, hidden);
    Weight wv = matrix(i, "v", "attn_v", "v_proj", kvWidth, hidden);
    Weight wo = matrix(i, "output", "attn_output", "o_proj", hidden, qWidth);
    double scale = 1.0 / std::sqrt(double(hybrid_.headWidth));
    return [=, this](LayerBuilder &ops, mlir::Value n) {
      ops.kvWrite(ops.linear(n, wk, {}, "key"), ops.linear(n, wv, {}, "value"), kv_, i);
      mlir::Value a = ops.attention(ops.linear(n, wq, {}, "query"), kv_, i, heads, kvHeads, scale,
                                    qWidth, "attention");
      return ops.linear(a, wo, {}, "hidden");
    };
  }

  Mixer declareDense(int64_t i) {
    int64_t hidden = hybrid_.shape.hidden, inner = hybrid_.intermediate;
    Weight up = matrix(i, "up", "ffn_up", "up_proj", inner, hidden);
    Weight down = matrix(i, "down", "ffn_down", "down_proj", hidden, inner);
    return [=](LayerBuilder &ops, mlir::Value n) {
      mlir::Value m = ops.activation(ir::Function::relu2, ops.linear(n, up, {}, "intermediate"));
      return ops.linear(m, down, {}, "hidden");
    };
  }

  Mixer declareMixer(int64_t i) {
    int64_t hidden = hybrid_.shape.hidden;
    switch (hybrid_.kinds[size_t(i)]) {
    case AttentionLayer:
      return declareAttention(i);
    case DenseLayer:
      return declareDense(i);
    case ExpertLayer: {
      MixtureOfExperts experts(model_, hybrid_.mixture, {gguf_, prefix(i), "shared_experts"}, i,
                               hidden, slots_);
      return [experts](LayerBuilder &ops, mlir::Value n) { return experts.build(ops, n); };
    }
    default: {
      Mamba2Mixer mixer(model_, hybrid_.mamba, gguf_, prefix(i), i, hidden);
      return [mixer, this](LayerBuilder &ops, mlir::Value n) {
        return mixer.build(ops, n, recurrent_);
      };
    }
    }
  }

  void buildLayer(int64_t i) {
    std::string tensor =
        gguf_ ? prefix(i) + "attn_norm.weight" : fmt::format("{}layers.{}.norm.weight", root_, i);
    Weight norm =
        model_.vector(fmt::format("l{}.norm", i), tensor, hybrid_.shape.hidden, layerUnit(i));
    Mixer mixer = declareMixer(i);
    model_.decoder(i, [&](LayerBuilder &ops, mlir::Value x) {
      return ops.add(x, mixer(ops, ops.rmsNorm(x, norm, hybrid_.epsilon)));
    });
  }

  const Hybrid &hybrid_;
  bool gguf_;
  ModelBuilder &model_;
  std::string root_;
  AttentionState kv_;
  SlotState recurrent_;
  Weight slots_;
};

class NemotronH final : public Family {
public:
  std::vector<std::string_view> names(CheckpointFormat format) const override {
    if (format == CheckpointFormat::Gguf)
      return {"nemotron_h", "nemotron_h_moe"};
    return {"nemotron_h"};
  }

  Status build(std::string_view name, const Checkpoint &checkpoint, ConfigReader &config,
               ModelBuilder &builder) const override {
    bool isGguf = checkpoint.format() == CheckpointFormat::Gguf;
    Hybrid hybrid = isGguf ? readGguf(name, checkpoint, config) : readHuggingFace(config);
    STRATA_RETURN_IF_ERROR(config.finish());
    STRATA_RETURN_IF_ERROR(builder.begin(hybrid.shape));
    HybridBuilder(hybrid, isGguf, builder).build();
    return Status::ok();
  }
};

const NemotronH nemotronH{};
const FamilyRegistration registration(nemotronH);

} // namespace
} // namespace strata
