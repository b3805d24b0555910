// Characters as Python's str sees them.
#pragma once

#include <string>
#include <string_view>

namespace strata::chat {

/// The first character of `bytes` (not empty) and its length in bytes; a byte that belongs to no
/// character stands for itself with `point` >= 0x110000.
struct Character {
  char32_t point;
  uint8_t length;
};
Character characterAt(std::string_view bytes, size_t offset);

size_t countCharacters(std::string_view bytes);
bool isAscii(std::string_view bytes);
void appendUtf8(char32_t point, std::string &out);

bool isSpace(char32_t point);      ///< str.isspace, str.strip(), `\s`
bool isLineBreak(char32_t point);  ///< str.splitlines()
bool isPrintable(char32_t point);  ///< what repr() leaves as it is
bool isAlphabetic(char32_t point); ///< str.isalpha
bool isDecimal(char32_t point);    ///< str.isdecimal
bool isDigit(char32_t point);      ///< str.isdigit
bool isNumeric(char32_t point);    ///< str.isnumeric
bool isUpperCase(char32_t point);
bool isLowerCase(char32_t point);
bool isTitleCase(char32_t point); ///< one character for two letters, such as U+01C5

enum class LetterCase { Upper, Lower, Title };

/// Appends the character in that case; some become several.
void appendInCase(char32_t point, LetterCase letterCase, std::string &out);

/// The ends of `text` without the characters for which `drop` holds.
struct Trimmed {
  size_t begin, end;
};
Trimmed trimSpaces(std::string_view text, bool left, bool right);

} // namespace strata::chat
