// DeepSeek V2 and V3: multi-head latent attention and experts.
//
//   q = Wqb norm(Wqa n), or Wq n: of each head a part [dn] without and a part [dr] with positions
//   c = norm(the first R rows of Wkva n), r = rope(the others): all that is kept of a token
//   q' = [Kb_h^T q_h | rope(q_h)], score = q' . [c | r], o_h = Vb_h (sum p c)    (absorbed form)
//   x = x + Wo o; x = x + mlp(norm(x)) or experts (MixtureOfExperts.h)
#include "models/Family.h"
#include "models/MixtureOfExperts.h"

#include <cmath>

namespace strata {
namespace {

constexpr int64_t maxWidth = int64_t{1} << 20;
constexpr int64_t maxContext = int64_t{1} << 30;
constexpr IntegerRange widthRange{1, maxWidth};
constexpr IntegerRange headWidthRange{1, 4096};
constexpr IntegerRange expertRange{1, 1 << 14};

struct DeepSeek {
  ModelShape shape;
  int64_t heads = 0, intermediate = 0, denseLayers = 0;
  int64_t queryRank = 0; ///< 0: q is projected at once.
  int64_t rank = 0;      ///< Width of what is kept of keys and values.
  int64_t plainWidth = 0, rotaryWidth = 0, valueWidth = 0; ///< Of a head.
  double epsilon = 0;
  RopeParameters rope;
  ir::RopePairs pairs = ir::RopePairs::interleaved;
  Mixture mixture;
  bool tied = false;
};

void checkModel(ConfigReader &config, DeepSeek &model, const std::string &expertsKey,
                const std::string &rotaryKey) {
  if (!config.status().isOk())
    return;
  if (model.rotaryWidth % 2 != 0)
    config.fail(rotaryKey, "is odd; elements rotate in pairs");
  Routing &routing = model.mixture.routing;
  int64_t experts = model.mixture.experts;
  if (experts % routing.groups != 0 || routing.groupsUsed > routing.groups ||
      routing.used > experts / routing.groups * routing.groupsUsed)
    config.fail(expertsKey, fmt::format("is {}, of which {} are used in {} of {} groups", experts,
                                        routing.used, routing.groupsUsed, routing.groups));
  // A group's score is the sum of its two best where a bias steers the choice, else its best.
  else
    routing.groupTop = model.mixture.hasBias ? std::min<int64_t>(2, experts / routing.groups) : 1;
}

//===----------------------------------------------------------------------===//
// GGUF
//===----------------------------------------------------------------------===//

void readGgufExperts(const std::string &prefix, const Checkpoint &checkpoint, ConfigReader &config,
                     DeepSeek &model) {
  Mixture &mixture = model.mixture;
  Routing &routing = mixture.routing;
  model.denseLayers =
      config.optionalInteger(prefix + "leading_dense_block_count", {0, 4096}).value_or(0);
  mixture.experts = config.integer(prefix + "expert_count", expertRange);
  routing.used = config.integer(prefix + "expert_used_count", expertRange);
  mixture.inner = config.integer(prefix + "expert_feed_forward_length", widthRange);
  mixture.sharedInner =
      mixture.inner * config.optionalInteger(prefix + "expert_shared_count", {0, 64}).value_or(0);
  routing.groups = config.optionalInteger(prefix + "expert_group_count", expertRange).value_or(1);
  routing.groupsUsed =
      config.optionalInteger(prefix + "expert_group_used_count", expertRange).value_or(1);
  routing.normalise = config.optionalBoolean(prefix + "expert_weights_norm").value_or(false);
  routing.scale = config.optionalNumber(prefix + "expert_weights_scale", {0, 1e6}).value_or(1);
  int64_t gate = config.optionalInteger(prefix + "expert_gating_func", {0, 255}).value_or(1);
  if (gate != 1 && gate != 2)
    config.refuse(prefix + "expert_gating_func", std::to_string(gate), "1 (softmax), 2 (sigmoid)");
  routing.function = gate == 2 ? ir::GateFunction::sigmoid : ir::GateFunction::softmax;
  for (const Tensor &tensor : checkpoint.tensors())
    mixture.hasBias |= tensor.name.ends_with(".exp_probs_b.bias");
}

DeepSeek readGguf(const Checkpoint &checkpoint, ConfigReader &config) {
  std::string prefix = "deepseek2.", attention = prefix + "attention.";
  DeepSeek model;
  ModelShape &shape = model.shape;
  shape.family = "deepseek";
  shape.hidden = config.integer(prefix + "embedding_length", widthRange);
  shape.layers = config.integer(prefix + "block_count", {1, 4096});
  shape.context = config.integer(prefix + "context_length", {1, maxContext});
  model.heads = config.integer(attention + "head_count", {1, 4096});
  model.intermediate = config.integer(prefix + "feed_forward_length", widthRange);
  model.epsilon = config.number(attention + "layer_norm_rms_epsilon", {0, 1});
  model.queryRank = config.optionalInteger(attention + "q_lora_rank", widthRange).value_or(0);
  model.rank = config.integer(attention + "kv_lora_rank", headWidthRange);
  model.rotaryWidth = config.integer(prefix + "rope.dimension_count", headWidthRange);
  // Files with the halves of kv_b apart say the expanded widths under keys of their own.
  bool isSplit = config.has(attention + "key_length_mla");
  int64_t keyWidth =
      config.integer(attention + (isSplit ? "key_length_mla" : "key_length"), headWidthRange);
  model.valueWidth =
      config.integer(attention + (isSplit ? "value_length_mla" : "value_length"), headWidthRange);
  model.plainWidth = keyWidth - model.rotaryWidth;
  if (config.status().isOk() && model.plainWidth < 1)
    config.fail(prefix + "rope.dimension_count",
                fmt::format("is {} for keys of {}", model.rotaryWidth, keyWidth));
  model.rope = readGgufRope(config, prefix, shape.context);
  double multiplier =
      config.optionalNumber(prefix + "rope.scaling.yarn_log_multiplier", {0, 100}).value_or(0);
  model.rope.magnitude = 1;
  model.rope.sharpness = std::pow(1 + multiplier * std::log(model.rope.factor), 2);
  readGgufExperts(prefix, checkpoint, config, model);
  const Tensor *embedding = checkpoint.find("token_embd.weight");
  int64_t rows = embedding && embedding->shape.size() == 2 && embedding->shape[0] < (1u << 24)
                     ? int64_t(embedding->shape[0])
                     : 1;
  shape.vocabulary = config.optionalInteger(prefix + "vocab_size", {1, 1 << 24}).value_or(rows);
  model.tied = !checkpoint.find("output.weight");
  checkModel(config, model, prefix + "expert_count", prefix + "rope.dimension_count");
  // Of the compressed cache, which follows from the other widths; of layers that are left out.
  config.ignore({"deepseek2.attention.head_count_kv", "deepseek2.attention.key_length",
                 "deepseek2.attention.value_length", "deepseek2.nextn_predict_layers"});
  return model;
}

//===----------------------------------------------------------------------===//
// Hugging Face
//===----------------------------------------------------------------------===//

void readHuggingFaceExperts(bool isV3, ConfigReader &config, DeepSeek &model) {
  Mixture &mixture = model.mixture;
  Routing &routing = mixture.routing;
  int64_t most = model.shape.layers;
  // Defaults are those of transformers' configuration classes.
  model.denseLayers = config.optionalInteger("first_k_dense_replace", {0, 4096})
                          .value_or(std::min<int64_t>(most, isV3 ? 3 : 0));
  mixture.experts = config.integer(
      config.has("num_local_experts") ? "num_local_experts" : "n_routed_experts", expertRange);
  routing.used = config.integer("num_experts_per_tok", expertRange);
  mixture.inner = config.integer("moe_intermediate_size", widthRange);
  mixture.sharedInner =
      mixture.inner * config.optionalInteger("n_shared_experts", {0, 64}).value_or(1);
  mixture.hasBias = isV3;
  std::string gate = config.optionalString("scoring_func").value_or(isV3 ? "sigmoid" : "softmax");
  if (gate != (isV3 ? "sigmoid" : "softmax"))
    config.refuse("scoring_func", gate, isV3 ? "sigmoid" : "softmax");
  routing.function = isV3 ? ir::GateFunction::sigmoid : ir::GateFunction::softmax;
  std::string method = config.optionalString("topk_method").value_or(isV3 ? "noaux_tc" : "greedy");
  bool isGrouped = method == (isV3 ? "noaux_tc" : "group_limited_greedy");
  if (!isGrouped && (isV3 || method != "greedy"))
    config.refuse("topk_method", method, isV3 ? "noaux_tc" : "greedy, group_limited_greedy");
  int64_t groups = config.optionalInteger("n_group", expertRange).value_or(isV3 ? 8 : 1);
  int64_t groupsUsed = config.optionalInteger("topk_group", expertRange).value_or(isV3 ? 4 : 1);
  if (isGrouped)
    routing.groups = groups, routing.groupsUsed = groupsUsed;
  routing.normalise = config.optionalBoolean("norm_topk_prob").value_or(isV3);
  routing.scale = config.optionalNumber("routed_scaling_factor", {0, 1e6}).value_or(isV3 ? 2.5 : 1);
  if (!isV3 && routing.normalise)
    routing.scale = 1; // V2 scales what it does not normalise
  if (int64_t step = config.optionalInteger("moe_layer_freq", {1, 4096}).value_or(1); step != 1)
    config.refuse("moe_layer_freq", std::to_string(step), "1");
}

DeepSeek readHuggingFace(std::string_view name, const Checkpoint &checkpoint,
                         ConfigReader &config) {
  bool isV3 = name == "deepseek_v3";
  DeepSeek model;
  ModelShape &shape = model.shape;
  shape.family = "deepseek";
  shape.hidden = config.integer("hidden_size", widthRange);
  shape.layers = config.integer("num_hidden_layers", {1, 4096});
  shape.context = config.integer("max_position_embeddings", {1, maxContext});
  shape.vocabulary = config.integer("vocab_size", {1, 1 << 24});
  model.heads = config.integer("num_attention_heads", {1, 4096});
  model.intermediate =
      config.optionalInteger("intermediate_size", widthRange).value_or(isV3 ? 18432 : 11008);
  model.epsilon = config.optionalNumber("rms_norm_eps", {0, 1}).value_or(1e-6);
  model.queryRank = config.optionalInteger("q_lora_rank", widthRange).value_or(0);
  model.rank = config.integer("kv_lora_rank", headWidthRange);
  model.plainWidth = config.integer("qk_nope_head_dim", headWidthRange);
  model.rotaryWidth = config.integer("qk_rope_head_dim", headWidthRange);
  model.valueWidth = config.integer("v_head_dim", headWidthRange);
  model.rope = readHuggingFaceRope(config, shape.context);
  if (!config.optionalBoolean("rope_interleave").value_or(true))
    model.pairs = ir::RopePairs::half;
  readHuggingFaceExperts(isV3, config, model);
  std::string activation = config.optionalString("hidden_act").value_or("silu");
  if (activation != "silu")
    config.refuse("hidden_act", activation, "silu");
  for (const char *key : {"attention_bias", "mlp_bias"})
    if (config.optionalBoolean(key).value_or(false))
      config.refuse(key, "true", "false");
  model.tied = config.optionalBoolean("tie_word_embeddings")
                   .value_or(checkpoint.format() == CheckpointFormat::HuggingFace &&
                             !checkpoint.find("lm_head.weight"));
  checkModel(config, model, "n_routed_experts", "qk_rope_head_dim");
  // Widths that follow from others; training; how weights were once cut into parts; the layers that
  // predict further tokens, which are left out.
  config.ignore({"head_dim", "qk_head_dim", "num_key_value_heads", "attention_dropout",
                 "initializer_range", "use_cache", "pretraining_tp", "ep_size", "aux_loss_alpha",
                 "seq_aux", "num_nextn_predict_layers", "output_router_logits",
                 "router_aux_loss_coef"});
  return model;
}

//===----------------------------------------------------------------------===//
// The graph
//===----------------------------------------------------------------------===//

class DeepSeekBuilder {
public:
  DeepSeekBuilder(const DeepSeek &definition, bool isGguf, ModelBuilder &model)
      : definition_(definition), gguf_(isGguf), model_(model) {}

