// From messages to a prompt, and from the prompt to ids.
#pragma once

#include <nlohmann/json.hpp>

#include "runtime/chat/Template.h"
#include "runtime/tokenizer/Tokenizer.h"

namespace strata::chat {

/// What a conversation gives to the template, in the form of OpenAI's API: each message an object
/// with `role`, `content` (a string, null, or a list of parts), `tool_calls`, `tool_call_id`, ...
struct ChatInput {
  nlohmann::ordered_json messages; ///< An array.
  nlohmann::ordered_json tools;    ///< An array; null where there are none.
  bool addGenerationPrompt = true; ///< The prompt ends where the assistant begins.
  nlohmann::ordered_json variables = nlohmann::ordered_json::object(); ///< `enable_thinking`, ...
};

/// The template of one model. Immutable; safe to share between threads.
class ChatPrompt {
public:
  /// Errors: FailedPrecondition (the vocabulary has no template: no other is assumed), and those of
  /// Template::parse.
  static Result<ChatPrompt> create(const Vocabulary &vocabulary);
  /// The same with a template of one's own.
  static Result<ChatPrompt> create(const Vocabulary &vocabulary, std::string_view source);

  /// `arguments` of tool calls that are strings of JSON become what they say: templates expect
  /// objects and the API sends strings. Errors: InvalidArgument (messages, a message or tools of a
  /// wrong type, by place), and those of Template::render.
  Result<std::vector<Span>> render(const ChatInput &input, RenderOptions options = {}) const;

private:
  ChatPrompt(Template source, std::string bosText, std::string eosText)
      : template_(std::move(source)), bosText_(std::move(bosText)), eosText_(std::move(eosText)) {}

  Template template_;
  std::string bosText_, eosText_;
};

/// The ids of a prompt. Control tokens are taken only where the template wrote the whole of their
/// text; between them everything is merged as one text, so that a prompt without hostile messages
/// gets the ids that it gets as a plain string. Nothing is added: the template writes BOS itself.
/// O(n log n) in the bytes. Errors: those of Tokenizer::encode.
Result<std::vector<int32_t>> encodeSpans(const Tokenizer &tokenizer,
                                         const std::vector<Span> &spans);

} // namespace strata::chat
