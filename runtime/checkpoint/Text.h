// Text that came out of a file: is it UTF-8, and how may it appear in a message.
#pragma once

#include <string>
#include <string_view>

namespace strata {

/// RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF.
bool isUtf8(std::string_view text);

/// `name` for an error message: cut at 80 bytes, control and non-ASCII bytes as `\xNN`, so that a
/// hostile name can neither fill the terminal nor steer it.
std::string printable(std::string_view name);

} // namespace strata