  void build() {
    const ModelShape &shape = definition_.shape;
    std::vector<int64_t> layers(static_cast<size_t>(shape.layers));
    for (int64_t i = 0; i < shape.layers; ++i)
      layers[size_t(i)] = i;
    state_ = model_.attentionState("kv", 0, definition_.rotaryWidth, definition_.rank, layers);
    frequencies_ = model_.ropeFrequencies("rope", definition_.rope, definition_.rotaryWidth);
    Weight embedding =
        model_.matrix("embedding", gguf_ ? "token_embd.weight" : "model.embed_tokens.weight",
                      shape.vocabulary, shape.hidden, embeddingUnit);
    if (definition_.denseLayers < shape.layers)
      slots_ = model_.identity("expert_slot", definition_.mixture.experts);
    model_.embedding([&](LayerBuilder &ops) { return ops.embed(embedding, "hidden"); });
    for (int64_t i = 0; i < shape.layers; ++i)
      buildLayer(i);
    model_.head("model.norm.weight", definition_.epsilon, definition_.tied ? embedding : Weight());
    model_.skipTensors(gguf_ ? fmt::format("blk.{}.", shape.layers)
                             : fmt::format("model.layers.{}.", shape.layers),
                       "layers that predict further tokens have no definition here");
  }

private:
  std::string tensor(int64_t i, const char *gguf, const char *huggingFace) const {
    return gguf_ ? fmt::format("blk.{}.{}.weight", i, gguf)
                 : fmt::format("model.layers.{}.{}.weight", i, huggingFace);
  }
  Weight matrix(int64_t i, const char *symbol, const char *gguf, const char *huggingFace,
                int64_t rows, int64_t columns) {
    return model_.matrix(fmt::format("l{}.{}", i, symbol), tensor(i, gguf, huggingFace), rows,
                         columns, layerUnit(i));
  }
  Weight norm(int64_t i, const char *symbol, const char *gguf, const char *huggingFace,
              int64_t width) {
    return model_.vector(fmt::format("l{}.{}", i, symbol), tensor(i, gguf, huggingFace), width,
                         layerUnit(i));
  }

