// strata-run replay: a recorded stream of requests through the engine.
#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/Strata.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/schedule/Replay.h"
#include "tools/run/Commands.h"
#include "tools/run/EngineFlags.h"
#include "tools/run/OptionChecks.h"

namespace strata::run {
namespace {

struct Options {
  std::string plan;
  std::string trace;
  EngineFlags engine;
  std::optional<uint64_t> shuffleBlocksSeed;
  uint64_t compactEvery = 0;
  bool json = false;
};

Status replayTrace(const Options &options) {
  EngineOptions engineOptions;
  options.engine.apply(engineOptions);
  engineOptions.shuffleBlocksSeed = options.shuffleBlocksSeed;
  STRATA_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                          Engine::create(options.plan, engineOptions));
  const fb::Plan &plan = engine->plan().plan();
  ReplayLimits limits{.vocabularySize = plan.vocabulary_size(), .maxContext = plan.max_context()};
  STRATA_ASSIGN_OR_RETURN(std::vector<ReplayRequest> requests, loadReplay(options.trace, limits));
  STRATA_ASSIGN_OR_RETURN(std::vector<ReplayOutcome> outcomes,
                          replay(*engine, requests, options.compactEvery));

  uint64_t steps = 0, tokens = 0;
  if (!options.json)
    fmt::print("{:>7}{:>8}{:>11}{:>12}{:>10}  {}\n", "request", "prompt", "generated", "first step",
               "last step", "finish");
  for (size_t i = 0; i < outcomes.size(); ++i) {
    const ReplayOutcome &outcome = outcomes[i];
    steps = std::max(steps, outcome.finishedStep + 1);
    tokens += outcome.ids.size();
    if (options.json) {
      nlohmann::ordered_json line = {{"request", i},
                                     {"ids", outcome.ids},
                                     {"log_probabilities", outcome.logProbabilities},
                                     {"finish_reason", finishReasonName(outcome.finish)},
                                     {"first_step", outcome.firstStep},
                                     {"finished_step", outcome.finishedStep}};
      if (outcome.nonfiniteLayer >= 0)
        line["nonfinite_layer"] = outcome.nonfiniteLayer;
      fmt::print("{}\n", line.dump());
    } else {
      fmt::print("{:>7}{:>8}{:>11}{:>12}{:>10}  {}\n", i, requests[i].request.prompt.size(),
                 outcome.ids.size(), outcome.firstStep, outcome.finishedStep,
                 finishReasonName(outcome.finish));
    }
  }
  if (!options.json)
    fmt::print("{} requests, {} steps, {} tokens generated\n", outcomes.size(), steps, tokens);
  return Status::ok();
}

} // namespace

Action addReplay(CLI::App &command) {
  auto options = std::make_shared<Options>();
  command.add_option("PLAN", options->plan, "A plan file")->required();
  command
      .add_option("TRACE", options->trace,
                  "JSON lines, one request each: arrival, prompt or prompt_length, max_tokens, "
                  "sampling, cancel")
      ->required();
  options->engine.addTo(command);
  command
      .add_option("--shuffle-blocks", options->shuffleBlocksSeed,
                  "Seed of a random order in which state blocks are handed out")
      ->check(wholeNumber);
  command
      .add_option("--compact", options->compactEvery,
                  "Steps from one move of all state to the front of its pools to the next")
      ->check(wholeNumber);
  command.add_flag("--json", options->json, "Print JSON lines, one outcome each");
  return [options] { return replayTrace(*options); };
}

} // namespace strata::run
