#include "runtime/chat/Filters.h"

#include <charconv>

#include "runtime/chat/Lexer.h"

namespace strata::chat {

FilterFunction findFilter(std::string_view name) {
  for (auto find : {findTextFilter, findSequenceFilter, findSelectionFilter, findNumberFilter})
    if (FilterFunction filter = find(name))
      return filter;
  return nullptr;
}

Status unknownFilter(uint32_t line, std::string_view name) {
  return makeError(StatusCode::Unimplemented,
                   "chat template, line {}: the filter '{}' is not known", line, name);
}

Result<AttributePath> attributePath(Evaluator &evaluator, const Value *attribute) {
  AttributePath path;
  if (!attribute || attribute->isNone())
    return path;
  if (!attribute->isText()) {
    path.steps.push_back(*attribute);
    return path;
  }
  STRATA_RETURN_IF_ERROR(evaluator.spendOn(*attribute));
  std::string_view rest = attribute->bytes();
  for (bool more = true; more;) {
    size_t dot = rest.find('.');
    std::string_view step = rest.substr(0, dot);
    more = dot != std::string_view::npos;
    if (more)
      rest.remove_prefix(dot + 1);
    int64_t number = 0;
    bool digits = !step.empty() && step.find_first_not_of("0123456789") == std::string_view::npos;
    if (digits &&
        std::from_chars(step.data(), step.data() + step.size(), number).ec == std::errc()) {
      path.steps.push_back(number);
    } else {
      STRATA_ASSIGN_OR_RETURN(Value text, evaluator.makeText(std::string(step), Origin::Input));
      path.steps.push_back(std::move(text));
    }
  }
  return path;
}

Result<Value> follow(Evaluator &evaluator, const AttributePath &path, Value value) {
  for (const Value &step : path.steps) {
    STRATA_RETURN_IF_ERROR(evaluator.spend(1));
    STRATA_ASSIGN_OR_RETURN(value, evaluator.itemOf(value, step));
    if (path.standard && value.isUndefined())
      value = *path.standard;
  }
  return value;
}

} // namespace strata::chat
