// Small vocabularies made in the test, and texts to try them on.
#pragma once

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/tokenizer/ByteMap.h"
#include "runtime/tokenizer/Tokenizer.h"

namespace strata::test {

inline void appendUtf8(char32_t c, std::string &out) {
  if (c < 0x80) {
    out += char(c);
  } else if (c < 0x800) {
    out += {char(0xC0 | c >> 6), char(0x80 | (c & 63))};
  } else if (c < 0x10000) {
    out += {char(0xE0 | c >> 12), char(0x80 | (c >> 6 & 63)), char(0x80 | (c & 63))};
  } else {
    out += {char(0xF0 | c >> 18), char(0x80 | (c >> 12 & 63)), char(0x80 | (c >> 6 & 63)),
            char(0x80 | (c & 63))};
  }
}

/// Bytes as a byte-level vocabulary writes them.
inline std::string printable(std::string_view bytes) {
  std::string text;
  for (char byte : bytes)
    appendUtf8(printableOfByte(uint8_t(byte)), text);
  return text;
}

inline constexpr const char *gpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))";

inline void addToken(Vocabulary &vocabulary, std::string text, TokenKind kind = TokenKind::Normal,
                     float score = 0) {
  vocabulary.tokens.push_back(std::move(text));
  vocabulary.kinds.push_back(kind);
  vocabulary.scores.push_back(score);
}

/// All 256 bytes, with ids equal to the bytes.
inline Vocabulary byteVocabulary() {
  Vocabulary vocabulary;
  vocabulary.model = VocabularyModel::ByteLevelBpe;
  vocabulary.preTokenizer = {"gpt-2", {gpt2Pattern}};
  for (int byte = 0; byte < 256; ++byte)
    addToken(vocabulary, printable(std::string(1, char(byte))));
  return vocabulary;
}

/// Adds the token left + right (given as bytes) and its merge at the next rank.
inline void addMerge(Vocabulary &vocabulary, std::string_view left, std::string_view right) {
  addToken(vocabulary, printable(left) + printable(right));
  vocabulary.merges.push_back(printable(left) + " " + printable(right));
}

/// `<unk>` (0), `<s>` (1), `</s>` (2) and the bytes (3 to 258).
inline Vocabulary sentencePieceVocabulary() {
  Vocabulary vocabulary;
  vocabulary.model = VocabularyModel::SentencePieceBpe;
  vocabulary.addSpacePrefix = true;
  addToken(vocabulary, "<unk>", TokenKind::Unknown);
  addToken(vocabulary, "<s>", TokenKind::Control);
  addToken(vocabulary, "</s>", TokenKind::Control);
  vocabulary.unknownId = 0;
  vocabulary.bosId = 1;
  vocabulary.eosId = 2;
  for (int byte = 0; byte < 256; ++byte)
    addToken(vocabulary, fmt::format("<0x{:02X}>", byte), TokenKind::Byte);
  return vocabulary;
}

inline std::unique_ptr<Tokenizer> makeTokenizer(Vocabulary vocabulary) {
  auto tokenizer = Tokenizer::create(std::move(vocabulary));
  if (!tokenizer.isOk())
    throw std::runtime_error(tokenizer.status().toString());
  return std::move(*tokenizer);
}

inline std::vector<int32_t> encode(const Tokenizer &tokenizer, std::string_view text,
                                   bool parseSpecial = false, bool addBos = false) {
  auto ids = tokenizer.encode(text, {addBos, parseSpecial});
  if (!ids.isOk())
    throw std::runtime_error(ids.status().toString());
  return *ids;
}

/// The bytes of all ids, one after the other.
inline std::string bytesOf(const Tokenizer &tokenizer, const std::vector<int32_t> &ids) {
  std::string bytes;
  for (int32_t id : ids)
    bytes += tokenizer.piece(id);
  return bytes;
}

/// Characters of every kind that patterns distinguish, of one to four bytes.
inline std::string randomUnicode(std::mt19937 &random, size_t characters) {
  static constexpr std::u32string_view common =
      U" \n\r\tabcXYZ019'.,!?-_/\u00A0\u00BD\u00C4\u00E9\u0301\u0431\u0411\u05D0\u0661\u2028\u2581"
      U"\u3000\u4E2D\u304B\uAC00\U0001F680\U0001F436\u200D\uFE0F\U000E0041";
  std::string text;
  for (size_t i = 0; i < characters; ++i) {
    char32_t c = common[random() % common.size()];
    if (random() % 8 == 0)
      do
        c = char32_t(random() % 0x110000);
      while (c >= 0xD800 && c < 0xE000);
    appendUtf8(c, text);
  }
  return text;
}

inline std::string randomBytes(std::mt19937 &random, size_t count) {
  std::string bytes;
  for (size_t i = 0; i < count; ++i)
    bytes += char(random());
  return bytes;
}

} // namespace strata::test
