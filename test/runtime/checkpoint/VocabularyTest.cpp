// Vocabularies: from GGUF keys and from tokenizer.json, and what ends a generation.
#include <cmath>

#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/checkpoint/PreTokenizerTable.h"
#include "runtime/checkpoint/TokenizerJson.h"
#include "test/TestData.h"
#include "test/runtime/checkpoint/FileBuilders.h"

namespace strata {
namespace {

using test::Bytes;
using test::GgufBuilder;
using test::TemporaryFolder;

constexpr StatusCode invalid = StatusCode::InvalidData;
constexpr StatusCode unimplemented = StatusCode::Unimplemented;
using Ids = std::vector<int32_t>;

class GgufVocabularyTest : public testing::Test {
protected:
  Result<Vocabulary> read(const GgufBuilder &builder) {
    return readVocabulary(folder_.write("v.gguf", builder.build()));
  }
  TemporaryFolder folder_;
};

GgufBuilder byteLevel(const char *pre = nullptr) {
  GgufBuilder builder;
  builder.string("tokenizer.ggml.model", "gpt2");
  if (pre)
    builder.string("tokenizer.ggml.pre", pre);
  builder.strings("tokenizer.ggml.tokens", {"a", "b", "ab", "<|im_end|>", "<eos>"});
  builder.numbers<int32_t>("tokenizer.ggml.token_type", 5, {1, 1, 0, 3, 3});
  builder.strings("tokenizer.ggml.merges", {"a b"});
  return builder;
}

GgufBuilder sentencePiece() {
  GgufBuilder builder;
  builder.string("tokenizer.ggml.model", "llama");
  builder.strings("tokenizer.ggml.tokens",
                  {"<unk>", "<s>", "</s>", "<0x0A>", std::string("\xFF\0", 2)});
  builder.numbers<float>("tokenizer.ggml.scores", 6, {0, 0, 0, 0, -1.5f});
  builder.numbers<int32_t>("tokenizer.ggml.token_type", 5, {2, 3, 3, 6, 1});
  return builder;
}

TEST_F(GgufVocabularyTest, ByteLevel) {
  GgufBuilder builder = byteLevel("smollm");
  builder.u32("tokenizer.ggml.bos_token_id", 4).u32("tokenizer.ggml.eos_token_id", 4);
  builder.string("tokenizer.chat_template", "{{ x }}");
  auto vocabulary = read(builder);
  ASSERT_TRUE(vocabulary.isOk()) << vocabulary.status().toString();
  EXPECT_EQ(vocabulary->model, VocabularyModel::ByteLevelBpe);
  EXPECT_EQ(vocabulary->tokens.size(), 5u);
  EXPECT_EQ(vocabulary->kinds[2], TokenKind::Normal);
  EXPECT_EQ(vocabulary->kinds[3], TokenKind::Control);
  EXPECT_EQ(vocabulary->merges, std::vector<std::string>{"a b"});
  EXPECT_EQ(vocabulary->preTokenizer.name, "smollm");
  ASSERT_EQ(vocabulary->preTokenizer.patterns.size(), 2u);
  EXPECT_EQ(vocabulary->preTokenizer.patterns[0], "\\p{N}");
  EXPECT_EQ(vocabulary->bosId, 4);
  EXPECT_EQ(vocabulary->unknownId, -1);
  EXPECT_FALSE(vocabulary->addBos);
  EXPECT_FALSE(vocabulary->addSpacePrefix);
  EXPECT_EQ(vocabulary->endOfGeneration, (Ids{3, 4})); // <|im_end|> by its name
  EXPECT_EQ(vocabulary->chatTemplate, "{{ x }}");
}

TEST_F(GgufVocabularyTest, ByteLevelDefaultsFollowThePreTokenizer) {
  auto llama = read(byteLevel("llama-bpe").u32("tokenizer.ggml.bos_token_id", 0));
  ASSERT_TRUE(llama.isOk());
  EXPECT_TRUE(llama->addBos);
  EXPECT_TRUE(llama->ignoreMerges);
  auto off = read(byteLevel("llama-bpe")
                      .u32("tokenizer.ggml.bos_token_id", 0)
                      .boolean("tokenizer.ggml.add_bos_token", false));
  ASSERT_TRUE(off.isOk());
  EXPECT_FALSE(off->addBos);
  auto none = read(byteLevel("llama-bpe"));
  ASSERT_TRUE(none.isOk());
  EXPECT_FALSE(none->addBos); // there is no token to add
  auto missing = read(byteLevel());
  ASSERT_TRUE(missing.isOk());
  EXPECT_EQ(missing->preTokenizer.name, "default");
  EXPECT_EQ(missing->preTokenizer.patterns.size(), 4u);
  EXPECT_REFUSED(read(byteLevel("klingon")), unimplemented, "'klingon'", "llama-bpe", "smollm");
}

TEST_F(GgufVocabularyTest, SentencePiece) {
  GgufBuilder builder = sentencePiece();
  builder.u32("tokenizer.ggml.bos_token_id", 1).u32("tokenizer.ggml.eos_token_id", 2);
  builder.u32("tokenizer.ggml.unknown_token_id", 0).u32("tokenizer.ggml.eot_token_id", 4);
  auto vocabulary = read(builder);
  ASSERT_TRUE(vocabulary.isOk()) << vocabulary.status().toString();
  EXPECT_EQ(vocabulary->model, VocabularyModel::SentencePieceBpe);
  EXPECT_EQ(vocabulary->tokens[4], std::string("\xFF\0", 2)); // any bytes, zeros too
  EXPECT_EQ(vocabulary->scores[4], -1.5f);
  EXPECT_EQ(vocabulary->kinds[3], TokenKind::Byte);
  EXPECT_TRUE(vocabulary->addBos);
  EXPECT_FALSE(vocabulary->addEos);
  EXPECT_TRUE(vocabulary->addSpacePrefix);
  EXPECT_EQ(vocabulary->unknownId, 0);
  EXPECT_EQ(vocabulary->endOfGeneration, (Ids{2, 4}));
  auto noPrefix = read(sentencePiece().boolean("tokenizer.ggml.add_space_prefix", false));
  ASSERT_TRUE(noPrefix.isOk());
  EXPECT_FALSE(noPrefix->addSpacePrefix);
}

TEST_F(GgufVocabularyTest, TensorsOfUnknownTypesDoNotMatter) {
  EXPECT_TRUE(read(sentencePiece().record("t", {1}, 999, 0)).isOk());
}

TEST_F(GgufVocabularyTest, IdsMayBeOfAnyIntegerTypeAndMinusOneIsNone) {
  auto vocabulary = read(byteLevel("qwen2")
                             .pair("tokenizer.ggml.bos_token_id", 11, Bytes().put<int64_t>(2).str())
                             .pair("tokenizer.ggml.eos_token_id", 5, Bytes().put<int32_t>(-1).str())
                             .u32("tokenizer.ggml.unknown_token_id", UINT32_MAX));
  ASSERT_TRUE(vocabulary.isOk()) << vocabulary.status().toString();
  EXPECT_EQ(vocabulary->bosId, 2);
  EXPECT_EQ(vocabulary->eosId, -1);
  EXPECT_EQ(vocabulary->unknownId, -1);
}

TEST_F(GgufVocabularyTest, Refusals) {
  GgufBuilder none;
  none.string("general.architecture", "llama");
  EXPECT_REFUSED(read(none), StatusCode::NotFound, "v.gguf", "no tokenizer");
  GgufBuilder bert;
  bert.string("tokenizer.ggml.model", "bert");
  EXPECT_REFUSED(read(bert), unimplemented, "'bert'", "gpt2", "llama");
  GgufBuilder number;
  number.u32("tokenizer.ggml.model", 1);
  EXPECT_REFUSED(read(number), invalid, "'tokenizer.ggml.model'", "u32", "a string");
  GgufBuilder empty;
  empty.string("tokenizer.ggml.model", "gpt2");
  EXPECT_REFUSED(read(empty), invalid, "'tokenizer.ggml.tokens'", "absent");
  EXPECT_REFUSED(read(empty.strings("tokenizer.ggml.tokens", {})), invalid, "empty");
  GgufBuilder noMerges;
  noMerges.string("tokenizer.ggml.model", "gpt2").strings("tokenizer.ggml.tokens", {"a"});
  EXPECT_REFUSED(read(noMerges), invalid, "'tokenizer.ggml.merges'");
  GgufBuilder kinds;
  kinds.string("tokenizer.ggml.model", "llama").strings("tokenizer.ggml.tokens", {"a", "b"});
  EXPECT_REFUSED(read(kinds), invalid, "'tokenizer.ggml.scores'", "absent");
  GgufBuilder few = kinds, wrong = kinds, nan = kinds;
  EXPECT_REFUSED(read(few.numbers<float>("tokenizer.ggml.scores", 6, {0})), invalid,
                 "'tokenizer.ggml.scores'", "1 elements", "2 tokens");
  EXPECT_REFUSED(read(nan.numbers<float>("tokenizer.ggml.scores", 6, {0, NAN})), invalid,
                 "'tokenizer.ggml.scores'", "token 1");
  EXPECT_REFUSED(read(wrong.numbers<int32_t>("tokenizer.ggml.token_type", 5, {1, 9})), invalid,
                 "token 1", "type 9");
  EXPECT_REFUSED(read(byteLevel().u32("tokenizer.ggml.bos_token_id", 5)), invalid,
                 "'tokenizer.ggml.bos_token_id' is 5", "0 to 4");
  EXPECT_REFUSED(read(byteLevel().boolean("tokenizer.ggml.add_bos_token", true)), invalid,
                 "'tokenizer.ggml.add_bos_token'", "'tokenizer.ggml.bos_token_id'");
  EXPECT_REFUSED(read(byteLevel().u32("tokenizer.ggml.add_eos_token", 1)), invalid,
                 "'tokenizer.ggml.add_eos_token'", "u32", "bool");
  EXPECT_REFUSED(read(byteLevel().string("tokenizer.chat_template", "\xFF")), invalid,
                 "'tokenizer.chat_template'", "UTF-8");
}

TEST(PreTokenizerTableTest, EveryNameHasItsPatterns) {
  const std::pair<const char *, size_t> known[] = {
      {"llama-bpe", 1},      {"llama3", 1},  {"pixtral", 1},      {"qwen2", 1},
      {"gpt-2", 1},          {"smollm", 2},  {"tekken", 1},       {"deepseek-v3", 3},
      {"deepseek-coder", 5}, {"default", 4}, {"deepseek-llm", 6}, {"falcon", 3},
      {"gpt-4o", 1},         {"viking", 2},  {"chameleon", 6}};
  EXPECT_GE(preTokenizerNames().size(), 60u);
  for (auto [name, patterns] : known) {
    auto found = namedPreTokenizer(name);
    ASSERT_TRUE(found.isOk()) << name;
    EXPECT_EQ(found->preTokenizer.name, name);
    EXPECT_EQ(found->preTokenizer.patterns.size(), patterns) << name;
  }
  EXPECT_EQ(namedPreTokenizer("qwen2")->preTokenizer.patterns[0],
            R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+)"
            R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)");
}

/// A byte-level tokenizer.json; a case replaces what it is about.
nlohmann::ordered_json byteLevelJson() {
  return nlohmann::ordered_json::parse(R"({
    "normalizer": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
    "post_processor": null,
    "added_tokens": [{"id": 3, "content": "<|bos|>", "special": true},
                     {"id": 4, "content": "<tool>", "special": false},
                     {"id": 6, "content": "<|im_end|>", "special": true}],
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}})");
}

