#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/tokenizer/CharacterMap.h"
#include "runtime/tokenizer/PatternSplitter.h"
#include "runtime/tokenizer/TextNormalizer.h"
#include "test/runtime/tokenizer/Vocabularies.h"

namespace strata {
namespace {

using testing::HasSubstr;
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

std::string characterMap(const std::vector<uint32_t> &units, std::string_view replacements) {
  auto length = uint32_t(units.size() * 4);
  std::string bytes(reinterpret_cast<const char *>(&length), 4);
  bytes.append(reinterpret_cast<const char *>(units.data()), length);
  return bytes.append(replacements);
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
  return characterMap(units, std::string_view("b\0\0", 3));
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

// A hostile map could make each place of a text walk the rest of it, or become a whole map.
TEST(TextSteps, CharacterMapTakesTimeAndMemoryOfTheText) {
  // Behind 'a' come 'a' and so on, without end; or with an end behind `length` of them.
  auto run = [](uint32_t length, bool ends) {
    std::vector<uint32_t> units(512 * (length + 2), 0xFF);
    uint32_t place = 0;
    for (uint32_t i = 0; i < length; ++i) {
      uint32_t base = 512 * (i + 1), child = base ^ 'a';
      units[place] = (place ^ base) << 10 | (i > 0 ? 'a' : 0);
      place = child;
    }
    uint32_t base = ends ? 512 * (length + 1) : place ^ 'a';
    units[place] = (place ^ base) << 10 | uint32_t(ends) << 8 | 'a';
    if (ends)
      units[base] = 0x80000000u;
    return characterMap(units, std::string_view("b", 2));
  };
  std::string text(2'000'000, 'a');
  EXPECT_EQ(normalize({{Kind::CharacterMap, "", run(256, true)}}, text),
            std::string(text.size() / 256, 'b') + std::string(text.size() % 256, 'a'));
  EXPECT_THAT(normalize({{Kind::CharacterMap, "", run(257, true)}}, text),
              HasSubstr("keys of more than 256 bytes"));
  EXPECT_THAT(normalize({{Kind::CharacterMap, "", run(3, false)}}, text),
              HasSubstr("or without an end"));

  std::string bytes = characterMap(); // "A" becomes what stands at the first place
  bytes.erase(bytes.size() - 3).append(100, 'b').push_back('\0');
  auto map = CharacterMap::create(bytes);
  ASSERT_TRUE(map.isOk());
  EXPECT_TRUE(map->apply("xAAx", 202).isOk());
  EXPECT_THAT(map->apply("xAAx", 201).status().toString(), HasSubstr("become more than 201"));
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
