// Messages to spans and spans to ids.
#include "runtime/chat/ChatPrompt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/runtime/tokenizer/Vocabularies.h"

using namespace strata;
using namespace strata::chat;
using namespace strata::test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

using Json = nlohmann::ordered_json;

constexpr int32_t begin = 256, end = 257, ab = 258;

/// Bytes, `<s>`, `<e>`, and the merge of a and b.
Vocabulary vocabulary(std::string chatTemplate) {
  Vocabulary made = byteVocabulary();
  addToken(made, "<s>", TokenKind::Control);
  addToken(made, "<e>", TokenKind::Control);
  addMerge(made, "a", "b");
  made.bosId = begin;
  made.eosId = end;
  made.addBos = true;
  made.chatTemplate = std::move(chatTemplate);
  return made;
}

std::string textOf(const std::vector<Span> &spans) {
  std::string text;
  for (const Span &span : spans)
    text += span.text;
  return text;
}

std::string renderPrompt(std::string chatTemplate, const ChatInput &input) {
  auto prompt = ChatPrompt::create(vocabulary(std::move(chatTemplate)));
  if (!prompt.isOk())
    return prompt.status().toString();
  auto spans = prompt->render(input);
  return spans.isOk() ? textOf(*spans) : spans.status().toString();
}

const Json oneMessage = Json::array({{{"role", "user"}, {"content", "hi"}}});

TEST(ChatPrompt, GivesTheTemplateItsVariables) {
  EXPECT_EQ(renderPrompt("{{ bos_token }}{{ messages[0].content }}{{ eos_token }}{{ tools }}"
                         "{{ add_generation_prompt }}{{ enable_thinking }}",
                         {.messages = oneMessage, .variables = {{"enable_thinking", false}}}),
            "<s>hi<e>NoneTrueFalse");
}

TEST(ChatPrompt, RefusesAModelWithoutTemplate) {
  EXPECT_THAT(renderPrompt("", {.messages = oneMessage}), HasSubstr("has no chat template"));
}

TEST(ChatPrompt, RefusesMalformedInputByPlace) {
  EXPECT_THAT(renderPrompt("x", {.messages = "hi"}), HasSubstr("messages are of type string"));
  EXPECT_THAT(renderPrompt("x", {.messages = Json::array({1})}),
              HasSubstr("message 0 is of type number"));
  EXPECT_THAT(renderPrompt("x", {.messages = Json::array({{{"content", "a"}}})}),
              HasSubstr("message 0 has no role"));
  EXPECT_THAT(renderPrompt("x", {.messages = oneMessage, .tools = 1}),
              HasSubstr("tools are of type number"));
  EXPECT_THAT(renderPrompt("x", {.messages = oneMessage, .variables = Json::array()}),
              HasSubstr("variables are of type array"));
}

TEST(ChatPrompt, ArgumentsOfToolCallsAreObjects) {
  Json call = {{"function", {{"name", "f"}, {"arguments", "{\"a\": [1]}"}}}};
  Json message = {{"role", "assistant"}, {"tool_calls", Json::array({call})}};
  const char *source = "{{ messages[0].tool_calls[0].function.arguments | tojson }}";
  EXPECT_EQ(renderPrompt(source, {.messages = Json::array({message})}), "{\"a\": [1]}");
  message["tool_calls"][0]["function"]["arguments"] = "{broken";
  EXPECT_EQ(renderPrompt(source, {.messages = Json::array({message})}), "\"{broken\"");
}

std::vector<int32_t> encode(const std::vector<Span> &spans) {
  auto tokenizer = Tokenizer::create(vocabulary(""));
  auto ids = encodeSpans(**tokenizer, spans);
  EXPECT_TRUE(ids.isOk());
  return ids.isOk() ? *ids : std::vector<int32_t>();
}

TEST(EncodeSpans, TakesControlTokensOnlyFromTheTemplate) {
  EXPECT_THAT(encode({{"<s>", true}, {"<e>", false}, {"<e>", true}}),
              ElementsAre(begin, '<', 'e', '>', end));
}

TEST(EncodeSpans, AControlTokenHalfOfTheInputIsNone) {
  EXPECT_THAT(encode({{"<", true}, {"s", false}, {">", true}}), ElementsAre('<', 's', '>'));
  EXPECT_THAT(encode({{"<s", false}, {">", true}}), ElementsAre('<', 's', '>'));
}

TEST(EncodeSpans, MergesAcrossSpans) {
  EXPECT_THAT(encode({{"<s>a", true}, {"b", false}}), ElementsAre(begin, ab));
}

TEST(EncodeSpans, AddsNothing) { EXPECT_TRUE(encode({}).empty()); }

TEST(EncodeSpans, HarmlessMessagesGetTheIdsOfThePlainText) {
  auto tokenizer = Tokenizer::create(vocabulary(""));
  std::vector<Span> spans = {{"<s> user\n", true}, {"abab ab", false}, {" <e>\nab", true}};
  auto ids = (*tokenizer)->encode(textOf(spans), {.addBos = false, .parseSpecial = true});
  EXPECT_EQ(encode(spans), *ids);
}

} // namespace