/// SentencePiece-style: prefix and marks by the normalizer, merges in the order of scores.
nlohmann::ordered_json sentencePieceJson() {
  return nlohmann::ordered_json::parse(R"({
    "normalizer": {"type": "Sequence", "normalizers": [
      {"type": "Prepend", "prepend": "\u2581"},
      {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
    "pre_tokenizer": null,
    "added_tokens": [{"id": 0, "content": "<unk>", "special": true},
                     {"id": 1, "content": "<s>", "special": true}],
    "post_processor": {"type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A"}}]},
    "model": {"type": "BPE", "unk_token": "<unk>", "byte_fallback": true,
      "vocab": {"<unk>": 0, "<s>": 1, "<0x0A>": 2, "a": 3, "b": 4, "ab": 5, "aba": 6, "ba": 7},
      "merges": [["b", "a"], ["a", "b"], ["ab", "a"], ["a", "ba"]]}})");
}

class TokenizerJsonTest : public testing::Test {
protected:
  Result<Vocabulary> read(const nlohmann::ordered_json &tokenizer) {
    documents_.tokenizer = tokenizer;
    return readTokenizerJson(documents_);
  }
  static nlohmann::ordered_json with(nlohmann::ordered_json tokenizer, const char *pointer,
                                     const char *value) {
    tokenizer[nlohmann::ordered_json::json_pointer(pointer)] = nlohmann::ordered_json::parse(value);
    return tokenizer;
  }
  TokenizerDocuments documents_;
};

