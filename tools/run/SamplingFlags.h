// How tokens are drawn and which text ends them, as flags: checked for range while they are parsed.
#pragma once

#include <CLI/CLI.hpp>

#include "runtime/base/Status.h"
#include "runtime/schedule/Request.h"
#include "runtime/tokenizer/StopFilter.h"
#include "runtime/tokenizer/Tokenizer.h"

namespace strata::run {

struct SamplingFlags {
  SamplingParameters parameters;
  std::vector<LogitBias> biases;
  std::vector<int32_t> allowedIds; ///< Empty: all.
  std::vector<std::string> stops;

  void addTo(CLI::App &command);

  /// Gives them to `request`. Errors: InvalidArgument (an id of --allow-ids outside the
  /// vocabulary); Engine::submit() checks the others.
  Status apply(uint32_t vocabularySize, Request &request) const;

  /// Errors: InvalidArgument (stop strings without a tokenizer), and StopFilter's.
  Result<StopFilter> stopFilter(const Tokenizer *tokenizer) const;
};

} // namespace strata::run
