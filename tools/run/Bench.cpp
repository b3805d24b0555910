// strata-run bench: prompt and generation speed of a plan on this machine.
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/Strata.h"
#include "runtime/plan/PlanAccess.h"
#include "runtime/plan/PlanFile.h"
#include "tools/run/Commands.h"
#include "tools/run/EngineFlags.h"
#include "tools/run/Interrupt.h"
#include "tools/run/OptionChecks.h"
#include "tools/run/ProgressBar.h"
#include "tools/run/ReadBandwidth.h"
#include "tools/run/WeightTraffic.h"

namespace strata::run {
namespace {

struct Options {
  std::string plan;
  uint32_t prompt = 512;
  uint32_t generate = 128;
  uint32_t depth = 1;
  uint32_t batch = 1;
  uint32_t repeat = 5;
  EngineFlags engine;
  CLI::Option *promptOption = nullptr;
  CLI::Option *generateOption = nullptr;
  bool json = false;

  uint64_t tokens() const { ///< Of a sequence.
    return std::max(uint64_t(prompt), uint64_t(depth) + generate) + 1;
  }
};

struct Rates { ///< Over the repeats.
  double least, median, most;
};

Rates ratesOf(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  size_t half = samples.size() / 2;
  double median = samples.size() % 2 ? samples[half] : (samples[half - 1] + samples[half]) / 2;
  return {samples.front(), median, samples.back()};
}

nlohmann::ordered_json toJson(const Rates &rates) {
  return {{"min", rates.least}, {"median", rates.median}, {"max", rates.most}};
}

nlohmann::ordered_json toJson(uint32_t tokens, const Rates &tokensPerSecond) {
  return {{"tokens", tokens}, {"tokens_per_second", toJson(tokensPerSecond)}};
}

bool runsOnHost(const fb::Plan &plan) {
  return std::all_of(plan.stages()->begin(), plan.stages()->end(), [](const fb::Stage *stage) {
    return text(stage->target()).starts_with("cpu:");
  });
}

/// Ids spread over the vocabulary, the same on every machine. What they say does not matter to
/// speed.
std::vector<int32_t> spreadIds(uint32_t count, uint32_t vocabulary) {
  std::vector<int32_t> ids(count);
  uint32_t state = 1;
  for (int32_t &id : ids) {
    state = state * 1664525 + 1013904223; // Numerical Recipes
    id = static_cast<int32_t>((uint64_t(state) * vocabulary) >> 32);
  }
  return ids;
}

/// Seconds from the beginning to the last first token of `batch` requests at once, and from then to
/// their end, with the tokens that came in that time.
struct Times {
  double prompt = 0, generation = 0;
  uint64_t generated = 0;
};

Result<Times> measure(Engine &engine, const InterruptScope &interrupt, uint32_t batch,
                      uint32_t prompt, uint32_t generate) {
  using Clock = std::chrono::steady_clock;
  const fb::Plan &plan = engine.plan().plan();
  std::vector<TokenEvent> events(2 * plan.max_sequences());
  std::vector<int32_t> ids = spreadIds(prompt, plan.vocabulary_size());
  Times times;
  std::set<RequestId> begun;
  auto secondsSince = [](Clock::time_point time) {
    return std::chrono::duration<double>(Clock::now() - time).count();
  };
  auto begin = Clock::now();
  for (uint32_t i = 0; i < batch; ++i) {
    Request request{
        .prompt = ids, .maxTokens = generate, .sampling = {}, .ignoreEndOfGeneration = true};
    STRATA_RETURN_IF_ERROR(engine.submit(std::move(request)).status());
  }
  while (engine.busy()) {
    STRATA_ASSIGN_OR_RETURN(size_t written, engine.poll(events));
    bool isGeneration = begun.size() == batch;
    for (const TokenEvent &event : std::span(events).first(written)) {
      if (event.finish == FinishReason::NonFinite)
        return makeError(StatusCode::InvalidData,
                         "layer {} gives an infinity or NaN, at which the sequence ends",
                         event.nonfiniteLayer);
      times.generated += isGeneration;
      begun.insert(event.request);
    }
    if (!isGeneration && begun.size() == batch)
      times.prompt = secondsSince(begin);
    if (interrupt.requested())
      return makeError(StatusCode::Cancelled, "interrupted before the first result");
  }
  times.generation = secondsSince(begin) - times.prompt;
  return times;
}

Status checkAgainst(const fb::Plan &plan, Options &options) {
  uint32_t context = plan.max_context();
  // Only a length that was asked for is refused; the defaults follow a short context.
  if (options.promptOption->count() == 0)
    options.prompt = std::min(options.prompt, context - std::min(context, 1u));
  if (options.generateOption->count() == 0)
    options.generate = std::min(options.generate, context - std::min(context, options.depth + 1));
  if (options.tokens() > context)
    return makeError(StatusCode::InvalidArgument,
                     "--prompt {}, or --depth {} and --generate {}, and one more token pass the "
                     "plan's context of {} tokens",
                     options.prompt, options.depth, options.generate, context);
  if (options.batch > plan.max_sequences())
    return makeError(StatusCode::InvalidArgument,
                     "--batch {} passes the plan's {} sequences; compile with a larger --max-seqs",
                     options.batch, plan.max_sequences());
  return Status::ok();
}

Status bench(Options options) {
  STRATA_ASSIGN_OR_RETURN(std::shared_ptr<const PlanFile> file, PlanFile::open(options.plan));
  STRATA_RETURN_IF_ERROR(checkAgainst(file->plan(), options));
  EngineOptions engineOptions{.sequences = options.batch,
                              .kvTokens = options.tokens() * options.batch};
  options.engine.apply(engineOptions);
  STRATA_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                          Engine::create(std::move(file), engineOptions));

