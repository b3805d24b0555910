#include "runtime/checkpoint/TokenizerJson.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <string_view>
#include <unordered_map>

#include "runtime/checkpoint/ChatTemplateFile.h"
#include "runtime/checkpoint/EndOfGeneration.h"
#include "runtime/checkpoint/Json.h"
#include "runtime/checkpoint/Text.h"
#include "runtime/checkpoint/TokenizerJsonText.h"

namespace strata {
namespace {

using Json = nlohmann::ordered_json;

/// Ids need not be dense (models round their vocabulary up), but a stated id decides how many
/// tokens are allocated, so the ids without a token are bounded.
constexpr uint64_t maxUnusedIds = 65536;

class TokenizerJsonReader {
public:
  explicit TokenizerJsonReader(const TokenizerDocuments &documents) : documents_(documents) {}

  Result<Vocabulary> read();

private:
  Status readModelOptions();
  Status readTokens();
  Status addToken(const std::string &text, const Json &id, TokenKind kind);
  template <class KindOf> Status readUnigramTokens(const Json &vocab, const KindOf &kindOf);
  Status readMerges();
  Status scoreByMerges();
  Status readSpecialTokens();
  Status readPostProcessor();
  Result<int32_t> namedToken(std::string_view key) const;
  Result<int32_t> configuredToken(std::string_view key) const;
  int32_t idOf(std::string_view text) const {
    auto found = ids_.find(std::string(text));
    return found == ids_.end() ? -1 : found->second;
  }

  struct Merge {
    std::string left, right;
  };

