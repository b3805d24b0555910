#include <ctime>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "runtime/checkpoint/PreTokenizerTable.h"
#include "test/runtime/tokenizer/SplitText.h"

namespace strata {
namespace {

std::vector<std::string> patternsOf(std::string_view name) {
  auto named = namedPreTokenizer(name);
  EXPECT_TRUE(named.isOk()) << name;
  return named.isOk() ? named->preTokenizer.patterns : std::vector<std::string>();
}

Pieces splitNamed(std::string_view name, std::string_view text) {
  return split(patternsOf(name), text);
}

/// Text that patterns find hard: few letters of every class, much repetition.
std::string randomText(std::mt19937_64 &random) {
  constexpr const char *parts[] = {"a",      "B",      "1",      "2",      " ",      "  ",
                                   "\n",     "\r",     "'s",     "'LL",    "!",      "/",
                                   "_",      "\u4E2D", "\u3005", "\u3042", "\u01C5", "\u02B0",
                                   "\u0301", "\u00BD", "\u3007", "\u2E80", "\u05D0", "\u00A0"};
  std::string text;
  for (size_t n = random() % 24; n > 0; --n)
    text += parts[random() % std::size(parts)];
  return text;
}

TEST(PreTokenizers, EveryNameSplitsLongRunsInLinearTime) {
  const std::string runs[] = {"a", "A", "1", " ", "\n", "!", "a ", "aB", "\u4E2D", "\u0301", "'s"};
  std::set<std::vector<std::string>> seen; // many names share their patterns
  for (std::string_view name : preTokenizerNames()) {
    if (!seen.insert(patternsOf(name)).second)
      continue;
    auto splitter = PatternSplitter::create({std::string(name), patternsOf(name)});
    ASSERT_TRUE(splitter.isOk()) << name << ": " << splitter.status().toString();
    for (const std::string &run : runs)
      // What stands behind a run decides whether a pattern gives it back.
      for (std::string end : {"", "a", "1"}) {
        std::string text;
        while (text.size() < 50'000)
          text += run;
        text += end;
        std::clock_t start = std::clock();
        auto found = splitter->split(text);
        double took = double(std::clock() - start) / CLOCKS_PER_SEC;
        ASSERT_TRUE(found.isOk()) << name << ": " << found.status().toString();
        EXPECT_EQ(found->back().end, text.size());
        EXPECT_LT(took, 0.5) << name << " on a run of '" << run << "' before '" << end << "'";
      }
  }
}

/// Patterns that are written so as to be linear cut where the plain ones do.
TEST(PreTokenizers, RewrittenPatternsCutAsTheOriginals) {
  constexpr const char *upper = R"((?:(?!\p{sc:Han})[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]))";
  constexpr const char *lower = R"((?:(?!\p{sc:Han})[\p{Ll}\p{Lm}\p{Lo}\p{M}]))";
  std::string contraction = R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?)";
  std::string prefix = R"([^\r\n\p{L}\p{N}]?)";
  std::string kimi = R"(\p{sc:Han}+|)" + prefix + upper + "*" + lower + "+" + contraction + "|" +
                     prefix + upper + "+" + lower + "*" + contraction +
                     R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  std::vector<std::string> deepseekLlm = patternsOf("deepseek-llm");
  ASSERT_EQ(deepseekLlm.size(), 6u);
  deepseekLlm[3] = R"(\s+$)";
  const std::pair<const char *, std::vector<std::string>> originals[] = {
      {"kimi-k2", {kimi}},
      {"superbpe", {R"(\p{N}+)", R"((?=(\d{3})+(?!\d)))"}},
      {"tiny_aya", {R"(\d{1,3}(?=(?:\d{3})*\b))", patternsOf("gpt-4o")[0]}},
      {"deepseek-llm", deepseekLlm}};
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000; ++i) {
    std::string text = randomText(random);
    if (i % 2 == 1) // numbers as long as groups of three need
      for (size_t n = random() % 12; n > 0; --n)
        text.insert(text.begin(), '7');
    for (const auto &[name, patterns] : originals)
      ASSERT_EQ(splitNamed(name, text), split(patterns, text)) << name << ": '" << text << "'";
  }
}

TEST(PreTokenizers, CutAsTheModelsDo) {
  EXPECT_EQ(splitNamed("gpt-4o", "HelloWorld it's 12345/\n"),
            (Pieces{"Hello", "World", " it's", " ", "123", "45", "/\n"}));
  EXPECT_EQ(splitNamed("starcoder", "x 12"), (Pieces{"x", " ", "1", "2"}));
  EXPECT_EQ(splitNamed("falcon", "a`b 1234"), (Pieces{"a", "`", "b", " ", "123", "4"}));
  EXPECT_EQ(splitNamed("superbpe", "a 1234567"), (Pieces{"a ", "1", "234", "567"}));
  EXPECT_EQ(splitNamed("tiny_aya", "1234567 12ab"), (Pieces{"1", "234", "567", " ", "12", "ab"}));
  EXPECT_EQ(splitNamed("bloom", "Hello, world"), (Pieces{"Hello", ",", " world"}));
  EXPECT_EQ(splitNamed("kimi-k2", "Hi\u4E2D\u6587it's"), (Pieces{"Hi", "\u4E2D\u6587", "it's"}));
  EXPECT_EQ(splitNamed("seed-coder", "!!\nx"), (Pieces{"!!", "\n", "x"}));
  EXPECT_EQ(splitNamed("bailingmoe", "\n\n\nx"), (Pieces{"\n\n\n", "x"}));
  EXPECT_EQ(splitNamed("exaone-moe", "ab cd 12"), (Pieces{"ab cd", " ", "1", "2"}));
  EXPECT_EQ(splitNamed("qwen35", "cafe\u0301!"), (Pieces{"cafe\u0301", "!"}));
  EXPECT_EQ(splitNamed("deepseek-llm", "Hi there, 12 \u4E2D\u6587"),
            (Pieces{"Hi", " there", ",", " ", "12", " ", "\u4E2D\u6587"}));
  EXPECT_EQ(splitNamed("jais-2", "a     b"), (Pieces{"a", "    ", " b"}));
  EXPECT_EQ(splitNamed("youtu", "\uD55C\uAD6Dab"), (Pieces{"\uD55C\uAD6D", "ab"}));
}

} // namespace
} // namespace strata
