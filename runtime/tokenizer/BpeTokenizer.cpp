#include "runtime/tokenizer/BpeTokenizer.h"

namespace strata {
namespace {

// Offsets within a text are 32 bits wide and SentencePiece's space takes three bytes.
constexpr size_t maxTextBytes = size_t(1) << 30;

std::vector<SpecialTokens::Entry> specialEntries(const Vocabulary &vocabulary, bool control) {
  std::vector<SpecialTokens::Entry> entries;
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const std::string &text = vocabulary.tokens[id];
    TokenKind kind = vocabulary.kinds[id];
    if (kind == TokenKind::UserDefined && vocabulary.model == VocabularyModel::SentencePieceBpe)
      entries.push_back({unescapeSpaces(text), int32_t(id)});
    else if (kind == TokenKind::UserDefined ||
             (control && (kind == TokenKind::Control || kind == TokenKind::Unknown)))
      entries.push_back({text, int32_t(id)});
  }
  return entries;
}

} // namespace

BpeTokenizer::BpeTokenizer(Vocabulary vocabulary)
    : Tokenizer(std::move(vocabulary)), userDefined_(specialEntries(vocabulary_, false)),
      allSpecial_(specialEntries(vocabulary_, true)) {}

Result<std::vector<int32_t>> BpeTokenizer::encode(std::string_view text,
                                                  const EncodeOptions &options) const {
  if (text.size() > maxTextBytes)
    return makeError(StatusCode::InvalidArgument,
                     "text of {} bytes to encode; at most {} at once: encode it in parts",
                     text.size(), maxTextBytes);
  std::vector<int32_t> ids;
  if (options.addBos && vocabulary_.addBos)
    ids.push_back(vocabulary_.bosId);
  bool opens = true;
  for (const auto &fragment : (options.parseSpecial ? allSpecial_ : userDefined_).split(text)) {
    if (fragment.id >= 0)
      ids.push_back(fragment.id);
    else
      STRATA_RETURN_IF_ERROR(encodeText(fragment.text, opens, ids));
    opens = fragment.id >= 0;
  }
  if (options.addBos && vocabulary_.addEos)
    ids.push_back(vocabulary_.eosId);
  return ids;
}

std::string BpeTokenizer::piece(int32_t id, bool special) const {
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

std::string unescapeSpaces(std::string_view text) {
  constexpr std::string_view escaped = "\u2581";
  std::string out;
  for (size_t place; (place = text.find(escaped)) != std::string_view::npos;) {
    out.append(text.substr(0, place)).push_back(' ');
    text.remove_prefix(place + escaped.size());
  }
  return out.append(text);
}

} // namespace strata
