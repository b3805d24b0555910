// strata-run generate: one completion, streamed.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/Strata.h"
#include "runtime/plan/PlanFile.h"
#include "tools/run/Commands.h"
#include "tools/run/Completion.h"
#include "tools/run/EngineFlags.h"
#include "tools/run/Interrupt.h"
#include "tools/run/Prompt.h"
#include "tools/run/SamplingFlags.h"

namespace strata::run {
namespace {

struct Options {
  std::string plan;
  Prompt prompt;
  uint32_t maxTokens = 128;
  SamplingFlags sampling;
  EngineFlags engine;
  bool json = false;
};

nlohmann::ordered_json toJson(const Completion &completion, const std::vector<int32_t> &prompt,
                              const Engine &engine, double bootSeconds) {
  nlohmann::ordered_json forwards = nlohmann::ordered_json::array();
  for (uint32_t bucket : engine.launches())
    forwards.push_back(engine.plan().plan().buckets()->Get(bucket)->name()->str());
  double promptSeconds = completion.promptSeconds();
  return {{"prompt_ids", prompt},
          {"ids", completion.ids},
          {"text", completion.text},
          {"finish_reason", completion.finishReason},
          {"timings",
           {{"boot_seconds", bootSeconds},
            {"prompt_seconds", promptSeconds},
            {"prompt_tokens_per_second",
             promptSeconds > 0 ? static_cast<double>(prompt.size()) / promptSeconds : 0},
            {"generation_seconds", completion.generationSeconds()},
            {"generation_tokens_per_second", completion.tokensPerSecond()}}},
          {"forwards", forwards}};
}

Status generate(const Options &options) {
  auto started = std::chrono::steady_clock::now();
  STRATA_ASSIGN_OR_RETURN(std::shared_ptr<const PlanFile> plan, PlanFile::open(options.plan));
  std::vector<int32_t> prompt;
  StopFilter stops;
  {
    STRATA_ASSIGN_OR_RETURN(std::unique_ptr<Tokenizer> tokenizer, planTokenizer(*plan));
    STRATA_ASSIGN_OR_RETURN(prompt, options.prompt.resolve(tokenizer.get()));
    STRATA_ASSIGN_OR_RETURN(stops, options.sampling.stopFilter(tokenizer.get()));
  }
  const uint64_t context = plan->plan().max_context();
  // The state that this one sequence needs, and no more.
  EngineOptions engineOptions{
      .sequences = 1,
      .kvTokens = std::clamp<uint64_t>(uint64_t(prompt.size()) + options.maxTokens, 1, context),
      .trace = options.json};
  options.engine.apply(engineOptions);
  STRATA_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                          Engine::create(std::move(plan), engineOptions));
  double bootSeconds = secondsSince(started);
  InterruptScope interrupt; // until here a signal ends the process: nothing is lost by it

  Request request{.prompt = prompt, .maxTokens = options.maxTokens};
  STRATA_RETURN_IF_ERROR(options.sampling.apply(engine->plan().plan().vocabulary_size(), request));
  STRATA_ASSIGN_OR_RETURN(
      Completion completion,
      complete(*engine, std::move(request), std::move(stops), interrupt, !options.json));
  if (options.json) {
    fmt::print("{}\n", toJson(completion, prompt, *engine, bootSeconds)
                           .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    std::fputc('\n', stdout);
    std::fflush(stdout);
    fmt::print(stderr,
               "[{}: prompt {} tokens in {:.2f} s, generated {} at {:.1f} tokens/s, boot {:.2f} "
               "s]\n",
               completion.finishReason, prompt.size(), completion.promptSeconds(),
               completion.ids.size(), completion.tokensPerSecond(), bootSeconds);
  }
  return std::string_view(completion.finishReason) == "interrupted"
             ? Status(StatusCode::Cancelled, "")
             : Status::ok();
}

} // namespace

Action addGenerate(CLI::App &command) {
  auto options = std::make_shared<Options>();
  command.add_option("PLAN", options->plan, "A plan file")->required();
  options->prompt.addTo(command);
  command.add_option("--max-tokens", options->maxTokens, "Most tokens to generate")
      ->check(CLI::Range(1u, UINT32_MAX))
      ->capture_default_str();
  options->sampling.addTo(command);
  options->engine.addTo(command);
  command.add_flag("--json", options->json, "Print one JSON object at the end");
  return [options] { return generate(*options); };
}

} // namespace strata::run
