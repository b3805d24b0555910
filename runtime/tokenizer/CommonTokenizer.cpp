#include "runtime/tokenizer/CommonTokenizer.h"

#include <unordered_map>

#include "runtime/tokenizer/SentencePieceText.h"

namespace strata {
namespace {

// Offsets within a text are 32 bits wide and SentencePiece's space takes three bytes.
constexpr size_t maxTextBytes = size_t(1) << 30;

/// `normalized`: those that are found in the text after the steps, else those before.
std::vector<SpecialTokens::Entry> specialEntries(const Vocabulary &vocabulary, bool control,
                                                 bool normalized) {
  std::unordered_map<int32_t, TokenRule> rules;
  for (const TokenRule &rule : vocabulary.tokenRules)
    rules.emplace(rule.id, rule);
  std::vector<SpecialTokens::Entry> entries;
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    TokenKind kind = vocabulary.kinds[id];
    if (kind != TokenKind::UserDefined &&
        !(control && (kind == TokenKind::Control || kind == TokenKind::Unknown)))
      continue;
    auto rule = rules.find(int32_t(id));
    TokenRule how = rule == rules.end() ? TokenRule{int32_t(id)} : rule->second;
    if ((how.normalized && !vocabulary.steps.empty()) != normalized)
      continue;
    bool marked =
        kind == TokenKind::UserDefined && vocabulary.model != VocabularyModel::ByteLevelBpe;
    const std::string &text = vocabulary.tokens[id];
    entries.push_back({marked ? unescapeSpaces(text) : text, int32_t(id), how.stripLeft,
                       how.stripRight, how.singleWord});
  }
  return entries;
}

} // namespace

CommonTokenizer::CommonTokenizer(Vocabulary vocabulary)
    : Tokenizer(std::move(vocabulary)), userDefined_(specialEntries(vocabulary_, false, false)),
      allSpecial_(specialEntries(vocabulary_, true, false)) {}

Status CommonTokenizer::prepare() {
  if (vocabulary_.steps.empty())
    return Status::ok();
  STRATA_ASSIGN_OR_RETURN(TextNormalizer normalizer, TextNormalizer::create(vocabulary_.steps));
  normalizer_.emplace(std::move(normalizer));
  for (bool control : {false, true}) {
    std::vector<SpecialTokens::Entry> entries = specialEntries(vocabulary_, control, true);
    for (SpecialTokens::Entry &entry : entries) {
      STRATA_ASSIGN_OR_RETURN(entry.text, normalizer_->apply(entry.text));
    }
    (control ? normalizedSpecial_ : normalizedUserDefined_) =
        std::make_unique<SpecialTokens>(std::move(entries));
  }
  return Status::ok();
}

Status CommonTokenizer::encodeFragment(std::string_view text, bool starts, bool parseSpecial,
                                       std::vector<int32_t> &ids) const {
  if (!normalizer_)
    return encodeText(text, starts, ids);
  STRATA_ASSIGN_OR_RETURN(std::string normalized, normalizer_->apply(text));
  for (const auto &fragment :
       (parseSpecial ? *normalizedSpecial_ : *normalizedUserDefined_).split(normalized)) {
    if (fragment.id >= 0)
      ids.push_back(fragment.id);
    else
      STRATA_RETURN_IF_ERROR(encodeText(fragment.text, starts, ids));
    starts = false;
  }
  return Status::ok();
}

Result<std::vector<int32_t>> CommonTokenizer::encode(std::string_view text,
                                                     const EncodeOptions &options) const {
  if (text.size() > maxTextBytes)
    return makeError(StatusCode::InvalidArgument,
                     "text of {} bytes to encode; at most {} at once: encode it in parts",
                     text.size(), maxTextBytes);
  std::vector<int32_t> ids;
  if (options.addBos && vocabulary_.addBos)
    ids.push_back(vocabulary_.bosId);
  bool starts = true;
  for (const auto &fragment : (options.parseSpecial ? allSpecial_ : userDefined_).split(text)) {
    if (fragment.id >= 0)
      ids.push_back(fragment.id);
    else
      STRATA_RETURN_IF_ERROR(encodeFragment(fragment.text, starts, options.parseSpecial, ids));
    starts = false;
  }
  if (options.addBos && vocabulary_.addEos)
    ids.push_back(vocabulary_.eosId);
  return ids;
}

std::string CommonTokenizer::piece(int32_t id, bool special) const {
  if (id < 0 || size_t(id) >= vocabulary_.tokens.size())
    return {};
  TokenKind kind = vocabulary_.kinds[id];
  if (kind == TokenKind::Control || kind == TokenKind::Unknown)
    return special ? vocabulary_.tokens[id] : std::string();
  return textOf(id);
}

std::vector<int32_t> mergeableIds(const Vocabulary &vocabulary) {
  std::vector<int32_t> ids;
  ids.reserve(vocabulary.tokens.size());
  for (bool userDefined : {false, true})
    for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
      TokenKind kind = vocabulary.kinds[id];
      if (userDefined ? kind == TokenKind::UserDefined
                      : kind == TokenKind::Normal || kind == TokenKind::Unused)
        ids.push_back(int32_t(id));
    }
  return ids;
}

} // namespace strata
