#include "runtime/tokenizer/PatternSplitter.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/tokenizer/Utf8.h"
#include "test/runtime/tokenizer/SplitText.h"
#include "test/runtime/tokenizer/Vocabularies.h"

namespace strata {
namespace {

using ::testing::HasSubstr;

constexpr const char *llama3Pattern =
    R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

TEST(PatternSplitter, Llama3) {
  auto pieces = [](std::string_view text) { return split({llama3Pattern}, text); };
  EXPECT_EQ(pieces(""), (Pieces{}));
  EXPECT_EQ(pieces("Hello  world"), (Pieces{"Hello", " ", " world"}));
  EXPECT_EQ(pieces("  leading"), (Pieces{" ", " leading"}));
  EXPECT_EQ(pieces("trailing  "), (Pieces{"trailing", "  "}));
  EXPECT_EQ(pieces("a\n\n b"), (Pieces{"a", "\n\n", " b"}));
  EXPECT_EQ(pieces("\t\tx"), (Pieces{"\t", "\tx"}));
  EXPECT_EQ(pieces("1234567"), (Pieces{"123", "456", "7"}));
  EXPECT_EQ(pieces("it's IT'S"), (Pieces{"it", "'s", " IT", "'S"}));
  EXPECT_EQ(pieces("(a) ...\n\nb"), (Pieces{"(a", ")", " ...\n\n", "b"}));
  // A combining mark is no letter: it leads the letters behind it, or ends with what is no letter.
  EXPECT_EQ(pieces("cafe\u0301 caf\u00E9"), (Pieces{"cafe", "\u0301", " caf\u00E9"}));
}

TEST(PatternSplitter, Gpt2LeavesALoneSpaceAsAGap) {
  EXPECT_EQ(split({test::gpt2Pattern}, "Hello \n world's 12 "),
            (Pieces{"Hello", " \n", " world", "'s", " 12", " "}));
  EXPECT_EQ(split({test::gpt2Pattern}, "a\nb"), (Pieces{"a", "\n", "b"}));
}

TEST(PatternSplitter, PatternsApplyInSequenceToEveryPiece) {
  // The second pattern sees "ab ", "1", "2" and " c" apart: " ?" cannot reach over a digit.
  EXPECT_EQ(split({R"(\p{N})", test::gpt2Pattern}, "ab 12 c"), (Pieces{"ab", " ", "1", "2", " c"}));
  // Look-ahead ends at the piece: the spaces before the digit are at an end there.
  EXPECT_EQ(split({R"(\p{N})", R"(\s+(?!\S))"}, "a  1"), (Pieces{"a", "  ", "1"}));
  EXPECT_EQ(split({R"(\s+(?!\S))"}, "a  1"), (Pieces{"a", " ", " 1"}));
}

TEST(PatternSplitter, EmptyMatchesCutAndEnd) {
  EXPECT_EQ(split({"x*"}, "axxb"), (Pieces{"a", "xx", "b"}));
  EXPECT_EQ(split({"(?=b)"}, "abab"), (Pieces{"a", "ba", "b"}));
  EXPECT_EQ(split({""}, "a\u00E9\U0001F680"), (Pieces{"a", "\u00E9", "\U0001F680"}));
}

TEST(PatternSplitter, InvalidBytesArePiecesApart) {
  EXPECT_EQ(split({llama3Pattern}, "\x80"
                                   "ab  \xFF\xFE"
                                   " c\xE2\x96"),
            (Pieces{"\x80", "ab", "  ", "\xFF\xFE", " c", "\xE2\x96"}));
  // The surrogate's bytes and an overlong slash are not UTF-8 either.
  EXPECT_EQ(split({llama3Pattern}, "a\xED\xA0\x80\xC0\xAF"), (Pieces{"a", "\xED\xA0\x80\xC0\xAF"}));
}

TEST(PatternSplitter, RefusesWhatItCannotUse) {
  EXPECT_THAT(split({}, "a").front(), HasSubstr("pre-tokeniser 'test' is not known"));
  EXPECT_THAT(split({"a", "(b"}, "a").front(), HasSubstr("pattern 2 of 2 of pre-tokeniser 'test'"));
  EXPECT_THAT(split({R"(\C)"}, "a").front(), HasSubstr("does not compile"));
}

TEST(PatternSplitter, EndlessBacktrackingIsAnError) {
  EXPECT_THAT(split({"(?:a|aa|aaa)+$"}, std::string(200, 'a') + "b").front(),
              HasSubstr("pattern 1 of pre-tokeniser 'test' takes more steps"));
}

TEST(PatternSplitter, StepsAreOfTheWholeText) {
  // No place takes many steps, and there are many places.
  std::string text;
  for (int i = 0; i < 2'000; ++i)
    text += std::string(20, 'a') + "b";
  EXPECT_THAT(split({"(?:a|aa)+$"}, text).front(), HasSubstr("42000 bytes of text allow"));
}

TEST(PatternSplitter, PlacesThatTakeManyStepsAreMatchedLikeOthers) {
  std::mt19937 random(11);
  for (int i = 0; i < 200; ++i) {
    std::string text(4000, 'c');
    for (size_t begin = 0; begin < text.size(); begin += 400) // too short to use up the steps
      std::fill_n(text.begin() + begin + random() % 50, random() % 16, 'a');
    for (int n = 0; n < 200; ++n)
      if (char &any = text[random() % text.size()]; any == 'c')
        any = 'b';
    EXPECT_EQ(split({"(?:a|aa)+c|b"}, text), split({"a++c|b"}, text));
  }
}

/// The rules of llama3's pattern in words, over characters whose class is known here.
class PlainLlama3 {
public:
  static Pieces split(const std::u32string &text) {
    Pieces pieces;
    for (size_t i = 0; i < text.size();) {
      size_t length = lengthAt(text, i);
      std::string piece;
      for (size_t j = i; j < i + length; ++j)
        test::appendUtf8(text[j], piece);
      pieces.push_back(piece);
      i += length;
    }
    return pieces;
  }

private:
  static bool isLetter(char32_t c) {
    return (c | 32) >= 'a' && (c | 32) <= 'z' ? c < 128 : c == U'\u00E9' || c == U'\u4E2D';
  }
  static bool isNumber(char32_t c) { return (c >= '0' && c <= '9') || c == U'\u00BD'; }
  static bool isLineEnd(char32_t c) { return c == '\r' || c == '\n'; }
  static bool isSpace(char32_t c) {
    return c == ' ' || c == '\t' || isLineEnd(c) || c == U'\u3000';
  }
  static bool isOther(char32_t c) { return !isSpace(c) && !isLetter(c) && !isNumber(c); }

  static size_t lengthAt(const std::u32string &text, size_t i) {
    auto at = [&](size_t j) { return j < text.size() ? text[j] : char32_t(0xFFFFFFFF); };
    auto run = [&](size_t from, auto is) {
      size_t j = from;
      while (j < text.size() && is(text[j]))
        ++j;
      return j - from;
    };
    if (at(i) == '\'') {
      char32_t a = at(i + 1) | 32, b = at(i + 2) | 32;
      if (at(i + 1) < 128 && (a == 's' || a == 't' || a == 'm' || a == 'd'))
        return 2;
      if (at(i + 1) < 128 && at(i + 2) < 128 &&
          ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l')))
        return 3;
    }
    if (isLetter(at(i)))
      return run(i, isLetter);
    if (!isLineEnd(at(i)) && !isNumber(at(i)) && i + 1 < text.size() && isLetter(at(i + 1)))
      return 1 + run(i + 1, isLetter);
    if (isNumber(at(i)))
      return std::min<size_t>(3, run(i, isNumber));
    size_t space = at(i) == ' ' && i + 1 < text.size() && isOther(at(i + 1)) ? 1 : 0;
    if (size_t others = run(i + space, isOther); others > 0)
      return space + others + run(i + space + others, isLineEnd);
    size_t spaces = run(i, isSpace);
    for (size_t j = spaces; j > 0; --j)
      if (isLineEnd(text[i + j - 1]))
        return j;
    return spaces > 1 && i + spaces < text.size() ? spaces - 1 : spaces;
  }
};

TEST(PatternSplitter, Llama3EqualsItsRulesInWords) {
  constexpr std::u32string_view alphabet =
      U"  \t\n\r\u3000aebLsStTrRvVmMdDlL\u00E9\u4E2D019\u00BD''.!\u0301\U0001F680";
  std::mt19937 random(3);
  for (int round = 0; round < 5000; ++round) {
    std::u32string text;
    std::string bytes;
    for (size_t length = random() % 30; text.size() < length;) {
      text += alphabet[random() % alphabet.size()];
      test::appendUtf8(text.back(), bytes);
    }
    ASSERT_EQ(split({llama3Pattern}, bytes), PlainLlama3::split(text)) << bytes;
  }
}

} // namespace
} // namespace strata
