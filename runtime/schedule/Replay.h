// Replays a recorded stream of requests through an engine.
//
// A trace is JSON lines, one request each, `#` lines and blank ones aside:
//
//   {"arrival": 3, "prompt": [1, 42, 7], "max_tokens": 16}
//   {"arrival": 5, "prompt_length": 100, "seed": 9, "max_tokens": 8, "temperature": 0.8, "cancel":
//   20}
//
// `arrival` and `cancel` count steps: a request arrives before the step of that number runs (0 is
// the first) and is withdrawn before the step `cancel` runs, if it has not ended by then.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/Strata.h"
#include "runtime/base/Status.h"

namespace strata {

struct ReplayRequest {
  uint64_t arrival = 0;
  std::optional<uint64_t> cancel; ///< At or after `arrival`.
  Request request;
};

struct ReplayOutcome {
  std::vector<int32_t> ids;            ///< Generated, the end token included.
  std::vector<float> logProbabilities; ///< Of `ids`, among all ids.
  FinishReason finish = FinishReason::None;
  int32_t nonfiniteLayer = -1; ///< With NonFinite.
  uint64_t firstStep = 0;      ///< Step that gave the first event.
  uint64_t finishedStep = 0;   ///< Step that gave the last event.
};

/// What a trace is checked against.
struct ReplayLimits {
  uint32_t vocabularySize = 0;
  uint32_t maxContext = 0;
};

/// Reads a trace. Keys: arrival (default 0); prompt, or prompt_length for that many ids drawn from
/// the vocabulary with `seed`; max_tokens (default 16); temperature, top_k, top_p, min_p,
/// repetition_penalty, presence_penalty, frequency_penalty, penalty_window; logit_bias, a list of
/// [id, value]; seed
/// (default 0, of the sampling too); ignore_eos (default false); cancel (default null: never).
/// Errors: InvalidData, naming the line, the key and what is allowed; also for a key not known.
Result<std::vector<ReplayRequest>> parseReplay(std::string_view text, const ReplayLimits &limits);

/// parseReplay() of a file. Errors also: NotFound.
Result<std::vector<ReplayRequest>> loadReplay(const std::string &path, const ReplayLimits &limits);

/// Runs `requests` through `engine`, which is not busy, and returns one outcome each, in order.
/// Before every `compactEvery`-th step the state is compacted; 0: never.
/// Requests of one arrival step are submitted in the order in which they stand. Steps without work
/// are skipped. Errors: those of Engine::submit (naming the request's index) and Engine::poll.
Result<std::vector<ReplayOutcome>> replay(Engine &engine, std::span<const ReplayRequest> requests,
                                          uint64_t compactEvery = 0);

/// The word of a finish reason in reports: "stop", "length", "cancelled", "non-finite".
std::string_view finishReasonName(FinishReason reason);

} // namespace strata
