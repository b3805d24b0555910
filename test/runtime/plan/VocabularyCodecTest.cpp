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
}

} // namespace
