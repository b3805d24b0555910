// Gemma 3's text decoder.
//
//   x = E[id] sqrt(H)
//   a layer: q, k, v = Wq n, Wk n, Wv n with n = norm(x); q, k = per-head norms; rope;
//            x = x + norm(Wo attention(q, k, v)); m = norm(x);
//            x = x + norm(Wdown (gelu(Wgate m) * Wup m))
//   logits = E norm(x)
//
// Five of six layers see a window and rotate by a base of their own; the others see everything.
// Norms multiply by 1 + w; GGUF files store the sum.
#include "models/Family.h"

#include <cmath>

namespace strata {
namespace {

constexpr int64_t maxWidth = int64_t{1} << 20;
constexpr int64_t maxContext = int64_t{1} << 30;
constexpr IntegerRange headRange{1, 4096};
constexpr int64_t defaultPattern = 6;
constexpr double globalTheta = 1e6, localTheta = 1e4;

struct Gemma {
  ModelShape shape;
  int64_t heads = 0, kvHeads = 0, headWidth = 0, intermediate = 0, window = 0;
  double epsilon = 0, attentionScalar = 0;
  RopeParameters globalRope, localRope;
  std::vector<bool> isLocal;
  bool tied = true;
};

void checkHeads(ConfigReader &config, const Gemma &gemma, const std::string &kvHeadsKey,
                const std::string &widthKey) {
  if (!config.status().isOk())
    return;
  if (gemma.heads % gemma.kvHeads != 0)
    config.fail(kvHeadsKey,
                fmt::format("is {}, which does not divide {} heads", gemma.kvHeads, gemma.heads));
  if (gemma.headWidth % 2 != 0)
    config.fail(widthKey, "is odd; elements of a head rotate in pairs");
}

/// Every `pattern`-th layer is global.
std::vector<bool> localByPattern(int64_t layers, int64_t pattern) {
  std::vector<bool> local;
  for (int64_t i = 0; i < layers; ++i)
    local.push_back(i % pattern != pattern - 1);
  return local;
}

/// A cap of 0 or null is none; any other would change the logits.
void refuseSoftcap(ConfigReader &config, const std::string &key) {
  if (config.optionalNumber(key).value_or(0) != 0)
    config.refuse(key, "a cap", "null");
}

Gemma readGguf(const Checkpoint &checkpoint, ConfigReader &config) {
  std::string prefix = "gemma3.", attention = prefix + "attention.";
  Gemma gemma;
  gemma.shape.family = "gemma3";
  gemma.shape.hidden = config.integer(prefix + "embedding_length", {1, maxWidth});
  gemma.shape.layers = config.integer(prefix + "block_count", {1, 4096});
  gemma.shape.context = config.integer(prefix + "context_length", {1, maxContext});
  gemma.intermediate = config.integer(prefix + "feed_forward_length", {1, maxWidth});
  gemma.heads = config.integer(attention + "head_count", headRange);
  gemma.kvHeads =
      config.optionalInteger(attention + "head_count_kv", headRange).value_or(gemma.heads);
  gemma.headWidth = config.integer(attention + "key_length", {2, 4096});
  auto valueWidth = config.optionalInteger(attention + "value_length", {2, 4096});
  if (valueWidth && *valueWidth != gemma.headWidth)
    config.refuse(attention + "value_length", std::to_string(*valueWidth),
                  fmt::format("the width of a key, {}", gemma.headWidth));
  checkHeads(config, gemma, attention + "head_count_kv", attention + "key_length");
  gemma.epsilon = config.number(attention + "layer_norm_rms_epsilon", {0, 1});
  // The scale is not stored. The one model of 62 layers takes the width of the residual a head.
  gemma.attentionScalar = gemma.shape.layers == 62
                              ? double(gemma.shape.hidden) / double(gemma.heads)
                              : double(gemma.headWidth);
  gemma.window = config.optionalInteger(attention + "sliding_window", {0, maxContext}).value_or(0);
  int64_t pattern = config.optionalInteger(attention + "sliding_window_pattern", {1, 4096})
                        .value_or(defaultPattern);
  gemma.isLocal = gemma.window ? localByPattern(gemma.shape.layers, pattern)
                               : std::vector<bool>(size_t(gemma.shape.layers), false);
  gemma.globalRope = readGgufRope(config, prefix, gemma.shape.context);
  if (!config.has(prefix + "rope.freq_base"))
    gemma.globalRope.theta = globalTheta;
  gemma.localRope.theta =
      config.optionalNumber(prefix + "rope.freq_base_swa", {1.001, 1e12}).value_or(localTheta);
  refuseSoftcap(config, prefix + "final_logit_softcapping");
  const Tensor *embedding = checkpoint.find("token_embd.weight");
  int64_t rows = embedding && embedding->shape.size() == 2 && embedding->shape[0] < (1u << 24)
                     ? int64_t(embedding->shape[0])
                     : 1;
  gemma.shape.vocabulary =
      config.optionalInteger(prefix + "vocab_size", {1, 1 << 24}).value_or(rows);
  gemma.tied = !checkpoint.find("output.weight");
  return gemma;
}

std::vector<bool> readLayerKinds(ConfigReader &config, int64_t layers) {
  auto pattern = config.optionalInteger("sliding_window_pattern", {1, 4096});
  auto hidden = config.optionalInteger("_sliding_window_pattern", {1, 4096});
  std::vector<std::string> kinds = config.strings("layer_types");
  if (kinds.empty())
    return localByPattern(layers, pattern.value_or(hidden.value_or(defaultPattern)));
  if (int64_t(kinds.size()) != layers)
    config.fail("layer_types", fmt::format("lists {} layers of {}", kinds.size(), layers));
  std::vector<bool> local(size_t(layers), false);
  for (size_t i = 0; i < std::min(kinds.size(), local.size()); ++i) {
    if (kinds[i] != "sliding_attention" && kinds[i] != "full_attention")
      config.refuse("layer_types", kinds[i], "full_attention, sliding_attention");
    local[i] = kinds[i] == "sliding_attention";
  }
  return local;
}

void readRopes(ConfigReader &config, Gemma &gemma) {
  int64_t context = gemma.shape.context;
  if (ConfigReader *parameters = config.object("rope_parameters")) {
    if (ConfigReader *full = parameters->object("full_attention"))
      gemma.globalRope = readRopeObject(*full, context, globalTheta);
    if (ConfigReader *sliding = parameters->object("sliding_attention"))
      gemma.localRope = readRopeObject(*sliding, context, localTheta);
    return;
  }
  gemma.globalRope.theta = config.optionalNumber("rope_theta", {1.001, 1e12}).value_or(globalTheta);
  if (ConfigReader *scaling = config.object("rope_scaling"))
    gemma.globalRope = readRopeObject(*scaling, context, gemma.globalRope.theta);
  gemma.localRope.theta =
      config.optionalNumber("rope_local_base_freq", {1.001, 1e12}).value_or(localTheta);
}

Gemma readHuggingFace(ConfigReader &config) {
  Gemma gemma;
  gemma.shape.family = "gemma3";
  gemma.shape.hidden = config.integer("hidden_size", {1, maxWidth});
  gemma.shape.layers = config.integer("num_hidden_layers", {1, 4096});
  gemma.shape.context = config.integer("max_position_embeddings", {1, maxContext});
  gemma.shape.vocabulary = config.integer("vocab_size", {1, 1 << 24});
  gemma.intermediate = config.integer("intermediate_size", {1, maxWidth});
  gemma.heads = config.integer("num_attention_heads", headRange);
  gemma.kvHeads = config.integer("num_key_value_heads", headRange);
  gemma.headWidth = config.optionalInteger("head_dim", {2, 4096}).value_or(256);
  checkHeads(config, gemma, "num_key_value_heads", "head_dim");
  gemma.epsilon = config.optionalNumber("rms_norm_eps", {0, 1}).value_or(1e-6);
  gemma.attentionScalar = config.optionalNumber("query_pre_attn_scalar", {1e-6, 1e9}).value_or(256);
  gemma.isLocal = readLayerKinds(config, gemma.shape.layers);
  gemma.window = config.optionalInteger("sliding_window", {1, maxContext}).value_or(4096);
  readRopes(config, gemma);
  refuseSoftcap(config, "attn_logit_softcapping");
  refuseSoftcap(config, "final_logit_softcapping");
  std::string activation = config.optionalString("hidden_activation").value_or("gelu_pytorch_tanh");
  if (activation != "gelu_pytorch_tanh")
    config.refuse("hidden_activation", activation, "gelu_pytorch_tanh");
  if (!config.optionalBoolean("tie_word_embeddings").value_or(true))
    config.refuse("tie_word_embeddings", "false", "true");
  if (config.optionalBoolean("attention_bias").value_or(false))
    config.refuse("attention_bias", "true", "false");
  if (config.optionalBoolean("use_bidirectional_attention").value_or(false))
    config.refuse("use_bidirectional_attention", "true", "false");
  // Of training, and of the cache of other engines.
  config.ignore({"attention_dropout", "initializer_range", "use_cache", "cache_implementation"});
  return gemma;
}

class GemmaBuilder {
public:
  GemmaBuilder(const Gemma &gemma, CheckpointFormat format, ModelBuilder &model)
      : gemma_(gemma), gguf_(format == CheckpointFormat::Gguf), model_(model) {}

