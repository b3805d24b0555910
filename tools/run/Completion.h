// One request of an engine, streamed to standard output.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/Strata.h"
#include "runtime/tokenizer/StopFilter.h"
#include "tools/run/Interrupt.h"

namespace strata::run {

struct Completion {
  std::vector<int32_t> ids; ///< The end token included.
  std::string text;
  const char *finishReason = "length";
  std::chrono::steady_clock::time_point submitted, firstToken, lastToken;

  double promptSeconds() const;
  double generationSeconds() const;
  /// The first token comes out of the prompt's last step.
  double tokensPerSecond() const;
};

/// Runs `request`, the engine's only one, to its end, a stop string or an interrupt. `print`: the
/// text goes to standard output as it comes; ids where the plan has no vocabulary. Errors: those of
/// submit() and poll(); InvalidData where a layer gave an infinity or NaN.
Result<Completion> complete(Engine &engine, Request request, StopFilter stops,
                            const InterruptScope &interrupt, bool print);

double secondsSince(std::chrono::steady_clock::time_point begin);

} // namespace strata::run
