#include "runtime/chat/Methods.h"

#include <algorithm>

#include "runtime/chat/TextSearch.h"

namespace strata::chat {
namespace {

bool isOneOf(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Result<Value> callDictMethod(Evaluator &evaluator, const Value &self, std::string_view name,
                             const CallArguments &arguments) {
  const Dict &dict = self.dict();
  if (name == "get") {
    STRATA_ASSIGN_OR_RETURN(BoundArguments bound,
                            BoundArguments::bind("dict.get", arguments, {"key", "default"}, 1));
    if (!arguments.keywords.empty())
      return makeError(StatusCode::InvalidData, "dict.get takes no argument '{}' by name",
                       arguments.keywords[0].first);
    STRATA_RETURN_IF_ERROR(evaluator.spendOn(*bound[0])); // Before anything walks it.
    if (!isHashable(*bound[0]))
      return makeError(StatusCode::InvalidData, "a {} cannot be a key", bound[0]->typeName());
    const Value *value = dict.find(*bound[0]);
    return value ? *value : bound.valueOr(1, Value::none());
  }
  STRATA_RETURN_IF_ERROR(
      BoundArguments::bind(fmt::format("dict.{}", name), arguments, {}).isOk()
          ? Status::ok()
          : makeError(StatusCode::InvalidData, "dict.{} takes no arguments", name));
  if (name == "copy")
    return self;
  STRATA_RETURN_IF_ERROR(evaluator.spend(dict.entries().size()));
  std::vector<Value> items;
  for (const auto &[key, value] : dict.entries()) {
    if (name == "items") {
      STRATA_ASSIGN_OR_RETURN(Value pair, evaluator.makeList({key, value}, ListKind::Tuple));
      items.push_back(std::move(pair));
    } else {
      items.push_back(name == "keys" ? key : value);
    }
  }
  return evaluator.makeList(std::move(items), ListKind::View, fmt::format("dict_{}", name));
}

Result<Value> callListMethod(Evaluator &evaluator, const Value &self, std::string_view name,
                             const CallArguments &arguments) {
  if (name == "copy")
    return self;
  STRATA_ASSIGN_OR_RETURN(BoundArguments bound,
                          BoundArguments::bind("list method", arguments, {"value"}, 1));
  int64_t count = 0, place = 0;
  for (const Value &item : self.list().items) {
    STRATA_ASSIGN_OR_RETURN(bool same, evaluator.areEqual(item, *bound[0]));
    if (same && name == "index")
      return Value(place);
    count += same;
    ++place;
  }
  if (name == "index")
    return makeError(StatusCode::InvalidData, "list.index: no element is equal to the value");
  return Value(count);
}

/// Whether the result of a method of Markup is Markup.
bool keepsMarkup(std::string_view method) {
  return !isOneOf(method, {"find", "rfind", "index", "rindex", "count", "startswith", "endswith",
                           "removeprefix", "removesuffix"}) &&
         !method.starts_with("is");
}

Value withMarkup(const Value &value) {
  if (!value.isText())
    return value;
  Text text = value.asText();
  text.markup = true;
  return Value::text(std::move(text));
}

Result<Value> callMarkupMethod(Evaluator &evaluator, const Value &self, StringMethod method,
                               const CallArguments &arguments) {
  CallArguments escaped = arguments;
  auto escapeText = [&](Value &value) -> Status {
    if (value.isText() && !value.asText().markup) {
      STRATA_ASSIGN_OR_RETURN(value, evaluator.makeText(escapeHtml(value.asText())));
    }
    return Status::ok();
  };
  auto escape = [&](Value &value) -> Status {
    if (!value.isList())
      return escapeText(value);
    STRATA_ASSIGN_OR_RETURN(std::vector<Value> items, evaluator.iterate(value));
    for (Value &item : items)
      STRATA_RETURN_IF_ERROR(escapeText(item));
    STRATA_ASSIGN_OR_RETURN(value, evaluator.makeList(std::move(items), value.list().kind));
    return Status::ok();
  };
  for (Value &value : escaped.positional)
    STRATA_RETURN_IF_ERROR(escape(value));
  for (auto &[name, value] : escaped.keywords)
    STRATA_RETURN_IF_ERROR(escape(value));
  STRATA_ASSIGN_OR_RETURN(Value result, method(evaluator, self, escaped));
  if (!result.isList())
    return withMarkup(result);
  std::vector<Value> parts;
  for (const Value &part : result.list().items)
    parts.push_back(withMarkup(part));
  return evaluator.makeList(std::move(parts), result.list().kind);
}

} // namespace

bool hasMethod(const Value &object, std::string_view name) {
  if (object.isText())
    return findStringMethod(name) != nullptr;
  if (object.isDict())
    return isOneOf(name, {"get", "items", "keys", "values", "copy"});
  if (object.isList() && object.list().kind == ListKind::List && name == "copy")
    return true;
  return object.isList() && object.list().isSequence() && isOneOf(name, {"count", "index"});
}

bool isForbiddenMethod(const Value &object, std::string_view name) {
  if (object.isDict())
    return isOneOf(name, {"clear", "pop", "popitem", "setdefault", "update"});
  return object.isList() && object.list().kind == ListKind::List &&
         isOneOf(name, {"append", "reverse", "insert", "sort", "extend", "remove", "pop", "clear"});
}

Result<Value> callMethod(Evaluator &evaluator, const Value &self, std::string_view name,
                         const CallArguments &arguments) {
  if (self.isDict())
    return callDictMethod(evaluator, self, name, arguments);
  if (self.isList())
    return callListMethod(evaluator, self, name, arguments);
  STRATA_RETURN_IF_ERROR(evaluator.spendOn(self));
  StringMethod method = findStringMethod(name);
  if (self.asText().markup && keepsMarkup(name))
    return callMarkupMethod(evaluator, self, method, arguments);
  return method(evaluator, self, arguments);
}

} // namespace strata::chat