  void build() {
    const ModelShape &shape = gemma_.shape;
    std::vector<int64_t> global, local;
    for (int64_t i = 0; i < shape.layers; ++i)
      (gemma_.isLocal[size_t(i)] ? local : global).push_back(i);
    int64_t width = gemma_.kvHeads * gemma_.headWidth;
    if (!global.empty()) {
      globalState_ = model_.attentionState("kv", 0, width, width, global);
      globalFrequencies_ = model_.ropeFrequencies("rope", gemma_.globalRope, gemma_.headWidth);
    }
    if (!local.empty()) {
      localState_ = model_.attentionState("kv_window", gemma_.window, width, width, local);
      localFrequencies_ = model_.ropeFrequencies("rope_local", gemma_.localRope, gemma_.headWidth);
    }
    Weight embedding =
        model_.matrix("embedding", gguf_ ? "token_embd.weight" : "model.embed_tokens.weight",
                      shape.vocabulary, shape.hidden, embeddingUnit);
    model_.embedding([&](LayerBuilder &ops) {
      return ops.embed(embedding, "hidden", std::sqrt(double(shape.hidden)));
    });
    for (int64_t i = 0; i < shape.layers; ++i)
      buildLayer(i);
    model_.head("model.norm.weight", gemma_.epsilon, gemma_.tied ? embedding : Weight(),
                /*plus=*/gguf_ ? 0 : 1);
  }

private:
  std::string tensor(int64_t layer, const char *gguf, const char *huggingFace) const {
    return gguf_ ? fmt::format("blk.{}.{}.weight", layer, gguf)
                 : fmt::format("model.layers.{}.{}.weight", layer, huggingFace);
  }
  Weight norm(int64_t i, const char *symbol, const char *gguf, const char *huggingFace,
              int64_t width) {
    return model_.vector(fmt::format("l{}.{}", i, symbol), tensor(i, gguf, huggingFace), width,
                         layerUnit(i), gguf_ ? 0 : 1);
  }
  Weight matrix(int64_t i, const char *symbol, const char *gguf, const char *huggingFace,
                int64_t rows, int64_t columns) {
    return model_.matrix(fmt::format("l{}.{}", i, symbol), tensor(i, gguf, huggingFace), rows,
                         columns, layerUnit(i));
  }