TEST_F(TokenizerJsonTest, ByteLevel) {
  auto vocabulary = read(byteLevelJson());
  ASSERT_TRUE(vocabulary.isOk()) << vocabulary.status().toString();
  EXPECT_EQ(vocabulary->model, VocabularyModel::ByteLevelBpe);
  ASSERT_EQ(vocabulary->tokens.size(), 7u);
  EXPECT_EQ(vocabulary->tokens[2], "ab");
  EXPECT_EQ(vocabulary->kinds[3], TokenKind::Control);
  EXPECT_EQ(vocabulary->kinds[4], TokenKind::UserDefined);
  EXPECT_EQ(vocabulary->kinds[5], TokenKind::Unused); // no token states id 5
  EXPECT_EQ(vocabulary->merges, std::vector<std::string>{"a b"});
  ASSERT_EQ(vocabulary->preTokenizer.patterns.size(), 1u);
  EXPECT_EQ(vocabulary->preTokenizer.patterns[0], byteLevelPattern());
  EXPECT_EQ(vocabulary->bosId, -1);
  EXPECT_FALSE(vocabulary->addBos);
  EXPECT_EQ(vocabulary->endOfGeneration, Ids{6});
}

TEST_F(TokenizerJsonTest, PreTokenizersBecomePatterns) {
  auto vocabulary = read(with(byteLevelJson(), "/pre_tokenizer", R"({"type": "Sequence",
    "pretokenizers": [
      {"type": "Split", "pattern": {"Regex": "\\p{N}{1,3}"}, "behavior": "Isolated", "invert": false},
      {"type": "Split", "pattern": {"String": "a.b"}, "behavior": "Isolated", "invert": false},
      {"type": "Digits", "individual_digits": true},
      {"type": "Digits", "individual_digits": false},
      {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]})"));
  ASSERT_TRUE(vocabulary.isOk()) << vocabulary.status().toString();
  EXPECT_EQ(vocabulary->preTokenizer.patterns,
            (std::vector<std::string>{"\\p{N}{1,3}", "a\\.b", "\\p{N}", "\\p{N}+"}));
  EXPECT_EQ(vocabulary->preTokenizer.name, "tokenizer.json");
}

TEST_F(TokenizerJsonTest, StepsThatAreNotReadAreNamed) {
  auto refused = [&](const char *field, const char *step, auto... what) {
    EXPECT_REFUSED(read(with(byteLevelJson(), field, step)), unimplemented, what...);
  };
  refused("/normalizer", R"({"type": "BertNormalizer"})", "normalizer 'BertNormalizer'");
  refused("/normalizer", R"({"type": "Sequence", "normalizers": [{"type": "Nmt"}]})",
          "normalizer 'Nmt'");
  refused("/normalizer", R"({"type": "Sequence", "normalizers": [
            {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"},
            {"type": "NFC"}]})",
          "'NFC' after the one that replaces spaces");
  refused("/pre_tokenizer", R"({"type": "Whitespace"})", "pre_tokenizer 'Whitespace'");
  refused("/pre_tokenizer", R"({"type": "Sequence", "pretokenizers": [
            {"type": "Digits"}, {"type": "ByteLevel"}]})",
          "add_prefix_space");
  refused("/pre_tokenizer",
          R"({"type": "Split", "pattern": {"Regex": "a"}, "behavior": "Reversed"})", "Reversed");
  refused("/pre_tokenizer", R"({"type": "Sequence", "pretokenizers": [
            {"type": "ByteLevel", "add_prefix_space": false}, {"type": "Digits"}]})",
          "'Digits' after 'ByteLevel'");
  refused("/pre_tokenizer", "null", "byte-level");
  refused("/post_processor", R"({"type": "BertProcessing"})", "'BertProcessing'");
  refused("/model/type", R"("Unigram")", "'Unigram'", "U+2581");
  refused("/model/type", R"("WordPiece")", "'WordPiece'");
  refused("/model/dropout", "0.1", "'dropout'");
  refused("/model/end_of_word_suffix", R"("</w>")", "'end_of_word_suffix'");
}

