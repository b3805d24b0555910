#include "runtime/plan/VocabularyCodec.h"

#include "runtime/plan/Checks.h"

namespace strata {
namespace {

using Bytes = flatbuffers::Vector<uint8_t>;
using Ends = flatbuffers::Vector<uint32_t>;

constexpr uint8_t invertedUse = 128; // in pattern_uses

struct Packed {
  flatbuffers::Offset<Bytes> bytes;
  flatbuffers::Offset<Ends> ends;
};

Packed pack(flatbuffers::FlatBufferBuilder &builder, const std::vector<std::string> &strings) {
  std::vector<uint8_t> bytes;
  std::vector<uint32_t> ends;
  for (const std::string &string : strings) {
    bytes.insert(bytes.end(), string.begin(), string.end());
    ends.push_back(uint32_t(bytes.size()));
  }
  return {builder.CreateVector(bytes), builder.CreateVector(ends)};
}

std::vector<std::string> unpack(const Bytes *bytes, const Ends *ends) {
  std::vector<std::string> strings;
  strings.reserve(count(ends));
  uint32_t begin = 0;
  for (uint32_t i = 0; i < count(ends); ++i) {
    uint32_t end = ends->Get(i);
    strings.emplace_back(reinterpret_cast<const char *>(bytes->data()) + begin, end - begin);
    begin = end;
  }
  return strings;
}

} // namespace

flatbuffers::Offset<fb::Vocabulary> encodeVocabulary(flatbuffers::FlatBufferBuilder &builder,
                                                     const Vocabulary &vocabulary) {
  Packed tokens = pack(builder, vocabulary.tokens);
  Packed merges = pack(builder, vocabulary.merges);
  std::vector<uint8_t> kinds;
  for (TokenKind kind : vocabulary.kinds)
    kinds.push_back(uint8_t(kind));
  std::vector<uint8_t> uses;
  for (PatternUse use : vocabulary.preTokenizer.uses)
    uses.push_back(uint8_t(uint8_t(use.behavior) | (use.invert ? invertedUse : 0)));
  std::vector<flatbuffers::Offset<fb::TextStep>> steps;
  for (const TextStep &step : vocabulary.steps)
    steps.push_back(fb::CreateTextStep(
        builder, uint8_t(step.kind), builder.CreateString(step.pattern),
        builder.CreateVector(reinterpret_cast<const uint8_t *>(step.content.data()),
                             step.content.size())));
  std::vector<fb::TokenRule> rules;
  for (const TokenRule &rule : vocabulary.tokenRules)
    rules.emplace_back(rule.id, uint32_t(rule.stripLeft) | uint32_t(rule.stripRight) << 1 |
                                    uint32_t(rule.singleWord) << 2 |
                                    uint32_t(rule.normalized) << 3);
  return fb::CreateVocabulary(
      builder, uint8_t(vocabulary.model), tokens.bytes, tokens.ends, builder.CreateVector(kinds),
      builder.CreateVector(vocabulary.scores), merges.bytes, merges.ends,
      builder.CreateString(vocabulary.preTokenizer.name),
      builder.CreateVectorOfStrings(vocabulary.preTokenizer.patterns), vocabulary.bosId,
      vocabulary.eosId, vocabulary.unknownId, vocabulary.addBos, vocabulary.addEos,
      vocabulary.addSpacePrefix, vocabulary.ignoreMerges,
      builder.CreateVector(vocabulary.endOfGeneration),
      builder.CreateString(vocabulary.chatTemplate), builder.CreateVector(uses),
      vocabulary.prefixStartOnly, vocabulary.prefixUnlessSpace, vocabulary.splitAtSpaces,
      builder.CreateVector(steps), builder.CreateVectorOfStructs(rules));
}

Vocabulary decodeVocabulary(const fb::Vocabulary &stored) {
  Vocabulary vocabulary;
  vocabulary.model = VocabularyModel(stored.model());
  vocabulary.tokens = unpack(stored.tokens(), stored.token_ends());
  vocabulary.merges = unpack(stored.merges(), stored.merge_ends());
  for (uint32_t i = 0; i < count(stored.kinds()); ++i)
    vocabulary.kinds.push_back(TokenKind(stored.kinds()->Get(i)));
  for (uint32_t i = 0; i < count(stored.scores()); ++i)
    vocabulary.scores.push_back(stored.scores()->Get(i));
  vocabulary.preTokenizer.name = text(stored.pre_tokenizer());
  for (uint32_t i = 0; i < count(stored.patterns()); ++i)
    vocabulary.preTokenizer.patterns.emplace_back(text(stored.patterns()->Get(i)));
  vocabulary.bosId = stored.bos();
  vocabulary.eosId = stored.eos();
  vocabulary.unknownId = stored.unknown();
  vocabulary.addBos = stored.add_bos();
  vocabulary.addEos = stored.add_eos();
  vocabulary.addSpacePrefix = stored.add_space_prefix();
  vocabulary.ignoreMerges = stored.ignore_merges();
  for (uint32_t i = 0; i < count(stored.end_of_generation()); ++i)
    vocabulary.endOfGeneration.push_back(stored.end_of_generation()->Get(i));
  vocabulary.chatTemplate = text(stored.chat_template());
  for (uint32_t i = 0; i < count(stored.pattern_uses()); ++i) {
    uint8_t use = stored.pattern_uses()->Get(i);
    vocabulary.preTokenizer.uses.push_back(
        {SplitBehavior(use & ~invertedUse), (use & invertedUse) != 0});
  }
  vocabulary.prefixStartOnly = stored.prefix_start_only();
  vocabulary.prefixUnlessSpace = stored.prefix_unless_space();
  vocabulary.splitAtSpaces = stored.split_at_spaces();
  for (uint32_t i = 0; i < count(stored.steps()); ++i) {
    const fb::TextStep &step = *stored.steps()->Get(i);
    const auto *content = step.content();
    vocabulary.steps.push_back(
        {TextStep::Kind(step.kind()), std::string(text(step.pattern())),
         content ? std::string(content->begin(), content->end()) : std::string()});
  }
  for (uint32_t i = 0; i < count(stored.token_rules()); ++i) {
    const fb::TokenRule &rule = *stored.token_rules()->Get(i);
    vocabulary.tokenRules.push_back({rule.id(), (rule.flags() & 1) != 0, (rule.flags() & 2) != 0,
                                     (rule.flags() & 4) != 0, (rule.flags() & 8) != 0});
  }
  return vocabulary;
}

namespace checks {
namespace {

Status checkEnds(std::string_view what, const Bytes *bytes, const Ends *ends) {
  uint32_t begin = 0;
  for (uint32_t i = 0; i < count(ends); ++i) {
    if (ends->Get(i) < begin || ends->Get(i) > count(bytes))
      return invalid("{} {} ends at byte {}, outside {}..{}", what, i, ends->Get(i), begin,
                     count(bytes));
    begin = ends->Get(i);
  }
  if (begin != count(bytes))
    return invalid("the {}s end at byte {} of {}", what, begin, count(bytes));
  return {};
}

} // namespace

Status checkVocabulary(const fb::Plan &plan) {
  if (!plan.vocabulary())
    return {};
  const fb::Vocabulary &stored = *plan.vocabulary();
  uint32_t tokens = count(stored.token_ends());
  if (stored.model() > uint8_t(VocabularyModel::Unigram))
    return invalid("the vocabulary is of model {}; 0 to {} are known", stored.model(),
                   uint8_t(VocabularyModel::Unigram));
  STRATA_RETURN_IF_ERROR(checkEnds("token", stored.tokens(), stored.token_ends()));
  STRATA_RETURN_IF_ERROR(checkEnds("merge", stored.merges(), stored.merge_ends()));
  if (tokens == 0 || count(stored.kinds()) != tokens ||
      (count(stored.scores()) != 0 && count(stored.scores()) != tokens))
    return invalid("the vocabulary has {} tokens, {} kinds and {} scores", tokens,
                   count(stored.kinds()), count(stored.scores()));
  for (uint32_t i = 0; i < tokens; ++i)
    if (stored.kinds()->Get(i) < 1 || stored.kinds()->Get(i) > uint8_t(TokenKind::Byte))
      return invalid("token {} is of kind {}; 1 to 6 are known", i, stored.kinds()->Get(i));
  for (int32_t id : {stored.bos(), stored.eos(), stored.unknown()})
    if (id < -1 || id >= int64_t(tokens))
      return invalid("a special token is id {} of a vocabulary of {}", id, tokens);
  for (uint32_t i = 0; i < count(stored.end_of_generation()); ++i)
    if (uint32_t(stored.end_of_generation()->Get(i)) >= tokens)
      return invalid("the vocabulary's end_of_generation names id {} of {}",
                     stored.end_of_generation()->Get(i), tokens);
  if (count(stored.pattern_uses()) != 0 && count(stored.pattern_uses()) != count(stored.patterns()))
    return invalid("the vocabulary has {} patterns and {} uses of them", count(stored.patterns()),
                   count(stored.pattern_uses()));
  for (uint32_t i = 0; i < count(stored.pattern_uses()); ++i)
    if ((stored.pattern_uses()->Get(i) & ~invertedUse) > uint8_t(SplitBehavior::Contiguous))
      return invalid("pattern {} has the use {}; 0 to {} are known", i,
                     stored.pattern_uses()->Get(i), uint8_t(SplitBehavior::Contiguous));
  for (uint32_t i = 0; i < count(stored.steps()); ++i)
    if (stored.steps()->Get(i)->kind() > uint8_t(TextStep::Kind::CharacterMap))
      return invalid("text step {} is of kind {}; 0 to {} are known", i,
                     stored.steps()->Get(i)->kind(), uint8_t(TextStep::Kind::CharacterMap));
  for (uint32_t i = 0; i < count(stored.token_rules()); ++i)
    if (uint32_t(stored.token_rules()->Get(i)->id()) >= tokens)
      return invalid("a token rule names id {} of {}", stored.token_rules()->Get(i)->id(), tokens);
  return {};
}

} // namespace checks
} // namespace strata
