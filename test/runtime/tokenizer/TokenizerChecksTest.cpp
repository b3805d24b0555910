// What Tokenizer::create refuses, and how it says so.
#include <cmath>
#include <ctime>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/runtime/tokenizer/Vocabularies.h"

namespace strata {
namespace {

using test::addToken;
using ::testing::HasSubstr;

void expectRefused(Vocabulary vocabulary, std::string_view words,
                   StatusCode code = StatusCode::InvalidData) {
  auto tokenizer = Tokenizer::create(std::move(vocabulary));
  ASSERT_FALSE(tokenizer.isOk()) << words;
  EXPECT_EQ(tokenizer.status().code(), code);
  EXPECT_THAT(tokenizer.status().message(), HasSubstr(words));
}

TEST(TokenizerChecks, Sizes) {
  expectRefused({}, "no tokens");
  Vocabulary vocabulary = test::byteVocabulary();
  vocabulary.kinds.pop_back();
  expectRefused(vocabulary, "256 tokens but 255 token kinds");
  vocabulary = test::sentencePieceVocabulary();
  vocabulary.scores.push_back(0);
  expectRefused(vocabulary, "259 tokens but 260 scores");
}

TEST(TokenizerChecks, KindsAndScores) {
  Vocabulary vocabulary = test::byteVocabulary();
  vocabulary.kinds[7] = TokenKind(0);
  expectRefused(vocabulary, "token 7");
  vocabulary.kinds[7] = TokenKind(9);
  expectRefused(vocabulary, "of the kind 9");
  vocabulary = test::sentencePieceVocabulary();
  vocabulary.scores[5] = std::nanf("");
  expectRefused(vocabulary, "score of token 5");
  vocabulary = test::sentencePieceVocabulary();
  vocabulary.tokens[5] = "<0x0>";
  expectRefused(vocabulary, "'<0x0>'");
}

TEST(TokenizerChecks, Ids) {
  Vocabulary vocabulary = test::byteVocabulary();
  vocabulary.bosId = 256;
  expectRefused(vocabulary, "beginning-of-sequence token is 256 but the vocabulary has 256");
  vocabulary.bosId = -2;
  expectRefused(vocabulary, "beginning-of-sequence token is -2");
  vocabulary = test::byteVocabulary();
  vocabulary.endOfGeneration = {3, -1};
  expectRefused(vocabulary, "end-of-generation token is -1");
  vocabulary = test::byteVocabulary();
  vocabulary.addBos = true;
  expectRefused(vocabulary, "names none");
}

TEST(TokenizerChecks, Merges) {
  Vocabulary vocabulary = test::byteVocabulary();
  vocabulary.merges = {"ab"};
  expectRefused(vocabulary, "merge 0 is 'ab'");
  vocabulary.merges = {"a "};
  expectRefused(vocabulary, "merge 0 is 'a '");
  vocabulary.merges = {""};
  expectRefused(vocabulary, "merge 0 is ''");
  vocabulary.merges = {"a b"};
  expectRefused(vocabulary, "makes 'ab', which is no ordinary token of the vocabulary of 256");
  addToken(vocabulary, "abc");
  vocabulary.merges = {"a bc"};
  expectRefused(vocabulary, "names 'bc'");
  addToken(vocabulary, "ab", TokenKind::Control); // merging must not make a control token
  vocabulary.merges = {"a b"};
  expectRefused(vocabulary, "makes 'ab'");
}

TEST(TokenizerChecks, PreTokenizerAndModel) {
  Vocabulary vocabulary = test::byteVocabulary();
  vocabulary.preTokenizer = {"strange-bpe", {}};
  expectRefused(vocabulary, "'strange-bpe'", StatusCode::Unimplemented);
  vocabulary = test::byteVocabulary();
  vocabulary.model = VocabularyModel(7);
  expectRefused(vocabulary, "model 7", StatusCode::Unimplemented);
}

TEST(TokenizerChecks, EndOfGenerationNeedNotBeSorted) {
  Vocabulary vocabulary = test::byteVocabulary();
  vocabulary.endOfGeneration = {9, 3, 7};
  auto tokenizer = test::makeTokenizer(vocabulary);
  for (int32_t id = -1; id < 300; ++id)
    EXPECT_EQ(tokenizer->endsGeneration(id), id == 3 || id == 7 || id == 9) << id;
}

// The bounds are in seconds of processor time and more than ten times what is taken: they catch a
// quadratic, not a busy machine.
TEST(TokenizerChecks, ALargeVocabularyBuildsFast) {
  Vocabulary byteLevel = test::byteVocabulary(), sentencePiece = test::sentencePieceVocabulary();
  std::vector<std::string> texts;
  for (char letter = 'a'; letter <= 'z'; ++letter)
    texts.emplace_back(1, letter);
  for (size_t i = 0; texts.size() < 262'144; ++i) { // every text of one to four letters, then some
    std::string left = texts[i / 26], right(1, char('a' + i % 26));
    test::addMerge(byteLevel, left, right);
    addToken(sentencePiece, left + right, TokenKind::Normal, -float(i));
    texts.push_back(left + right);
  }
  std::clock_t begin = std::clock();
  auto first = test::makeTokenizer(std::move(byteLevel));
  auto second = test::makeTokenizer(std::move(sentencePiece));
  double seconds = double(std::clock() - begin) / CLOCKS_PER_SEC;
  EXPECT_LT(seconds, 5.0);
  EXPECT_EQ(test::encode(*first, "zz").size(), 1u);
  EXPECT_EQ(test::encode(*second, "zz").size(),
            3u + 1u); // the prefixed space takes three byte tokens
}

TEST(TokenizerChecks, AMegabyteIsNotQuadratic) {
  Vocabulary vocabulary = test::byteVocabulary();
  vocabulary.preTokenizer.patterns = {R"(\p{N})", test::gpt2Pattern};
  for (std::string text = "a"; text.size() < 64; text += text)
    test::addMerge(vocabulary, text, text);
  auto byteLevel = test::makeTokenizer(vocabulary);
  vocabulary = test::sentencePieceVocabulary();
  addToken(vocabulary, "\u2581");
  for (size_t length = 1; length <= 64; length *= 2)
    addToken(vocabulary, std::string(length, 'a'), TokenKind::Normal, -float(length));
  auto sentencePiece = test::makeTokenizer(vocabulary);

  std::string words, spaces(1 << 20, ' ');
  while (words.size() < 1 << 20)
    words += "aa aaa\n aaaaaaa, 12";
  for (const std::string &text : {std::string(1 << 20, 'a'), words, spaces + "a", spaces + "\n"})
    for (const auto *tokenizer : {&byteLevel, &sentencePiece}) {
      std::clock_t begin = std::clock();
      std::vector<int32_t> ids = test::encode(**tokenizer, text);
      double seconds = double(std::clock() - begin) / CLOCKS_PER_SEC;
      EXPECT_LT(seconds, 10.0);
      EXPECT_EQ(test::bytesOf(**tokenizer, ids).size(),
                text.size() + (*tokenizer)->vocabulary().addSpacePrefix);
    }
}

} // namespace
} // namespace strata
