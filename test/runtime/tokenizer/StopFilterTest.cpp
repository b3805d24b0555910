#include "runtime/tokenizer/StopFilter.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/runtime/tokenizer/Vocabularies.h"

namespace strata {
namespace {

using testing::HasSubstr;
using Strings = std::vector<std::string>;

StopFilter makeFilter(Strings stops) {
  auto filter = StopFilter::create(std::move(stops));
  EXPECT_TRUE(filter.isOk()) << filter.status().toString();
  return std::move(*filter);
}

struct Found {
  std::string text;
  bool stopped = false;
  bool operator==(const Found &) const = default;
};

/// The whole text at once: the shortest beginning that ends with a stop string.
Found searchAll(const std::string &text, const Strings &stops) {
  for (size_t end = 1; end <= text.size(); ++end) {
    size_t longest = 0;
    for (const std::string &stop : stops)
      if (text.substr(0, end).ends_with(stop))
        longest = std::max(longest, stop.size());
    if (longest > 0)
      return {text.substr(0, end - longest), true};
  }
  return {text, false};
}

/// What of `text` no stop string can reach any more, whatever follows.
std::string certainOf(const std::string &text, const Strings &stops) {
  size_t held = 0;
  for (const std::string &stop : stops)
    for (size_t length = 1; length < stop.size(); ++length)
      if (text.ends_with(stop.substr(0, length)))
        held = std::max(held, length);
  return text.substr(0, text.size() - held);
}

TEST(StopFilter, HoldsBackWhatCouldBecomeAStop) {
  StopFilter filter = makeFilter({"</s>", "\n\n"});
  EXPECT_EQ(filter.push("Hello <"), "Hello ");
  EXPECT_EQ(filter.push("/s"), "");
  EXPECT_EQ(filter.push("ay>"), "</say>");
  EXPECT_EQ(filter.push("a\n"), "a");
  EXPECT_EQ(filter.push("b"), "\nb");
  EXPECT_FALSE(filter.stopped());
  EXPECT_EQ(filter.push("c</"), "c");
  EXPECT_EQ(filter.push("s> and more"), "");
  EXPECT_TRUE(filter.stopped());
  EXPECT_EQ(filter.push("more"), "");
  EXPECT_EQ(filter.finish(), "");
}

TEST(StopFilter, AnEndGivesBackWhatWasHeld) {
  StopFilter filter = makeFilter({"stop"});
  EXPECT_EQ(filter.push("do not sto"), "do not ");
  EXPECT_EQ(filter.finish(), "sto");
  EXPECT_FALSE(filter.stopped());
}

TEST(StopFilter, TheFirstToBeCompleteWins) {
  StopFilter inner = makeFilter({"abcd", "bc"});
  EXPECT_EQ(inner.push("xabcd"), "xa");
  EXPECT_TRUE(inner.stopped());
  StopFilter together = makeFilter({"c", "abc", "bc"});
  EXPECT_EQ(together.push("xabc"), "x");
}

TEST(StopFilter, WithoutStopsNothingIsHeld) {
  StopFilter filter = makeFilter({});
  EXPECT_EQ(filter.push("any text"), "any text");
  EXPECT_EQ(filter.finish(), "");
  EXPECT_FALSE(filter.stopped());
}

TEST(StopFilter, Refusals) {
  auto refusal = [](Strings stops) {
    return StopFilter::create(std::move(stops)).status().toString();
  };
  EXPECT_THAT(refusal({"a", ""}), HasSubstr("a stop string has 0 bytes; allowed is 1 to 1024"));
  EXPECT_THAT(refusal({std::string(1025, 'a')}), HasSubstr("has 1025 bytes; allowed is 1 to 1024"));
  EXPECT_THAT(refusal(Strings(65, "a")), HasSubstr("65 stop strings are given; 64 are allowed"));
  EXPECT_THAT(refusal({"\xC3"}), HasSubstr("not valid UTF-8"));
}

// Few letters, so that stops overlap themselves and each other; some of several bytes; cut anywhere
// between bytes, since a byte token may end inside a character.
TEST(StopFilter, EqualsASearchInTheWholeText) {
  const Strings letters{"a", "b", "\u00e9", "\u4e16", "\U0001F600"};
  std::mt19937 random(3);
  auto word = [&](size_t least, size_t most, size_t kinds) {
    std::string text;
    for (size_t n = least + random() % (most - least + 1); n > 0; --n)
      text += letters[random() % kinds];
    return text;
  };
  auto tokenizer = test::makeTokenizer(test::byteVocabulary());
  ASSERT_TRUE(tokenizer);
  int stopped = 0, atEnd = 0;
  for (int round = 0; round < 20'000; ++round) {
    const size_t kinds = 1 + random() % letters.size();
    Strings stops(random() % 4);
    for (std::string &stop : stops)
      stop = word(1, 5, kinds);
    std::string text = word(0, 30, kinds);
    if (!stops.empty() && random() % 4 == 0)
      text += stops[0];

    StopFilter filter = makeFilter(stops);
    Detokenizer detokenizer(*tokenizer, false, false);
    auto ids = *tokenizer->encode(text, {.addBos = false}); // one a byte
    ASSERT_EQ(ids.size(), text.size());
    Found found;
    std::string known;
    for (size_t i = 0; i < ids.size();) {
      std::string piece; // several tokens of one step
      for (size_t n = 1 + random() % 4; n > 0 && i < ids.size(); --n)
        piece += detokenizer.push(ids[i++]);
      known += piece;
      found.text += filter.push(piece);
      ASSERT_EQ(found.text,
                filter.stopped() ? searchAll(known, stops).text : certainOf(known, stops));
    }
    found.text += filter.push(detokenizer.finish());
    found.text += filter.finish();
    found.stopped = filter.stopped();
    ASSERT_EQ(found, searchAll(text, stops)) << "round " << round;
    stopped += found.stopped;
    atEnd += found.stopped && searchAll(text.substr(0, text.size() - 1), stops).stopped == false;
  }
  EXPECT_GT(stopped, 2000);
  EXPECT_GT(atEnd, 500);
}

} // namespace
} // namespace strata
