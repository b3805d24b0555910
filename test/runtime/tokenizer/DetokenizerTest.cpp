#include <random>

#include <gtest/gtest.h>

#include "test/runtime/tokenizer/Vocabularies.h"

namespace strata {
namespace {

using test::addToken;
using test::makeTokenizer;
using Ids = std::vector<int32_t>;

/// True where `bytes` is one whole character: decoding and encoding it again gives it back.
bool isCharacter(std::string_view bytes) {
  char32_t c = uint8_t(bytes[0]);
  if (bytes.size() > 1)
    c &= 0x7F >> bytes.size();
  for (char byte : bytes.substr(1))
    c = c << 6 | (uint8_t(byte) & 63);
  std::string again;
  if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
    return false;
  test::appendUtf8(c, again);
  return again == bytes;
}

/// True where some bytes behind `prefix` would make it one character.
bool canBecomeCharacter(std::string prefix) {
  if (isCharacter(prefix))
    return true;
  if (prefix.size() == 4)
    return false;
  // These continuation bytes stand for every range that a lead byte can ask for.
  for (unsigned char next : {0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF})
    if (canBecomeCharacter(prefix + char(next)))
      return true;
  return false;
}

/// The whole text at once: each longest beginning of a character that stays incomplete is one
/// U+FFFD.
std::string decodeAtOnce(std::string_view bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size();) {
    size_t length = 1;
    while (i + length < bytes.size() && !isCharacter(bytes.substr(i, length)) &&
           canBecomeCharacter(std::string(bytes.substr(i, length + 1))))
      ++length;
    std::string_view sequence = bytes.substr(i, length);
    text += isCharacter(sequence) ? std::string(sequence) : "\uFFFD";
    i += length;
  }
  return text;
}

std::string stream(const Tokenizer &tokenizer, const Ids &ids, bool special = false,
                   bool atStart = true) {
  Detokenizer detokenizer(tokenizer, special, atStart);
  std::string text;
  for (int32_t id : ids) {
    std::string part = detokenizer.push(id);
    EXPECT_EQ(part, decodeAtOnce(part)) << "what is given out is whole characters";
    text += part;
  }
  return text + detokenizer.finish();
}

TEST(Detokenizer, HoldsACharacterBackUntilItIsWhole) {
  auto tokenizer = makeTokenizer(test::byteVocabulary());
  Detokenizer detokenizer(*tokenizer, false, true);
  EXPECT_EQ(detokenizer.push(0xF0), "");
  EXPECT_EQ(detokenizer.push(0x9F), "");
  EXPECT_EQ(detokenizer.push(0x9A), "");
  EXPECT_EQ(detokenizer.push(0x80), "\U0001F680");
  EXPECT_EQ(detokenizer.push('a'), "a");
  EXPECT_EQ(detokenizer.push(0xE2), "");
  EXPECT_EQ(detokenizer.push('b'), "\uFFFDb"); // impossible now
  EXPECT_EQ(detokenizer.push(0xC3), "");
  EXPECT_EQ(detokenizer.finish(), "\uFFFD");
  EXPECT_EQ(detokenizer.finish(), "");
}

TEST(Detokenizer, StreamsWhatDecodingAtOnceGives) {
  std::mt19937 random(9);
  Vocabulary vocabulary = test::byteVocabulary();
  for (int i = 0; i < 100; ++i) // tokens that end and begin inside characters
    addToken(vocabulary, test::printable(test::randomBytes(random, 2 + random() % 3)));
  for (std::string_view bytes : {"\xF0\x9F", "\x9A\x80", "\xE2\x96", "\x81\xE2", "\xC3", "\xA9z"})
    addToken(vocabulary, test::printable(bytes));
  auto tokenizer = makeTokenizer(vocabulary);
  for (int round = 0; round < 2000; ++round) {
    Ids ids;
    // Often from few bytes that make characters, else anything.
    for (size_t length = random() % 30; ids.size() < length;) {
      constexpr uint8_t often[] = {0xF0, 0x9F, 0x9A, 0x80, 0xE2, 0x82,
                                   0xAC, 0xC3, 0xA9, 0xED, 0xF4};
      ids.push_back(random() % 3 ? often[random() % sizeof often]
                                 : int32_t(random() % vocabulary.tokens.size()));
    }
    ASSERT_EQ(stream(*tokenizer, ids), decodeAtOnce(test::bytesOf(*tokenizer, ids)));
  }
}

TEST(Detokenizer, TextComesBackThroughEncoding) {
  std::mt19937 random(10);
  auto tokenizer = makeTokenizer(test::byteVocabulary());
  for (int round = 0; round < 200; ++round) {
    std::string text = test::randomUnicode(random, random() % 60);
    ASSERT_EQ(stream(*tokenizer, test::encode(*tokenizer, text)), text);
  }
}

TEST(Detokenizer, DropsThePrefixSpaceOnceAtTheStart) {
  Vocabulary vocabulary = test::sentencePieceVocabulary();
  addToken(vocabulary, "\u2581", TokenKind::Normal, -1);  // 259
  addToken(vocabulary, "\u2581x", TokenKind::Normal, -1); // 260
  addToken(vocabulary, "x", TokenKind::Normal, -1);       // 261
  auto tokenizer = makeTokenizer(vocabulary);
  EXPECT_EQ(stream(*tokenizer, {260, 260}), "x x");
  EXPECT_EQ(stream(*tokenizer, {1, 260, 260}), "x x"); // BOS has no text
  EXPECT_EQ(stream(*tokenizer, {1, 260}, true), "<s> x");
  EXPECT_EQ(stream(*tokenizer, {259, 260}), " x");
  EXPECT_EQ(stream(*tokenizer, {261, 260}), "x x");
  EXPECT_EQ(stream(*tokenizer, {260, 260}, false, false), " x x");
  for (std::string_view text : {"x x", " x", "  x ", ""})
    EXPECT_EQ(stream(*tokenizer, test::encode(*tokenizer, text)), text);
  vocabulary.addSpacePrefix = false;
  EXPECT_EQ(stream(*makeTokenizer(vocabulary), {260, 260}), " x x");
}

} // namespace
} // namespace strata
