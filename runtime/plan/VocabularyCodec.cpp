#include "runtime/plan/VocabularyCodec.h"

#include "runtime/plan/Checks.h"

namespace strata {
namespace {

using Bytes = flatbuffers::Vector<uint8_t>;
using Ends = flatbuffers::Vector<uint32_t>;

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
  return fb::CreateVocabulary(
      builder, uint8_t(vocabulary.model), tokens.bytes, tokens.ends, builder.CreateVector(kinds),
      builder.CreateVector(vocabulary.scores), merges.bytes, merges.ends,
      builder.CreateString(vocabulary.preTokenizer.name),
      builder.CreateVectorOfStrings(vocabulary.preTokenizer.patterns), vocabulary.bosId,
      vocabulary.eosId, vocabulary.unknownId, vocabulary.addBos, vocabulary.addEos,
      vocabulary.addSpacePrefix, vocabulary.ignoreMerges,
      builder.CreateVector(vocabulary.endOfGeneration),
      builder.CreateString(vocabulary.chatTemplate));
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
  if (stored.model() > uint8_t(VocabularyModel::SentencePieceBpe))
    return invalid("the vocabulary is of model {}; 0 and 1 are known", stored.model());
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
  return {};
}

} // namespace checks
} // namespace strata
