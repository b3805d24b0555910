// JSON files of a checkpoint, read strictly.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "runtime/base/Status.h"

namespace strata {

/// Parses one JSON document. Unlike nlohmann's own parser it refuses duplicate keys (which would
/// silently keep one of them), nesting deeper than 64, more than 2^23 values and an embedded zero
/// byte; and it is linear in the number of an object's keys. Errors: InvalidData, with the byte.
Result<nlohmann::ordered_json> parseJson(std::string_view text);

/// Reads and parses a whole file whose top level must be an object.
/// Errors: NotFound, and InvalidData with the file's name (a Git LFS pointer is recognised).
Result<nlohmann::ordered_json> readJsonFile(const std::string &path);

/// What kind of value `value` is, in the words of an error message.
std::string_view jsonKind(const nlohmann::ordered_json &value);

/// The member `key` of an object, or nullptr where it is absent or null.
const nlohmann::ordered_json *findMember(const nlohmann::ordered_json &object,
                                         std::string_view key);

} // namespace strata
