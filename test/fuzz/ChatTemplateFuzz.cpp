// A template that may be anything, rendered over one conversation with tools.
#include <cstdlib>
#include <string_view>

#include "runtime/chat/Template.h"

#include <nlohmann/json.hpp>

using namespace strata;

namespace {

// A character that only the conversation has, in every text of it.
constexpr std::string_view mark = "\xEE\x80\x80";

const nlohmann::ordered_json &variables() {
  static const auto json = nlohmann::ordered_json::parse(R"({
    "messages": [{"role": "system", "content": "\ue000Be  brief.\n"},
                 {"role": "user", "content": [{"type": "text", "text": "<|x|>\ue000 Zürich"}]},
                 {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function",
                   "function": {"name": "f", "arguments": {"n": 2, "x": [1.5, null, true]}}}]},
                 {"role": "tool", "tool_call_id": "c1", "content": "\ue000{\"a\": 1}"}],
    "tools": [{"type": "function", "function": {"name": "f\ue000", "parameters": {"type": "object"}}}],
    "add_generation_prompt": true})");
  return json;
}

void require(bool holds) {
  if (!holds)
    std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view source(reinterpret_cast<const char *>(data), size);
  auto parsed = chat::Template::parse(source);
  if (!parsed.isOk())
    return 0;
  chat::RenderOptions options{.templateTexts = {{"bos_token", "<s>"}, {"eos_token", "</s>"}},
                              .clock = [] { return std::tm{.tm_mday = 1, .tm_year = 125}; }};
  // Little enough for many inputs a second.
  options.limits.steps = {100'000, 64};
  options.limits.bytes = {16 << 20, 128};
  options.limits.textBytes = {1 << 20, 8};
  auto spans = parsed->render(variables(), options);
  if (!spans.isOk())
    return 0;
  // A template can write the mark itself, as it stands or behind a backslash.
  bool writesMark = source.find(mark[0]) != source.npos || source.find('\\') != source.npos;
  for (size_t i = 0; i < spans->size(); ++i) {
    const chat::Span &span = (*spans)[i];
    require(!span.text.empty());
    require(i == 0 || span.fromTemplate != (*spans)[i - 1].fromTemplate);
    require(writesMark || !span.fromTemplate || span.text.find(mark) == span.text.npos);
  }
  return 0;
}