  void buildLayer(int64_t i) {
    int64_t hidden = gemma_.shape.hidden, inner = gemma_.intermediate;
    int64_t heads = gemma_.heads, kvHeads = gemma_.kvHeads, headWidth = gemma_.headWidth;
    int64_t qWidth = heads * headWidth, kvWidth = kvHeads * headWidth;
    Weight attentionNorm = norm(i, "attention_norm", "attn_norm", "input_layernorm", hidden);
    Weight wq = matrix(i, "q", "attn_q", "self_attn.q_proj", qWidth, hidden);
    Weight wk = matrix(i, "k", "attn_k", "self_attn.k_proj", kvWidth, hidden);
    Weight wv = matrix(i, "v", "attn_v", "self_attn.v_proj", kvWidth, hidden);
    Weight qNorm = norm(i, "q_norm", "attn_q_norm", "self_attn.q_norm", headWidth);
    Weight kNorm = norm(i, "k_norm", "attn_k_norm", "self_attn.k_norm", headWidth);
    Weight wo = matrix(i, "output", "attn_output", "self_attn.o_proj", hidden, qWidth);
    Weight afterAttention =
        norm(i, "post_attention_norm", "post_attention_norm", "post_attention_layernorm", hidden);
    Weight mlpNorm = norm(i, "ffn_norm", "ffn_norm", "pre_feedforward_layernorm", hidden);
    Weight wGate = matrix(i, "gate", "ffn_gate", "mlp.gate_proj", inner, hidden);
    Weight wUp = matrix(i, "up", "ffn_up", "mlp.up_proj", inner, hidden);
    Weight wDown = matrix(i, "down", "ffn_down", "mlp.down_proj", hidden, inner);
    Weight afterMlp =
        norm(i, "post_ffn_norm", "post_ffw_norm", "post_feedforward_layernorm", hidden);

    bool local = gemma_.isLocal[size_t(i)];
    AttentionState state = local ? localState_ : globalState_;
    Weight frequencies = local ? localFrequencies_ : globalFrequencies_;
    double magnitude = local ? gemma_.localRope.magnitude : gemma_.globalRope.magnitude;
    double epsilon = gemma_.epsilon, scale = 1 / std::sqrt(gemma_.attentionScalar);
    model_.decoder(i, [&](LayerBuilder &ops, mlir::Value x) {
      mlir::Value n = ops.rmsNorm(x, attentionNorm, epsilon);
      mlir::Value q = ops.rmsNorm(ops.linear(n, wq, {}, "query"), qNorm, epsilon, heads);
      mlir::Value k = ops.rmsNorm(ops.linear(n, wk, {}, "key"), kNorm, epsilon, kvHeads);
      mlir::Value v = ops.linear(n, wv, {}, "value");
      q = ops.rope(q, frequencies, ir::RopePairs::half, heads, magnitude);
      k = ops.rope(k, frequencies, ir::RopePairs::half, kvHeads, magnitude);
      ops.kvWrite(k, v, state, i);
      mlir::Value a = ops.attention(q, state, i, heads, kvHeads, scale, qWidth, "attention");
      x = ops.add(x, ops.rmsNorm(ops.linear(a, wo, {}, "hidden"), afterAttention, epsilon));
      mlir::Value m = ops.rmsNorm(x, mlpNorm, epsilon);
      mlir::Value gate = ops.linear(m, wGate, {}, "intermediate");
      mlir::Value up = ops.linear(m, wUp, {}, "intermediate");
      m = ops.linear(ops.gated(ir::Function::gelu_tanh, gate, up), wDown, {}, "hidden");
      return ops.add(x, ops.rmsNorm(m, afterMlp, epsilon));
    });
  }

  const Gemma &gemma_;
  bool gguf_;
  ModelBuilder &model_;
  AttentionState globalState_, localState_;
  Weight globalFrequencies_, localFrequencies_;
};

class Gemma3 final : public Family {
public:
  std::vector<std::string_view> names(CheckpointFormat format) const override {
    if (format == CheckpointFormat::Gguf)
      return {"gemma3"};
    return {"gemma3_text"};
  }

  Status build(std::string_view, const Checkpoint &checkpoint, ConfigReader &config,
               ModelBuilder &builder) const override {
    Gemma gemma = checkpoint.format() == CheckpointFormat::Gguf ? readGguf(checkpoint, config)
                                                                : readHuggingFace(config);
    STRATA_RETURN_IF_ERROR(config.finish());
    STRATA_RETURN_IF_ERROR(builder.begin(gemma.shape));
    GemmaBuilder(gemma, checkpoint.format(), builder).build();
    return Status::ok();
  }
};

const Gemma3 gemma3{};
const FamilyRegistration registration(gemma3);

} // namespace
} // namespace strata
