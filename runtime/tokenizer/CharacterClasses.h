// White space and word characters, by Unicode's properties.
#pragma once

#include <cstddef>
#include <string_view>

namespace strata {

/// The character that `text` (not empty) begins or ends with; U+FFFD where it is not UTF-8.
char32_t firstCharacter(std::string_view text);
char32_t lastCharacter(std::string_view text);

/// Letters, marks, decimal digits, connectors such as `_` and joiners.
bool isWordCharacter(char32_t character);

/// The bytes of white space that `text` begins with.
size_t leadingWhiteSpace(std::string_view text);

/// The bytes of `text` without the white space at its end.
size_t withoutTrailingWhiteSpace(std::string_view text);

} // namespace strata
