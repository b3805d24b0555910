// map, and select and reject with their forms for attributes: filters that take a filter or a test.

#include "runtime/chat/Filters.h"
#include "runtime/chat/NamedFunctions.h"

namespace strata::chat {
namespace {

Status nameMissing(std::string_view filter, std::string_view what) {
  return makeError(StatusCode::InvalidData, "filter '{}' needs {}", filter, what);
}

CallArguments without(const CallArguments &arguments, size_t count) {
  CallArguments rest = arguments;
  rest.positional.erase(rest.positional.begin(), rest.positional.begin() + long(count));
  return rest;
}

Result<Value> map(Evaluator &evaluator, const Value &input, const CallArguments &arguments) {
  AttributePath path;
  bool byAttribute = arguments.positional.empty();
  if (byAttribute) {
    STRATA_ASSIGN_OR_RETURN(
        BoundArguments bound,
        BoundArguments::bind("filter 'map'", arguments, {"attribute", "default"}, 1));
    STRATA_ASSIGN_OR_RETURN(path, attributePath(evaluator, bound[0]));
    if (bound[1] && !bound[1]->isNone())
      path.standard = *bound[1];
  } else if (!arguments.positional[0].isText()) {
    return nameMissing("map", "the name of a filter or attribute=");
  }
  CallArguments rest = byAttribute ? CallArguments() : without(arguments, 1);
  std::vector<Value> mapped;
  if (isTrue(input)) {
    STRATA_ASSIGN_OR_RETURN(std::vector<Value> items, evaluator.iterate(input));
    for (const Value &item : items) {
      STRATA_RETURN_IF_ERROR(evaluator.spend(1));
      Result<Value> value = byAttribute
                                ? follow(evaluator, path, item)
                                : evaluator.callFilter(arguments.positional[0].bytes(), item, rest);
      if (!value.isOk())
        return value;
      mapped.push_back(std::move(*value));
    }
  }
  return evaluator.makeList(std::move(mapped), ListKind::Iterator);
}

template <bool keeps, bool byAttribute>
Result<Value> select(Evaluator &evaluator, const Value &input, const CallArguments &arguments) {
  constexpr std::string_view name = keeps         ? byAttribute ? "selectattr" : "select"
                                    : byAttribute ? "rejectattr"
                                                  : "reject";
  std::vector<Value> kept;
  if (!isTrue(input))
    return evaluator.makeList(std::move(kept), ListKind::Iterator);
  AttributePath path;
  if (byAttribute && arguments.positional.empty())
    return nameMissing(name, "the name of an attribute");
  if (byAttribute) {
    STRATA_ASSIGN_OR_RETURN(path, attributePath(evaluator, &arguments.positional[0]));
  }
  const Value *test =
      arguments.positional.size() > byAttribute ? &arguments.positional[byAttribute] : nullptr;
  if (test && !test->isText())
    return nameMissing(name, "the name of a test as a string");
  CallArguments rest = test ? without(arguments, byAttribute + 1) : CallArguments();
  STRATA_ASSIGN_OR_RETURN(std::vector<Value> items, evaluator.iterate(input));
  for (const Value &item : items) {
    STRATA_RETURN_IF_ERROR(evaluator.spend(1));
    STRATA_ASSIGN_OR_RETURN(Value value, follow(evaluator, path, item));
    bool holds = isTrue(value);
    if (test) {
      STRATA_ASSIGN_OR_RETURN(holds, evaluator.callTest(test->bytes(), value, rest));
    }
    if (holds == keeps)
      kept.push_back(item);
  }
  return evaluator.makeList(std::move(kept), ListKind::Iterator);
}

} // namespace

FilterFunction findSelectionFilter(std::string_view name) {
  static constexpr NamedFunction<FilterFunction> filters[] = {
      {"map", map},
      {"reject", select<false, false>},
      {"rejectattr", select<false, true>},
      {"select", select<true, false>},
      {"selectattr", select<true, true>},
  };
  return findNamed(filters, name);
}

} // namespace strata::chat
