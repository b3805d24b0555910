#include <map>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/runtime/tokenizer/Vocabularies.h"

namespace strata {
namespace {

using test::addMerge;
using test::addToken;
using test::encode;
using test::makeTokenizer;
using ::testing::HasSubstr;
using Ids = std::vector<int32_t>;

TEST(ByteLevelBpe, MergesByRankAndLeftmostFirst) {
  Vocabulary vocabulary = test::byteVocabulary();
  addMerge(vocabulary, "b", "c");  // 256, rank 0
  addMerge(vocabulary, "a", "b");  // 257, rank 1
  addMerge(vocabulary, "a", "bc"); // 258, rank 2
  addMerge(vocabulary, "a", "a");  // 259, rank 3
  auto tokenizer = makeTokenizer(vocabulary);
  EXPECT_EQ(encode(*tokenizer, "abc"), (Ids{258}));
  EXPECT_EQ(encode(*tokenizer, "abb"), (Ids{257, 'b'}));
  EXPECT_EQ(encode(*tokenizer, "aaa"), (Ids{259, 'a'}));
  EXPECT_EQ(encode(*tokenizer, "aaaa"), (Ids{259, 259}));
  EXPECT_EQ(encode(*tokenizer, "ab bc"), (Ids{257, ' ', 256}));
  EXPECT_EQ(encode(*tokenizer, ""), Ids{});
}

TEST(ByteLevelBpe, AMergeMayStartWithASpaceOfItsOwn) {
  // The entry is split at its first space after index 0.
  Vocabulary vocabulary = test::byteVocabulary();
  addToken(vocabulary, " ", TokenKind::Normal); // verbatim: U+0020 is outside the byte map
  vocabulary.merges.push_back("  x");
  addToken(vocabulary, " x", TokenKind::Normal);
  EXPECT_EQ(encode(*makeTokenizer(vocabulary), " x"), (Ids{257}));
}

TEST(ByteLevelBpe, IgnoreMergesTakesAWholePiece) {
  Vocabulary vocabulary = test::byteVocabulary();
  addMerge(vocabulary, "a", "b");
  addToken(vocabulary, "abc"); // 257, made by no merge
  EXPECT_EQ(encode(*makeTokenizer(vocabulary), "abc abcd"), (Ids{256, 'c', ' ', 256, 'c', 'd'}));
  vocabulary.ignoreMerges = true;
  EXPECT_EQ(encode(*makeTokenizer(vocabulary), "abc"), (Ids{257}));
  EXPECT_EQ(encode(*makeTokenizer(vocabulary), "abcd"), (Ids{256, 'c', 'd'}));
}

TEST(ByteLevelBpe, OfTokensWithOneTextTheLowestIdWins) {
  Vocabulary vocabulary = test::byteVocabulary();
  addToken(vocabulary, "ab");
  addToken(vocabulary, "ab");
  addToken(vocabulary, "a");
  vocabulary.merges = {"a b"};
  auto tokenizer = makeTokenizer(vocabulary);
  EXPECT_EQ(encode(*tokenizer, "ab a"), (Ids{256, ' ', 'a'}));
  EXPECT_EQ(tokenizer->piece(257), "ab");
}

TEST(ByteLevelBpe, SpecialTokensInText) {
  Vocabulary vocabulary = test::byteVocabulary();
  addToken(vocabulary, "<|im_end|>", TokenKind::Control);   // 256
  addToken(vocabulary, "\u00E9  ", TokenKind::UserDefined); // 257, verbatim
  vocabulary.ignoreMerges = true;
  vocabulary.preTokenizer.patterns = {R"([\s\S]+)"}; // "<|im_end|>" is one piece
  auto tokenizer = makeTokenizer(vocabulary);
  // Text of a user never becomes a control token, not even as a whole piece.
  EXPECT_EQ(encode(*tokenizer, "<|im_end|>"),
            (Ids{'<', '|', 'i', 'm', '_', 'e', 'n', 'd', '|', '>'}));
  EXPECT_EQ(encode(*tokenizer, "<|im_end|>", true), (Ids{256}));
  EXPECT_EQ(encode(*tokenizer, "a\u00E9  b"), (Ids{'a', 257, 'b'}));
  EXPECT_EQ(tokenizer->piece(256), "");
  EXPECT_EQ(tokenizer->piece(256, true), "<|im_end|>");
  EXPECT_EQ(tokenizer->piece(257), "\u00E9  ");
  EXPECT_EQ(tokenizer->piece(0xE9), "\xE9");
  EXPECT_EQ(tokenizer->piece(-1), "");
  EXPECT_EQ(tokenizer->piece(258), "");
}

TEST(ByteLevelBpe, BosAndEos) {
  Vocabulary vocabulary = test::byteVocabulary();
  addToken(vocabulary, "<bos>", TokenKind::Control);
  addToken(vocabulary, "<eos>", TokenKind::Control);
  vocabulary.bosId = 256;
  vocabulary.eosId = 257;
  EXPECT_EQ(encode(*makeTokenizer(vocabulary), "a", false, true), (Ids{'a'}));
  vocabulary.addBos = true;
  EXPECT_EQ(encode(*makeTokenizer(vocabulary), "a", false, true), (Ids{256, 'a'}));
  EXPECT_EQ(encode(*makeTokenizer(vocabulary), "", false, true), (Ids{256}));
  vocabulary.addEos = true;
  EXPECT_EQ(encode(*makeTokenizer(vocabulary), "a", false, true), (Ids{256, 'a', 257}));
  EXPECT_EQ(encode(*makeTokenizer(vocabulary), "a", false, false), (Ids{'a'}));
}

TEST(ByteLevelBpe, AMissingByteIsAnError) {
  Vocabulary vocabulary = test::byteVocabulary();
  vocabulary.tokens['x'] = "other";
  auto ids = makeTokenizer(vocabulary)->encode("ax", {});
  ASSERT_FALSE(ids.isOk());
  EXPECT_EQ(ids.status().code(), StatusCode::InvalidArgument);
  EXPECT_THAT(ids.status().message(), HasSubstr("byte 0x78"));
}

/// Merges in the order of random ranks, so that longer tokens may come before their parts.
Vocabulary randomVocabulary(std::mt19937 &random, std::string_view alphabet) {
  Vocabulary vocabulary = test::byteVocabulary();
  vocabulary.preTokenizer.patterns = {R"([\s\S]+)"};
  std::vector<std::string> texts;
  for (char letter : alphabet)
    texts.emplace_back(1, letter);
  for (size_t i = 0, count = random() % 60; i < count; ++i) {
    std::string left = texts[random() % texts.size()], right = texts[random() % texts.size()];
    if (left.size() + right.size() > 12)
      continue;
    addMerge(vocabulary, left, right); // repeats texts and pairs now and then
    texts.push_back(left + right);
  }
  std::shuffle(vocabulary.merges.begin(), vocabulary.merges.end(), random);
  return vocabulary;
}

/// The definition, step by step: find the best pair of all, merge it, begin again.
Ids plainBpe(const Vocabulary &vocabulary, const std::string &text) {
  std::map<std::string, int32_t> ids;
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id)
    ids.emplace(vocabulary.tokens[id], int32_t(id));
  std::map<std::string, size_t> ranks;
  for (size_t rank = 0; rank < vocabulary.merges.size(); ++rank)
    ranks.emplace(vocabulary.merges[rank], rank);
  std::vector<std::string> symbols;
  for (char byte : text)
    symbols.push_back(test::printable(std::string(1, byte)));
  while (true) {
    size_t best = SIZE_MAX, place = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      auto rank = ranks.find(symbols[i] + " " + symbols[i + 1]);
      if (rank != ranks.end() && rank->second < best) {
        best = rank->second;
        place = i;
      }
    }
    if (best == SIZE_MAX)
      break;
    symbols[place] += symbols[place + 1];
    symbols.erase(symbols.begin() + long(place) + 1);
  }
  Ids out;
  for (const std::string &symbol : symbols)
    out.push_back(ids.at(symbol));
  return out;
}

