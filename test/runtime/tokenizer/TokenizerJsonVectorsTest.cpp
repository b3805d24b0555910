// Whole tokenizer.json files against ids that version 0.23 of Hugging Face's `tokenizers` gives for
// them: added tokens of every kind, normalizers before and after them, ways to write a space.
#include <algorithm>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "runtime/checkpoint/TokenizerJson.h"
#include "test/runtime/tokenizer/Vocabularies.h"

namespace strata {
namespace {

using Json = nlohmann::ordered_json;
using Case = std::pair<std::string, std::vector<int32_t>>;

void expectIds(const Json &tokenizerJson, const std::vector<Case> &cases) {
  auto vocabulary = readTokenizerJson({.tokenizer = Json::parse(tokenizerJson.dump())});
  ASSERT_TRUE(vocabulary.isOk()) << vocabulary.status().toString();
  auto tokenizer = test::makeTokenizer(*std::move(vocabulary));
  ASSERT_TRUE(tokenizer);
  for (const auto &[text, ids] : cases) {
    auto found = tokenizer->encode(text, {.addBos = false, .parseSpecial = true});
    ASSERT_TRUE(found.isOk()) << found.status().toString();
    EXPECT_EQ(*found, ids) << Json(text).dump();
  }
}

Json addedToken(int id, const char *content, std::initializer_list<const char *> flags = {}) {
  Json token = {{"id", id},
                {"content", content},
                {"single_word", false},
                {"lstrip", false},
                {"rstrip", false},
                {"normalized", false},
                {"special", id != 267 && id != 268 && id != 269}};
  for (const char *flag : flags)
    token[flag] = true;
  return token;
}

/// The 256 bytes in order of their code points, then merges, then added tokens.
Json byteLevel(Json normalizer) {
  std::vector<std::string> bytes;
  for (int byte = 0; byte < 256; ++byte)
    bytes.push_back(test::printable(std::string(1, char(byte))));
  std::sort(bytes.begin(), bytes.end()); // UTF-8 sorts as its code points
  Json vocab = Json::object(), merges = Json::array();
  for (const std::string &byte : bytes)
    vocab[byte] = vocab.size();
  const std::string space = "\u0120";
  for (const auto &[left, right] :
       std::vector<std::pair<std::string, std::string>>{{"h", "e"},
                                                        {"l", "l"},
                                                        {"he", "ll"},
                                                        {"hell", "o"},
                                                        {space, "w"},
                                                        {space, "hello"},
                                                        {"o", "r"},
                                                        {space, space}}) {
    vocab[left + right] = vocab.size();
    merges.push_back({left, right});
  }
  return {
      {"normalizer", std::move(normalizer)},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
      {"added_tokens",
       {addedToken(264, "<l>", {"lstrip"}), addedToken(265, "<r>", {"rstrip"}),
        addedToken(266, "<b>", {"lstrip", "rstrip"}), addedToken(267, "tok", {"single_word"}),
        addedToken(268, "Norm", {"normalized"}), addedToken(269, "raw"),
        addedToken(270, "<l><r>")}},
      {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", merges}}}};
}

TEST(TokenizerJsonVectors, AddedTokensOfByteLevelBpe) {
  expectIds(byteLevel(nullptr),
            {
                {"hello <l>  world", {259, 264, 220, 260, 262, 75, 67}},
                {"a <r>  \n b", {64, 220, 265, 65}},
                {"x <b> y", {87, 266, 88}},
                {"<l><r>", {270}},
                {"a tok b", {64, 220, 267, 220, 65}},
                {"token", {83, 78, 74, 68, 77}},
                {"_tok", {62, 83, 78, 74}},
                {"tok1 tok", {83, 78, 74, 16, 220, 267}},
                {"\xC3\xA9tok tok", {127, 102, 83, 78, 74, 220, 267}},
                {"Norm norm NORM", {268, 220, 77, 262, 76, 220, 45, 46, 49, 44}},
                {"raw RAW xrawy", {269, 220, 49, 32, 54, 220, 87, 269, 88}},
                {"hello\r\nworld\r\n\r\n", {259, 201, 198, 86, 262, 75, 67, 201, 198, 201, 198}},
                {"  \n\n  x  ", {263, 198, 198, 220, 220, 87, 263}},
                {"tok<l>tok", {267, 264, 267}},
            });
}

TEST(TokenizerJsonVectors, AddedTokensBesideANormalizer) {
  Json steps = {{{"type", "NFC"}}, {{"type", "Lowercase"}}};
  expectIds(byteLevel({{"type", "Sequence"}, {"normalizers", steps}}),
            {
                {"Norm norm NORM", {268, 220, 268, 220, 268}},
                {"raw RAW xrawy", {269, 220, 81, 64, 86, 220, 87, 269, 88}},
                {"\xC3\xA9 e\xCC\x81", {127, 102, 220, 127, 102}},
                {"a tok b", {64, 220, 267, 220, 65}},
                {"hello <l>  world", {259, 264, 220, 260, 262, 75, 67}},
            });
}

Json sentencePiece(Json normalizer, Json preTokenizer) {
  Json vocab = {{"<unk>", 0}, {"<s>", 1}, {"</s>", 2}};
  for (int byte = 0; byte < 256; ++byte)
    vocab[fmt::format("<0x{:02X}>", byte)] = vocab.size();
  for (const char *text : {"\u2581", "h", "e", "l", "o", "w", "r", "d", "he", "ll", "hell", "hello",
                           "\u2581hello", "\u2581w", "\u2581\u2581"})
    vocab[text] = vocab.size();
  Json merges = Json::array(); // as texts: a list of pairs of texts would read as an object
  for (const char *merge :
       {"h e", "l l", "he ll", "hell o", "\u2581 hello", "\u2581 w", "\u2581 \u2581"})
    merges.push_back(merge);
  return {{"normalizer", std::move(normalizer)},
          {"pre_tokenizer", std::move(preTokenizer)},
          {"added_tokens",
           {addedToken(1, "<s>"), addedToken(2, "</s>"), addedToken(0, "<unk>"),
            addedToken(274, "<x>", {"lstrip", "rstrip"})}},
          {"model",
           {{"type", "BPE"},
            {"unk_token", "<unk>"},
            {"byte_fallback", true},
            {"vocab", vocab},
            {"merges", merges}}}};
}

TEST(TokenizerJsonVectors, SpacesWrittenByANormalizer) {
  Json steps = {{{"type", "Prepend"}, {"prepend", "\u2581"}},
                {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\u2581"}}};
  expectIds(sentencePiece({{"type", "Sequence"}, {"normalizers", steps}}, nullptr),
            {
                {"hello world", {271, 272, 263, 265, 262, 266}},
                {"<s>hello", {1, 271}},
                {"hello</s> hello", {271, 2, 259, 271}},
                {"a<x>b", {259, 100, 274, 259, 101}},
                {" <x> hello", {274, 271}},
                {"hello  hello", {271, 259, 271}},
                {"   ", {273, 273}},
                {"\thello", {259, 12, 270}},
                {"<s><s> hello", {1, 1, 259, 271}},
                {"\xE6\x97\xA5\xE6\x9C\xAC", {259, 233, 154, 168, 233, 159, 175}},
            });
}

Json metaspace(const char *scheme, bool split) {
  return {{"type", "Metaspace"},
          {"replacement", "\u2581"},
          {"prepend_scheme", scheme},
          {"split", split}};
}

TEST(TokenizerJsonVectors, SpacesAtTheStartAlone) {
  expectIds(sentencePiece(nullptr, metaspace("first", false)),
            {
                {"hello world", {271, 272, 263, 265, 262, 266}},
                {"<s>hello", {1, 270}},
                {"hello</s> hello", {271, 2, 271}},
                {"a<x>b", {259, 100, 274, 101}},
                {" <x> hello", {274, 270}},
                {"   ", {273, 259}},
                {"<s><s> hello", {1, 1, 271}},
            });
}

TEST(TokenizerJsonVectors, SpacesThatSplit) {
  expectIds(sentencePiece(nullptr, metaspace("always", true)),
            {
                {"<s>hello", {1, 271}},
                {"hello</s> hello", {271, 2, 271}},
                {"a<x>b", {259, 100, 274, 259, 101}},
                {"hello  hello", {271, 259, 271}},
                {"   ", {259, 259, 259}},
                {"\thello", {259, 12, 270}},
            });
}

} // namespace
} // namespace strata
