// Mamba-2: every layer is one mixer (Mamba2Mixer.h) behind one norm.
//
//   x = E[id]; a layer: x = x + mixer(norm(x)); logits = Whead norm(x)
#include "models/Family.h"
#include "models/Mamba2Mixer.h"

namespace strata {
namespace {

constexpr int64_t maxWidth = int64_t{1} << 20;
constexpr int64_t maxContext = int64_t{1} << 30;
constexpr IntegerRange sizeRange{1, 1 << 16};
/// A recurrence has no context of its own; this is what a plan may be asked for.
constexpr int64_t unlimitedContext = int64_t{1} << 20;

struct Mamba {
  ModelShape shape;
  MambaShape mixer;
  bool tied = false;
};

Mamba readGguf(const Checkpoint &checkpoint, ConfigReader &config) {
  Mamba mamba;
  ModelShape &shape = mamba.shape;
  shape.family = "mamba2";
  shape.hidden = config.integer("mamba2.embedding_length", {1, maxWidth});
  shape.layers = config.integer("mamba2.block_count", {1, 4096});
  shape.context = config.integer("mamba2.context_length", {1, maxContext});
  MambaShape &mixer = mamba.mixer;
  int64_t inner = config.integer("mamba2.ssm.inner_size", {1, maxWidth});
  mixer.heads = config.integer("mamba2.ssm.time_step_rank", sizeRange);
  mixer.stateWidth = config.integer("mamba2.ssm.state_size", sizeRange);
  mixer.groups = config.integer("mamba2.ssm.group_count", sizeRange);
  mixer.taps = config.integer("mamba2.ssm.conv_kernel", {2, 64});
  mixer.epsilon = config.number("mamba2.attention.layer_norm_rms_epsilon", {0, 1});
  mixer.mostDt = std::numeric_limits<double>::infinity();
  if (config.status().isOk() && inner % mixer.heads != 0)
    config.fail("mamba2.ssm.time_step_rank",
                fmt::format("is {}, which does not divide the inner width {}", mixer.heads, inner));
  mixer.headWidth = inner / std::max<int64_t>(1, mixer.heads);
  mixer.normGroups = mixer.groups;
  checkMambaShape(config, mixer, "mamba2.ssm.group_count");
  mixer.hasConvBias = checkpoint.find("blk.0.ssm_conv1d.bias");
  const Tensor *embedding = checkpoint.find("token_embd.weight");
  int64_t rows = embedding && embedding->shape.size() == 2 && embedding->shape[0] < (1u << 24)
                     ? int64_t(embedding->shape[0])
                     : 1;
  shape.vocabulary = config.optionalInteger("mamba2.vocab_size", {1, 1 << 24}).value_or(rows);
  mamba.tied = !checkpoint.find("output.weight");
  // Of layers that it has not.
  config.ignore({"mamba2.feed_forward_length", "mamba2.attention.head_count"});
  return mamba;
}

Mamba readHuggingFace(const Checkpoint &checkpoint, ConfigReader &config) {
  Mamba mamba;
  ModelShape &shape = mamba.shape;
  shape.family = "mamba2";
  shape.hidden = config.integer("hidden_size", {1, maxWidth});
  shape.layers = config.integer("num_hidden_layers", {1, 4096});
  shape.vocabulary = config.integer("vocab_size", {1, 1 << 24});
  shape.context = unlimitedContext;
  MambaShape &mixer = mamba.mixer;
  mixer.heads = config.integer("num_heads", sizeRange);
  mixer.headWidth = config.integer("head_dim", sizeRange);
  mixer.stateWidth = config.integer("state_size", sizeRange);
  mixer.groups = config.integer("n_groups", sizeRange);
  mixer.taps = config.integer("conv_kernel", {2, 64});
  mixer.hasConvBias = config.optionalBoolean("use_conv_bias").value_or(true);
  mixer.epsilon = config.optionalNumber("layer_norm_epsilon", {0, 1}).value_or(1e-5);
  readTimeStepLimit(config, mixer);
  checkMambaShape(config, mixer, "n_groups");
  int64_t expand = config.optionalInteger("expand", {1, 64}).value_or(2);
  if (config.status().isOk() && expand * shape.hidden != mixer.inner())
    config.fail("expand", fmt::format("is {}: {} times {} is not {} heads of {}", expand, expand,
                                      shape.hidden, mixer.heads, mixer.headWidth));
  std::string activation = config.optionalString("hidden_act").value_or("silu");
  if (activation != "silu")
    config.refuse("hidden_act", activation, "silu");
  if (config.optionalBoolean("use_bias").value_or(false))
    config.refuse("use_bias", "true", "false");
  if (!config.optionalBoolean("rms_norm").value_or(true))
    config.refuse("rms_norm", "false", "true");
  mamba.tied = config.optionalBoolean("tie_word_embeddings")
                   .value_or(checkpoint.format() == CheckpointFormat::HuggingFace &&
                             !checkpoint.find("lm_head.weight"));
  // Of training, of how the recurrence is cut into chunks, of the residual's type (it is F32 here).
  config.ignore({"initializer_range", "rescale_prenorm_residual", "time_step_min", "time_step_max",
                 "time_step_floor", "time_step_rank", "chunk_size", "residual_in_fp32",
                 "use_cache"});
  return mamba;
}

void buildModel(const Mamba &mamba, bool isGguf, ModelBuilder &model) {
  const ModelShape &shape = mamba.shape;
  std::vector<int64_t> layers(static_cast<size_t>(shape.layers));
  for (int64_t i = 0; i < shape.layers; ++i)
    layers[size_t(i)] = i;
  SlotState state = mambaState(model, mamba.mixer, layers);
  Weight embedding =
      model.matrix("embedding", isGguf ? "token_embd.weight" : "backbone.embeddings.weight",
                   shape.vocabulary, shape.hidden, embeddingUnit);
  model.embedding([&](LayerBuilder &ops) { return ops.embed(embedding, "hidden"); });
  double epsilon = mamba.mixer.epsilon;
  for (int64_t i = 0; i < shape.layers; ++i) {
    std::string prefix = isGguf ? fmt::format("blk.{}.", i) : fmt::format("backbone.layers.{}.", i);
    Weight norm = model.vector(fmt::format("l{}.norm", i),
                               prefix + (isGguf ? "attn_norm.weight" : "norm.weight"), shape.hidden,
                               layerUnit(i));
    Mamba2Mixer mixer(model, mamba.mixer, isGguf, isGguf ? prefix : prefix + "mixer.", i,
                      shape.hidden);
    model.decoder(i, [&](LayerBuilder &ops, mlir::Value x) {
      return ops.add(x, mixer.build(ops, ops.rmsNorm(x, norm, epsilon), state));
    });
  }
  model.head("backbone.norm_f.weight", epsilon, mamba.tied ? embedding : Weight());
}

class Mamba2 final : public Family {
public:
  std::vector<std::string_view> names(CheckpointFormat) const override { return {"mamba2"}; }

  Status build(std::string_view, const Checkpoint &checkpoint, ConfigReader &config,
               ModelBuilder &builder) const override {
    bool isGguf = checkpoint.format() == CheckpointFormat::Gguf;
    Mamba mamba = isGguf ? readGguf(checkpoint, config) : readHuggingFace(checkpoint, config);
    STRATA_RETURN_IF_ERROR(config.finish());
    STRATA_RETURN_IF_ERROR(builder.begin(mamba.shape));
    buildModel(mamba, isGguf, builder);
    return Status::ok();
  }
};

const Mamba2 mamba2{};
const FamilyRegistration registration(mamba2);

} // namespace
} // namespace strata
