// A decoder whose experts work in several latent spaces: a synthetic family, for the form of latent
// experts of which no checkpoint is at hand.
//
//   x = x + Wo attention(rope(q), rope(k), v);  n = norm(x)
//   s = softmax(Wr n);  S = top-k(s);  w = s_S / max(sum s_S, 2^-14)
//   a_g = D[l][g] n;  e_k = down_k(silu(gate_k a) * up_k a) with a = a_g of g = label[k]
//   x = x + sum_g U[l][g] (sum of w_k e_k of label g) + sigmoid(w_sg . n) shared(n)
//
// D and U are tables of all layers: `model.latent_down` [layers, groups, latent, hidden] and
// `model.latent_up` [layers, groups, hidden, latent]. A layer reads its own part of them, and a
// stage holds those of its layers and no others.
#include "models/Family.h"

#include <cmath>
#include <cstring>

namespace strata {
namespace {

constexpr int64_t maxWidth = int64_t{1} << 20;
constexpr int64_t maxContext = int64_t{1} << 30;
constexpr IntegerRange widthRange{1, maxWidth};
constexpr IntegerRange headRange{1, 4096};

struct Grouped {
  ModelShape shape;
  int64_t heads = 0, kvHeads = 0, headWidth = 0;
  int64_t experts = 0, used = 0, inner = 0, latent = 0, groups = 0, sharedInner = 0;
  double epsilon = 0;
  RopeParameters rope;
};

Grouped readConfig(ConfigReader &config) {
  Grouped grouped;
  ModelShape &shape = grouped.shape;
  shape.family = "grouped_latent";
  shape.hidden = config.integer("hidden_size", widthRange);
  shape.layers = config.integer("num_hidden_layers", {1, 4096});
  shape.vocabulary = config.integer("vocab_size", {1, 1 << 24});
  shape.context = config.integer("max_position_embeddings", {1, maxContext});
  grouped.heads = config.integer("num_attention_heads", headRange);
  grouped.kvHeads = config.integer("num_key_value_heads", headRange);
  grouped.headWidth = config.integer("head_dim", {2, 4096});
  grouped.experts = config.integer("num_experts", {1, 1 << 14});
  grouped.used = config.integer("num_experts_per_tok", {1, 1 << 14});
  grouped.inner = config.integer("moe_intermediate_size", widthRange);
  grouped.latent = config.integer("moe_latent_size", widthRange);
  grouped.groups = config.integer("moe_latent_groups", {1, 4096});
  grouped.sharedInner = config.integer("shared_expert_intermediate_size", widthRange);
  grouped.epsilon = config.number("rms_norm_eps", {0, 1});
  grouped.rope = readHuggingFaceRope(config, shape.context);
  if (!config.status().isOk())
    return grouped;
  if (grouped.heads % grouped.kvHeads != 0)
    config.fail("num_key_value_heads", fmt::format("is {}, which does not divide the {} heads",
                                                   grouped.kvHeads, grouped.heads));
  if (grouped.headWidth % 2 != 0)
    config.fail("head_dim", "is odd; elements rotate in pairs");
  if (grouped.used > grouped.experts)
    config.fail("num_experts_per_tok",
                fmt::format("is {}, more than the {} experts", grouped.used, grouped.experts));
  int64_t rows = grouped.groups * std::max(grouped.latent, shape.hidden);
  if (rows > (int64_t{1} << 31) / shape.layers)
    config.fail("moe_latent_groups",
                fmt::format("is {}: the tables of {} layers have too many rows", grouped.groups,
                            shape.layers));
  return grouped;
}

/// The group of each expert, of every layer.
std::string labelsTensor(int64_t layer) { return fmt::format("model.layers.{}.mlp.labels", layer); }

Status checkLabels(const Grouped &grouped, const Checkpoint &checkpoint) {
  for (int64_t layer = 0; layer < grouped.shape.layers; ++layer) {
    const Tensor *tensor = checkpoint.find(labelsTensor(layer));
    if (!tensor || tensor->type->name != "f32") // missing ones are named by the builder
      continue;
    for (size_t i = 0; i < tensor->bytes.size() / sizeof(float); ++i) {
      float label;
      std::memcpy(&label, tensor->bytes.data() + i * sizeof(float), sizeof label);
      if (!(label >= 0 && label < float(grouped.groups)) || label != std::floor(label))
        return makeError(StatusCode::InvalidData,
                         "tensor '{}' puts expert {} into group {}; there are groups 0 to {}",
                         tensor->name, i, label, grouped.groups - 1);
    }
  }
  return Status::ok();
}

class GroupedBuilder {
public:
  GroupedBuilder(const Grouped &grouped, ModelBuilder &model) : grouped_(grouped), model_(model) {}

