// The decoder of llama, mistral, smollm2, qwen2 and qwen3, dense or with experts: one graph with a
// few switches.
//
//   x = E[id]
//   a layer: n = norm(x); q, k, v = Wq n, Wk n, Wv n (+ biases); q, k = per-head norms (qwen3);
//            rope on q and k; x = x + Wo attention(q, k, v); m = norm(x);
//            x = x + Wdown (silu(Wgate m) * Wup m), or x + experts(m) (MixtureOfExperts.h)
//   logits = Whead norm(x)
//
// GGUF files of architecture `llama` hold the rows of q and k so reordered that neighbouring
// elements rotate together; everywhere else an element rotates with the one half a head away.
#include "models/Family.h"
#include "models/MixtureOfExperts.h"

#include <cmath>

namespace strata {
namespace {

constexpr int64_t maxWidth = int64_t{1} << 20;
constexpr int64_t maxContext = int64_t{1} << 30;
constexpr IntegerRange layerRange{1, 4096};
constexpr IntegerRange headRange{1, 4096};
constexpr IntegerRange headWidthRange{2, 4096};
constexpr IntegerRange vocabularyRange{1, int64_t{1} << 24};
constexpr IntegerRange expertRange{1, 1 << 14};
constexpr NumberRange epsilonRange{0, 1};

enum class Bias { Absent, Present, IfStored };

/// What the configuration says.
struct Decoder {
  ModelShape shape;
  int64_t heads = 0, kvHeads = 0, headWidth = 0, rotaryWidth = 0, intermediate = 0;
  double epsilon = 0;
  RopeParameters rope;
  ir::RopePairs pairs = ir::RopePairs::half;
  ir::Function activation = ir::Function::silu;
  Bias qkvBias = Bias::Absent, outputBias = Bias::Absent, mlpBias = Bias::Absent;
  bool headNorms = false;
  bool tied = false;
  std::vector<int64_t> windows; ///< By layer; 0: the whole context.
  Mixture mixture;
  std::vector<bool> sparse; ///< By layer: whether it has experts; empty: none has.