  /// Some rows of the projection that makes what is kept of a token.
  Weight kept(int64_t i, const char *symbol, int64_t first, int64_t rows) {
    int64_t hidden = definition_.shape.hidden, all = definition_.rank + definition_.rotaryWidth;
    WeightSource source;
    source.tensor = tensor(i, "attn_kv_a_mqa", "self_attn.kv_a_proj_with_mqa");
    source.shape = {all, hidden};
    source.part = {first, all};
    return model_.weight(fmt::format("l{}.{}", i, symbol), source, {rows, hidden}, layerUnit(i));
  }

  /// A head's matrix from the kept values to keys or values; the key's may be stored transposed.
  Weight expanded(int64_t i, const char *symbol, bool isKey, bool isSplit) {
    int64_t heads = definition_.heads, rank = definition_.rank;
    int64_t key = definition_.plainWidth, value = definition_.valueWidth;
    llvm::SmallVector<int64_t, 3> shape = {heads, isKey ? key : value, rank};
    WeightSource source;
    if (isSplit) {
      source.tensor = tensor(i, isKey ? "attn_k_b" : "attn_v_b", "");
      if (isKey)
        shape = {heads, rank, key};
      source.shape.assign(shape.begin(), shape.end());
    } else {
      source.tensor = tensor(i, "attn_kv_b", "self_attn.kv_b_proj");
      source.shape = {heads * (key + value), rank};
      source.part = {isKey ? 0 : key, key + value};
    }
    return model_.weight(fmt::format("l{}.{}", i, symbol), source, shape, layerUnit(i));
  }

