#include "runtime/plan/VocabularyCodec.h"

#include <gtest/gtest.h>

using namespace strata;

namespace {

TEST(VocabularyCodec, RoundTrip) {
  Vocabulary from;
  from.model = VocabularyModel::SentencePieceBpe;
  from.tokens = {"<s>", "", "\xE2\x96\x81the", std::string("a\0b", 3)};
  from.kinds = {TokenKind::Control, TokenKind::Unused, TokenKind::Normal, TokenKind::Byte};
  from.scores = {0, -1, -2.5f, 3};
  from.merges = {"a b", "ab c"};
  from.preTokenizer = {"smollm", {"\\p{N}", "x+"}};
  from.bosId = 0;
  from.eosId = 2;
  from.unknownId = -1;
  from.addBos = from.addSpacePrefix = from.ignoreMerges = true;
  from.endOfGeneration = {2, 3};
  from.chatTemplate = "{{ messages }}";
  from.preTokenizer.uses = {{SplitBehavior::Removed, true}, {SplitBehavior::Contiguous, false}};
  from.prefixUnlessSpace = true;
  from.steps = {{TextStep::Kind::Replace, " +", "x"},
                {TextStep::Kind::CharacterMap, "", std::string("\0\1\xFF", 3)}};
  from.tokenRules = {{.id = 2, .stripRight = true, .normalized = true}};

  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(encodeVocabulary(builder, from));
  Vocabulary to =
      decodeVocabulary(*flatbuffers::GetRoot<fb::Vocabulary>(builder.GetBufferPointer()));
  EXPECT_EQ(to.model, from.model);
  EXPECT_EQ(to.tokens, from.tokens);
  EXPECT_EQ(to.kinds, from.kinds);
  EXPECT_EQ(to.scores, from.scores);
  EXPECT_EQ(to.merges, from.merges);
  EXPECT_EQ(to.preTokenizer.name, from.preTokenizer.name);
  EXPECT_EQ(to.preTokenizer.patterns, from.preTokenizer.patterns);
  EXPECT_EQ(to.bosId, 0);
  EXPECT_EQ(to.eosId, 2);
  EXPECT_EQ(to.unknownId, -1);
  EXPECT_TRUE(to.addBos && to.addSpacePrefix && to.ignoreMerges);
  EXPECT_FALSE(to.addEos);
  EXPECT_EQ(to.endOfGeneration, from.endOfGeneration);
  EXPECT_EQ(to.chatTemplate, from.chatTemplate);
  ASSERT_EQ(to.preTokenizer.uses.size(), 2u);
  EXPECT_EQ(to.preTokenizer.uses[0].behavior, SplitBehavior::Removed);
  EXPECT_TRUE(to.preTokenizer.uses[0].invert && !to.preTokenizer.uses[1].invert);
  EXPECT_EQ(to.preTokenizer.uses[1].behavior, SplitBehavior::Contiguous);
  EXPECT_TRUE(to.prefixUnlessSpace && !to.prefixStartOnly && !to.splitAtSpaces);
  ASSERT_EQ(to.steps.size(), 2u);
  EXPECT_EQ(to.steps[0].pattern, " +");
  EXPECT_EQ(to.steps[1].kind, TextStep::Kind::CharacterMap);
  EXPECT_EQ(to.steps[1].content, from.steps[1].content);
  ASSERT_EQ(to.tokenRules.size(), 1u);
  EXPECT_EQ(to.tokenRules[0].id, 2);
  EXPECT_TRUE(to.tokenRules[0].stripRight && to.tokenRules[0].normalized);
  EXPECT_FALSE(to.tokenRules[0].stripLeft || to.tokenRules[0].singleWord);
}

} // namespace
