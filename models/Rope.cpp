#include "models/Rope.h"

#include <cmath>

namespace strata {
namespace {

constexpr NumberRange thetaRange{1.001, 1e12}; // yarn divides by its logarithm
constexpr NumberRange factorRange{1.0, 1e6};
constexpr NumberRange betaRange{1e-3, 1e6};
constexpr NumberRange magnitudeRange{1e-3, 1e3};
constexpr IntegerRange contextRange{1, int64_t{1} << 30};

/// Attention's temperature for a context that is `factor` times as long (YaRN, eq. 22), split
/// evenly between q and k.
double yarnMagnitude(double factor, double scale = 1) {
  return 0.1 * scale * std::log(factor) + 1.0;
}

std::string scalingName(ConfigReader &scaling) {
  // Old configurations say `type`; some say both.
  std::optional<std::string> name = scaling.optionalString("rope_type");
  std::optional<std::string> oldName = scaling.optionalString("type");
  if (name && oldName && *name != *oldName)
    scaling.fail("type", "contradicts 'rope_type'");
  std::string found = name ? *name : oldName.value_or("default");
  if (found == "default")
    return "none";
  if (found != "linear" && found != "llama3" && found != "yarn")
    scaling.refuse(name ? "rope_type" : "type", found, "default, linear, llama3, yarn");
  return found;
}

void readHuggingFaceScaling(ConfigReader &scaling, int64_t context, RopeParameters &rope) {
  rope.scaling = scalingName(scaling);
  if (rope.scaling == "none")
    return;
  rope.factor = scaling.number("factor", factorRange);
  if (rope.scaling == "llama3") {
    rope.lowFrequencyFactor = scaling.number("low_freq_factor", factorRange);
    rope.highFrequencyFactor = scaling.number("high_freq_factor", factorRange);
    if (scaling.status().isOk() && !(rope.highFrequencyFactor > rope.lowFrequencyFactor))
      scaling.fail("high_freq_factor", "must be above 'low_freq_factor'");
    rope.originalContext =
        double(scaling.integer("original_max_position_embeddings", contextRange));
  } else if (rope.scaling == "yarn") {
    rope.originalContext =
        double(scaling.optionalInteger("original_max_position_embeddings", contextRange)
                   .value_or(context));
    rope.betaFast = scaling.optionalNumber("beta_fast", betaRange).value_or(rope.betaFast);
    rope.betaSlow = scaling.optionalNumber("beta_slow", betaRange).value_or(rope.betaSlow);
    double usual = yarnMagnitude(rope.factor);
    // Where both are stated, a part goes into the scale of attention instead.
    if (scaling.has("mscale") && scaling.has("mscale_all_dim")) {
      double all = yarnMagnitude(rope.factor, scaling.number("mscale_all_dim", magnitudeRange));
      usual = yarnMagnitude(rope.factor, scaling.number("mscale", magnitudeRange)) / all;
      rope.sharpness = all * all;
    }
    rope.magnitude = scaling.optionalNumber("attention_factor", magnitudeRange).value_or(usual);
    if (!scaling.optionalBoolean("truncate").value_or(true))
      scaling.refuse("truncate", "false", "true");
  }
}

} // namespace

RopeParameters readHuggingFaceRope(ConfigReader &config, int64_t context) {
  RopeParameters rope;
  ConfigReader *parameters = config.object("rope_parameters");
  ConfigReader *scaling = config.object("rope_scaling");
  std::optional<double> outer = config.optionalNumber("rope_theta", thetaRange);
  std::optional<double> inner;
  if (parameters)
    inner = parameters->optionalNumber("rope_theta", thetaRange);
  if (parameters && scaling)
    config.fail("rope_scaling", "stands beside 'rope_parameters'; remove the outdated one");
  if (outer && inner && *outer != *inner)
    config.fail("rope_theta", "contradicts 'rope_parameters.rope_theta'");
  rope.theta = inner ? *inner : outer.value_or(rope.theta);
  if (ConfigReader *stated = parameters ? parameters : scaling)
    readHuggingFaceScaling(*stated, context, rope);
  return rope;
}

RopeParameters readRopeObject(ConfigReader &parameters, int64_t context, double theta) {
  RopeParameters rope;
  rope.theta = parameters.optionalNumber("rope_theta", thetaRange).value_or(theta);
  readHuggingFaceScaling(parameters, context, rope);
  return rope;
}

RopeParameters readGgufRope(ConfigReader &config, const std::string &prefix, int64_t context) {
  RopeParameters rope;
  std::string scaling = prefix + "rope.scaling.";
  rope.theta = config.optionalNumber(prefix + "rope.freq_base", thetaRange).value_or(rope.theta);
  rope.scaling = config.optionalString(scaling + "type").value_or("linear");
  if (rope.scaling != "none" && rope.scaling != "linear" && rope.scaling != "yarn")
    config.refuse(scaling + "type", rope.scaling, "none, linear, yarn");
  rope.factor = config.optionalNumber(scaling + "factor", factorRange).value_or(1.0);
  rope.originalContext = double(
      config.optionalInteger(scaling + "original_context_length", contextRange).value_or(context));
  rope.betaFast =
      config.optionalNumber(scaling + "yarn_beta_fast", betaRange).value_or(rope.betaFast);
  rope.betaSlow =
      config.optionalNumber(scaling + "yarn_beta_slow", betaRange).value_or(rope.betaSlow);
  // Unlike a config.json's, this factor multiplies the usual magnitude.
  double attention = config.optionalNumber(scaling + "attn_factor", magnitudeRange).value_or(1.0);
  if (rope.scaling == "yarn")
    rope.magnitude = attention * yarnMagnitude(rope.factor);
  else if (attention != 1.0)
    config.refuse(scaling + "attn_factor", "not 1", "1 where the scaling is not yarn");
  if (rope.scaling == "linear" && rope.factor == 1.0)
    rope.scaling = "none"; // the default where a file says nothing
  // Whether the model was trained on the long context: of no effect.
  config.ignore({scaling + "finetuned"});
  return rope;
}

} // namespace strata
