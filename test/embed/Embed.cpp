// Continues a prompt of token ids with a plan: embed PLAN ID...
#include <cstdio>
#include <cstdlib>

#include "runtime/Strata.h"

int fail(const strata::Status &status) {
  std::fprintf(stderr, "embed: %s\n", status.toString().c_str());
  return 1;
}

int main(int argc, char **argv) {
  auto engine = strata::Engine::create(argc > 1 ? argv[1] : "", {.sequences = 1});
  if (!engine.isOk())
    return fail(engine.status());
  strata::Request request{.prompt = {}, .maxTokens = 8};
  for (int i = 2; i < argc; ++i)
    request.prompt.push_back(std::atoi(argv[i]));
  auto id = (*engine)->submit(std::move(request));
  if (!id.isOk())
    return fail(id.status());
  strata::TokenEvent events[2];
  while ((*engine)->busy()) {
    auto count = (*engine)->poll(events);
    if (!count.isOk())
      return fail(count.status());
    for (const strata::TokenEvent &event : std::span(events).first(*count))
      std::printf("%d\n", event.id);
  }
}