  bool isSparse(int64_t layer) const { return !sparse.empty() && sparse[size_t(layer)]; }
};

/// A layer's tensors: GGUF's name after `blk.N.`, Hugging Face's after `model.layers.N.`.
struct TensorName {
  const char *gguf, *huggingFace;
};
constexpr TensorName attentionNorm{"attn_norm", "input_layernorm"};
constexpr TensorName qName{"attn_q", "self_attn.q_proj"};
constexpr TensorName kName{"attn_k", "self_attn.k_proj"};
constexpr TensorName vName{"attn_v", "self_attn.v_proj"};
constexpr TensorName qNorm{"attn_q_norm", "self_attn.q_norm"};
constexpr TensorName kNorm{"attn_k_norm", "self_attn.k_norm"};
constexpr TensorName outputName{"attn_output", "self_attn.o_proj"};
constexpr TensorName mlpNorm{"ffn_norm", "post_attention_layernorm"};
constexpr TensorName gateName{"ffn_gate", "mlp.gate_proj"};
constexpr TensorName upName{"ffn_up", "mlp.up_proj"};
constexpr TensorName downName{"ffn_down", "mlp.down_proj"};
constexpr const char *ropeDivisors = "rope_freqs.weight";

/// Checks what relates several keys. The names are those of the keys, for messages.
void checkHeads(ConfigReader &config, Decoder &decoder, std::optional<int64_t> headWidth,
                const std::string &headsKey, const std::string &kvHeadsKey,
                const std::string &widthKey) {
  int64_t hidden = decoder.shape.hidden, heads = decoder.heads;
  if (!config.status().isOk())
    return;
  if (!headWidth && hidden % heads != 0)
    config.fail(headsKey, fmt::format("is {}, which does not divide the width {}", heads, hidden));
  if (heads % decoder.kvHeads != 0)
    config.fail(kvHeadsKey, fmt::format("is {}, which does not divide the {} heads of '{}'",
                                        decoder.kvHeads, heads, headsKey));
  decoder.headWidth = headWidth.value_or(hidden / heads);
  if (decoder.headWidth % 2 != 0)
    config.fail(headWidth ? widthKey : headsKey,
                fmt::format("makes heads of {} elements, which do not pair up to be rotated",
                            decoder.headWidth));
}

/// What the two model types with experts fix: GGUF files do not state it.
void fixMixture(std::string_view name, Decoder &decoder) {
  bool isQwen2 = name.starts_with("qwen2");
  decoder.mixture.hasSharedGate = isQwen2;
  decoder.mixture.routing.function = ir::GateFunction::softmax;
  decoder.mixture.routing.normalise = !isQwen2;
}

void checkMixture(ConfigReader &config, const Mixture &mixture, const std::string &usedKey) {
  if (config.status().isOk() && mixture.routing.used > mixture.experts)
    config.fail(usedKey, fmt::format("is {}, more than the {} experts", mixture.routing.used,
                                     mixture.experts));
}

//===----------------------------------------------------------------------===//
// GGUF
//===----------------------------------------------------------------------===//

void readGgufMixture(std::string_view name, ConfigReader &config, const std::string &prefix,
                     Decoder &decoder) {
  Mixture &mixture = decoder.mixture;
  fixMixture(name, decoder);
  mixture.experts = config.integer(prefix + "expert_count", expertRange);
  mixture.routing.used = config.integer(prefix + "expert_used_count", expertRange);
  mixture.inner = config.integer(prefix + "expert_feed_forward_length", {1, maxWidth});
  if (mixture.hasSharedGate)
    mixture.sharedInner =
        config.integer(prefix + "expert_shared_feed_forward_length", {1, maxWidth});
  checkMixture(config, mixture, prefix + "expert_used_count");
  decoder.sparse.assign(size_t(decoder.shape.layers), true);
}

Decoder readGguf(std::string_view name, const Checkpoint &checkpoint, ConfigReader &config) {
  std::string prefix = std::string(name) + ".", attention = prefix + "attention.";
  Decoder decoder;
  ModelShape &shape = decoder.shape;
  shape.family = name;
  shape.hidden = config.integer(prefix + "embedding_length", {1, maxWidth});
  shape.layers = config.integer(prefix + "block_count", layerRange);
  shape.context = config.integer(prefix + "context_length", {1, maxContext});
  decoder.intermediate = config.integer(prefix + "feed_forward_length", {1, maxWidth});
  decoder.heads = config.integer(attention + "head_count", headRange);
  decoder.kvHeads =
      config.optionalInteger(attention + "head_count_kv", headRange).value_or(decoder.heads);
  decoder.epsilon = config.number(attention + "layer_norm_rms_epsilon", epsilonRange);
  auto keyWidth = config.optionalInteger(attention + "key_length", headWidthRange);
  auto valueWidth = config.optionalInteger(attention + "value_length", headWidthRange);
  checkHeads(config, decoder, keyWidth, attention + "head_count", attention + "head_count_kv",
             attention + "key_length");
  if (valueWidth && config.status().isOk() && *valueWidth != decoder.headWidth)
    config.refuse(attention + "value_length", std::to_string(*valueWidth),
                  fmt::format("the width of a key, {}", decoder.headWidth));

  decoder.rope = readGgufRope(config, prefix, shape.context);
  decoder.pairs = name == "llama" ? ir::RopePairs::interleaved : ir::RopePairs::half;
  IntegerRange rotaryRange{2, std::max<int64_t>(2, decoder.headWidth)};
  decoder.rotaryWidth = config.optionalInteger(prefix + "rope.dimension_count", rotaryRange)
                            .value_or(decoder.headWidth);
  if (decoder.rotaryWidth % 2 != 0)
    config.fail(prefix + "rope.dimension_count", "is odd; elements rotate in pairs");
  if (checkpoint.find(ropeDivisors) && decoder.rope.scaling != "none")
    config.refuse(prefix + "rope.scaling.type", decoder.rope.scaling,
                  fmt::format("none where tensor '{}' scales the frequencies", ropeDivisors));

  const Tensor *embedding = checkpoint.find("token_embd.weight");
  int64_t rows = embedding && embedding->shape.size() == 2 &&
                         embedding->shape[0] <= uint64_t(vocabularyRange.most)
                     ? int64_t(embedding->shape[0])
                     : vocabularyRange.least;
  shape.vocabulary = config.optionalInteger(prefix + "vocab_size", vocabularyRange).value_or(rows);
  // A file says neither whether projections have biases nor whether the head is tied.
  decoder.qkvBias = name.starts_with("qwen2") ? Bias::Present : Bias::IfStored;
  decoder.outputBias = decoder.mlpBias = Bias::IfStored;
  decoder.headNorms = name.starts_with("qwen3");
  decoder.tied = !checkpoint.find("output.weight");
  if (name.ends_with("moe"))
    readGgufMixture(name, config, prefix, decoder);
  decoder.windows.assign(size_t(shape.layers), 0);
  return decoder;
}

//===----------------------------------------------------------------------===//
// Hugging Face
//===----------------------------------------------------------------------===//

ir::Function readActivation(ConfigReader &config) {
  std::string name = config.string("hidden_act");
  if (name != "silu" && name != "swish" && config.status().isOk())
    config.refuse("hidden_act", name, "silu");
  return ir::Function::silu;
}

/// qwen2 and qwen3: a window where `use_sliding_window` is set, in the layers that `layer_types`
/// says, or from layer `max_window_layers` on.
std::vector<int64_t> readQwenWindows(ConfigReader &config, int64_t layers) {
  constexpr const char *sliding = "sliding_attention", *full = "full_attention";
  bool used = config.optionalBoolean("use_sliding_window").value_or(false);
  auto window = config.optionalInteger("sliding_window", {1, maxContext});
  int64_t first = config.optionalInteger("max_window_layers", {0, maxContext}).value_or(28);
  std::vector<std::string> kinds = config.strings("layer_types");
  if (used && !window)
    config.fail("sliding_window", "is absent, but 'use_sliding_window' is set");
  if (!kinds.empty() && int64_t(kinds.size()) != layers)
    config.fail("layer_types", fmt::format("lists {} layers of {}", kinds.size(), layers));
  std::vector<int64_t> windows(static_cast<size_t>(layers), 0);
  if (!config.status().isOk())
    return windows;
  for (size_t i = 0; i < windows.size(); ++i) {
    std::string kind = !kinds.empty() ? kinds[i] : used && int64_t(i) >= first ? sliding : full;
    if (kind != sliding && kind != full)
      config.refuse("layer_types", kind, fmt::format("{}, {}", full, sliding));
    else if (kind == sliding && !used)
      config.fail("layer_types", "names sliding_attention, but 'use_sliding_window' is not set");
    else if (kind == sliding)
      windows[i] = *window;
  }
  return windows;
}

/// What the model types differ in.
void readSwitches(std::string_view name, ConfigReader &config, Decoder &decoder) {
  decoder.windows.assign(size_t(decoder.shape.layers), 0);
  auto biasIf = [&](const char *key) {
    return config.optionalBoolean(key).value_or(false) ? Bias::Present : Bias::Absent;
  };
  if (name == "llama") {
    decoder.qkvBias = decoder.outputBias = biasIf("attention_bias");
    decoder.mlpBias = biasIf("mlp_bias");
  } else if (name == "mistral") {
    // Where the key is absent, and not null, the window is that of the first release.
    bool stated = config.states("sliding_window");
    auto window = config.optionalInteger("sliding_window", {1, maxContext});
    decoder.windows.assign(decoder.windows.size(), stated ? window.value_or(0) : 4096);
  } else if (name.starts_with("qwen2")) {
    // Its q, k and v always have biases, whatever `attention_bias` says.
    config.ignore({"attention_bias"});
    decoder.qkvBias = Bias::Present;
    decoder.windows = readQwenWindows(config, decoder.shape.layers);
  } else {
    decoder.qkvBias = decoder.outputBias = biasIf("attention_bias");
    decoder.headNorms = true;
    if (!config.optionalBoolean("qk_norm").value_or(true))
      config.refuse("qk_norm", "false", "true");
    decoder.windows = readQwenWindows(config, decoder.shape.layers);
  }
}

void readHuggingFaceMixture(std::string_view name, ConfigReader &config, Decoder &decoder) {
  Mixture &mixture = decoder.mixture;
  fixMixture(name, decoder);
  // transformers 5 writes the name that other families have.
  mixture.experts = config.integer(
      config.has("num_local_experts") ? "num_local_experts" : "num_experts", expertRange);
  mixture.routing.used = config.integer("num_experts_per_tok", expertRange);
  mixture.inner = config.integer("moe_intermediate_size", {1, maxWidth});
  mixture.routing.normalise = config.optionalBoolean("norm_topk_prob").value_or(false);
  if (mixture.hasSharedGate)
    mixture.sharedInner = config.integer("shared_expert_intermediate_size", {1, maxWidth});
  checkMixture(config, mixture, "num_experts_per_tok");
  int64_t step = config.optionalInteger("decoder_sparse_step", {1, 4096}).value_or(1);
  decoder.sparse.assign(size_t(decoder.shape.layers), false);
  for (int64_t i = 0; i < decoder.shape.layers; ++i)
    decoder.sparse[size_t(i)] = (i + 1) % step == 0;
  for (double dense : config.numbers("mlp_only_layers"))
    if (dense >= 0 && dense < double(decoder.shape.layers))
      decoder.sparse[size_t(dense)] = false;
  // Of training.
  config.ignore({"router_aux_loss_coef", "output_router_logits"});
}

Decoder readHuggingFace(std::string_view name, const Checkpoint &checkpoint, ConfigReader &config) {
  Decoder decoder;
  ModelShape &shape = decoder.shape;
  shape.family = name;
  shape.hidden = config.integer("hidden_size", {1, maxWidth});
  shape.layers = config.integer("num_hidden_layers", layerRange);
  shape.context = config.integer("max_position_embeddings", {1, maxContext});
  shape.vocabulary = config.integer("vocab_size", vocabularyRange);
  decoder.intermediate = config.integer("intermediate_size", {1, maxWidth});
  decoder.heads = config.integer("num_attention_heads", headRange);
  decoder.kvHeads =
      config.optionalInteger("num_key_value_heads", headRange).value_or(decoder.heads);
  decoder.epsilon = config.number("rms_norm_eps", epsilonRange);
  auto headWidth = config.optionalInteger("head_dim", headWidthRange);
  if (!headWidth && name.starts_with("qwen3"))
    headWidth = 128;
  checkHeads(config, decoder, headWidth, "num_attention_heads", "num_key_value_heads", "head_dim");
  decoder.rotaryWidth = decoder.headWidth;
  decoder.rope = readHuggingFaceRope(config, shape.context);
  decoder.activation = config.has("hidden_act") ? readActivation(config) : ir::Function::silu;
  // Where the configuration is silent, a checkpoint with weights and no head is tied.
  decoder.tied = config.optionalBoolean("tie_word_embeddings")
                     .value_or(checkpoint.format() == CheckpointFormat::HuggingFace &&
                               !checkpoint.find("lm_head.weight"));
  readSwitches(name, config, decoder);
  if (name.ends_with("moe"))
    readHuggingFaceMixture(name, config, decoder);
  // Of training, of the cache of other engines, and of how a weight was once cut into parts.
  config.ignore(
      {"attention_dropout", "initializer_range", "use_cache", "pretraining_tp", "is_llama_config"});
  return decoder;
}

//===----------------------------------------------------------------------===//
// The graph
//===----------------------------------------------------------------------===//

class DecoderBuilder {
public:
  DecoderBuilder(const Decoder &decoder, CheckpointFormat format, ModelBuilder &model)
      : decoder_(decoder), gguf_(format == CheckpointFormat::Gguf), model_(model) {}

