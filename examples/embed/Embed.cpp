// Strata inside another program: continues a text.
//
//   embed model.strata "Once upon a time"
#include <cstdio>
#include <span>
#include <vector>

#include <runtime/Strata.h>

static strata::Status run(const char *plan, const char *text) {
  STRATA_ASSIGN_OR_RETURN(auto engine, strata::Engine::create(plan, {}));
  const strata::Tokenizer *tokenizer = engine->tokenizer();
  if (!tokenizer)
    return {strata::StatusCode::InvalidArgument, "the plan has no vocabulary"};
  STRATA_ASSIGN_OR_RETURN(std::vector<int32_t> prompt, tokenizer->encode(text, {}));
  strata::Request request{.prompt = prompt, .maxTokens = 32};
  STRATA_RETURN_IF_ERROR(engine->submit(request).status());

  strata::Detokenizer detokenizer(*tokenizer, /*special=*/false, /*atStart=*/false);
  std::vector<strata::TokenEvent> events(16);
  while (engine->busy()) {
    STRATA_ASSIGN_OR_RETURN(size_t count, engine->poll(events));
    for (const strata::TokenEvent &event : std::span(events).first(count))
      if (event.id >= 0 && event.finish != strata::FinishReason::Stop)
        std::fputs(detokenizer.push(event.id).c_str(), stdout);
  }
  std::puts(detokenizer.finish().c_str());
  return strata::Status::ok();
}

int main(int argc, char **argv) {
  strata::Status status =
      argc == 3 ? run(argv[1], argv[2])
                : strata::Status(strata::StatusCode::InvalidArgument, "usage: embed PLAN TEXT");
  if (!status.isOk())
    std::fprintf(stderr, "embed: %s\n", status.toString().c_str());
  return status.isOk() ? 0 : 1;
}
