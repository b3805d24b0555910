#include "runtime/tokenizer/SentencePieceText.h"

namespace strata {

std::string markSpaces(const Vocabulary &vocabulary, std::string_view text, bool starts) {
  std::string marked;
  marked.reserve(text.size() + text.size() / 2);
  bool hasSpace = text.starts_with(' ') || text.starts_with(spaceMark);
  if (vocabulary.addSpacePrefix && (starts || !vocabulary.prefixStartOnly) &&
      !(vocabulary.prefixUnlessSpace && hasSpace))
    marked += spaceMark;
  for (char c : text) {
    if (c == ' ')
      marked += spaceMark;
    else
      marked.push_back(c);
  }
  return marked;
}

std::string unescapeSpaces(std::string_view text) {
  std::string out;
  for (size_t place; (place = text.find(spaceMark)) != std::string_view::npos;) {
    out.append(text.substr(0, place)).push_back(' ');
    text.remove_prefix(place + spaceMark.size());
  }
  return out.append(text);
}

int byteOfToken(std::string_view text) {
  auto digit = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
  };
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>' || digit(text[3]) < 0 ||
      digit(text[4]) < 0)
    return -1;
  return digit(text[3]) * 16 + digit(text[4]);
}

Result<std::array<int32_t, 256>> byteTokens(const Vocabulary &vocabulary) {
  std::array<int32_t, 256> ids;
  ids.fill(-1);
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    if (vocabulary.kinds[id] != TokenKind::Byte)
      continue;
    int byte = byteOfToken(vocabulary.tokens[id]);
    if (byte < 0)
      return makeError(StatusCode::InvalidData,
                       "token {} is of the kind byte but reads '{}'; a byte token is '<0xXX>'", id,
                       vocabulary.tokens[id]);
    if (ids[byte] < 0)
      ids[byte] = int32_t(id);
  }
  return ids;
}

} // namespace strata
