#include "runtime/tokenizer/CharacterClasses.h"

#include <unicode/uchar.h>

#include "runtime/tokenizer/Utf8.h"

namespace strata {
namespace {

constexpr char32_t replacement = 0xFFFD;

/// Where the last character of `text` begins.
size_t lastPlace(std::string_view text) {
  size_t place = text.size() - 1;
  while (place > 0 && text.size() - place < 4 && (uint8_t(text[place]) & 0xC0) == 0x80)
    --place;
  return place;
}

} // namespace

char32_t firstCharacter(std::string_view text) {
  Utf8Sequence sequence = readUtf8(text.substr(0, 4));
  return sequence.kind == Utf8Sequence::Character ? sequence.codePoint : replacement;
}

char32_t lastCharacter(std::string_view text) {
  std::string_view last = text.substr(lastPlace(text));
  Utf8Sequence sequence = readUtf8(last);
  return sequence.kind == Utf8Sequence::Character && sequence.length == last.size()
             ? sequence.codePoint
             : replacement;
}

bool isWordCharacter(char32_t character) {
  auto c = UChar32(character);
  return u_isUAlphabetic(c) || (U_GET_GC_MASK(c) & (U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK)) ||
         u_hasBinaryProperty(c, UCHAR_JOIN_CONTROL);
}

size_t leadingWhiteSpace(std::string_view text) {
  size_t length = 0;
  while (length < text.size() && u_isUWhiteSpace(UChar32(firstCharacter(text.substr(length)))))
    length += readUtf8(text.substr(length, 4)).length;
  return length;
}

size_t withoutTrailingWhiteSpace(std::string_view text) {
  while (!text.empty() && u_isUWhiteSpace(UChar32(lastCharacter(text))))
    text = text.substr(0, lastPlace(text));
  return text.size();
}

} // namespace strata
