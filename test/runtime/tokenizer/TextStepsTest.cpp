#include <gtest/gtest.h>

#include "runtime/tokenizer/PatternSplitter.h"
#include "runtime/tokenizer/TextNormalizer.h"
#include "test/runtime/tokenizer/Vocabularies.h"

namespace strata {
namespace {

using Kind = TextStep::Kind;
using Pieces = std::vector<std::string>;
using Ids = std::vector<int32_t>;

std::string normalize(std::vector<TextStep> steps, std::string_view text) {
  auto normalizer = TextNormalizer::create(steps);
  if (!normalizer.isOk())
    return "error: " + normalizer.status().toString();
  auto result = normalizer->apply(text);
  return result.isOk() ? *result : "error: " + result.status().toString();
}

TEST(TextSteps, UnicodeForms) {
  EXPECT_EQ(normalize({{Kind::Nfc}}, "e\u0301 \uFB01"), "\u00E9 \uFB01");
  EXPECT_EQ(normalize({{Kind::Nfd}}, "\u00E9"), "e\u0301");
  EXPECT_EQ(normalize({{Kind::Nfkc}}, "\uFB01 \uFF21\u00A0x"), "fi A x");
  EXPECT_EQ(normalize({{Kind::Nfkd}}, "\u1E9B\u0323"), "s\u0323\u0307");
  EXPECT_EQ(normalize({{Kind::Lowercase}}, "A\u0130\u03A3\u0416\u1E9E"),
            "ai\u0307\u03C3\u0436\u00DF");
  EXPECT_EQ(normalize({{Kind::Nfc}}, "a\xFF\x80"
                                     "e\u0301"),
            "a\xFF\x80\u00E9");
}

TEST(TextSteps, ReplaceStripPrepend) {
  EXPECT_EQ(normalize({{Kind::Replace, " {2,}", " "}}, "a   b  c d"), "a b c d");
  EXPECT_EQ(normalize({{Kind::Replace, "x*", "-"}}, "axb"), "-a-b-");
  EXPECT_EQ(normalize({{Kind::StripLeft}}, "\u3000 \na b "), "a b ");
  EXPECT_EQ(normalize({{Kind::StripRight}}, " a\u00A0\u2003\n"), " a");
  EXPECT_EQ(normalize({{Kind::StripLeft}, {Kind::StripRight}}, "  "), "");
  EXPECT_EQ(normalize({{Kind::Prepend, "", "x"}, {Kind::Nfc}}, "e\u0301"), "x\u00E9");
  EXPECT_EQ(normalize({{Kind::Prepend, "", "x"}}, ""), "");
  EXPECT_TRUE(normalize({{Kind::Nfc}, {Kind::Replace, "(", ""}}, "a").starts_with("error"));
  EXPECT_TRUE(normalize({{Kind::Replace, "(a|aa)+$", ""}}, std::string(200, 'a') + "b")
                  .starts_with("error"));
}

/// A double array that maps "A" to "b" and "AB" to "" (by hand: the children of a node with offset
/// o and label c stand at o ^ c).
std::string characterMap() {
  std::vector<uint32_t> units(1024, 0xFF); // a label that nothing asks for
  auto inner = [](uint32_t label, uint32_t relative, bool leaf) {
    return relative << 10 | uint32_t(leaf) << 8 | label;
  };
  units[0] = inner(0, 256, false);      // children at 256 ^ c
  uint32_t a = 256 ^ 'A';               //
  units[a] = inner('A', a ^ 512, true); // its leaf at 512, its children at 512 ^ c
  units[512] = 0x80000000u | 0;         // "b"
  units[512 ^ 'B'] = inner('B', (512 ^ 'B') ^ 768, true);
  units[768] = 0x80000000u | 2; // ""
  std::string bytes;
  auto length = uint32_t(units.size() * 4);
  bytes.append(reinterpret_cast<const char *>(&length), 4);
  bytes.append(reinterpret_cast<const char *>(units.data()), length);
  return bytes.append("b\0\0", 3);
}

TEST(TextSteps, CharacterMapTakesTheLongest) {
  std::string map = characterMap();
  EXPECT_EQ(normalize({{Kind::CharacterMap, "", map}}, "xAyABzB\u00E9"), "xbyzB\u00E9");
  EXPECT_TRUE(normalize({{Kind::CharacterMap, "", "abc"}}, "").starts_with("error"));
  EXPECT_TRUE(normalize({{Kind::CharacterMap, "", map.substr(0, 400)}}, "").starts_with("error"));
  // However it is damaged, it stays inside.
  std::mt19937 random(3);
  for (int i = 0; i < 2000; ++i) {
    std::string damaged = map;
    for (int n = 0; n < 8; ++n)
      damaged[4 + random() % (damaged.size() - 5)] = char(random());
    normalize({{Kind::CharacterMap, "", damaged}}, "AB" + test::randomBytes(random, 8));
  }
}

TEST(TextSteps, Splits) {
  auto split = [](SplitBehavior behavior, bool invert, std::string_view text) {
    auto splitter = PatternSplitter::create({"test", {"-"}, {{behavior, invert}}});
    Pieces pieces;
    auto found = splitter->split(text);
    for (auto [begin, end] : *found)
      pieces.emplace_back(text.substr(begin, end - begin));
    return pieces;
  };
  // As the documentation of Hugging Face's tokenizers has it.
  std::string_view text = "the-final--countdown";
  EXPECT_EQ(split(SplitBehavior::Removed, false, text), (Pieces{"the", "final", "countdown"}));
  EXPECT_EQ(split(SplitBehavior::Isolated, false, text),
            (Pieces{"the", "-", "final", "-", "-", "countdown"}));
  EXPECT_EQ(split(SplitBehavior::MergedWithPrevious, false, text),
            (Pieces{"the-", "final-", "-", "countdown"}));
  EXPECT_EQ(split(SplitBehavior::MergedWithNext, false, text),
            (Pieces{"the", "-final", "-", "-countdown"}));
  EXPECT_EQ(split(SplitBehavior::Contiguous, false, text),
            (Pieces{"the", "-", "final", "--", "countdown"}));
  EXPECT_EQ(split(SplitBehavior::Removed, true, text), (Pieces{"-", "-", "-"}));
}

TEST(TextSteps, RulesOfSpecialTokens) {
  Vocabulary vocabulary = test::byteVocabulary();
  test::addToken(vocabulary, "<m>", TokenKind::UserDefined);
  auto encode = [&](TokenRule rule, std::string_view text) {
    vocabulary.tokenRules = {rule};
    return test::encode(*test::makeTokenizer(vocabulary), text);
  };
  EXPECT_EQ(encode({256}, "a <m> b"), (Ids{'a', ' ', 256, ' ', 'b'}));
  EXPECT_EQ(encode({.id = 256, .stripLeft = true}, "a <m> b"), (Ids{'a', 256, ' ', 'b'}));
  EXPECT_EQ(encode({.id = 256, .stripRight = true}, "a <m>\n b"), (Ids{'a', ' ', 256, 'b'}));
  EXPECT_EQ(encode({.id = 256, .stripLeft = true, .stripRight = true}, "\t<m> <m>"),
            (Ids{256, 256}));
  EXPECT_EQ(encode({.id = 256, .singleWord = true}, "<m>a"), (Ids{'<', 'm', '>', 'a'}));
  EXPECT_EQ(encode({.id = 256, .singleWord = true}, "a <m>."), (Ids{'a', ' ', 256, '.'}));

  vocabulary.steps = {{Kind::Lowercase}};
  EXPECT_EQ(encode({256}, "A<M><m>"), (Ids{'a', '<', 'm', '>', 256}));
  EXPECT_EQ(encode({.id = 256, .normalized = true}, "A<M><m>"), (Ids{'a', 256, 256}));
  vocabulary.steps.clear();
  vocabulary.addSpacePrefix = vocabulary.prefixUnlessSpace = true;
  EXPECT_EQ(encode({256}, "a<m> b"), (Ids{' ', 'a', 256, ' ', 'b'}));
}

} // namespace
} // namespace strata
