// Real vocabularies: the ids that the models were trained with, and any text back again.
#include <fstream>
#include <random>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "runtime/checkpoint/Checkpoint.h"
#include "test/TestData.h"
#include "test/runtime/tokenizer/Vocabularies.h"

namespace strata {
namespace {

using test::encode;

Vocabulary readVocabulary(const std::string &path) {
  auto checkpoint = Checkpoint::open(path);
  if (!checkpoint.isOk())
    throw std::runtime_error(checkpoint.status().toString());
  auto vocabulary = (*checkpoint)->vocabulary();
  if (!vocabulary.isOk())
    throw std::runtime_error(vocabulary.status().toString());
  return **vocabulary;
}

std::string readFile(const std::string &path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

class VocabularyFiles : public ::testing::TestWithParam<const char *> {
protected:
  std::string path() const {
    return test::testData(std::string("tokenizers/ggml-vocab-") + GetParam() + ".gguf");
  }
};

TEST_P(VocabularyFiles, EncodeTheCasesBesideThem) {
  STRATA_REQUIRE_FILE(path());
  auto tokenizer = test::makeTokenizer(readVocabulary(path()));
  constexpr std::string_view separator = "\n__ggml_vocab_test__\n";
  std::string texts = readFile(path() + ".inp");
  std::stringstream lines(readFile(path() + ".out"));
  size_t begin = 0, cases = 0;
  for (std::string line; std::getline(lines, line); ++cases) {
    size_t end = std::min(texts.find(separator, begin), texts.size());
    std::string text = texts.substr(begin, end - begin);
    begin = end + separator.size();
    std::vector<int32_t> expected;
    std::stringstream numbers(line);
    for (int32_t id; numbers >> id;)
      expected.push_back(id);
    EXPECT_EQ(encode(*tokenizer, text), expected) << "text: '" << text << "'";
  }
  EXPECT_GT(cases, 40u);
  EXPECT_GE(begin, texts.size());
}

TEST_P(VocabularyFiles, TextComesBack) {
  STRATA_REQUIRE_FILE(path());
  auto tokenizer = test::makeTokenizer(readVocabulary(path()));
  auto roundTrip = [&](const std::string &text) {
    Detokenizer detokenizer(*tokenizer, false, true);
    std::string out;
    for (int32_t id : encode(*tokenizer, text, false, true))
      out += detokenizer.push(id);
    EXPECT_EQ(out + detokenizer.finish(), text);
  };
  for (std::string_view text :
       {"Hello  world", "  leading", "trailing  ", "a\n\n b", "\t\tx", "1234567", "it's IT'S",
        "naïve café", "nai\u0308ve cafe\u0301", "日本語の文章、中文。한국어",
        "👩‍👩‍👧‍👦 🏳️‍🌈 ✅", "<|im_end|>", "<s><unk><0x0A>", ""})
    roundTrip(std::string(text));
  // Some vocabularies have no tokens for bytes that valid UTF-8 never holds.
  auto isCovered = [&](char byte) { return tokenizer->encode({&byte, 1}, {}).isOk(); };
  std::mt19937 random(31);
  for (int round = 0; round < 300; ++round) {
    std::string text = test::randomUnicode(random, random() % 80);
    for (size_t place; (place = text.find("\u2581")) != std::string::npos;)
      text.erase(place, 3); // reads as a space after SentencePiece
    roundTrip(text);
    std::string bytes = test::randomBytes(random, random() % 80);
    std::erase_if(bytes, [&](char byte) { return !isCovered(byte); });
    std::string prefix = tokenizer->vocabulary().addSpacePrefix && !bytes.empty() ? " " : "";
    EXPECT_EQ(test::bytesOf(*tokenizer, encode(*tokenizer, bytes)), prefix + bytes);
  }
  EXPECT_TRUE(isCovered('\x80'));
}

TEST_P(VocabularyFiles, WhatAUserWritesNeverBecomesAControlToken) {
  STRATA_REQUIRE_FILE(path());
  auto tokenizer = test::makeTokenizer(readVocabulary(path()));
  const Vocabulary &vocabulary = tokenizer->vocabulary();
  size_t controls = 0;
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    if (vocabulary.kinds[id] != TokenKind::Control)
      continue;
    ++controls;
    for (int32_t found : encode(*tokenizer, vocabulary.tokens[id]))
      EXPECT_NE(vocabulary.kinds[found], TokenKind::Control) << vocabulary.tokens[id];
    EXPECT_EQ(encode(*tokenizer, vocabulary.tokens[id], true), (std::vector<int32_t>{int32_t(id)}));
  }
  EXPECT_GT(controls, 0u);
}

/// The prompts of a golden file give the ids that its reference ran on.
void expectGoldenPrompts(const std::string &model, const std::string &golden) {
  auto tokenizer = test::makeTokenizer(readVocabulary(model));
  auto cases = nlohmann::json::parse(readFile(golden)).at("cases");
  ASSERT_FALSE(cases.empty());
  for (const auto &one : cases) {
    std::string text = one.value("text", one.value("prompt", ""));
    EXPECT_EQ(encode(*tokenizer, text, true, true),
              one.at("prompt_ids").get<std::vector<int32_t>>())
        << text;
    if (!one.contains("greedy_text"))
      continue;
    Detokenizer detokenizer(*tokenizer, false, false);
    std::string out;
    for (int32_t id : one.at("greedy_ids").get<std::vector<int32_t>>())
      out += detokenizer.push(id);
    EXPECT_EQ(out + detokenizer.finish(), one.at("greedy_text").get<std::string>());
  }
}

TEST(GoldenPrompts, Stories) {
  STRATA_REQUIRE_TEST_DATA("stories260K");
  expectGoldenPrompts(test::testData("stories260K/stories260K.gguf"),
                      test::testData("stories260K/golden.json"));
}

TEST(GoldenPrompts, SmolLM2) {
  std::string model = test::cachedModel("SmolLM2-135M-Instruct.Q4_1.gguf");
  STRATA_REQUIRE_FILE(model);
  STRATA_REQUIRE_TEST_DATA("real");
  expectGoldenPrompts(model, test::testData("real/smollm2.json"));
}

INSTANTIATE_TEST_SUITE_P(Real, VocabularyFiles,
                         ::testing::Values("gpt-2", "deepseek-coder", "llama-spm", "phi-3"),
                         [](const auto &info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

} // namespace
} // namespace strata