  void build() {
    const ModelShape &shape = grouped_.shape;
    std::vector<int64_t> layers(static_cast<size_t>(shape.layers));
    for (int64_t i = 0; i < shape.layers; ++i)
      layers[size_t(i)] = i;
    int64_t width = grouped_.kvHeads * grouped_.headWidth;
    state_ = model_.attentionState("kv", 0, width, width, layers);
    frequencies_ = model_.ropeFrequencies("rope", grouped_.rope, grouped_.headWidth);
    slots_ = model_.identity("expert_slot", grouped_.experts);
    Weight embedding = model_.matrix("embedding", "model.embed_tokens.weight", shape.vocabulary,
                                     shape.hidden, embeddingUnit);
    model_.embedding([&](LayerBuilder &ops) { return ops.embed(embedding, "hidden"); });
    declareTables();
    for (int64_t i = 0; i < shape.layers; ++i)
      buildLayer(i);
    model_.head("model.norm.weight", grouped_.epsilon, /*tied=*/Weight());
  }

private:
  std::string symbol(int64_t i, const char *name) const { return fmt::format("l{}.{}", i, name); }
  Weight matrix(int64_t i, const char *name, const char *tensor, int64_t rows, int64_t columns) {
    return model_.matrix(symbol(i, name), fmt::format("model.layers.{}.{}.weight", i, tensor), rows,
                         columns, layerUnit(i));
  }
  Weight norm(int64_t i, const char *name, const char *tensor) {
    return model_.vector(symbol(i, name), fmt::format("model.layers.{}.{}.weight", i, tensor),
                         grouped_.shape.hidden, layerUnit(i));
  }
  Weight experts(int64_t i, const char *name, const char *part, int64_t rows, int64_t columns) {
    WeightSource source;
    source.tensor = fmt::format("model.layers.{}.mlp.experts.*.{}.weight", i, part);
    source.shape = {rows, columns};
    source.stack = grouped_.experts;
    return model_.weight(symbol(i, name), source, {grouped_.experts, rows, columns}, layerUnit(i));
  }
  void declareTables() {
    int64_t hidden = grouped_.shape.hidden, latent = grouped_.latent, groups = grouped_.groups;
    WeightSource source;
    source.tensor = "model.latent_down";
    source.shape = {grouped_.shape.layers, groups, latent, hidden};
    latentDown_ = model_.table("latent_down", source, groups * latent, hidden);
    source.tensor = "model.latent_up";
    source.shape = {grouped_.shape.layers, groups, hidden, latent};
    source.join = groups;
    latentUp_ = model_.table("latent_up", source, hidden, groups * latent);
  }

  using Part = std::function<mlir::Value(LayerBuilder &, mlir::Value)>;