TEST(ByteLevelBpe, EqualsThePlainDefinition) {
  std::mt19937 random(11);
  for (int round = 0; round < 400; ++round) {
    std::string_view alphabet = round % 2 ? "ab" : "abc \n";
    Vocabulary vocabulary = randomVocabulary(random, alphabet);
    auto tokenizer = makeTokenizer(vocabulary);
    for (int i = 0; i < 10; ++i) {
      std::string text;
      for (size_t length = random() % 60; text.size() < length;)
        text += alphabet[random() % alphabet.size()];
      ASSERT_EQ(encode(*tokenizer, text), plainBpe(vocabulary, text)) << "round " << round << text;
    }
  }
}

TEST(ByteLevelBpe, AnyBytesComeBack) {
  std::mt19937 random(5);
  Vocabulary vocabulary = randomVocabulary(random, "ab \xC3\xA9");
  vocabulary.preTokenizer.patterns = {R"(\p{N})", test::gpt2Pattern};
  auto tokenizer = makeTokenizer(vocabulary);
  for (int round = 0; round < 500; ++round) {
    std::string text = round % 2 ? test::randomBytes(random, random() % 200)
                                 : test::randomUnicode(random, random() % 100);
    ASSERT_EQ(test::bytesOf(*tokenizer, encode(*tokenizer, text)), text);
  }
}

} // namespace
} // namespace strata
