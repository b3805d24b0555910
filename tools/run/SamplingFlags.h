// The sampling parameters as flags, checked for range.
#pragma once

#include <CLI/CLI.hpp>

#include "runtime/sampling/Sampler.h"

namespace strata::run {

inline void addSamplingFlags(CLI::App &command, SamplingParameters &sampling) {
  command.add_option("--temperature", sampling.temperature, "0 takes the likeliest token")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  command.add_option("--top-k", sampling.topK, "Keep the K likeliest tokens; 0 keeps all")
      ->check(CLI::Range(0, INT32_MAX))
      ->capture_default_str();
  command.add_option("--top-p", sampling.topP, "Keep the likeliest tokens that sum to P")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command.add_option("--min-p", sampling.minP, "Drop tokens below P times the likeliest")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command.add_option("--seed", sampling.seed, "Same seed, same text")->capture_default_str();
}

} // namespace strata::run
