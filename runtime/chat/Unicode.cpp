#include "runtime/chat/Unicode.h"

#include <algorithm>

#include <unicode/bytestream.h>
#include <unicode/casemap.h>
#include <unicode/uchar.h>

#include "runtime/tokenizer/Utf8.h"

namespace strata::chat {
namespace {

constexpr char32_t notACharacter = 0x110000;

bool isOf(char32_t c, uint32_t categories) {
  return c < notACharacter && (U_GET_GC_MASK(UChar32(c)) & categories) != 0;
}

/// UNumericType of `c`.
int32_t numericType(char32_t c) {
  return c < notACharacter ? u_getIntPropertyValue(UChar32(c), UCHAR_NUMERIC_TYPE) : U_NT_NONE;
}

} // namespace

Character characterAt(std::string_view bytes, size_t offset) {
  auto lead = uint8_t(bytes[offset]);
  if (lead < 0x80)
    return {lead, 1};
  Utf8Sequence sequence = readUtf8(bytes.substr(offset));
  if (sequence.kind == Utf8Sequence::Character)
    return {sequence.codePoint, sequence.length};
  return {notACharacter + lead, 1};
}

bool isAscii(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) { return uint8_t(c) < 0x80; });
}

size_t countCharacters(std::string_view bytes) {
  size_t count = 0;
  for (size_t i = 0; i < bytes.size(); i += characterAt(bytes, i).length)
    ++count;
  return count;
}

void appendUtf8(char32_t c, std::string &out) {
  if (c < 0x80) {
    out += char(c);
  } else if (c < 0x800) {
    out += char(0xC0 | c >> 6);
    out += char(0x80 | (c & 63));
  } else if (c < 0x10000) {
    out += char(0xE0 | c >> 12);
    out += char(0x80 | (c >> 6 & 63));
    out += char(0x80 | (c & 63));
  } else if (c < notACharacter) {
    out += char(0xF0 | c >> 18);
    out += char(0x80 | (c >> 12 & 63));
    out += char(0x80 | (c >> 6 & 63));
    out += char(0x80 | (c & 63));
  } else {
    out += char(c - notACharacter);
  }
}

bool isSpace(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

bool isLineBreak(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

bool isPrintable(char32_t c) {
  return c == ' ' || (c < notACharacter && !isOf(c, U_GC_C_MASK | U_GC_Z_MASK));
}

bool isAlphabetic(char32_t c) { return isOf(c, U_GC_L_MASK); }

bool isDecimal(char32_t c) { return isOf(c, U_GC_ND_MASK); }

bool isDigit(char32_t c) {
  int32_t type = numericType(c);
  return type == U_NT_DECIMAL || type == U_NT_DIGIT;
}

bool isNumeric(char32_t c) { return numericType(c) != U_NT_NONE; }

bool isUpperCase(char32_t c) { return c < notACharacter && u_isUUppercase(UChar32(c)); }

bool isLowerCase(char32_t c) { return c < notACharacter && u_isULowercase(UChar32(c)); }

bool isTitleCase(char32_t c) { return isOf(c, U_GC_LT_MASK); }

void appendInCase(char32_t c, LetterCase letterCase, std::string &out) {
  if (c < 0x80) {
    bool change = letterCase == LetterCase::Lower ? isUpperCase(c) : isLowerCase(c);
    out += char(change ? c ^ 32 : c);
    return;
  }
  std::string character;
  appendUtf8(c, character);
  if (c >= notACharacter) {
    out += character;
    return;
  }
  icu::StringByteSink<std::string> sink(&out);
  UErrorCode error = U_ZERO_ERROR;
  if (letterCase == LetterCase::Upper)
    icu::CaseMap::utf8ToUpper("", 0, character, sink, nullptr, error);
  else if (letterCase == LetterCase::Lower)
    icu::CaseMap::utf8ToLower("", 0, character, sink, nullptr, error);
  else // the whole string, so that no iterator looks for words in one character
    icu::CaseMap::utf8ToTitle("", U_TITLECASE_WHOLE_STRING | U_TITLECASE_NO_BREAK_ADJUSTMENT,
                              nullptr, character, sink, nullptr, error);
}

Trimmed trimSpaces(std::string_view text, bool left, bool right) {
  Trimmed trimmed{0, text.size()};
  while (left && trimmed.begin < trimmed.end) {
    Character character = characterAt(text, trimmed.begin);
    if (!isSpace(character.point))
      break;
    trimmed.begin += character.length;
  }
  while (right && trimmed.begin < trimmed.end) {
    size_t last = trimmed.end - 1;
    while (last > trimmed.begin && (uint8_t(text[last]) & 0xC0) == 0x80)
      --last;
    Character character = characterAt(text, last);
    if (!isSpace(character.point) || last + character.length != trimmed.end)
      break;
    trimmed.end = last;
  }
  return trimmed;
}

} // namespace strata::chat
