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
#include "tools/run/Interrupt.h"
#include "tools/run/Prompt.h"
#include "tools/run/SamplingFlags.h"

namespace strata::run {
namespace {

using Clock = std::chrono::steady_clock;

double secondsBetween(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

struct Options {
  std::string plan;
  Prompt prompt;
  uint32_t maxTokens = 128;
  SamplingParameters sampling;
  uint32_t threads = 0;
  bool json = false;
};

struct Completion {
  std::vector<int32_t> ids; ///< The end token included.
  std::string text;
  const char *finishReason = "length";
  Clock::time_point submitted, firstToken, lastToken;

  double promptSeconds() const { return secondsBetween(submitted, firstToken); }
  double generationSeconds() const { return secondsBetween(firstToken, lastToken); }
  /// The first token comes out of the prompt's last step.
  double tokensPerSecond() const {
    double seconds = generationSeconds();
    return seconds > 0 ? static_cast<double>(ids.size() - 1) / seconds : 0;
  }
};

/// Turns ids into text as they come, or into numbers where the plan has no vocabulary.
class TextStream {
public:
  TextStream(const Tokenizer *tokenizer, bool print) : print_(print) {
    if (tokenizer)
      detokenizer_.emplace(*tokenizer, /*special=*/false, /*atStart=*/false);
  }

  void push(int32_t id, bool endsGeneration) {
    if (!detokenizer_ && print_)
      fmt::print("{} ", id);
    if (detokenizer_ && !endsGeneration)
      write(detokenizer_->push(id));
  }
  std::string finish() {
    if (detokenizer_)
      write(detokenizer_->finish());
    return std::move(text_);
  }

private:
  void write(const std::string &text) {
    text_ += text;
    if (print_ && !text.empty()) {
      std::fwrite(text.data(), 1, text.size(), stdout);
      std::fflush(stdout);
    }
  }

  std::optional<Detokenizer> detokenizer_;
  std::string text_;
  bool print_;
};

Result<Completion> complete(Engine &engine, Request request, const InterruptScope &interrupt,
                            bool print) {
  Completion completion;
  TextStream stream(engine.tokenizer(), print);
  std::vector<TokenEvent> events(2 * engine.plan().plan().max_sequences());

  completion.submitted = completion.firstToken = completion.lastToken = Clock::now();
  STRATA_ASSIGN_OR_RETURN(RequestId id, engine.submit(std::move(request)));
  for (bool cancelled = false; engine.busy();) {
    if (interrupt.requested() && !cancelled) {
      cancelled = true;
      // NotFound: it ended by itself, and its last event is still to come.
      if (Status status = engine.cancel(id); status.code() != StatusCode::NotFound)
        STRATA_RETURN_IF_ERROR(std::move(status));
    }
    STRATA_ASSIGN_OR_RETURN(size_t count, engine.poll(events));
    for (const TokenEvent &event : std::span(events).first(count)) {
      if (event.id >= 0) {
        completion.lastToken = Clock::now();
        if (completion.ids.empty())
          completion.firstToken = completion.lastToken;
        completion.ids.push_back(event.id);
        stream.push(event.id, event.finish == FinishReason::Stop);
      }
      if (event.finish == FinishReason::Stop)
        completion.finishReason = "stop";
      else if (event.finish == FinishReason::Cancelled)
        completion.finishReason = "interrupted";
      else if (event.finish == FinishReason::NonFinite)
        return makeError(StatusCode::InvalidData,
                         "layer {} gave an infinity or NaN after {} generated tokens; the weights "
                         "are damaged (strata-run verify compares them with their hashes)",
                         event.nonfiniteLayer, completion.ids.size());
    }
  }
  completion.text = stream.finish();
  return completion;
}

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
  auto started = Clock::now();
  InterruptScope interrupt;
  std::vector<int32_t> prompt;
  uint64_t context = 0;
  {
    STRATA_ASSIGN_OR_RETURN(std::shared_ptr<const PlanFile> plan, PlanFile::open(options.plan));
    STRATA_ASSIGN_OR_RETURN(std::unique_ptr<Tokenizer> tokenizer, planTokenizer(*plan));
    STRATA_ASSIGN_OR_RETURN(prompt, options.prompt.resolve(tokenizer.get()));
    context = plan->plan().max_context();
  }
  // The state that this one sequence needs, and no more.
  EngineOptions engineOptions{
      .threads = options.threads,
      .sequences = 1,
      .kvTokens = std::clamp<uint64_t>(uint64_t(prompt.size()) + options.maxTokens, 1, context),
      .trace = options.json};
  STRATA_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                          Engine::create(options.plan, engineOptions));
  double bootSeconds = secondsBetween(started, Clock::now());

  Request request{.prompt = prompt, .maxTokens = options.maxTokens, .sampling = options.sampling};
  STRATA_ASSIGN_OR_RETURN(Completion completion,
                          complete(*engine, std::move(request), interrupt, !options.json));
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
  addSamplingFlags(command, options->sampling);
  command.add_option("--threads", options->threads, "Threads; 0: one a core")
      ->capture_default_str();
  command.add_flag("--json", options->json, "Print one JSON object at the end");
  return [options] { return generate(*options); };
}

} // namespace strata::run
