// Rendering in one line.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "runtime/chat/Template.h"

namespace strata::test {

using Json = nlohmann::ordered_json;

inline Result<std::vector<chat::Span>> renderSpans(std::string_view source, const Json &variables,
                                                   const chat::RenderOptions &options = {}) {
  auto parsed = chat::Template::parse(source);
  if (!parsed.isOk())
    return std::move(parsed).status();
  return parsed->render(variables, options);
}

/// The prompt with what came from the input in ⟨⟩; an error's message where there is one.
inline std::string render(std::string_view source, const Json &variables = Json::object(),
                          const chat::RenderOptions &options = {}) {
  auto spans = renderSpans(source, variables, options);
  if (!spans.isOk())
    return spans.status().toString();
  std::string text;
  for (const chat::Span &span : *spans)
    text += span.fromTemplate ? span.text : "⟨" + span.text + "⟩";
  return text;
}

} // namespace strata::test