  const TokenizerDocuments &documents_;
  const Json *model_ = nullptr;
  Vocabulary vocabulary_;
  bool byteFallback_ = false;
  std::unordered_map<std::string, int32_t> ids_;
  std::vector<Merge> merges_;
};

Status malformed(std::string_view what) {
  return makeError(StatusCode::InvalidData, "tokenizer.json: {}", what);
}

/// A value that must be absent, null or empty, since it would change how pieces are merged.
Status refuseOption(const Json &model, std::string_view key) {
  const Json *value = findMember(model, key);
  if (!value || (value->is_string() && value->get_ref<const std::string &>().empty()) ||
      (value->is_number() && value->get<double>() == 0))
    return Status::ok();
  return makeError(StatusCode::Unimplemented, "tokenizer.json: a model with '{}' is not read", key);
}

Status TokenizerJsonReader::readModelOptions() {
  model_ = findMember(documents_.tokenizer, "model");
  if (!model_ || !model_->is_object())
    return malformed("the object 'model' is missing");
  // Files of before 2020 name no type; only BPE has merges.
  std::string type = model_->contains("merges") ? "BPE" : "";
  if (const Json *stated = findMember(*model_, "type"))
    type = stated->is_string() ? stated->get<std::string>() : "";
  if (type != "BPE" && type != "Unigram")
    return makeError(StatusCode::Unimplemented,
                     "tokenizer.json: a model of type '{}' is not read; 'BPE' and 'Unigram' are",
                     printable(type));
  for (std::string_view key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"})
    STRATA_RETURN_IF_ERROR(refuseOption(*model_, key));

  STRATA_ASSIGN_OR_RETURN(TokenizerText text, readTokenizerText(documents_.tokenizer));
  STRATA_ASSIGN_OR_RETURN(bool byteFallback, booleanMember(*model_, "byte_fallback", false));
  STRATA_ASSIGN_OR_RETURN(bool ignoreMerges, booleanMember(*model_, "ignore_merges", false));
  vocabulary_.steps = std::move(text.steps);
  vocabulary_.addSpacePrefix = text.addSpacePrefix;
  vocabulary_.prefixStartOnly = text.prefixStartOnly;
  vocabulary_.prefixUnlessSpace = text.prefixUnlessSpace;
  vocabulary_.splitAtSpaces = text.splitAtSpaces;
  byteFallback_ = byteFallback;
  if (type == "Unigram") {
    if (!text.spacesBecomeMarks)
      return makeError(StatusCode::Unimplemented,
                       "tokenizer.json: a 'Unigram' model without U+2581 for spaces is not read");
    vocabulary_.model = VocabularyModel::Unigram;
    return Status::ok();
  }
  if (text.byteLevel) {
    vocabulary_.model = VocabularyModel::ByteLevelBpe;
    bool isolates = std::all_of(text.uses.begin(), text.uses.end(), [](PatternUse use) {
      return use.behavior == SplitBehavior::Isolated; // then an inverted match cuts alike
    });
    if (isolates)
      text.uses.clear();
    vocabulary_.preTokenizer = {"tokenizer.json", std::move(text.patterns), std::move(text.uses)};
    vocabulary_.ignoreMerges = ignoreMerges;
    return Status::ok();
  }
  if (!byteFallback || !text.spacesBecomeMarks)
    return makeError(StatusCode::Unimplemented,
                     "tokenizer.json: BPE that is neither byte-level (a 'ByteLevel' pre_tokenizer) "
                     "nor SentencePiece's (byte_fallback, and U+2581 for spaces) is not read");
  if (ignoreMerges)
    return makeError(StatusCode::Unimplemented,
                     "tokenizer.json: 'ignore_merges' without a 'ByteLevel' pre_tokenizer is not "
                     "read");
  vocabulary_.model = VocabularyModel::SentencePieceBpe;
  return Status::ok();
}

Status TokenizerJsonReader::addToken(const std::string &text, const Json &id, TokenKind kind) {
  if (!id.is_number_unsigned() ||
      id.get<uint64_t>() >= uint64_t(std::numeric_limits<int32_t>::max()))
    return malformed(fmt::format("token '{}' has the id {}; it must be an integer of 0 to 2^31 - 2",
                                 printable(text), printable(id.dump(-1, ' ', true))));
  auto index = id.get<uint64_t>();
  if (index >= vocabulary_.tokens.size())
    return malformed(
        fmt::format("token '{}' has the id {}, more than {} above the number of tokens",
                    printable(text), index, maxUnusedIds));
  bool taken = vocabulary_.kinds[index] != TokenKind::Unused;
  auto [entry, isNew] = ids_.emplace(text, int32_t(index));
  if (!isNew && entry->second != int32_t(index))
    return malformed(
        fmt::format("token '{}' has two ids, {} and {}", printable(text), entry->second, index));
  if (isNew && taken)
    return malformed(fmt::format("id {} belongs to two tokens, '{}' and '{}'", index,
                                 printable(vocabulary_.tokens[index]), printable(text)));
  vocabulary_.tokens[index] = text;
  vocabulary_.kinds[index] = kind;
  return Status::ok();
}

Status TokenizerJsonReader::readTokens() {
  bool isUnigram = vocabulary_.model == VocabularyModel::Unigram;
  const Json *vocab = findMember(*model_, "vocab");
  if (!vocab || (isUnigram ? !vocab->is_array() : !vocab->is_object()) || vocab->empty())
    return malformed(
        fmt::format("the {} 'model.vocab' is missing or empty", isUnigram ? "array" : "object"));
  const Json *added = findMember(documents_.tokenizer, "added_tokens");
  if (added && !added->is_array())
    return malformed(fmt::format("'added_tokens' is {}; it must be an array", jsonKind(*added)));

  uint64_t entries = vocab->size() + (added ? added->size() : 0);
  uint64_t largest = 0;
  auto consider = [&](const Json &id) {
    if (id.is_number_unsigned())
      largest = std::max(largest, id.get<uint64_t>());
  };
  if (isUnigram)
    largest = vocab->size() - 1;
  else
    for (const auto &[text, id] : vocab->items())
      consider(id);
  if (added)
    for (const Json &token : *added)
      if (const Json *id = findMember(token, "id"))
        consider(*id);
  uint64_t size = std::min(largest, entries + maxUnusedIds - 1) + 1;
  vocabulary_.tokens.resize(size);
  vocabulary_.kinds.assign(size, TokenKind::Unused);
  ids_.reserve(entries);

  auto kindOf = [&](std::string_view text) {
    bool isByte = byteFallback_ && vocabulary_.model != VocabularyModel::ByteLevelBpe &&
                  text.size() == 6 && text.starts_with("<0x") && text[5] == '>';
    return isByte ? TokenKind::Byte : TokenKind::Normal;
  };
  if (isUnigram) {
    STRATA_RETURN_IF_ERROR(readUnigramTokens(*vocab, kindOf));
  } else {
    for (const auto &[text, id] : vocab->items())
      STRATA_RETURN_IF_ERROR(addToken(text, id, kindOf(text)));
  }
  for (size_t i = 0; added && i < added->size(); ++i) {
    const Json &token = (*added)[i];
    const Json *content = findMember(token, "content"), *id = findMember(token, "id");
    if (!content || !content->is_string() || !id)
      return malformed(fmt::format("entry {} of 'added_tokens' has no 'content' or no 'id'", i));
    const auto &text = content->get_ref<const std::string &>();
    TokenRule rule{-1};
    STRATA_ASSIGN_OR_RETURN(rule.stripLeft, booleanMember(token, "lstrip", false));
    STRATA_ASSIGN_OR_RETURN(rule.stripRight, booleanMember(token, "rstrip", false));
    STRATA_ASSIGN_OR_RETURN(rule.singleWord, booleanMember(token, "single_word", false));
    STRATA_ASSIGN_OR_RETURN(rule.normalized, booleanMember(token, "normalized", false));
    // Without steps the normalised text is the text itself.
    rule.normalized = rule.normalized && !vocabulary_.steps.empty();
    STRATA_ASSIGN_OR_RETURN(bool special, booleanMember(token, "special", false));
    STRATA_RETURN_IF_ERROR(
        addToken(text, *id, special ? TokenKind::Control : TokenKind::UserDefined));
    rule.id = id->get<int32_t>();
    if (rule.stripLeft || rule.stripRight || rule.singleWord || rule.normalized)
      vocabulary_.tokenRules.push_back(rule);
  }
  for (size_t id = 0; id < size; ++id)
    if (vocabulary_.kinds[id] == TokenKind::Unused)
      vocabulary_.tokens[id] = fmt::format("[UNUSED_{}]", id);
  return Status::ok();
}

/// A list of token and score, by id.
template <class KindOf>
Status TokenizerJsonReader::readUnigramTokens(const Json &vocab, const KindOf &kindOf) {
  vocabulary_.scores.assign(vocabulary_.tokens.size(), 0);
  for (size_t id = 0; id < vocab.size(); ++id) {
    const Json &entry = vocab[id];
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number())
      return malformed(fmt::format("entry {} of 'model.vocab' must be a token and a score", id));
    const auto &text = entry[0].get_ref<const std::string &>();
    STRATA_RETURN_IF_ERROR(addToken(text, Json(uint64_t(id)), kindOf(text)));
    vocabulary_.scores[id] = entry[1].get<float>();
  }
  if (const Json *unknown = findMember(*model_, "unk_id")) {
    if (!unknown->is_number_unsigned() || unknown->get<uint64_t>() >= vocab.size())
      return malformed(fmt::format("'model.unk_id' is {}; it must be 0 to {}",
                                   printable(unknown->dump(-1, ' ', true)), vocab.size() - 1));
    vocabulary_.unknownId = unknown->get<int32_t>();
  }
  return Status::ok();
}

Status TokenizerJsonReader::readMerges() {
  if (vocabulary_.model == VocabularyModel::Unigram) {
    if (vocabulary_.unknownId >= 0)
      vocabulary_.kinds[vocabulary_.unknownId] = TokenKind::Unknown;
    return Status::ok();
  }
  const Json *list = findMember(*model_, "merges");
  if (!list || !list->is_array())
    return malformed("the array 'model.merges' is missing");
  merges_.reserve(list->size());
  for (size_t rank = 0; rank < list->size(); ++rank) {
    const Json &merge = (*list)[rank];
    if (merge.is_string()) {
      const auto &text = merge.get_ref<const std::string &>();
      size_t space = text.find(' ', 1); // a part may begin with the space itself
      if (space == std::string::npos || space + 1 == text.size())
        return malformed(fmt::format("merge {} is '{}'; it must be two tokens and a space between "
                                     "them",
                                     rank, printable(text)));
      merges_.push_back({text.substr(0, space), text.substr(space + 1)});
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
               merge[1].is_string()) {
      merges_.push_back({merge[0].get<std::string>(), merge[1].get<std::string>()});
    } else {
      return malformed(
          fmt::format("merge {} is {}; it must be a string or two", rank, jsonKind(merge)));
    }
    const Merge &parsed = merges_.back();
    for (const std::string &part : {parsed.left, parsed.right, parsed.left + parsed.right})
      if (idOf(part) < 0)
        return malformed(
            fmt::format("merge {} names '{}', which is no token", rank, printable(part)));
  }
  if (vocabulary_.model == VocabularyModel::SentencePieceBpe)
    return scoreByMerges();
  for (const Merge &merge : merges_) {
    if (merge.left.find(' ') != std::string::npos || merge.right.find(' ') != std::string::npos)
      return malformed(fmt::format("the merge of '{}' and '{}' holds a space, which a byte-level "
                                   "token never does",
                                   printable(merge.left), printable(merge.right)));
    vocabulary_.merges.push_back(merge.left + " " + merge.right);
  }
  return Status::ok();
}

/// A file converted from SentencePiece lists, for each token from the best score down, every way to
/// put it together. So the score of a token is the rank of its first merge, negated, provided that
/// the merges of each token stand together.
Status TokenizerJsonReader::scoreByMerges() {
  auto unmerged = -float(merges_.size());
  vocabulary_.scores.assign(vocabulary_.tokens.size(), unmerged);
  int32_t former = -1;
  for (size_t rank = 0; rank < merges_.size(); ++rank) {
    int32_t id = idOf(merges_[rank].left + merges_[rank].right);
    if (id != former && vocabulary_.scores[id] != unmerged)
      return makeError(StatusCode::Unimplemented,
                       "tokenizer.json: merge {} makes '{}', whose other merges stand apart; only "
                       "merges ordered by token, as converted from SentencePiece, are read",
                       rank, printable(vocabulary_.tokens[id]));
    if (id != former)
      vocabulary_.scores[id] = -float(rank);
    former = id;
  }
  return Status::ok();
}

/// The id of a token that tokenizer_config.json names (as a string, or an object with `content`).
Result<int32_t> TokenizerJsonReader::namedToken(std::string_view key) const {
  const Json *value = findMember(documents_.tokenizerConfig, key);
  if (value && value->is_object())
    value = findMember(*value, "content");
  if (!value)
    return -1;
  if (!value->is_string())
    return makeError(StatusCode::InvalidData,
                     "tokenizer_config.json: '{}' is {}; it must be a string", key,
                     jsonKind(*value));
  const auto &text = value->get_ref<const std::string &>();
  int32_t id = idOf(text);
  if (id < 0)
    return makeError(StatusCode::InvalidData,
                     "tokenizer_config.json: '{}' is '{}', which is no token of tokenizer.json",
                     key, printable(text));
  return id;
}

/// An id that config.json states, -1 where it states none.
Result<int32_t> TokenizerJsonReader::configuredToken(std::string_view key) const {
  const Json *value = findMember(documents_.config, key);
  if (!value)
    return -1;
  if (!value->is_number_unsigned() || value->get<uint64_t>() >= vocabulary_.tokens.size())
    return makeError(StatusCode::InvalidData,
                     "config.json: '{}' is {}; it must be a token id of 0 to {}", key,
                     printable(value->dump(-1, ' ', true)), vocabulary_.tokens.size() - 1);
  return value->get<int32_t>();
}

Status TokenizerJsonReader::readSpecialTokens() {
  STRATA_ASSIGN_OR_RETURN(vocabulary_.bosId, namedToken("bos_token"));
  STRATA_ASSIGN_OR_RETURN(vocabulary_.eosId, namedToken("eos_token"));
  if (vocabulary_.bosId < 0) {
    STRATA_ASSIGN_OR_RETURN(vocabulary_.bosId, configuredToken("bos_token_id"));
  }
  STRATA_ASSIGN_OR_RETURN(
      std::vector<int32_t> ends,
      configuredEndOfGeneration(documents_.generationConfig, documents_.config));
  bool endsAreConfigured = !ends.empty();
  if (vocabulary_.eosId < 0 && endsAreConfigured)
    vocabulary_.eosId = ends.front();

  if (const Json *unknown = findMember(*model_, "unk_token")) {
    if (!unknown->is_string() || idOf(unknown->get_ref<const std::string &>()) < 0)
      return malformed("'model.unk_token' names no token");
    vocabulary_.unknownId = idOf(unknown->get_ref<const std::string &>());
    // A byte-level vocabulary may reuse a control token here; every byte has a token of its own.
    if (vocabulary_.model == VocabularyModel::SentencePieceBpe)
      vocabulary_.kinds[vocabulary_.unknownId] = TokenKind::Unknown;
  }
  STRATA_RETURN_IF_ERROR(readPostProcessor());
  return setEndOfGeneration(vocabulary_, std::move(ends));
}

/// Which tokens are put around a text: the template `[BOS] A [EOS]`, unless tokenizer_config.json
/// decides by `add_bos_token` and `add_eos_token`.
Status TokenizerJsonReader::readPostProcessor() {
  std::array<int32_t, 2> around = {-1, -1}; // before and after the text
  STRATA_ASSIGN_OR_RETURN(std::vector<const Json *> steps,
                          tokenizerSteps(documents_.tokenizer, "post_processor", "processors"));
  for (const Json *step : steps) {
    STRATA_ASSIGN_OR_RETURN(std::string type, stepType(*step, "post_processor"));
    if (type == "ByteLevel") // concerns offsets only
      continue;
    const Json *single = findMember(*step, "single");
    if (type != "TemplateProcessing" || !single || !single->is_array())
      return makeError(StatusCode::Unimplemented,
                       "tokenizer.json: the post_processor '{}' is not read", printable(type));
    bool afterText = false;
    for (const Json &part : *single) {
      if (findMember(part, "Sequence")) {
        afterText = true;
        continue;
      }
      const Json *special = findMember(part, "SpecialToken");
      const Json *name = special ? findMember(*special, "id") : nullptr;
      int32_t id = name && name->is_string() ? idOf(name->get_ref<const std::string &>()) : -1;
      if (id < 0)
        return malformed("the template of the post_processor names a token that does not exist");
      if (around[afterText] >= 0)
        return makeError(StatusCode::Unimplemented,
                         "tokenizer.json: a post_processor that puts two tokens {} the text is not "
                         "read",
                         afterText ? "after" : "before");
      around[afterText] = id;
    }
  }

  auto decide = [&](std::string_view flag, int32_t stated, int32_t &id, bool &adds) -> Status {
    STRATA_ASSIGN_OR_RETURN(adds, booleanMember(documents_.tokenizerConfig, flag, stated >= 0));
    if (!adds)
      return Status::ok();
    if (id < 0)
      id = stated;
    if (id < 0)
      return makeError(StatusCode::InvalidData,
                       "tokenizer_config.json: '{}' is true but no file names that token", flag);
    if (stated >= 0 && stated != id)
      return makeError(StatusCode::Unimplemented,
                       "tokenizer.json: the post_processor adds '{}', which is not the token '{}' "
                       "that '{}' stands for",
                       printable(vocabulary_.tokens[stated]), printable(vocabulary_.tokens[id]),
                       flag);
    return Status::ok();
  };
  STRATA_RETURN_IF_ERROR(decide("add_bos_token", around[0], vocabulary_.bosId, vocabulary_.addBos));
  return decide("add_eos_token", around[1], vocabulary_.eosId, vocabulary_.addEos);
}

Result<Vocabulary> TokenizerJsonReader::read() {
  STRATA_RETURN_IF_ERROR(readModelOptions());
  STRATA_RETURN_IF_ERROR(readTokens());
  STRATA_RETURN_IF_ERROR(readMerges());
  STRATA_RETURN_IF_ERROR(readSpecialTokens());
  STRATA_ASSIGN_OR_RETURN(vocabulary_.chatTemplate, chooseChatTemplate(documents_));
  return std::move(vocabulary_);
}

} // namespace

Result<Vocabulary> readTokenizerJson(const TokenizerDocuments &documents) {
  return TokenizerJsonReader(documents).read();
}

Result<std::optional<Vocabulary>>
readFolderVocabulary(const std::string &folder, const Json &config, const Json &generationConfig) {
  std::filesystem::path base(folder);
  std::error_code ignored;
  auto exists = [&](const char *name) { return std::filesystem::exists(base / name, ignored); };
  if (!exists("tokenizer.json")) {
    for (const char *other : {"tokenizer.model", "vocab.json", "vocab.txt", "tekken.json"})
      if (exists(other))
        return makeError(StatusCode::Unimplemented,
                         "'{}' has its tokenizer as '{}', which is not read; save it as "
                         "tokenizer.json",
                         folder, other);
    return std::optional<Vocabulary>();
  }

  TokenizerDocuments documents;
  STRATA_ASSIGN_OR_RETURN(documents.tokenizer, readJsonFile(base / "tokenizer.json"));
  if (exists("tokenizer_config.json")) {
    STRATA_ASSIGN_OR_RETURN(documents.tokenizerConfig,
                            readJsonFile(base / "tokenizer_config.json"));
  }
  documents.config = config;
  documents.generationConfig = generationConfig;
  if (exists("chat_template.json")) {
    STRATA_ASSIGN_OR_RETURN(documents.chatTemplateJson, readJsonFile(base / "chat_template.json"));
  }
  if (exists("chat_template.jinja")) {
    STRATA_ASSIGN_OR_RETURN(documents.chatTemplate,
                            readChatTemplateFile(base / "chat_template.jinja"));
  }
  Result<Vocabulary> vocabulary = readTokenizerJson(documents);
  if (!vocabulary.isOk())
    return std::move(vocabulary).status().at("folder", folder);
  return std::optional<Vocabulary>(*std::move(vocabulary));
}

} // namespace strata
