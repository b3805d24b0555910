// What a client asks for and what it hears back.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/sampling/Sampler.h"

namespace strata {

using RequestId = uint64_t;

/// A prompt and how to go on from it. Prompt and generated tokens together never pass the plan's
/// context: a generation that reaches it ends with FinishReason::Length.
struct Request {
  std::vector<int32_t> prompt; ///< At least one id, each below the vocabulary's size.
  uint32_t maxTokens = 128;    ///< At least 1; may ask for more than the context has room for.
  SamplingParameters sampling;
  bool ignoreEndOfGeneration = false;
  std::vector<LogitBias> logitBias = {}; ///< At most maxLogitBiases; values of one id add up.
  /// Bit id % 32 of word id / 32: the id may be drawn. maskWords(vocabulary) words of which one id
  /// at least is allowed, or empty: all are.
  std::vector<uint32_t> allowedTokens = {};
};

enum class FinishReason : uint8_t {
  None,
  Stop,      ///< One of the model's end-of-generation tokens was drawn.
  Length,    ///< maxTokens or the context was reached.
  Cancelled, ///< Withdrawn by the client.
  NonFinite, ///< A layer gave an infinity or NaN; nothing that followed would mean anything.
};

struct TokenEvent {
  RequestId request = 0;
  int32_t id = -1; ///< -1 where the event only ends the request. With Stop, the end token.
  float logProbability = 0;
  FinishReason finish = FinishReason::None; ///< Not None on a request's last event.
  int32_t nonfiniteLayer = -1;              ///< With NonFinite, the first layer at fault.
};

} // namespace strata