  using Part = std::function<mlir::Value(LayerBuilder &, mlir::Value)>;

  Part declareQuery(int64_t i) {
    int64_t hidden = definition_.shape.hidden, rank = definition_.queryRank;
    int64_t width = definition_.heads * (definition_.plainWidth + definition_.rotaryWidth);
    if (rank == 0) {
      Weight q = matrix(i, "q", "attn_q", "self_attn.q_proj", width, hidden);
      return [=](LayerBuilder &ops, mlir::Value n) { return ops.linear(n, q, {}, "query"); };
    }
    Weight down = matrix(i, "q_down", "attn_q_a", "self_attn.q_a_proj", rank, hidden);
    Weight downNorm = norm(i, "q_norm", "attn_q_a_norm", "self_attn.q_a_layernorm", rank);
    Weight up = matrix(i, "q_up", "attn_q_b", "self_attn.q_b_proj", width, rank);
    return [=, epsilon = definition_.epsilon](LayerBuilder &ops, mlir::Value n) {
      mlir::Value d = ops.rmsNorm(ops.linear(n, down, {}, "query_rank"), downNorm, epsilon);
      return ops.linear(d, up, {}, "query");
    };
  }

  Part declareAttention(int64_t i) {
    const DeepSeek &d = definition_;
    Part query = declareQuery(i);
    Weight valueDown = kept(i, "kv_down", 0, d.rank);
    Weight keyDown = kept(i, "key_down", d.rank, d.rotaryWidth);
    Weight keptNorm = norm(i, "kv_norm", "attn_kv_a_norm", "self_attn.kv_a_layernorm", d.rank);
    bool isSplit = gguf_ && model_.stores(tensor(i, "attn_k_b", ""));
    Weight keyUp = expanded(i, "key_up", true, isSplit);
    Weight valueUp = expanded(i, "value_up", false, isSplit);
    Weight output = matrix(i, "output", "attn_output", "self_attn.o_proj", d.shape.hidden,
                           d.heads * d.valueWidth);
    double scale = d.rope.sharpness / std::sqrt(double(d.plainWidth + d.rotaryWidth));
    return [=, this](LayerBuilder &ops, mlir::Value n) {
      const DeepSeek &d = definition_;
      mlir::Value q =
          ops.rope(query(ops, n), frequencies_, d.pairs, d.heads, d.rope.magnitude, d.plainWidth);
      q = ops.headLinear(q, keyUp, !isSplit, d.rotaryWidth, d.heads * (d.rank + d.rotaryWidth),
                         "absorbed_query");
      mlir::Value c = ops.rmsNorm(ops.linear(n, valueDown, {}, "kept"), keptNorm, d.epsilon);
      mlir::Value r = ops.rope(ops.linear(n, keyDown, {}, "kept_key"), frequencies_, d.pairs, 1,
                               d.rope.magnitude);
      ops.kvWrite(r, c, state_, i);
      mlir::Value a =
          ops.latentAttention(q, state_, i, d.heads, scale, d.heads * d.rank, "absorbed_attention");
      mlir::Value o = ops.headLinear(a, valueUp, false, 0, d.heads * d.valueWidth, "attention");
      return ops.linear(o, output, {}, "hidden");
    };
  }

