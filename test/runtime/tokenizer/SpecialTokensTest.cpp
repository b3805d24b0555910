#include "runtime/tokenizer/SpecialTokens.h"

#include <algorithm>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace strata {
namespace {

using Entry = SpecialTokens::Entry;
using Parts = std::vector<std::pair<std::string, int32_t>>;

Parts split(const SpecialTokens &tokens, std::string_view text) {
  Parts parts;
  for (auto fragment : tokens.split(text))
    parts.emplace_back(std::string(fragment.text), fragment.id);
  return parts;
}

TEST(SpecialTokens, CutsEveryOccurrence) {
  SpecialTokens tokens({{"<a>", 7}});
  EXPECT_EQ(split(tokens, "<a>x<a><a>yz"),
            (Parts{{"<a>", 7}, {"x", -1}, {"<a>", 7}, {"<a>", 7}, {"yz", -1}}));
  EXPECT_EQ(split(tokens, "<a"), (Parts{{"<a", -1}}));
  EXPECT_EQ(split(tokens, ""), Parts{});
  EXPECT_EQ(split(SpecialTokens({}), "<a>"), (Parts{{"<a>", -1}}));
}

TEST(SpecialTokens, TheLongestWinsEvenOverAnEarlierOne) {
  SpecialTokens tokens({{"ab", 1}, {"bcd", 2}, {"abcde", 3}});
  EXPECT_EQ(split(tokens, "abcd"), (Parts{{"a", -1}, {"bcd", 2}}));
  EXPECT_EQ(split(tokens, "abcde"), (Parts{{"abcde", 3}}));
  EXPECT_EQ(split(tokens, "abab"), (Parts{{"ab", 1}, {"ab", 1}}));
}

TEST(SpecialTokens, OfEqualTextsTheFirstWinsAndEmptyOnesNeverMatch) {
  EXPECT_EQ(split(SpecialTokens({{"", 9}, {"x", 4}, {"x", 5}}), "yx"),
            (Parts{{"y", -1}, {"x", 4}}));
}

/// What the rule says, literally: token after token, longest first (then first), cut all over.
Parts plainSplit(std::vector<Entry> entries, std::string_view text) {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry &a, const Entry &b) { return a.text.size() > b.text.size(); });
  Parts parts{{std::string(text), -1}};
  for (const Entry &entry : entries) {
    Parts next;
    for (auto &[part, id] : parts) {
      size_t place;
      while (id < 0 && (place = part.find(entry.text)) != std::string::npos) {
        next.emplace_back(part.substr(0, place), -1);
        next.emplace_back(entry.text, entry.id);
        part.erase(0, place + entry.text.size());
      }
      next.emplace_back(part, id);
    }
    parts = next;
  }
  std::erase_if(parts, [](const auto &part) { return part.first.empty(); });
  return parts;
}

std::string randomText(std::mt19937 &random, size_t length) {
  std::string text;
  for (size_t i = 0; i < length; ++i)
    text += "ab"[random() % 2];
  return text;
}

// Tokens of one length that overlap each other ("aba", "bab") leave a choice that the rule does not
// settle: one token all over first, or whichever stands first. These token sets have one token a
// length.
TEST(SpecialTokens, EqualsTheRuleTakenLiterally) {
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    std::vector<Entry> entries;
    for (size_t length = 1; length <= 6; ++length)
      if (random() % 2)
        entries.push_back({randomText(random, length), int32_t(length)});
    std::shuffle(entries.begin(), entries.end(), random);
    std::string text = randomText(random, random() % 40);
    ASSERT_EQ(split(SpecialTokens(entries), text), plainSplit(entries, text)) << text;
  }
}

} // namespace
} // namespace strata
