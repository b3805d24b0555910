#include "runtime/chat/ChatPrompt.h"

#include "runtime/tokenizer/SpecialTokens.h"

namespace strata::chat {
namespace {

using Json = nlohmann::ordered_json;

std::string tokenText(const Vocabulary &vocabulary, int32_t id) {
  return id >= 0 && size_t(id) < vocabulary.tokens.size() ? vocabulary.tokens[size_t(id)] : "";
}

Status checkRoles(const Json &messages) {
  if (!messages.is_array())
    return makeError(StatusCode::InvalidArgument, "messages are of type {}; they must be an array",
                     messages.type_name());
  for (size_t i = 0; i < messages.size(); ++i) {
    if (!messages[i].is_object())
      return makeError(StatusCode::InvalidArgument,
                       "message {} is of type {}; it must be an object", i,
                       messages[i].type_name());
    auto role = messages[i].find("role");
    if (role == messages[i].end() || !role->is_string())
      return makeError(StatusCode::InvalidArgument, "message {} has no role (a string)", i);
  }
  return Status::ok();
}

/// `"arguments": "{\"city\": \"Oslo\"}"` becomes an object; what is no JSON object stays a string.
void parseToolArguments(Json &messages) {
  for (Json &message : messages) {
    auto calls = message.find("tool_calls");
    if (calls == message.end() || !calls->is_array())
      continue;
    for (Json &call : *calls) {
      if (!call.is_object())
        continue;
      Json &function = call.contains("function") ? call["function"] : call;
      if (!function.is_object() || !function.contains("arguments") ||
          !function["arguments"].is_string())
        continue;
      Json parsed = Json::parse(function["arguments"].get_ref<const std::string &>(), nullptr,
                                /*allow_exceptions=*/false);
      if (parsed.is_object())
        function["arguments"] = std::move(parsed);
    }
  }
}

} // namespace

Result<ChatPrompt> ChatPrompt::create(const Vocabulary &vocabulary) {
  if (vocabulary.chatTemplate.empty())
    return makeError(
        StatusCode::FailedPrecondition,
        "the model has no chat template, and none is assumed; give it text to complete "
        "instead of messages");
  return create(vocabulary, vocabulary.chatTemplate);
}

Result<ChatPrompt> ChatPrompt::create(const Vocabulary &vocabulary, std::string_view source) {
  STRATA_ASSIGN_OR_RETURN(Template parsed, Template::parse(source));
  return ChatPrompt(std::move(parsed), tokenText(vocabulary, vocabulary.bosId),
                    tokenText(vocabulary, vocabulary.eosId));
}

Result<std::vector<Span>> ChatPrompt::render(const ChatInput &input, RenderOptions options) const {
  STRATA_RETURN_IF_ERROR(checkRoles(input.messages));
  if (!input.tools.is_null() && !input.tools.is_array())
    return makeError(StatusCode::InvalidArgument, "tools are of type {}; they must be an array",
                     input.tools.type_name());
  if (!input.variables.is_object())
    return makeError(StatusCode::InvalidArgument,
                     "the template's variables are of type {}; they must be an object",
                     input.variables.type_name());
  Json variables = input.variables;
  variables["messages"] = input.messages;
  parseToolArguments(variables["messages"]);
  // As transformers has it: present, and none where there are no tools.
  variables["tools"] = input.tools.empty() ? Json() : input.tools;
  if (!variables.contains("documents"))
    variables["documents"] = nullptr;
  variables["add_generation_prompt"] = input.addGenerationPrompt;
  options.templateTexts.emplace_back("bos_token", bosText_);
  options.templateTexts.emplace_back("eos_token", eosText_);
  return template_.render(variables, options);
}

Result<std::vector<int32_t>> encodeSpans(const Tokenizer &tokenizer,
                                         const std::vector<Span> &spans) {
  const Vocabulary &vocabulary = tokenizer.vocabulary();
  std::vector<SpecialTokens::Entry> control;
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id)
    if (vocabulary.kinds[id] == TokenKind::Control || vocabulary.kinds[id] == TokenKind::Unknown)
      control.push_back({vocabulary.tokens[id], int32_t(id)});
  SpecialTokens specialTokens(std::move(control));

  std::vector<int32_t> ids;
  std::string pending;
  auto flush = [&]() -> Status {
    if (pending.empty())
      return Status::ok();
    STRATA_ASSIGN_OR_RETURN(std::vector<int32_t> more,
                            tokenizer.encode(pending, {.addBos = false}));
    ids.insert(ids.end(), more.begin(), more.end());
    pending.clear();
    return Status::ok();
  };
  for (const Span &span : spans) {
    if (!span.fromTemplate) {
      pending += span.text;
      continue;
    }
    for (const auto &fragment : specialTokens.split(span.text)) {
      if (fragment.id < 0) {
        pending += fragment.text;
        continue;
      }
      STRATA_RETURN_IF_ERROR(flush());
      ids.push_back(fragment.id);
    }
  }
  STRATA_RETURN_IF_ERROR(flush());
  return ids;
}

} // namespace strata::chat
