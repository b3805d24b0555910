#include <ctime>

#include <gtest/gtest.h>

#include "test/runtime/tokenizer/Vocabularies.h"

namespace strata {
namespace {

using Ids = std::vector<int32_t>;

/// `<unk>` (0), the mark (1), and tokens of two letters with scores that often tie.
Vocabulary smallVocabulary() {
  Vocabulary vocabulary;
  vocabulary.model = VocabularyModel::Unigram;
  vocabulary.unknownId = 0;
  test::addToken(vocabulary, "<unk>", TokenKind::Unknown);
  test::addToken(vocabulary, "\u2581", TokenKind::Normal, -9);
  float score = -1;
  for (const char *text : {"a", "b", "ab", "ba", "aab", "bb", "\u2581a", "\u2581ab", "b\u2581"})
    test::addToken(vocabulary, text, TokenKind::Normal, score -= 0.75f);
  vocabulary.scores.back() = -5;
  return vocabulary;
}

/// The best sum over all cuts, one by one.
double bestScore(const Vocabulary &vocabulary, std::string_view text) {
  if (text.empty())
    return 0;
  double best = -1e9;
  for (size_t id = 1; id < vocabulary.tokens.size(); ++id)
    if (text.starts_with(vocabulary.tokens[id]))
      best = std::max(best, vocabulary.scores[id] +
                                bestScore(vocabulary, text.substr(vocabulary.tokens[id].size())));
  return best;
}

TEST(Unigram, FindsTheBestCut) {
  Vocabulary vocabulary = smallVocabulary();
  auto tokenizer = test::makeTokenizer(vocabulary);
  std::mt19937 random(1);
  for (int i = 0; i < 500; ++i) {
    std::string text, marked;
    for (size_t n = random() % 10; n > 0; --n) {
      char c = "ab "[random() % 3];
      text += c;
      marked += c == ' ' ? "\u2581" : std::string(1, c);
    }
    Ids ids = test::encode(*tokenizer, text);
    double score = 0;
    for (int32_t id : ids)
      score += vocabulary.scores[id];
    EXPECT_EQ(test::bytesOf(*tokenizer, ids), text);
    EXPECT_DOUBLE_EQ(score, bestScore(vocabulary, marked)) << text;
  }
}

TEST(Unigram, UnknownCharactersAreOneTokenOrTheirBytes) {
  EXPECT_EQ(test::encode(*test::makeTokenizer(smallVocabulary()), "ax\u4E2Db"), (Ids{2, 0, 3}));
  Vocabulary bytes = smallVocabulary();
  for (int byte = 0; byte < 256; ++byte)
    test::addToken(bytes, fmt::format("<0x{:02X}>", byte), TokenKind::Byte);
  int32_t first = int32_t(smallVocabulary().tokens.size());
  auto tokenizer = test::makeTokenizer(bytes);
  EXPECT_EQ(test::encode(*tokenizer, "a\u00E9"), (Ids{2, first + 0xC3, first + 0xA9}));
  std::mt19937 random(2);
  for (int i = 0; i < 300; ++i) {
    std::string text = test::randomUnicode(random, 12);
    // The mark itself is a space to SentencePiece.
    if (text.find("\u2581") == std::string::npos) {
      EXPECT_EQ(test::bytesOf(*tokenizer, test::encode(*tokenizer, text)), text);
    }
    text = test::randomBytes(random, 12);
    EXPECT_EQ(test::bytesOf(*tokenizer, test::encode(*tokenizer, text)), text);
  }
  Vocabulary none = smallVocabulary();
  none.unknownId = -1;
  EXPECT_FALSE(test::makeTokenizer(none)->encode("x", {}).isOk());
}

TEST(Unigram, PrefixesAndSplits) {
  Vocabulary vocabulary = smallVocabulary();
  test::addToken(vocabulary, "<s>", TokenKind::Control);
  int32_t special = int32_t(vocabulary.tokens.size()) - 1;
  vocabulary.addSpacePrefix = true;
  auto encode = [&](std::string_view text) {
    return test::encode(*test::makeTokenizer(vocabulary), text, true);
  };
  EXPECT_EQ(encode("a<s>a"), (Ids{8, special, 8}));
  EXPECT_EQ(encode(" a"), (Ids{1, 8}));
  vocabulary.prefixUnlessSpace = true;
  EXPECT_EQ(encode(" a"), (Ids{8}));
  vocabulary.prefixStartOnly = true;
  EXPECT_EQ(encode("a<s>a"), (Ids{8, special, 2}));
  EXPECT_EQ(encode("b a"), (Ids{1, 10, 2}));
  vocabulary.splitAtSpaces = true; // "b\u2581" can no longer be
  EXPECT_EQ(encode("b a"), (Ids{1, 3, 8}));
}

TEST(Unigram, AMegabyteTakesLittleTime) {
  auto tokenizer = test::makeTokenizer(smallVocabulary());
  for (std::string text : {std::string(1 << 20, 'a'), std::string(1 << 20, 'x')}) {
    std::clock_t start = std::clock();
    EXPECT_FALSE(test::encode(*tokenizer, text).empty());
    EXPECT_LT(double(std::clock() - start) / CLOCKS_PER_SEC, 1);
  }
}

} // namespace
} // namespace strata
