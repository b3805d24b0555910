// What SentencePiece's two models share: marks for spaces, and tokens for bytes.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "runtime/base/Status.h"
#include "runtime/tokenizer/Vocabulary.h"

namespace strata {

constexpr std::string_view spaceMark = "\u2581";

/// `text` with a mark for every space, and one in front where the vocabulary asks for it.
/// `starts`: the text begins the input.
std::string markSpaces(const Vocabulary &vocabulary, std::string_view text, bool starts);

/// The marks as spaces again.
std::string unescapeSpaces(std::string_view text);

/// The byte of a token written `<0xXX>`, or -1.
int byteOfToken(std::string_view text);

/// The id of each byte's token, -1 where it has none. Errors: InvalidData (a token of the kind byte
/// that is not written as one).
Result<std::array<int32_t, 256>> byteTokens(const Vocabulary &vocabulary);

} // namespace strata