  void build() {
    declareStates();
    const ModelShape &shape = decoder_.shape;
    Weight embedding =
        model_.matrix("embedding", gguf_ ? "token_embd.weight" : "model.embed_tokens.weight",
                      shape.vocabulary, shape.hidden, embeddingUnit);
    bool divided = gguf_ && model_.stores(ropeDivisors);
    frequencies_ = model_.ropeFrequencies("rope", decoder_.rope, decoder_.rotaryWidth,
                                          divided ? ropeDivisors : "");
    if (decoder_.mixture.experts)
      expertSlots_ = model_.identity("expert_slot", decoder_.mixture.experts);
    model_.embedding([&](LayerBuilder &ops) { return ops.embed(embedding, "hidden"); });
    for (int64_t i = 0; i < shape.layers; ++i)
      buildLayer(i);
    model_.head("model.norm.weight", decoder_.epsilon, decoder_.tied ? embedding : Weight());
    ignoreSpareTensors();
  }

private:
  void declareStates() {
    int64_t width = decoder_.kvHeads * decoder_.headWidth, window = 0;
    std::vector<int64_t> whole, windowed;
    for (int64_t i = 0; i < decoder_.shape.layers; ++i) {
      window = std::max(window, decoder_.windows[size_t(i)]);
      (decoder_.windows[size_t(i)] ? windowed : whole).push_back(i);
    }
    if (!whole.empty())
      wholeState_ = model_.attentionState("kv", 0, width, width, whole);
    if (!windowed.empty())
      windowState_ = model_.attentionState("kv_window", window, width, width, windowed);
  }

