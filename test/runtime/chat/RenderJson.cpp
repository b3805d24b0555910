// Renders chat templates for tests that compare them with Jinja2: one JSON request a line on stdin
// ({"template", "variables", "template_texts", "now"}), one JSON answer a line on stdout
// ({"spans"} or {"error", "code"}).
#include <iostream>

#include <nlohmann/json.hpp>

#include "runtime/chat/Template.h"

namespace {

using Json = nlohmann::ordered_json;

Json failure(const strata::Status &status) {
  return {{"error", status.message()}, {"code", strata::statusCodeName(status.code())}};
}

Json answer(const Json &request) {
  auto parsed = strata::chat::Template::parse(request["template"].get<std::string>());
  if (!parsed.isOk())
    return failure(parsed.status());
  strata::chat::RenderOptions options;
  const Json texts = request.value("template_texts", Json::object());
  for (const auto &[name, text] : texts.items())
    options.templateTexts.emplace_back(name, text.get<std::string>());
  if (request.contains("now"))
    options.clock = [seconds = request["now"].get<std::time_t>()] {
      std::tm time{};
      gmtime_r(&seconds, &time);
      return time;
    };
  auto spans = parsed->render(request["variables"], options);
  if (!spans.isOk())
    return failure(spans.status());
  Json out = Json::array();
  for (const strata::chat::Span &span : *spans)
    out.push_back({span.text, span.fromTemplate});
  return {{"spans", out}};
}

} // namespace

int main() {
  std::ios::sync_with_stdio(false);
  for (std::string line; std::getline(std::cin, line);)
    std::cout << answer(Json::parse(line)).dump(-1, ' ', false, Json::error_handler_t::replace)
              << std::endl;
}
