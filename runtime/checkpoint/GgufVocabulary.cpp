#include "runtime/checkpoint/GgufVocabulary.h"

#include <cmath>
#include <limits>

#include "runtime/checkpoint/EndOfGeneration.h"
#include "runtime/checkpoint/PreTokenizerTable.h"
#include "runtime/checkpoint/Text.h"

namespace strata {
namespace {

/// The array at `key` of `type`, or nullptr where the key is absent.
Result<const GgufValue *> findArray(const GgufFile &file, std::string_view key, GgufType type) {
  const GgufValue *value = file.find(key);
  if (value && (!value->isArray || value->type != type))
    return makeError(StatusCode::InvalidData, "key '{}' is {}{}; it must be an array of {}", key,
                     value->isArray ? "an array of " : "", ggufTypeName(value->type),
                     ggufTypeName(type));
  return value;
}

Status checkLength(std::string_view key, uint64_t found, const Vocabulary &vocabulary) {
  if (found != vocabulary.tokens.size())
    return makeError(StatusCode::InvalidData,
                     "key '{}' has {} elements but the vocabulary has {} tokens", key, found,
                     vocabulary.tokens.size());
  return Status::ok();
}

Status readTokens(const GgufFile &file, Vocabulary &vocabulary) {
  constexpr std::string_view tokensKey = "tokenizer.ggml.tokens";
  STRATA_ASSIGN_OR_RETURN(const GgufValue *tokens, findArray(file, tokensKey, GgufType::String));
  if (!tokens || tokens->count == 0)
    return makeError(StatusCode::InvalidData, "the file names a tokenizer but key '{}' is {}",
                     tokensKey, tokens ? "empty" : "absent");
  for (std::string_view token : tokens->strings())
    vocabulary.tokens.emplace_back(token);

  constexpr std::string_view kindsKey = "tokenizer.ggml.token_type";
  vocabulary.kinds.assign(vocabulary.tokens.size(), TokenKind::Normal);
  STRATA_ASSIGN_OR_RETURN(const GgufValue *kinds, findArray(file, kindsKey, GgufType::I32));
  if (!kinds)
    return Status::ok();
  STRATA_RETURN_IF_ERROR(checkLength(kindsKey, kinds->count, vocabulary));
  for (uint64_t id = 0; id < kinds->count; ++id) {
    int32_t kind;
    std::memcpy(&kind, kinds->bytes.data() + id * sizeof kind, sizeof kind);
    if (kind < 0 || kind > int32_t(TokenKind::Byte))
      return makeError(StatusCode::InvalidData,
                       "key '{}' gives token {} the type {}; 1 to {} are known", kindsKey, id, kind,
                       int32_t(TokenKind::Byte));
    if (kind != 0) // 0 is "undefined", which converters once wrote for ordinary tokens
      vocabulary.kinds[id] = TokenKind(kind);
  }
  return Status::ok();
}

/// What SentencePiece does to a text before its unigram model sees it.
Status readTextSteps(const GgufFile &file, Vocabulary &vocabulary) {
  constexpr std::string_view key = "tokenizer.ggml.precompiled_charsmap";
  if (const GgufValue *map = file.find(key)) {
    if (!map->isArray || (map->type != GgufType::U8 && map->type != GgufType::I8))
      return makeError(StatusCode::InvalidData, "key '{}' is {}{}; it must be an array of u8", key,
                       map->isArray ? "an array of " : "", ggufTypeName(map->type));
    if (map->count > 0)
      vocabulary.steps.push_back(
          {TextStep::Kind::CharacterMap,
           {},
           {reinterpret_cast<const char *>(map->bytes.data()), map->bytes.size()}});
  }
  STRATA_ASSIGN_OR_RETURN(std::optional<bool> collapses,
                          file.boolean("tokenizer.ggml.remove_extra_whitespaces"));
  if (collapses.value_or(false)) {
    vocabulary.steps.push_back({TextStep::Kind::Replace, "^ +| +$", ""});
    vocabulary.steps.push_back({TextStep::Kind::Replace, " {2,}", " "});
  }
  return Status::ok();
}

Status readScores(const GgufFile &file, Vocabulary &vocabulary) {
  constexpr std::string_view key = "tokenizer.ggml.scores";
  STRATA_ASSIGN_OR_RETURN(const GgufValue *scores, findArray(file, key, GgufType::F32));
  if (!scores)
    return makeError(StatusCode::InvalidData,
                     "a SentencePiece vocabulary needs scores but key '{}' is absent", key);
  STRATA_RETURN_IF_ERROR(checkLength(key, scores->count, vocabulary));
  vocabulary.scores.resize(scores->count);
  std::memcpy(vocabulary.scores.data(), scores->bytes.data(), scores->bytes.size());
  for (size_t id = 0; id < vocabulary.scores.size(); ++id)
    if (std::isnan(vocabulary.scores[id]))
      return makeError(StatusCode::InvalidData, "key '{}' gives token {} a score that is no number",
                       key, id);
  return Status::ok();
}

/// -1 where the key is absent or says "none" by -1 in its own width.
Result<int32_t> readTokenId(const GgufFile &file, std::string_view key,
                            const Vocabulary &vocabulary) {
  const GgufValue *value = file.find(key);
  if (value && !value->isArray && value->isInteger()) {
    nlohmann::ordered_json number = value->element(0);
    if (number == -1 ||
        (value->type == GgufType::U32 && number == std::numeric_limits<uint32_t>::max()))
      return -1;
  }
  STRATA_ASSIGN_OR_RETURN(std::optional<uint64_t> id,
                          file.unsignedInteger(key, vocabulary.tokens.size() - 1));
  return id ? int32_t(*id) : -1;
}

} // namespace

Result<std::optional<Vocabulary>> readGgufVocabulary(const GgufFile &file) {
  STRATA_ASSIGN_OR_RETURN(std::optional<std::string_view> model,
                          file.string("tokenizer.ggml.model"));
  if (!model || *model == "none" || *model == "no_vocab")
    return std::optional<Vocabulary>();

  Vocabulary vocabulary;
  if (*model == "gpt2")
    vocabulary.model = VocabularyModel::ByteLevelBpe;
  else if (*model == "llama")
    vocabulary.model = VocabularyModel::SentencePieceBpe;
  else if (*model == "t5")
    vocabulary.model = VocabularyModel::Unigram;
  else
    return makeError(StatusCode::Unimplemented,
                     "the tokenizer model '{}' is not read; 'gpt2' (byte-level BPE), 'llama' "
                     "(SentencePiece BPE) and 't5' (unigram) are",
                     printable(*model));
  STRATA_RETURN_IF_ERROR(readTokens(file, vocabulary));

  if (vocabulary.model == VocabularyModel::ByteLevelBpe) {
    STRATA_ASSIGN_OR_RETURN(const GgufValue *merges,
                            findArray(file, "tokenizer.ggml.merges", GgufType::String));
    if (!merges)
      return makeError(StatusCode::InvalidData,
                       "a byte-level BPE vocabulary needs key 'tokenizer.ggml.merges'");
    for (std::string_view merge : merges->strings())
      vocabulary.merges.emplace_back(merge);
    STRATA_ASSIGN_OR_RETURN(std::optional<std::string_view> name,
                            file.string("tokenizer.ggml.pre"));
    STRATA_ASSIGN_OR_RETURN(NamedPreTokenizer named,
                            namedPreTokenizer(name ? printable(*name) : "default"));
    vocabulary.preTokenizer = std::move(named.preTokenizer);
    vocabulary.ignoreMerges = named.ignoreMerges;
    vocabulary.addBos = named.addBos;
  } else {
    STRATA_RETURN_IF_ERROR(readScores(file, vocabulary));
    vocabulary.addBos = vocabulary.model == VocabularyModel::SentencePieceBpe;
    vocabulary.addSpacePrefix = true;
    if (vocabulary.model == VocabularyModel::Unigram)
      STRATA_RETURN_IF_ERROR(readTextSteps(file, vocabulary));
  }

  STRATA_ASSIGN_OR_RETURN(vocabulary.bosId,
                          readTokenId(file, "tokenizer.ggml.bos_token_id", vocabulary));
  STRATA_ASSIGN_OR_RETURN(vocabulary.eosId,
                          readTokenId(file, "tokenizer.ggml.eos_token_id", vocabulary));
  STRATA_ASSIGN_OR_RETURN(vocabulary.unknownId,
                          readTokenId(file, "tokenizer.ggml.unknown_token_id", vocabulary));
  STRATA_ASSIGN_OR_RETURN(std::optional<bool> addBos, file.boolean("tokenizer.ggml.add_bos_token"));
  STRATA_ASSIGN_OR_RETURN(std::optional<bool> addEos, file.boolean("tokenizer.ggml.add_eos_token"));
  STRATA_ASSIGN_OR_RETURN(std::optional<bool> addSpacePrefix,
                          file.boolean("tokenizer.ggml.add_space_prefix"));
  if (addBos.value_or(false) && vocabulary.bosId < 0)
    return makeError(StatusCode::InvalidData, "key 'tokenizer.ggml.add_bos_token' is true but key "
                                              "'tokenizer.ggml.bos_token_id' names no token");
  if (addEos.value_or(false) && vocabulary.eosId < 0)
    return makeError(StatusCode::InvalidData, "key 'tokenizer.ggml.add_eos_token' is true but key "
                                              "'tokenizer.ggml.eos_token_id' names no token");
  vocabulary.addBos = addBos.value_or(vocabulary.addBos && vocabulary.bosId >= 0);
  vocabulary.addEos =
      addEos.value_or(vocabulary.model == VocabularyModel::Unigram && vocabulary.eosId >= 0);
  if (vocabulary.model != VocabularyModel::ByteLevelBpe)
    vocabulary.addSpacePrefix = addSpacePrefix.value_or(true);

  std::vector<int32_t> ends;
  for (std::string_view key : {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}) {
    STRATA_ASSIGN_OR_RETURN(int32_t id, readTokenId(file, key, vocabulary));
    if (id >= 0)
      ends.push_back(id);
  }
  STRATA_RETURN_IF_ERROR(setEndOfGeneration(vocabulary, std::move(ends)));

  STRATA_ASSIGN_OR_RETURN(std::optional<std::string_view> chatTemplate,
                          file.string("tokenizer.chat_template"));
  vocabulary.chatTemplate = chatTemplate.value_or("");
  if (!isUtf8(vocabulary.chatTemplate))
    return makeError(StatusCode::InvalidData, "key 'tokenizer.chat_template' is not UTF-8");
  return std::optional<Vocabulary>(std::move(vocabulary));
}

} // namespace strata
