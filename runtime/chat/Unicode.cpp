#include "runtime/chat/Unicode.h"

#include <algorithm>
#include <span>

#include "runtime/chat/UnicodeTables.h"
#include "runtime/tokenizer/Utf8.h"

namespace strata::chat {
namespace {

constexpr char32_t notACharacter = 0x110000;

bool contains(std::span<const CharacterRange> ranges, char32_t point) {
  auto range = std::upper_bound(
      ranges.begin(), ranges.end(), point,
      [](char32_t point, const CharacterRange &range) { return point < range.first; });
  return range != ranges.begin() && point <= std::prev(range)->last;
}

const CaseShift *findShift(std::span<const CaseShift> shifts, char32_t point) {
  auto shift =
      std::upper_bound(shifts.begin(), shifts.end(), point,
                       [](char32_t point, const CaseShift &shift) { return point < shift.first; });
  if (shift == shifts.begin())
    return nullptr;
  --shift;
  bool inside = point <= shift->last && (point - shift->first) % shift->stride == 0;
  return inside ? &*shift : nullptr;
}

void appendMapped(char32_t point, std::span<const CaseShift> shifts,
                  std::span<const CaseExpansion> expansions, std::string &out) {
  auto expansion = std::lower_bound(
      expansions.begin(), expansions.end(), point,
      [](const CaseExpansion &expansion, char32_t point) { return expansion.from < point; });
  if (expansion != expansions.end() && expansion->from == point) {
    for (const char32_t *c = expansion->to; *c; ++c)
      appendUtf8(*c, out);
  } else {
    const CaseShift *shift = findShift(shifts, point);
    appendUtf8(shift ? char32_t(int64_t(point) + shift->delta) : point, out);
  }
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
  return c < 0x80 ? c >= 0x20 && c != 0x7F : c < notACharacter && !contains(unprintableRanges, c);
}

bool isAlphabetic(char32_t c) {
  return c < 0x80 ? (c | 32) >= 'a' && (c | 32) <= 'z' : contains(alphabeticRanges, c);
}

bool isDecimal(char32_t c) { return c < 0x80 ? c >= '0' && c <= '9' : contains(decimalRanges, c); }

bool isDigit(char32_t c) { return c < 0x80 ? c >= '0' && c <= '9' : contains(digitRanges, c); }

bool isNumeric(char32_t c) { return c < 0x80 ? c >= '0' && c <= '9' : contains(numericRanges, c); }

bool isUpperCase(char32_t c) {
  return c < 0x80 ? c >= 'A' && c <= 'Z' : findShift(lowerShifts, c) != nullptr;
}

bool isLowerCase(char32_t c) {
  return c < 0x80 ? c >= 'a' && c <= 'z' : findShift(upperShifts, c) != nullptr || c == 0xDF;
}

void appendInCase(char32_t c, LetterCase letterCase, std::string &out) {
  if (c < 0x80) {
    bool change = letterCase == LetterCase::Lower ? isUpperCase(c) : isLowerCase(c);
    out += char(change ? c ^ 32 : c);
  } else if (letterCase == LetterCase::Upper) {
    appendMapped(c, upperShifts, upperExpansions, out);
  } else if (letterCase == LetterCase::Lower) {
    appendMapped(c, lowerShifts, lowerExpansions, out);
  } else {
    appendMapped(c, titleShifts, titleExpansions, out);
  }
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
