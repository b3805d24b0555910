// strata-run perplexity: how well a model predicts a text.
//
// As is usual (docs/operations.md): the text's ids are cut into windows of `--context` ids, what is
// left over is not used, and where the model begins sequences with a token, that one takes the
// place of each window's first. A window's first half is context alone; each id of the second half
// is predicted from all before it in the window.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/Strata.h"
#include "runtime/plan/PlanFile.h"
#include "tools/run/Commands.h"
#include "tools/run/EngineFlags.h"
#include "tools/run/Interrupt.h"
#include "tools/run/ProgressBar.h"
#include "tools/run/Prompt.h"
#include "tools/run/TextFile.h"

namespace strata::run {
namespace {

constexpr uint32_t leastContext = 4, usualContext = 512;

struct Options {
  std::string plan;
  std::string textFile;
  uint32_t context = 0;
  CLI::Option *contextOption = nullptr;
  uint32_t threads = 0;
  bool json = false;
};

/// Negative log-likelihoods of the ids predicted so far.
struct Likelihoods {
  uint64_t count = 0;
  double sum = 0;
  double squares = 0;

  double mean() const { return sum / static_cast<double>(count); }
  double perplexity() const { return std::exp(mean()); }
  /// Of the perplexity: that of the mean, through the derivative of exp.
  double standardError() const {
    double variance = squares / static_cast<double>(count) - mean() * mean();
    return variance > 0 && count > 1
               ? std::sqrt(variance / static_cast<double>(count - 1)) * perplexity()
               : 0;
  }
};

double negativeLogLikelihood(std::span<const float> logits, int32_t id) {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (float logit : logits)
    largest = std::max(largest, static_cast<double>(logit));
  for (float logit : logits)
    sum += std::exp(static_cast<double>(logit) - largest);
  return std::log(sum) + largest - static_cast<double>(logits[static_cast<size_t>(id)]);
}

/// One window as its logits come.
struct Window {
  std::span<const int32_t> ids;
  Likelihoods &likelihoods;

  static void take(void *context, uint32_t firstPosition, uint32_t rows,
                   std::span<const float> values) {
    auto &window = *static_cast<Window *>(context);
    size_t width = values.size() / rows;
    for (uint32_t row = 0; row < rows; ++row) {
      size_t position = firstPosition + row;
      if (position < window.ids.size() / 2 || position + 1 == window.ids.size())
        continue;
      double value =
          negativeLogLikelihood(values.subspan(row * width, width), window.ids[position + 1]);
      ++window.likelihoods.count;
      window.likelihoods.sum += value;
      window.likelihoods.squares += value * value;
    }
  }
};

struct Prepared {
  std::vector<int32_t> ids;
  uint32_t context;
};

/// The text's ids and the window, from the plan alone: before memory is taken.
Result<Prepared> prepare(const PlanFile &plan, const Options &options) {
  STRATA_ASSIGN_OR_RETURN(std::unique_ptr<Tokenizer> tokenizer, planTokenizer(plan));
  if (!tokenizer)
    return makeError(
        StatusCode::InvalidArgument,
        "the plan has no vocabulary, since its checkpoint had none: a text has no ids");
  uint32_t most = plan.plan().max_context();
  uint32_t context =
      options.contextOption->count() > 0 ? options.context : std::min(usualContext, most);
  if (context < leastContext || context > most)
    return makeError(StatusCode::InvalidArgument,
                     "a window of {} tokens; allowed is {} to the plan's context of {}", context,
                     leastContext, most);
  STRATA_ASSIGN_OR_RETURN(std::string text, readTextFile(options.textFile));
  STRATA_ASSIGN_OR_RETURN(std::vector<int32_t> ids, tokenizer->encode(text, {.addBos = true}));
  if (ids.size() < context)
    return makeError(StatusCode::InvalidArgument,
                     "the text has {} tokens and one window takes {}; give a longer text or a "
                     "smaller --context",
                     ids.size(), context);
  ids.resize(ids.size() / context * context);
  const Vocabulary &vocabulary = tokenizer->vocabulary();
  for (size_t begin = 0; vocabulary.addBos && vocabulary.bosId >= 0 && begin < ids.size();
       begin += context)
    ids[begin] = vocabulary.bosId;
  return Prepared{std::move(ids), context};
}

Status perplexity(const Options &options) {
  STRATA_ASSIGN_OR_RETURN(std::shared_ptr<const PlanFile> plan, PlanFile::open(options.plan));
  STRATA_ASSIGN_OR_RETURN(Prepared prepared, prepare(*plan, options));
  STRATA_ASSIGN_OR_RETURN(
      std::unique_ptr<Engine> engine,
      Engine::create(std::move(plan),
                     {.threads = options.threads, .sequences = 1, .kvTokens = prepared.context}));
  InterruptScope interrupt;
  Likelihoods likelihoods;
  std::span<const int32_t> ids = prepared.ids;
  {
    ProgressBar progress("perplexity", ids.size());
    for (size_t begin = 0; begin < ids.size(); begin += prepared.context) {
      if (interrupt.requested())
        return makeError(StatusCode::Cancelled, "interrupted after {} of {} windows",
                         begin / prepared.context, ids.size() / prepared.context);
      Window window{ids.subspan(begin, prepared.context), likelihoods};
      STRATA_RETURN_IF_ERROR(engine->logits(window.ids, Window::take, &window));
      progress.update(begin + prepared.context);
    }
  }
  size_t windows = ids.size() / prepared.context;
  if (options.json) {
    nlohmann::ordered_json result = {{"perplexity", likelihoods.perplexity()},
                                     {"standard_error", likelihoods.standardError()},
                                     {"mean_negative_log_likelihood", likelihoods.mean()},
                                     {"tokens", likelihoods.count},
                                     {"windows", windows},
                                     {"context", prepared.context}};
    fmt::print("{}\n", result.dump());
    return Status::ok();
  }
  fmt::print("perplexity {:.4f} +/- {:.4f}, {} tokens in {} windows of {}\n",
             likelihoods.perplexity(), likelihoods.standardError(), likelihoods.count, windows,
             prepared.context);
  return Status::ok();
}

} // namespace

Action addPerplexity(CLI::App &command) {
  auto options = std::make_shared<Options>();
  command.add_option("PLAN", options->plan, "A plan file")->required();
  command.add_option("--text-file", options->textFile, "A file that holds the text")->required();
  options->contextOption =
      command.add_option("--context", options->context,
                         "Tokens of a window; by default 512, or the plan's context if smaller");
  addThreads(command, options->threads);
  command.add_flag("--json", options->json, "Print one JSON object");
  return [options] { return perplexity(*options); };
}

} // namespace strata::run