  Part declareExperts(int64_t i) {
    int64_t hidden = grouped_.shape.hidden, shared = grouped_.sharedInner;
    Weight router = matrix(i, "router", "mlp.gate", grouped_.experts, hidden);
    Weight down = latentDown_.ofLayer(i), up = latentUp_.ofLayer(i);
    ExpertWeights weights;
    weights.gate = experts(i, "experts_gate", "gate_proj", grouped_.inner, grouped_.latent);
    weights.up = experts(i, "experts_up", "up_proj", grouped_.inner, grouped_.latent);
    weights.down = experts(i, "experts_down", "down_proj", grouped_.latent, grouped_.inner);
    weights.slots = slots_;
    weights.labels =
        model_.vector(symbol(i, "labels"), labelsTensor(i), grouped_.experts, layerUnit(i));
    Weight sharedGate = matrix(i, "shared_gate", "mlp.shared_expert.gate_proj", shared, hidden);
    Weight sharedUp = matrix(i, "shared_up", "mlp.shared_expert.up_proj", shared, hidden);
    Weight sharedDown = matrix(i, "shared_down", "mlp.shared_expert.down_proj", hidden, shared);
    Weight sharedWeight = matrix(i, "shared_weight", "mlp.shared_expert_gate", 1, hidden);
    Routing routing;
    routing.used = grouped_.used;
    routing.normalise = true;
    routing.leastSum = 0x1p-14;
    return [=, groups = grouped_.groups](LayerBuilder &ops, mlir::Value n) {
      mlir::Value r = ops.router(ops.linear(n, router, {}, "experts"), routing, {});
      mlir::Value y = ops.experts(ops.latentDown(n, down, groups), r, weights);
      y = ops.latentUp(y, up, groups, "hidden");
      mlir::Value m = ops.gated(ir::Function::silu, ops.linear(n, sharedGate, {}, "intermediate"),
                                ops.linear(n, sharedUp, {}, "intermediate"));
      return ops.add(y, ops.rowGated(ir::Function::sigmoid, ops.linear(n, sharedWeight, {}, "gate"),
                                     ops.linear(m, sharedDown, {}, "hidden")));
    };
  }

  void buildLayer(int64_t i) {
    int64_t hidden = grouped_.shape.hidden, heads = grouped_.heads, kvHeads = grouped_.kvHeads;
    int64_t qWidth = heads * grouped_.headWidth, kvWidth = kvHeads * grouped_.headWidth;
    double epsilon = grouped_.epsilon, magnitude = grouped_.rope.magnitude;
    double scale = 1 / std::sqrt(double(grouped_.headWidth));
    Weight attentionNorm = norm(i, "attention_norm", "input_layernorm");
    Weight wq = matrix(i, "q", "self_attn.q_proj", qWidth, hidden);
    Weight wk = matrix(i, "k", "self_attn.k_proj", kvWidth, hidden);
    Weight wv = matrix(i, "v", "self_attn.v_proj", kvWidth, hidden);
    Weight wo = matrix(i, "output", "self_attn.o_proj", hidden, qWidth);
    Weight mlpNorm = norm(i, "ffn_norm", "post_attention_layernorm");
    Part feedForward = declareExperts(i);
    model_.decoder(i, [&](LayerBuilder &ops, mlir::Value x) {
      mlir::Value n = ops.rmsNorm(x, attentionNorm, epsilon);
      mlir::Value q = ops.rope(ops.linear(n, wq, {}, "query"), frequencies_, ir::RopePairs::half,
                               heads, magnitude);
      mlir::Value k = ops.rope(ops.linear(n, wk, {}, "key"), frequencies_, ir::RopePairs::half,
                               kvHeads, magnitude);
      ops.kvWrite(k, ops.linear(n, wv, {}, "value"), state_, i);
      mlir::Value a = ops.attention(q, state_, i, heads, kvHeads, scale, qWidth, "attention");
      x = ops.add(x, ops.linear(a, wo, {}, "hidden"));
      return ops.add(x, feedForward(ops, ops.rmsNorm(x, mlpNorm, epsilon)));
    });
  }

  const Grouped &grouped_;
  ModelBuilder &model_;
  AttentionState state_;
  Weight frequencies_, slots_, latentDown_, latentUp_;
};

class GroupedLatent final : public Family {
public:
  std::vector<std::string_view> names(CheckpointFormat format) const override {
    if (format == CheckpointFormat::Gguf)
      return {};
    return {"grouped_latent"};
  }

  Status build(std::string_view, const Checkpoint &checkpoint, ConfigReader &config,
               ModelBuilder &builder) const override {
    Grouped grouped = readConfig(config);
    STRATA_RETURN_IF_ERROR(config.finish());
    STRATA_RETURN_IF_ERROR(checkLabels(grouped, checkpoint));
    STRATA_RETURN_IF_ERROR(builder.begin(grouped.shape));
    GroupedBuilder(grouped, builder).build();
    return Status::ok();
  }
};

const GroupedLatent groupedLatent{};
const FamilyRegistration registration(groupedLatent);

} // namespace
} // namespace strata