TEST_F(TokenizerJsonTest, SentencePiece) {
  auto vocabulary = read(sentencePieceJson());
  ASSERT_TRUE(vocabulary.isOk()) << vocabulary.status().toString();
  EXPECT_EQ(vocabulary->model, VocabularyModel::SentencePieceBpe);
  EXPECT_TRUE(vocabulary->addSpacePrefix);
  EXPECT_TRUE(vocabulary->addBos);
  EXPECT_EQ(vocabulary->bosId, 1);
  EXPECT_EQ(vocabulary->unknownId, 0);
  EXPECT_EQ(vocabulary->kinds[0], TokenKind::Unknown);
  EXPECT_EQ(vocabulary->kinds[2], TokenKind::Byte);
  // Ranks: ba 0, ab 1, aba 2 and 3.
  EXPECT_EQ(vocabulary->scores[7], 0.0f);
  EXPECT_EQ(vocabulary->scores[5], -1.0f);
  EXPECT_EQ(vocabulary->scores[6], -2.0f);
  EXPECT_TRUE(vocabulary->merges.empty());
}

TEST_F(TokenizerJsonTest, SentencePieceForms) {
  const char *replace = R"({"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"})";
  auto gemma = with(with(sentencePieceJson(), "/normalizer", replace), "/pre_tokenizer",
                    R"({"type": "Split", "pattern": {"String": " "},
                        "behavior": "MergedWithPrevious", "invert": false})");
  auto vocabulary = read(gemma);
  ASSERT_TRUE(vocabulary.isOk()) << vocabulary.status().toString();
  EXPECT_FALSE(vocabulary->addSpacePrefix);
  auto metaspace = [&](const char *scheme) {
    return read(with(with(sentencePieceJson(), "/normalizer", "null"), "/pre_tokenizer",
                     fmt::format(R"({{"type": "Metaspace", "replacement": "\u2581",
                                     "prepend_scheme": "{}", "split": false}})",
                                 scheme)
                         .c_str()));
  };
  EXPECT_TRUE(metaspace("always")->addSpacePrefix);
  EXPECT_FALSE(metaspace("never")->addSpacePrefix);
  EXPECT_TRUE(metaspace("always")->prefixUnlessSpace);
  EXPECT_TRUE(metaspace("first")->addSpacePrefix && metaspace("first")->prefixStartOnly);
  EXPECT_REFUSED(metaspace("last"), unimplemented, "Metaspace", "last");
}

