// Filters: `value | name(arguments)`.
#pragma once

#include <string_view>

#include "runtime/base/Status.h"
#include "runtime/chat/Arguments.h"
#include "runtime/chat/Evaluator.h"

namespace strata::chat {

using FilterFunction = Result<Value> (*)(Evaluator &evaluator, const Value &input,
                                         const CallArguments &arguments);

/// Null where there is none.
FilterFunction findFilter(std::string_view name);
Status unknownFilter(uint32_t line, std::string_view name);

// By subject; each a table in its own file. Null where the name is not in it.
FilterFunction findTextFilter(std::string_view name);
FilterFunction findNumberFilter(std::string_view name);
FilterFunction findSequenceFilter(std::string_view name);
FilterFunction findSelectionFilter(std::string_view name);

/// What `attribute=` of filters means: a path such as `function.name` or `0`.
struct AttributePath {
  std::vector<Value> steps; ///< Strings and integers; empty: the value itself.
  std::optional<Value> standard;
};
Result<AttributePath> attributePath(Evaluator &evaluator, const Value *attribute);
Result<Value> follow(Evaluator &evaluator, const AttributePath &path, Value value);

} // namespace strata::chat
