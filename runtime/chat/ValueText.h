// Values as text: str(), repr() and JSON, as Python writes them.
#pragma once

#include <optional>
#include <string>

#include "runtime/base/Status.h"
#include "runtime/chat/Value.h"

namespace strata::chat {

/// The shortest decimal that reads back the same, as Python writes floats: `1.0`, `1e-05`, `nan`.
std::string formatFloat(double number);

/// All of these stop with ResourceExhausted beyond `maxBytes` (and one more string).
Result<std::string> writeString(const Value &value, uint64_t maxBytes);
Result<std::string> writeRepr(const Value &value, uint64_t maxBytes);

struct JsonOptions {
  std::optional<std::string> indent; ///< What one level is indented by; absent: one line.
  std::string itemSeparator = ", ", keySeparator = ": ";
  bool ensureAscii = false;
  bool sortKeys = false;
};
/// Errors: InvalidData (a value that JSON has not, by type).
Result<std::string> writeJson(const Value &value, const JsonOptions &options, uint64_t maxBytes);

} // namespace strata::chat