  std::string tensor(int64_t layer, TensorName name, const char *part) const {
    return gguf_ ? fmt::format("blk.{}.{}.{}", layer, name.gguf, part)
                 : fmt::format("model.layers.{}.{}.{}", layer, name.huggingFace, part);
  }

  Weight norm(int64_t layer, const char *symbol, TensorName name, int64_t width) {
    return model_.vector(fmt::format("l{}.{}", layer, symbol), tensor(layer, name, "weight"), width,
                         layerUnit(layer));
  }

  struct Projection {
    Weight weight, bias;
  };
  Projection projection(int64_t layer, const char *symbol, TensorName name, int64_t rows,
                        int64_t columns, Bias bias) {
    std::string unit = layerUnit(layer), biasTensor = tensor(layer, name, "bias");
    Projection result;
    result.weight = model_.matrix(fmt::format("l{}.{}", layer, symbol),
                                  tensor(layer, name, "weight"), rows, columns, unit);
    if (bias == Bias::Present || (bias == Bias::IfStored && model_.stores(biasTensor)))
      result.bias =
          model_.vector(fmt::format("l{}.{}_bias", layer, symbol), biasTensor, rows, unit);
    return result;
  }

  /// Declares a layer's dense or sparse feed-forward part and returns what builds it.
  std::function<mlir::Value(LayerBuilder &, mlir::Value)> declareFeedForward(int64_t i) {
    int64_t hidden = decoder_.shape.hidden, inner = decoder_.intermediate;
    if (decoder_.isSparse(i)) {
      MixtureNames names{gguf_,
                         gguf_ ? fmt::format("blk.{}.", i) : fmt::format("model.layers.{}.mlp.", i),
                         "shared_expert"};
      MixtureOfExperts mixture(model_, decoder_.mixture, names, i, hidden, expertSlots_);
      return [mixture](LayerBuilder &ops, mlir::Value m) { return mixture.build(ops, m); };
    }
    Projection wGate = projection(i, "gate", gateName, inner, hidden, decoder_.mlpBias);
    Projection wUp = projection(i, "up", upName, inner, hidden, decoder_.mlpBias);
    Projection wDown = projection(i, "down", downName, hidden, inner, decoder_.mlpBias);
    return [=, activation = decoder_.activation](LayerBuilder &ops, mlir::Value m) {
      mlir::Value gate = ops.linear(m, wGate.weight, wGate.bias, "intermediate");
      mlir::Value up = ops.linear(m, wUp.weight, wUp.bias, "intermediate");
      return ops.linear(ops.gated(activation, gate, up), wDown.weight, wDown.bias, "hidden");
    };
  }

