#include "runtime/tokenizer/Tokenizer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/tokenizer/CommonTokenizer.h"

namespace strata {
namespace {

Status checkId(std::string_view name, int32_t id, const Vocabulary &vocabulary) {
  if (id >= -1 && id < int64_t(vocabulary.tokens.size()))
    return Status::ok();
  return makeError(StatusCode::InvalidData,
                   "the {} token is {} but the vocabulary has {} tokens; -1 stands for none", name,
                   id, vocabulary.tokens.size());
}

Status checkVocabulary(const Vocabulary &vocabulary) {
  size_t count = vocabulary.tokens.size();
  if (count == 0)
    return makeError(StatusCode::InvalidData, "the vocabulary has no tokens");
  if (count > size_t(std::numeric_limits<int32_t>::max()) || vocabulary.merges.size() >= UINT32_MAX)
    return makeError(StatusCode::InvalidData,
                     "the vocabulary has {} tokens and {} merges; ids and ranks are 32 bits wide",
                     count, vocabulary.merges.size());
  if (vocabulary.kinds.size() != count)
    return makeError(StatusCode::InvalidData,
                     "the vocabulary has {} tokens but {} token kinds; each token has one", count,
                     vocabulary.kinds.size());
  for (size_t id = 0; id < count; ++id)
    if (auto kind = uint8_t(vocabulary.kinds[id]); kind < 1 || kind > 6)
      return makeError(StatusCode::InvalidData,
                       "token {} ('{}') is of the kind {}; kinds are 1 to 6", id,
                       vocabulary.tokens[id], kind);

  STRATA_RETURN_IF_ERROR(checkId("beginning-of-sequence", vocabulary.bosId, vocabulary));
  STRATA_RETURN_IF_ERROR(checkId("end-of-sequence", vocabulary.eosId, vocabulary));
  STRATA_RETURN_IF_ERROR(checkId("unknown", vocabulary.unknownId, vocabulary));
  for (int32_t id : vocabulary.endOfGeneration)
    if (id < 0 || size_t(id) >= count)
      return makeError(StatusCode::InvalidData,
                       "an end-of-generation token is {} but the vocabulary has {} tokens", id,
                       count);
  if (vocabulary.addBos && vocabulary.bosId < 0)
    return makeError(StatusCode::InvalidData,
                     "the vocabulary asks for a beginning-of-sequence token but names none");
  if (vocabulary.addEos && vocabulary.eosId < 0)
    return makeError(StatusCode::InvalidData,
                     "the vocabulary asks for an end-of-sequence token but names none");

  for (const TokenRule &rule : vocabulary.tokenRules)
    if (rule.id < 0 || size_t(rule.id) >= count)
      return makeError(StatusCode::InvalidData,
                       "a token rule is about token {} but the vocabulary has {} tokens", rule.id,
                       count);

  if (vocabulary.model == VocabularyModel::ByteLevelBpe)
    return Status::ok();
  if (vocabulary.scores.size() != count)
    return makeError(StatusCode::InvalidData,
                     "the vocabulary has {} tokens but {} scores; SentencePiece needs one for each",
                     count, vocabulary.scores.size());
  for (size_t id = 0; id < count; ++id)
    if (std::isnan(vocabulary.scores[id]))
      return makeError(StatusCode::InvalidData, "the score of token {} ('{}') is not a number", id,
                       vocabulary.tokens[id]);
  return Status::ok();
}

} // namespace

Result<std::unique_ptr<Tokenizer>> Tokenizer::create(Vocabulary vocabulary) {
  STRATA_RETURN_IF_ERROR(checkVocabulary(vocabulary));
  std::sort(vocabulary.endOfGeneration.begin(), vocabulary.endOfGeneration.end());
  switch (vocabulary.model) {
  case VocabularyModel::ByteLevelBpe:
    return createByteLevelBpe(std::move(vocabulary));
  case VocabularyModel::SentencePieceBpe:
    return createSentencePieceBpe(std::move(vocabulary));
  case VocabularyModel::Unigram:
    return createUnigram(std::move(vocabulary));
  }
  return makeError(StatusCode::Unimplemented,
                   "vocabulary model {} is not known; 0 (byte-level BPE), 1 (SentencePiece BPE) "
                   "and 2 (unigram) are",
                   int(vocabulary.model));
}

bool Tokenizer::endsGeneration(int32_t id) const {
  const auto &ids = vocabulary_.endOfGeneration;
  return std::binary_search(ids.begin(), ids.end(), id);
}

} // namespace strata
