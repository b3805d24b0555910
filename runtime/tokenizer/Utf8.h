// UTF-8, one sequence at a time, over bytes that need not be valid.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace strata {

/// What stands at the start of some bytes.
struct Utf8Sequence {
  enum Kind : uint8_t {
    Character,  ///< A whole character of `length` bytes.
    Invalid,    ///< `length` bytes that begin no character, whatever follows.
    Incomplete, ///< All the bytes there are; more could complete a character.
  };
  Kind kind;
  uint8_t length;
  char32_t codePoint; ///< Characters only.
};

/// Reads the first sequence of `bytes` (not empty). Overlong forms, surrogates and values above
/// U+10FFFF are invalid. The length of an invalid or incomplete sequence is that of Unicode's
/// "maximal subpart", so one U+FFFD for each is what other decoders write too.
Utf8Sequence readUtf8(std::string_view bytes);

} // namespace strata