TEST_F(TokenizerJsonTest, StepsUsesAndRules) {
  auto json = with(byteLevelJson(), "/normalizer", R"({"type": "Sequence", "normalizers": [
    {"type": "NFC"}, {"type": "Lowercase"}, {"type": "Strip", "strip_left": false},
    {"type": "Replace", "pattern": {"String": "a.b"}, "content": "c"},
    {"type": "Prepend", "prepend": "x"}]})");
  json = with(json, "/pre_tokenizer", R"({"type": "Sequence", "pretokenizers": [
    {"type": "Split", "pattern": {"Regex": "\\s"}, "behavior": "Removed", "invert": true},
    {"type": "WhitespaceSplit"},
    {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]})");
  json = with(with(json, "/added_tokens/0/lstrip", "true"), "/added_tokens/1/normalized", "true");
  auto vocabulary = read(json);
  ASSERT_TRUE(vocabulary.isOk()) << vocabulary.status().toString();
  using Kind = TextStep::Kind;
  std::vector<Kind> kinds;
  for (const TextStep &step : vocabulary->steps)
    kinds.push_back(step.kind);
  EXPECT_EQ(kinds, (std::vector<Kind>{Kind::Nfc, Kind::Lowercase, Kind::StripRight, Kind::Replace,
                                      Kind::Prepend}));
  EXPECT_EQ(vocabulary->steps[3].pattern, "a\\.b");
  ASSERT_EQ(vocabulary->preTokenizer.uses.size(), 2u);
  EXPECT_EQ(vocabulary->preTokenizer.uses[0].behavior, SplitBehavior::Removed);
  EXPECT_TRUE(vocabulary->preTokenizer.uses[0].invert);
  ASSERT_EQ(vocabulary->tokenRules.size(), 2u);
  EXPECT_EQ(vocabulary->tokenRules[0].id, 3);
  EXPECT_TRUE(vocabulary->tokenRules[0].stripLeft && !vocabulary->tokenRules[0].normalized);
  EXPECT_EQ(vocabulary->tokenRules[1].id, 4);
  EXPECT_TRUE(vocabulary->tokenRules[1].normalized);

  auto prefixed = read(with(byteLevelJson(), "/pre_tokenizer", R"({"type": "ByteLevel"})"));
  ASSERT_TRUE(prefixed.isOk()) << prefixed.status().toString();
  EXPECT_TRUE(prefixed->addSpacePrefix && prefixed->prefixUnlessSpace);
}

