// Strata's public interface: load a plan, submit prompts, poll for tokens.
//
//   auto engine = strata::Engine::create("model.strata", {});
//   auto id = (*engine)->submit({.prompt = ids, .maxTokens = 64});
//   strata::TokenEvent events[16];
//   while ((*engine)->busy())
//     for (auto &event : events | std::views::take(*(*engine)->poll(events))) ...
//
// An Engine is used from one thread at a time. Everything that it needs is taken in create(); after
// that only submit() allocates (its request's own token buffer).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/Status.h"
#include "runtime/sampling/Sampler.h"
#include "runtime/tokenizer/Tokenizer.h"

namespace strata {

class PlanFile;
class Schedule;
class Executor;

struct EngineOptions {
  uint32_t threads = 0;   ///< Worker threads of a CPU stage; 0: one a core.
  uint32_t sequences = 0; ///< State is taken for this many sequences; 0: the plan's promise.
  uint64_t kvTokens = 0;  ///< State for at least this many tokens in all; 0: as the plan promises.
  std::optional<uint64_t> randomWeightsSeed; ///< Fills the weights of a plan that holds none.
  bool trace = false;     ///< Records the bucket of every launch (launches()).
};

using RequestId = uint64_t;

struct Request {
  std::vector<int32_t> prompt; ///< At least one id, each below the vocabulary's size.
  uint32_t maxTokens = 128;    ///< prompt + maxTokens may pass the context: generation then ends with Length.
  SamplingParameters sampling;
  bool ignoreEndOfGeneration = false;
};

enum class FinishReason : uint8_t { None, Stop, Length, Cancelled };

struct TokenEvent {
  RequestId request = 0;
  int32_t id = -1; ///< -1 where the event only ends the request (Cancelled).
  float logProbability = 0;
  FinishReason finish = FinishReason::None; ///< Not None on a request's last event. With Stop, `id` is the end token.
};

class Engine {
public:
  /// Loads, verifies and boots a plan; returns when the engine is READY.
  static Result<std::unique_ptr<Engine>> create(const std::string &planPath,
                                                const EngineOptions &options);
  ~Engine();

  /// Queues a request, first come first served. Errors: InvalidArgument (empty prompt, an id outside
  /// the vocabulary, a prompt that does not fit the context: both numbers are named).
  Result<RequestId> submit(Request request);

  /// Withdraws a request; its last event says Cancelled. Unknown or finished ids are NotFound.
  Status cancel(RequestId request);

  /// Runs one step, if there is work, and writes the events that it caused; returns how many. `events`
  /// needs room for 2 * the plan's max_sequences.
  Result<size_t> poll(std::span<TokenEvent> events);

  bool busy() const; ///< Whether any request is queued or running.

  /// Refuses further submissions; those accepted run on (poll until not busy()).
  void drain();

  /// Logits at every position of `ids`, handed to `sink(firstPosition, rows, values)` in order, in
  /// slices. The engine must not be busy.
  using LogitsSink = void (*)(void *context, uint32_t firstPosition, uint32_t rows,
                              std::span<const float> values);
  Status logits(std::span<const int32_t> ids, LogitsSink sink, void *context);

  const PlanFile &plan() const;
  const Tokenizer *tokenizer() const; ///< nullptr where the plan holds no vocabulary.
  std::span<const uint32_t> launches() const; ///< Bucket indices in order, with `trace`.

private:
  struct State;
  explicit Engine(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

} // namespace strata
