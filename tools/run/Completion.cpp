#include "tools/run/Completion.h"

#include <cstdio>
#include <optional>
#include <span>

#include "runtime/plan/PlanFile.h"

namespace strata::run {
namespace {

using Clock = std::chrono::steady_clock;

double secondsBetween(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

/// Turns ids into text as they come, up to a stop string, or into numbers where the plan has no
/// vocabulary.
class TextStream {
public:
  TextStream(const Tokenizer *tokenizer, StopFilter stops, bool print)
      : stops_(std::move(stops)), print_(print) {
    if (tokenizer)
      detokenizer_.emplace(*tokenizer, /*special=*/false, /*atStart=*/false);
  }

  void push(int32_t id, bool endsGeneration) {
    if (!detokenizer_ && print_)
      fmt::print("{} ", id);
    if (detokenizer_ && !endsGeneration)
      write(stops_.push(detokenizer_->push(id)));
  }
  bool stopped() const { return stops_.stopped(); }
  std::string finish() {
    if (detokenizer_)
      write(stops_.push(detokenizer_->finish()) + stops_.finish());
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
  StopFilter stops_;
  std::string text_;
  bool print_;
};

} // namespace

double Completion::promptSeconds() const { return secondsBetween(submitted, firstToken); }

double Completion::generationSeconds() const { return secondsBetween(firstToken, lastToken); }

double Completion::tokensPerSecond() const {
  double seconds = generationSeconds();
  return seconds > 0 ? static_cast<double>(ids.size() - 1) / seconds : 0;
}

double secondsSince(Clock::time_point begin) { return secondsBetween(begin, Clock::now()); }

Result<Completion> complete(Engine &engine, Request request, StopFilter stops,
                            const InterruptScope &interrupt, bool print) {
  Completion completion;
  TextStream stream(engine.tokenizer(), std::move(stops), print);
  std::vector<TokenEvent> events(2 * engine.plan().plan().max_sequences());

  completion.submitted = completion.firstToken = completion.lastToken = Clock::now();
  STRATA_ASSIGN_OR_RETURN(RequestId id, engine.submit(std::move(request)));
  for (bool cancelled = false; engine.busy();) {
    if ((interrupt.requested() || stream.stopped()) && !cancelled) {
      cancelled = true;
      // NotFound: it ended by itself, and its last event is still to come.
      if (Status status = engine.cancel(id); status.code() != StatusCode::NotFound)
        STRATA_RETURN_IF_ERROR(std::move(status));
    }
    STRATA_ASSIGN_OR_RETURN(size_t count, engine.poll(events));
    for (const TokenEvent &event : std::span(events).first(count)) {
      if (stream.stopped())
        continue; // what was drawn behind the stop string
      if (event.id >= 0) {
        completion.lastToken = Clock::now();
        if (completion.ids.empty())
          completion.firstToken = completion.lastToken;
        completion.ids.push_back(event.id);
        stream.push(event.id, event.finish == FinishReason::Stop);
        if (print && std::ferror(stdout) != 0) // nobody sees the rest
          return makeError(StatusCode::Internal, "standard output cannot be written");
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
  if (stream.stopped())
    completion.finishReason = "stop";
  return completion;
}

} // namespace strata::run