  // A prompt ends with its first token; those that follow the last sequence's first are timed.
  // Memory is read between the runs, so that a machine whose speed drifts is compared with itself.
  const fb::Plan &plan = engine->plan().plan();
  uint64_t stepBytes = weightBytesPerStep(plan, options.batch);
  uint64_t tokenBytes = stepBytes / options.batch;
  std::optional<ReadBandwidth> memory;
  if (runsOnHost(plan))
    memory.emplace(engine->threads());

  InterruptScope interrupt;
  std::vector<double> promptRates, generationRates, readRates, fractions;
  {
    ProgressBar progress("bench", options.repeat + 1);
    for (uint32_t i = 0; i <= options.repeat; ++i) { // the first warms caches and clocks up
      progress.update(i);
      STRATA_ASSIGN_OR_RETURN(Times prompted,
                              measure(*engine, interrupt, options.batch, options.prompt, 1));
      STRATA_ASSIGN_OR_RETURN(Times generated, measure(*engine, interrupt, options.batch,
                                                       options.depth, options.generate + 1));
      double read = memory ? memory->measure() : 0;
      if (i == 0)
        continue;
      double generation = double(generated.generated) / generated.generation;
      promptRates.push_back(double(options.batch) * options.prompt / prompted.prompt);
      generationRates.push_back(generation);
      readRates.push_back(read);
      fractions.push_back(generation * double(tokenBytes) / std::max(read, 1.0));
    }
  }

  Rates prompt = ratesOf(promptRates), generation = ratesOf(generationRates);
  Rates read = ratesOf(readRates), fraction = ratesOf(fractions);
  double gigabytes = double(tokenBytes) * generation.median / 1e9;
  if (options.json) {
    nlohmann::ordered_json result = {{"plan", options.plan},
                                     {"model", plan.model() ? plan.model()->str() : ""},
                                     {"batch", options.batch},
                                     {"depth", options.depth},
                                     {"threads", engine->threads()},
                                     {"repeat", options.repeat},
                                     {"prompt", toJson(options.prompt, prompt)},
                                     {"generation", toJson(options.generate, generation)},
                                     {"weight_bytes_per_token", tokenBytes},
                                     {"weight_gigabytes_per_second", gigabytes}};
    if (memory) {
      result["memory_gigabytes_per_second"] = read.median / 1e9;
      result["fraction_of_memory"] = toJson(fraction);
    }
    fmt::print("{}\n", result.dump());
    return Status::ok();
  }
  fmt::print("{:<12}{:>8}{:>8}{:>12}{:>12}{:>12}\n", "tokens/s", "length", "batch", "min", "median",
             "max");
  fmt::print("{:<12}{:>8}{:>8}{:>12.1f}{:>12.1f}{:>12.1f}\n", "prompt", options.prompt,
             options.batch, prompt.least, prompt.median, prompt.most);
  fmt::print("{:<12}{:>8}{:>8}{:>12.1f}{:>12.1f}{:>12.1f}\n", "generation", options.generate,
             options.batch, generation.least, generation.median, generation.most);
  fmt::print("generation reads {:.1f} MB of weights a token: {:.1f} GB/s\n",
             double(tokenBytes) / 1e6, gigabytes);
  if (memory)
    fmt::print("memory is read at {:.1f} GB/s with {} threads: generation reaches {:.0f} % of it "
               "({:.0f} to {:.0f} %)\n",
               read.median / 1e9, engine->threads(), 100 * fraction.median, 100 * fraction.least,
               100 * fraction.most);
  return Status::ok();
}

} // namespace

Action addBench(CLI::App &command) {
  auto options = std::make_shared<Options>();
  command.add_option("PLAN", options->plan, "A plan file")->required();
  options->promptOption = command.add_option("--prompt", options->prompt, "Tokens of a prompt")
                              ->check(CLI::Range(1u, UINT32_MAX))
                              ->capture_default_str();
  options->generateOption =
      command.add_option("--generate", options->generate, "Tokens to generate")
          ->check(CLI::Range(1u, UINT32_MAX))
          ->capture_default_str();
  command.add_option("--depth", options->depth, "Tokens of context before those")
      ->check(CLI::Range(1u, UINT32_MAX))
      ->capture_default_str();
  command.add_option("--batch", options->batch, "Sequences at once")
      ->check(CLI::Range(1u, UINT32_MAX))
      ->capture_default_str();
  command.add_option("--repeat", options->repeat, "Measurements, after one that warms up")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  options->engine.addTo(command);
  command.add_flag("--json", options->json, "Print one JSON object");
  return [options] { return bench(*options); };
}

} // namespace strata::run