  Part declareFeedForward(int64_t i) {
    int64_t hidden = definition_.shape.hidden, inner = definition_.intermediate;
    if (i >= definition_.denseLayers) {
      MixtureNames names{gguf_,
                         gguf_ ? fmt::format("blk.{}.", i) : fmt::format("model.layers.{}.mlp.", i),
                         "shared_experts"};
      MixtureOfExperts experts(model_, definition_.mixture, names, i, hidden, slots_);
      return [experts](LayerBuilder &ops, mlir::Value m) { return experts.build(ops, m); };
    }
    Weight gate = matrix(i, "gate", "ffn_gate", "mlp.gate_proj", inner, hidden);
    Weight up = matrix(i, "up", "ffn_up", "mlp.up_proj", inner, hidden);
    Weight down = matrix(i, "down", "ffn_down", "mlp.down_proj", hidden, inner);
    return [=](LayerBuilder &ops, mlir::Value m) {
      mlir::Value g = ops.gated(ir::Function::silu, ops.linear(m, gate, {}, "intermediate"),
                                ops.linear(m, up, {}, "intermediate"));
      return ops.linear(g, down, {}, "hidden");
    };
  }

  void buildLayer(int64_t i) {
    int64_t hidden = definition_.shape.hidden;
    double epsilon = definition_.epsilon;
    Weight attentionNorm = norm(i, "attention_norm", "attn_norm", "input_layernorm", hidden);
    Part attention = declareAttention(i);
    Weight mlpNorm = norm(i, "ffn_norm", "ffn_norm", "post_attention_layernorm", hidden);
    Part feedForward = declareFeedForward(i);
    model_.decoder(i, [&](LayerBuilder &ops, mlir::Value x) {
      x = ops.add(x, attention(ops, ops.rmsNorm(x, attentionNorm, epsilon)));
      return ops.add(x, feedForward(ops, ops.rmsNorm(x, mlpNorm, epsilon)));
    });
  }

  const DeepSeek &definition_;
  bool gguf_;
  ModelBuilder &model_;
  AttentionState state_;
  Weight frequencies_, slots_;
};

class DeepSeekFamily final : public Family {
public:
  std::vector<std::string_view> names(CheckpointFormat format) const override {
    if (format == CheckpointFormat::Gguf)
      return {"deepseek2"};
    return {"deepseek_v2", "deepseek_v3"};
  }

  Status build(std::string_view name, const Checkpoint &checkpoint, ConfigReader &config,
               ModelBuilder &builder) const override {
    bool isGguf = checkpoint.format() == CheckpointFormat::Gguf;
    DeepSeek model =
        isGguf ? readGguf(checkpoint, config) : readHuggingFace(name, checkpoint, config);
    STRATA_RETURN_IF_ERROR(config.finish());
    STRATA_RETURN_IF_ERROR(builder.begin(model.shape));
    DeepSeekBuilder(model, isGguf, builder).build();
    return Status::ok();
  }
};

const DeepSeekFamily deepSeek{};
const FamilyRegistration registration(deepSeek);

} // namespace
} // namespace strata
