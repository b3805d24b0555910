// The options that say where and how a plan runs, the same for every command that runs one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "runtime/Strata.h"

namespace strata::run {

/// `--threads`, as EngineOptions::threads takes it.
void addThreads(CLI::App &command, uint32_t &threads);

struct EngineFlags {
  uint32_t threads = 0;
  std::vector<std::string> devices;
  bool noGraphs = false;
  uint64_t randomWeightsSeed = 0;
  const CLI::Option *randomWeights = nullptr; ///< Whether the seed was given.

  void addTo(CLI::App &command);
  /// Sets what was asked for.
  void apply(EngineOptions &options) const;
};

} // namespace strata::run
