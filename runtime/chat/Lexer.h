// Template source to tokens, with Jinja's trim_blocks and lstrip_blocks on and its trailing newline
// dropped, as transformers sets them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/Status.h"

namespace strata::chat {

enum class TokenType : uint8_t {
  Data, ///< Text outside of tags.
  BlockBegin,
  BlockEnd,
  VariableBegin,
  VariableEnd,
  Name,
  String,  ///< `text` is unescaped.
  Integer, ///< `text` is the digits without underscores.
  Float,
  Operator,
  End,
};

struct Token {
  TokenType type;
  std::string text;
  uint32_t line; ///< From 1.
};

/// An error of the template itself: `chat template, line 3: ...`.
Status templateError(uint32_t line, std::string_view message);

/// The last token is End. Errors: InvalidData (an unclosed tag, a character that begins no token).
Result<std::vector<Token>> tokenize(std::string_view source);

} // namespace strata::chat