nlohmann::ordered_json unigramJson() {
  return nlohmann::ordered_json::parse(R"({
    "normalizer": {"type": "Precompiled", "precompiled_charsmap": "BAAAAAAAAABiAA=="},
    "pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always",
                      "split": true},
    "added_tokens": [{"id": 0, "content": "<unk>", "special": true},
                     {"id": 4, "content": "<mask>", "special": true, "lstrip": true}],
    "model": {"type": "Unigram", "unk_id": 0, "byte_fallback": false,
      "vocab": [["<unk>", 0.0], ["\u2581", -1.5], ["a", -2.5], ["<0x0A>", -3]]}})");
}

TEST_F(TokenizerJsonTest, Unigram) {
  auto vocabulary = read(unigramJson());
  ASSERT_TRUE(vocabulary.isOk()) << vocabulary.status().toString();
  EXPECT_EQ(vocabulary->model, VocabularyModel::Unigram);
  EXPECT_EQ(vocabulary->scores, (std::vector<float>{0, -1.5f, -2.5f, -3, 0}));
  EXPECT_EQ(vocabulary->unknownId, 0);
  EXPECT_EQ(vocabulary->kinds[0], TokenKind::Unknown);
  EXPECT_EQ(vocabulary->kinds[3], TokenKind::Normal) << "without byte fallback";
  EXPECT_TRUE(vocabulary->addSpacePrefix && vocabulary->splitAtSpaces);
  ASSERT_EQ(vocabulary->steps.size(), 1u);
  EXPECT_EQ(vocabulary->steps[0].content, std::string("\4\0\0\0\0\0\0\0b\0", 10));
  EXPECT_EQ(read(with(unigramJson(), "/model/byte_fallback", "true"))->kinds[3], TokenKind::Byte);

  EXPECT_REFUSED(read(with(unigramJson(), "/model/unk_id", "4")), invalid, "'model.unk_id' is 4",
                 "0 to 3");
  EXPECT_REFUSED(read(with(unigramJson(), "/model/vocab/1", R"(["a"])")), invalid, "entry 1");
  EXPECT_REFUSED(read(with(unigramJson(), "/model/vocab", "{}")), invalid, "array 'model.vocab'");
  EXPECT_REFUSED(read(with(unigramJson(), "/normalizer/precompiled_charsmap", R"("a*")")), invalid,
                 "base64");
}

TEST_F(TokenizerJsonTest, MergesThatScoresCannotExpressAreRefused) {
  EXPECT_REFUSED(
      read(with(sentencePieceJson(), "/model/merges", R"(["b a", "ab a", "a b", "a ba"])")),
      unimplemented, "merge 3", "'aba'");
}

