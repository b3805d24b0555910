// Strata's public interface: load a plan, submit prompts, poll for tokens.
//
//   auto engine = strata::Engine::create("model.strata", {});
//   auto id = (*engine)->submit({.prompt = ids, .maxTokens = 64});
//   strata::TokenEvent events[16];
//   while ((*engine)->busy())
//     for (auto &event : std::span(events).first(*(*engine)->poll(events))) ...
//
// An Engine is used from one thread at a time. Everything that it needs is taken in create(); after
// that only submit() and logits() allocate (the request itself), and a trace grows.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/Status.h"
#include "runtime/sampling/Sampler.h"
#include "runtime/schedule/Request.h"
#include "runtime/tokenizer/Tokenizer.h"

namespace strata {

class PlanFile;
class Executor;
struct ScheduleConfig;

struct EngineOptions {
  uint32_t threads = 0;   ///< Worker threads of each stage; 0: the cores shared out among them.
  uint32_t sequences = 0; ///< State is taken for this many sequences; 0: the plan's promise.
  uint64_t kvTokens = 0;  ///< State for at least this many tokens in all; 0: as the plan promises.
  /// `cpu`, `cuda:INDEX` or `cuda:UUID`, one a stage; empty: the plan's, GPUs counted from 0.
  std::vector<std::string> devices;
  bool useGraphs = true; ///< Of GPUs; else kernels are launched one by one, for debugging.
  std::optional<uint64_t> randomWeightsSeed; ///< Fills the weights of a plan that holds none.
  /// Hands out state blocks in a random order, to show that no result depends on where state lies.
  std::optional<uint64_t> shuffleBlocksSeed;
  bool trace = false; ///< Records the bucket of every launch (launches()).
};

class Engine {
public:
  /// Loads, verifies and boots a plan; returns when the engine is READY.
  static Result<std::unique_ptr<Engine>> create(const std::string &planPath,
                                                const EngineOptions &options);

  /// The same of a plan that is open and verified.
  static Result<std::unique_ptr<Engine>> create(std::shared_ptr<const PlanFile> plan,
                                                const EngineOptions &options);

  /// The same engine over an executor of one's own, without a plan or a tokenizer.
  static Result<std::unique_ptr<Engine>> create(std::unique_ptr<Executor> executor,
                                                ScheduleConfig config, bool trace = false);
  ~Engine();

  /// Queues a request, first come first served. Errors: InvalidArgument (empty prompt, an id
  /// outside the vocabulary, a prompt that leaves no room in the context: both numbers are named;
  /// sampling out of range), ResourceExhausted (state blocks that the pool never has),
  /// FailedPrecondition (after drain()).
  Result<RequestId> submit(Request request);

  /// Withdraws a request; its last event says Cancelled and comes with the next poll. Unknown or
  /// finished ids are NotFound.
  Status cancel(RequestId request);

  /// Ends one step, if there is work, and writes the events that it caused; returns how many.
  /// Further steps are under way when it returns, one of them at least where there is more to do.
  /// Events for which `events` (at least one) has no room come with the next poll, before another
  /// step; room for 2 * the plan's max_sequences never makes a step wait. Errors: those of the
  /// devices; the engine is then at its end and every further poll says the same.
  Result<size_t> poll(std::span<TokenEvent> events);

  /// Moves the state of running sequences, from the next step on, into the blocks of the lowest
  /// numbers, and clears what it leaves: what is free then lies in one piece.
  void compact();

  bool busy() const; ///< Whether any request's last event, or a step begun for it, is to come.

  /// Refuses further submissions; those accepted run on (poll until not busy()).
  void drain();

  /// Logits at every position of `ids` (up to the plan's context), handed to
  /// `sink(context, firstPosition, rows, values)` in order, in slices: values are F32
  /// [rows, vocabulary], valid during the call. Errors: FailedPrecondition (the engine is busy) and
  /// those of submit() and poll(); InvalidData where a layer gave an infinity or NaN.
  using LogitsSink = void (*)(void *context, uint32_t firstPosition, uint32_t rows,
                              std::span<const float> values);
  Status logits(std::span<const int32_t> ids, LogitsSink sink, void *context);

  uint32_t threads() const;                   ///< Worker threads; 0 over an executor of one's own.
  const PlanFile &plan() const;               ///< Of an engine that was made from a plan.
  const Tokenizer *tokenizer() const;         ///< nullptr where the plan holds no vocabulary.
  std::span<const uint32_t> launches() const; ///< Bucket indices in order, with `trace`.

private:
  struct State;
  explicit Engine(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

} // namespace strata
