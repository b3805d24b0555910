#include "models/Rope.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace strata {
namespace {

using nlohmann::ordered_json;
using testing::HasSubstr;

const std::vector<std::string> nothingAccepted;

/// What both spellings of one rope mean.
RopeParameters readBoth(const ordered_json &inner, double theta) {
  ordered_json newer = {{"rope_parameters", inner}};
  newer["rope_parameters"]["rope_theta"] = theta;
  ordered_json older = {{"rope_theta", theta}, {"rope_scaling", inner}};
  RopeParameters read[2];
  for (int i = 0; i < 2; ++i) {
    const ordered_json &json = i ? older : newer;
    ConfigReader config(json, nothingAccepted);
    read[i] = readHuggingFaceRope(config, 512);
    EXPECT_TRUE(config.finish().isOk()) << config.finish().message();
  }
  EXPECT_EQ(read[0].scaling, read[1].scaling);
  EXPECT_EQ(read[0].theta, read[1].theta);
  EXPECT_EQ(read[0].factor, read[1].factor);
  EXPECT_EQ(read[0].originalContext, read[1].originalContext);
  EXPECT_EQ(read[0].magnitude, read[1].magnitude);
  return read[0];
}

TEST(Rope, PlainByDefault) {
  ordered_json json = ordered_json::object();
  ConfigReader config(json, nothingAccepted);
  RopeParameters rope = readHuggingFaceRope(config, 512);
  EXPECT_EQ(rope.scaling, "none");
  EXPECT_EQ(rope.theta, 10000.0);
  EXPECT_EQ(rope.magnitude, 1.0);
}

TEST(Rope, BothSpellingsOfAllKinds) {
  EXPECT_EQ(readBoth({{"rope_type", "default"}}, 5e5).theta, 5e5);
  RopeParameters linear = readBoth({{"type", "linear"}, {"factor", 4}}, 1e4);
  EXPECT_EQ(linear.scaling, "linear");
  EXPECT_EQ(linear.factor, 4.0);
  RopeParameters llama3 = readBoth({{"rope_type", "llama3"},
                                    {"factor", 8.0},
                                    {"low_freq_factor", 1.0},
                                    {"high_freq_factor", 4.0},
                                    {"original_max_position_embeddings", 64}},
                                   1e4);
  EXPECT_EQ(llama3.scaling, "llama3");
  EXPECT_EQ(llama3.highFrequencyFactor, 4.0);
  EXPECT_EQ(llama3.originalContext, 64.0);
}

TEST(Rope, YarnMagnitude) {
  // 0.1 ln 8 + 1 = 1.2079; the model's own context where the original one is not stated.
  RopeParameters rope = readBoth({{"rope_type", "yarn"}, {"factor", 8.0}}, 1e6);
  EXPECT_NEAR(rope.magnitude, 1.20794415, 1e-8);
  EXPECT_EQ(rope.originalContext, 512.0);
  EXPECT_EQ(rope.betaFast, 32.0);
  RopeParameters stated =
      readBoth({{"rope_type", "yarn"}, {"factor", 8.0}, {"attention_factor", 1.5}}, 1e6);
  EXPECT_EQ(stated.magnitude, 1.5);
}

TEST(Rope, YarnSplitsItsScaleWithAttention) {
  RopeParameters even = readBoth(
      {{"rope_type", "yarn"}, {"factor", 40}, {"mscale", 1.0}, {"mscale_all_dim", 1.0}}, 1e4);
  EXPECT_DOUBLE_EQ(even.magnitude, 1.0);
  EXPECT_DOUBLE_EQ(even.sharpness, std::pow(0.1 * std::log(40.0) + 1, 2));
  RopeParameters uneven = readBoth(
      {{"rope_type", "yarn"}, {"factor", 40}, {"mscale", 0.7}, {"mscale_all_dim", 0.5}}, 1e4);
  EXPECT_DOUBLE_EQ(uneven.magnitude, (0.07 * std::log(40.0) + 1) / (0.05 * std::log(40.0) + 1));
  EXPECT_DOUBLE_EQ(uneven.sharpness, std::pow(0.05 * std::log(40.0) + 1, 2));
}

TEST(Rope, Refusals) {
  struct Case {
    ordered_json json;
    StatusCode code;
    const char *named;
  };
  const Case cases[] = {
      {{{"rope_scaling", {{"rope_type", "dynamic"}, {"factor", 2}}}},
       StatusCode::Unimplemented,
       "dynamic"},
      {{{"rope_scaling", {{"type", "mrope"}}}}, StatusCode::Unimplemented, "mrope"},
      {{{"rope_scaling", {{"rope_type", "linear"}}}}, StatusCode::InvalidData, "factor"},
      {{{"rope_scaling", {{"rope_type", "linear"}, {"factor", 0}}}},
       StatusCode::InvalidData,
       "factor"},
      {{{"rope_scaling", {{"rope_type", "yarn"}, {"factor", 2}, {"truncate", false}}}},
       StatusCode::Unimplemented,
       "truncate"},
      {{{"rope_scaling", {{"rope_type", "yarn"}, {"factor", 2}, {"mscale", 0.7}}}},
       StatusCode::Unimplemented,
       "rope_scaling.mscale"},
      {{{"rope_scaling",
         {{"rope_type", "llama3"},
          {"factor", 8},
          {"low_freq_factor", 4},
          {"high_freq_factor", 4},
          {"original_max_position_embeddings", 64}}}},
       StatusCode::InvalidData,
       "high_freq_factor"},
      {{{"rope_theta", 0}}, StatusCode::InvalidData, "rope_theta"},
      {{{"rope_theta", 1e4}, {"rope_parameters", {{"rope_theta", 1e6}}}},
       StatusCode::InvalidData,
       "rope_theta"},
      {{{"rope_scaling", {{"type", "linear"}, {"factor", 2}}},
        {"rope_parameters", {{"rope_theta", 1e6}}}},
       StatusCode::InvalidData,
       "rope_scaling"},
  };
  for (const Case &test : cases) {
    ConfigReader config(test.json, nothingAccepted);
    readHuggingFaceRope(config, 512);
    EXPECT_EQ(config.finish().code(), test.code) << test.json;
    EXPECT_THAT(config.finish().message(), HasSubstr(test.named)) << test.json;
  }
}

RopeParameters readGguf(const ordered_json &json, Status &status) {
  ConfigReader config(json, nothingAccepted);
  RopeParameters rope = readGgufRope(config, "x.", 512);
  status = config.finish();
  return rope;
}

TEST(Rope, Gguf) {
  Status status;
  EXPECT_EQ(readGguf(ordered_json::object(), status).scaling, "none");
  EXPECT_TRUE(status.isOk());

  RopeParameters linear = readGguf({{"x.rope.scaling.factor", 4.0}}, status);
  EXPECT_EQ(linear.scaling, "linear"); // the type where none is stated
  EXPECT_TRUE(status.isOk());

  RopeParameters yarn = readGguf({{"x.rope.freq_base", 1e6},
                                  {"x.rope.scaling.type", "yarn"},
                                  {"x.rope.scaling.factor", 4.0},
                                  {"x.rope.scaling.attn_factor", 2.0},
                                  {"x.rope.scaling.finetuned", true},
                                  {"x.rope.scaling.original_context_length", 64}},
                                 status);
  EXPECT_TRUE(status.isOk()) << status.message();
  EXPECT_EQ(yarn.originalContext, 64.0);
  EXPECT_NEAR(yarn.magnitude, 2.0 * (0.1 * std::log(4.0) + 1.0), 1e-12);

  readGguf({{"x.rope.scaling.type", "longrope"}}, status);
  EXPECT_EQ(status.code(), StatusCode::Unimplemented);
  EXPECT_THAT(status.message(), HasSubstr("longrope"));
}

} // namespace
} // namespace strata