TEST_F(TokenizerJsonTest, Malformed) {
  auto refused = [&](const char *field, const char *value, auto... parts) {
    EXPECT_REFUSED(read(with(byteLevelJson(), field, value)), invalid, parts...);
  };
  refused("/model/vocab", "{}", "'model.vocab'", "empty");
  refused("/model/vocab/a", "1", "id 1", "'a'", "'b'");
  refused("/model/vocab/a", "-1", "'a'", "-1");
  refused("/model/vocab/a", "2147483647", "'a'", "2147483647");
  refused("/model/vocab/a", "2000000000", "'a'", "2000000000", "65536");
  refused("/added_tokens/0/content", "\"a\"", "'a' has two ids, 0 and 3");
  refused("/added_tokens/0/id", "1", "id 1", "'b'", "'<|bos|>'");
  refused("/added_tokens", "{}", "'added_tokens'", "an object");
  refused("/model/merges", "null", "'model.merges'");
  refused("/model/merges", R"(["ab"])", "merge 0", "'ab'");
  refused("/model/merges", R"(["a z"])", "merge 0", "'z'");
  refused("/model/merges", R"([["a"]])", "merge 0", "an array");
  refused("/pre_tokenizer", "{}", "pre_tokenizer", "no 'type'");
}

TEST_F(TokenizerJsonTest, ConfigurationsDecideAboutSpecialTokens) {
  documents_.tokenizerConfig = nlohmann::ordered_json::parse(
      R"({"bos_token": {"content": "<|bos|>"}, "eos_token": "<tool>", "add_bos_token": true,
          "chat_template": [{"name": "tool_use", "template": "T"}, {"name": "default", "template": "D"}]})");
  documents_.config = nlohmann::ordered_json::parse(R"({"eos_token_id": 0})");
  auto vocabulary = read(byteLevelJson());
  ASSERT_TRUE(vocabulary.isOk()) << vocabulary.status().toString();
  EXPECT_EQ(vocabulary->bosId, 3);
  EXPECT_EQ(vocabulary->eosId, 4);
  EXPECT_TRUE(vocabulary->addBos);
  EXPECT_EQ(vocabulary->chatTemplate, "D");
  EXPECT_EQ(vocabulary->endOfGeneration, (Ids{0, 4, 6})); // config.json, eos_token, <|im_end|>

  documents_.generationConfig = nlohmann::ordered_json::parse(R"({"eos_token_id": [1, 2]})");
  documents_.chatTemplateJson = {{"chat_template", "json"}};
  vocabulary = read(byteLevelJson());
  ASSERT_TRUE(vocabulary.isOk());
  EXPECT_EQ(vocabulary->chatTemplate, "json");
  documents_.chatTemplate = "file";
  vocabulary = read(byteLevelJson());
  ASSERT_TRUE(vocabulary.isOk());
  EXPECT_EQ(vocabulary->endOfGeneration, (Ids{1, 2, 4, 6})); // 0 no longer counts
  EXPECT_EQ(vocabulary->chatTemplate, "file");

  documents_.generationConfig = nlohmann::ordered_json::parse(R"({"eos_token_id": 7})");
  EXPECT_REFUSED(read(byteLevelJson()), invalid, "token 7", "7 tokens");
  documents_.generationConfig = nlohmann::ordered_json::parse(R"({"eos_token_id": -1})");
  EXPECT_REFUSED(read(byteLevelJson()), invalid, "'eos_token_id' of generation_config.json", "-1");
  documents_.generationConfig = nullptr;
  documents_.tokenizerConfig["bos_token"] = "<none>";
  EXPECT_REFUSED(read(byteLevelJson()), invalid, "'bos_token'", "'<none>'");
  documents_.tokenizerConfig = nlohmann::ordered_json::parse(R"({"add_bos_token": true})");
  EXPECT_REFUSED(read(byteLevelJson()), invalid, "'add_bos_token'", "no file names");
}