  void buildLayer(int64_t i) {
    int64_t hidden = decoder_.shape.hidden;
    int64_t heads = decoder_.heads, kvHeads = decoder_.kvHeads, headWidth = decoder_.headWidth;
    int64_t qWidth = heads * headWidth, kvWidth = kvHeads * headWidth;
    Weight attentionNormWeight = norm(i, "attention_norm", attentionNorm, hidden);
    Projection wq = projection(i, "q", qName, qWidth, hidden, decoder_.qkvBias);
    Projection wk = projection(i, "k", kName, kvWidth, hidden, decoder_.qkvBias);
    Projection wv = projection(i, "v", vName, kvWidth, hidden, decoder_.qkvBias);
    Weight qNormWeight, kNormWeight;
    if (decoder_.headNorms) {
      qNormWeight = norm(i, "q_norm", qNorm, headWidth);
      kNormWeight = norm(i, "k_norm", kNorm, headWidth);
    }
    Projection wo = projection(i, "output", outputName, hidden, qWidth, decoder_.outputBias);
    Weight mlpNormWeight = norm(i, "ffn_norm", mlpNorm, hidden);
    std::function<mlir::Value(LayerBuilder &, mlir::Value)> feedForward = declareFeedForward(i);

    double epsilon = decoder_.epsilon, magnitude = decoder_.rope.magnitude;
    double scale = 1.0 / std::sqrt(double(headWidth));
    AttentionState state = decoder_.windows[size_t(i)] ? windowState_ : wholeState_;
    model_.decoder(i, [&](LayerBuilder &ops, mlir::Value x) {
      mlir::Value n = ops.rmsNorm(x, attentionNormWeight, epsilon);
      mlir::Value q = ops.linear(n, wq.weight, wq.bias, "query");
      mlir::Value k = ops.linear(n, wk.weight, wk.bias, "key");
      mlir::Value v = ops.linear(n, wv.weight, wv.bias, "value");
      if (decoder_.headNorms) {
        q = ops.rmsNorm(q, qNormWeight, epsilon, heads);
        k = ops.rmsNorm(k, kNormWeight, epsilon, kvHeads);
      }
      q = ops.rope(q, frequencies_, decoder_.pairs, heads, magnitude);
      k = ops.rope(k, frequencies_, decoder_.pairs, kvHeads, magnitude);
      ops.kvWrite(k, v, state, i);
      mlir::Value a = ops.attention(q, state, i, heads, kvHeads, scale, qWidth, "attention");
      x = ops.add(x, ops.linear(a, wo.weight, wo.bias, "hidden"));
      mlir::Value m = ops.rmsNorm(x, mlpNormWeight, epsilon);
      return ops.add(x, feedForward(ops, m));
    });
  }

