// Rotary embeddings as configurations state them. Every family that rotates reads them here.
#pragma once

#include <cstdint>
#include <string>

#include "models/ConfigReader.h"

namespace strata {

struct RopeParameters {
  double theta = 10000.0;
  std::string scaling = "none"; ///< none, linear, llama3 or yarn.
  double factor = 1.0;
  double lowFrequencyFactor = 1.0;
  double highFrequencyFactor = 1.0;
  double originalContext = 0.0; ///< Tokens.
  double betaFast = 32.0;
  double betaSlow = 1.0;
  double magnitude = 1.0; ///< Of cosine and sine.
  double sharpness = 1.0; ///< Of attention, for families that scale it with a stretched rope.
};

/// A config.json's, in both spellings: `rope_theta` beside `rope_scaling`, or both in
/// `rope_parameters`. `context` is the model's, in tokens. Errors go to the reader.
RopeParameters readHuggingFaceRope(ConfigReader &config, int64_t context);

/// One object of rope parameters, where a configuration has several. `theta` applies where it says
/// none.
RopeParameters readRopeObject(ConfigReader &parameters, int64_t context, double theta);

/// A GGUF file's `<architecture>.rope.*`, but for the width. `prefix` is `<architecture>.`.
/// Divisors of the frequencies may be a tensor besides.
RopeParameters readGgufRope(ConfigReader &config, const std::string &prefix, int64_t context);

} // namespace strata