TEST_F(TokenizerJsonTest, FilesBesideATokenizerCompleteIt) {
  TemporaryFolder folder;
  folder.write("tokenizer.json", byteLevelJson().dump());
  folder.write("alone.json", byteLevelJson().dump());
  folder.write("tokenizer_config.json", R"({"bos_token": "<|bos|>"})");
  folder.write("chat_template.jinja", "J");
  for (const std::string &path : {folder.file("tokenizer.json"), folder.path()}) {
    auto vocabulary = readVocabulary(path);
    ASSERT_TRUE(vocabulary.isOk()) << vocabulary.status().toString();
    EXPECT_EQ(vocabulary->bosId, 3);
    EXPECT_EQ(vocabulary->chatTemplate, "J");
  }
  std::filesystem::remove(folder.file("chat_template.jinja"));
  folder.write("chat_template.json",
               R"({"chat_template": [{"name": "default", "template": "N"}]})");
  auto named = readVocabulary(folder.path());
  ASSERT_TRUE(named.isOk()) << named.status().toString();
  EXPECT_EQ(named->chatTemplate, "N");
  folder.write("chat_template.json", R"({"chat_template": 7})");
  EXPECT_REFUSED(readVocabulary(folder.path()), invalid, "chat_template.json: 'chat_template'",
                 "must be a string");
  folder.write("chat_template.jinja", "\xFF");
  EXPECT_REFUSED(readVocabulary(folder.path()), invalid, "chat_template.jinja", "UTF-8");
  auto alone = readVocabulary(folder.file("alone.json"));
  ASSERT_TRUE(alone.isOk()) << alone.status().toString();
  EXPECT_EQ(alone->bosId, -1);
  std::filesystem::remove(folder.file("tokenizer.json"));
  EXPECT_REFUSED(readVocabulary(folder.file("tokenizer.json")), StatusCode::NotFound,
                 "tokenizer.json");
  EXPECT_REFUSED(readVocabulary(folder.path()), StatusCode::NotFound, "no tokenizer");
  folder.write("tokenizer.model", "x");
  EXPECT_REFUSED(readVocabulary(folder.path()), unimplemented, "tokenizer.model");
}

TEST(RealVocabularyTest, Stories260K) {
  STRATA_REQUIRE_TEST_DATA("stories260K/stories260K.gguf");
  auto vocabulary = readVocabulary(test::testData("stories260K/stories260K.gguf"));
  ASSERT_TRUE(vocabulary.isOk()) << vocabulary.status().toString();
  EXPECT_EQ(vocabulary->tokens.size(), 512u);
  EXPECT_EQ(vocabulary->scores[511], -252.0f);
  EXPECT_EQ(vocabulary->kinds[3], TokenKind::Byte);
  EXPECT_TRUE(vocabulary->addBos);
  EXPECT_EQ(vocabulary->endOfGeneration, Ids{2});
}

TEST(RealVocabularyTest, FilesThatHoldOnlyAVocabulary) {
  STRATA_REQUIRE_TEST_DATA("tokenizers");
  struct Case {
    const char *name;
    size_t tokens, merges;
    Ids ends;
  };
  const Case cases[] = {{"deepseek-coder", 32256, 31757, {32014}},
                        {"gpt-2", 50257, 50000, {50256}},
                        {"llama-spm", 32000, 0, {2}},
                        {"phi-3", 32064, 0, {32000, 32007}}}; // <|endoftext|> and <|end|>
  for (const Case &expected : cases) {
    std::string path = test::testData(fmt::format("tokenizers/ggml-vocab-{}.gguf", expected.name));
    auto vocabulary = readVocabulary(path);
    ASSERT_TRUE(vocabulary.isOk()) << vocabulary.status().toString();
    EXPECT_EQ(vocabulary->tokens.size(), expected.tokens);
    EXPECT_EQ(vocabulary->merges.size(), expected.merges);
    EXPECT_EQ(vocabulary->endOfGeneration, expected.ends) << expected.name;
    EXPECT_TRUE(Checkpoint::open(path).isOk()); // a checkpoint without tensors
  }
}

TEST(RealVocabularyTest, TokenizerJsonOfInferno) {
  STRATA_REQUIRE_TEST_DATA("inferno/tokenizer.json");
  auto vocabulary = readVocabulary(test::testData("inferno/tokenizer.json"));
  ASSERT_TRUE(vocabulary.isOk()) << vocabulary.status().toString();
  auto gguf = readVocabulary(test::testData("inferno/tiny.gguf"));
  ASSERT_TRUE(gguf.isOk()) << gguf.status().toString();
  EXPECT_EQ(vocabulary->tokens, gguf->tokens);
  EXPECT_EQ(vocabulary->merges, gguf->merges);
  EXPECT_EQ(vocabulary->kinds, gguf->kinds);
}

} // namespace
} // namespace strata