  /// Old Hugging Face checkpoints store the frequencies, which follow from the configuration.
  void ignoreSpareTensors() {
    if (gguf_)
      return;
    model_.ignoreTensor("model.rotary_emb.inv_freq");
    for (int64_t i = 0; i < decoder_.shape.layers; ++i)
      model_.ignoreTensor(fmt::format("model.layers.{}.self_attn.rotary_emb.inv_freq", i));
  }

  const Decoder &decoder_;
  bool gguf_;
  ModelBuilder &model_;
  AttentionState wholeState_, windowState_;
  Weight frequencies_, expertSlots_;
};

class Llama final : public Family {
public:
  std::vector<std::string_view> names(CheckpointFormat format) const override {
    if (format == CheckpointFormat::Gguf)
      return {"llama", "qwen2", "qwen2moe", "qwen3", "qwen3moe"};
    return {"llama", "mistral", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe"};
  }

  Status build(std::string_view name, const Checkpoint &checkpoint, ConfigReader &config,
               ModelBuilder &builder) const override {
    Decoder decoder = checkpoint.format() == CheckpointFormat::Gguf
                          ? readGguf(name, checkpoint, config)
                          : readHuggingFace(name, checkpoint, config);
    STRATA_RETURN_IF_ERROR(config.finish());
    STRATA_RETURN_IF_ERROR(builder.begin(decoder.shape));
    DecoderBuilder(decoder, checkpoint.format(), builder).build();
    return Status::ok();
  }
};

const Llama llama{};
const FamilyRegistration registration(llama);

} // namespace
} // namespace strata
