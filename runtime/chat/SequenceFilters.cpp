#include <algorithm>

#include "runtime/chat/Filters.h"
#include "runtime/chat/Methods.h"
#include "runtime/chat/NamedFunctions.h"

namespace strata::chat {
namespace {

/// Strings count as their lower case unless they are compared with their case.
Result<Value> sortKey(Evaluator &evaluator, const Value &value, bool caseSensitive) {
  if (caseSensitive || !value.isText())
    return value;
  return changeCase(evaluator, value, CaseRule::Lower);
}

struct Keyed {
  Value key, value;
};

/// Stable in both directions, as Python's sorted is.
Status sortByKey(Evaluator &evaluator, std::vector<Keyed> &items, bool reverse) {
  Status failure;
  auto less = [&](const Keyed &left, const Keyed &right) {
    if (!failure.isOk())
      return false;
    Result<bool> result = evaluator.isLess(left.key, right.key);
    if (!result.isOk())
      failure = std::move(result).status();
    return result.isOk() && *result;
  };
  if (reverse)
    std::reverse(items.begin(), items.end());
  std::stable_sort(items.begin(), items.end(), less);
  if (reverse)
    std::reverse(items.begin(), items.end());
  return failure;
}

Result<Value> valuesOf(Evaluator &evaluator, std::vector<Keyed> items) {
  std::vector<Value> values;
  for (Keyed &item : items)
    values.push_back(std::move(item.value));
  return evaluator.makeList(std::move(values));
}

Result<Value> length(Evaluator &evaluator, const Value &input, const CallArguments &arguments) {
  STRATA_RETURN_IF_ERROR(BoundArguments::bind("filter 'length'", arguments, {}).status());
  STRATA_ASSIGN_OR_RETURN(int64_t length, evaluator.lengthOf(input));
  return Value(length);
}

Result<Value> first(Evaluator &evaluator, const Value &input, const CallArguments &arguments) {
  STRATA_RETURN_IF_ERROR(BoundArguments::bind("filter 'first'", arguments, {}).status());
  if (input.isList() && input.list().taken < input.list().items.size()) {
    const List &list = input.list();
    return list.items[list.kind == ListKind::Iterator ? list.taken++ : 0];
  }
  STRATA_ASSIGN_OR_RETURN(std::vector<Value> items, evaluator.iterate(input));
  return items.empty() ? Value::undefined("No first item, sequence was empty.") : items.front();
}

Result<Value> last(Evaluator &evaluator, const Value &input, const CallArguments &arguments) {
  STRATA_RETURN_IF_ERROR(BoundArguments::bind("filter 'last'", arguments, {}).status());
  if (input.isList() && !input.list().hasLength())
    return makeError(StatusCode::InvalidData,
                     "filter 'last' needs a sequence; make the generator a list with |list");
  STRATA_ASSIGN_OR_RETURN(std::vector<Value> items, evaluator.iterate(input));
  return items.empty() ? Value::undefined("No last item, sequence was empty.") : items.back();
}

Result<Value> toList(Evaluator &evaluator, const Value &input, const CallArguments &arguments) {
  STRATA_RETURN_IF_ERROR(BoundArguments::bind("filter 'list'", arguments, {}).status());
  STRATA_ASSIGN_OR_RETURN(std::vector<Value> items, evaluator.iterate(input));
  return evaluator.makeList(std::move(items));
}

Result<Value> join(Evaluator &evaluator, const Value &input, const CallArguments &arguments) {
  STRATA_ASSIGN_OR_RETURN(BoundArguments bound,
                          BoundArguments::bind("filter 'join'", arguments, {"d", "attribute"}));
  STRATA_ASSIGN_OR_RETURN(AttributePath path, attributePath(evaluator, bound[1]));
  STRATA_ASSIGN_OR_RETURN(std::vector<Value> items, evaluator.iterate(input));
  for (Value &item : items) {
    STRATA_ASSIGN_OR_RETURN(item, follow(evaluator, path, item));
  }
  STRATA_ASSIGN_OR_RETURN(Value separator, evaluator.stringOf(bound.valueOr(0, Value())));
  return joinTexts(evaluator, separator, items);
}

Result<Value> reverse(Evaluator &evaluator, const Value &input, const CallArguments &arguments) {
  STRATA_RETURN_IF_ERROR(BoundArguments::bind("filter 'reverse'", arguments, {}).status());
  STRATA_ASSIGN_OR_RETURN(std::vector<Value> items, evaluator.iterate(input));
  std::reverse(items.begin(), items.end());
  if (input.isText()) {
    STRATA_ASSIGN_OR_RETURN(Value empty, evaluator.makeText(Text()));
    return joinTexts(evaluator, empty, items);
  }
  bool generator = input.isList() && input.list().kind == ListKind::Iterator;
  return evaluator.makeList(std::move(items), generator ? ListKind::List : ListKind::Iterator);
}

Result<Value> sort(Evaluator &evaluator, const Value &input, const CallArguments &arguments) {
  STRATA_ASSIGN_OR_RETURN(
      BoundArguments bound,
      BoundArguments::bind("filter 'sort'", arguments, {"reverse", "case_sensitive", "attribute"}));
  bool caseSensitive = bound.trueOr(1, false);
  // Several attributes may be given, with commas between.
  std::vector<Value> attributes;
  if (bound[2] && bound[2]->isText()) {
    STRATA_ASSIGN_OR_RETURN(Value comma, evaluator.makeText(",", Origin::Template));
    CallArguments separator{{comma}, {}};
    STRATA_ASSIGN_OR_RETURN(Value names, callMethod(evaluator, *bound[2], "split", separator));
    attributes = names.list().items;
  } else {
    attributes.push_back(bound.valueOr(2, Value::none()));
  }
  std::vector<AttributePath> paths;
  for (const Value &attribute : attributes) {
    STRATA_ASSIGN_OR_RETURN(AttributePath path, attributePath(evaluator, &attribute));
    paths.push_back(std::move(path));
  }
  STRATA_ASSIGN_OR_RETURN(std::vector<Value> items, evaluator.iterate(input));
  std::vector<Keyed> keyed;
  for (const Value &item : items) {
    std::vector<Value> keys;
    for (const AttributePath &path : paths) {
      STRATA_ASSIGN_OR_RETURN(Value key, follow(evaluator, path, item));
      STRATA_ASSIGN_OR_RETURN(key, sortKey(evaluator, key, caseSensitive));
      keys.push_back(std::move(key));
    }
    STRATA_ASSIGN_OR_RETURN(Value key, evaluator.makeList(std::move(keys)));
    keyed.push_back({std::move(key), item});
  }
  STRATA_RETURN_IF_ERROR(sortByKey(evaluator, keyed, bound.trueOr(0, false)));
  return valuesOf(evaluator, std::move(keyed));
}

Result<Value> unique(Evaluator &evaluator, const Value &input, const CallArguments &arguments) {
  STRATA_ASSIGN_OR_RETURN(
      BoundArguments bound,
      BoundArguments::bind("filter 'unique'", arguments, {"case_sensitive", "attribute"}));
  STRATA_ASSIGN_OR_RETURN(AttributePath path, attributePath(evaluator, bound[1]));
  STRATA_ASSIGN_OR_RETURN(std::vector<Value> items, evaluator.iterate(input));
  Dict seen;
  std::vector<Value> kept;
  for (const Value &item : items) {
    STRATA_ASSIGN_OR_RETURN(Value key, follow(evaluator, path, item));
    STRATA_ASSIGN_OR_RETURN(key, sortKey(evaluator, key, bound.trueOr(0, false)));
    STRATA_RETURN_IF_ERROR(evaluator.spendOn(key)); // Before anything walks it.
    if (seen.find(key))
      continue;
    STRATA_RETURN_IF_ERROR(evaluator.addToDict(seen, key, Value::none(), "filter 'unique'"));
    kept.push_back(item);
  }
  return evaluator.makeList(std::move(kept), ListKind::Iterator);
}

template <bool greatest>
Result<Value> extreme(Evaluator &evaluator, const Value &input, const CallArguments &arguments) {
  STRATA_ASSIGN_OR_RETURN(BoundArguments bound,
                          BoundArguments::bind(greatest ? "filter 'max'" : "filter 'min'",
                                               arguments, {"case_sensitive", "attribute"}));
  STRATA_ASSIGN_OR_RETURN(AttributePath path, attributePath(evaluator, bound[1]));
  STRATA_ASSIGN_OR_RETURN(std::vector<Value> items, evaluator.iterate(input));
  if (items.empty())
    return Value::undefined("No aggregated item, sequence was empty.");
  Value best, bestKey;
  for (size_t i = 0; i < items.size(); ++i) {
    STRATA_ASSIGN_OR_RETURN(Value key, follow(evaluator, path, items[i]));
    STRATA_ASSIGN_OR_RETURN(key, sortKey(evaluator, key, bound.trueOr(0, false)));
    bool better = i == 0;
    if (i) {
      STRATA_ASSIGN_OR_RETURN(better,
                              evaluator.isLess(greatest ? bestKey : key, greatest ? key : bestKey));
    }
    if (better) {
      best = items[i];
      bestKey = std::move(key);
    }
  }
  return best;
}

Result<Value> sum(Evaluator &evaluator, const Value &input, const CallArguments &arguments) {
  STRATA_ASSIGN_OR_RETURN(BoundArguments bound,
                          BoundArguments::bind("filter 'sum'", arguments, {"attribute", "start"}));
  STRATA_ASSIGN_OR_RETURN(AttributePath path, attributePath(evaluator, bound[0]));
  STRATA_ASSIGN_OR_RETURN(std::vector<Value> items, evaluator.iterate(input));
  Value total = bound.valueOr(1, Value(int64_t(0)));
  if (total.isText())
    return makeError(StatusCode::InvalidData, "filter 'sum' does not add strings; use |join");
  for (const Value &item : items) {
    STRATA_ASSIGN_OR_RETURN(Value value, follow(evaluator, path, item));
    STRATA_ASSIGN_OR_RETURN(total, evaluator.binary(BinaryOperator::Add, total, value));
  }
  return total;
}

Result<Value> batch(Evaluator &evaluator, const Value &input, const CallArguments &arguments) {
  STRATA_ASSIGN_OR_RETURN(
      BoundArguments bound,
      BoundArguments::bind("filter 'batch'", arguments, {"linecount", "fill_with"}, 1));
  STRATA_ASSIGN_OR_RETURN(int64_t count, bound.wholeOr(0, 1));
  if (count < 1)
    return makeError(StatusCode::InvalidData, "filter 'batch': batches of {} items", count);
  STRATA_ASSIGN_OR_RETURN(std::vector<Value> items, evaluator.iterate(input));
  std::vector<Value> batches;
  for (size_t begin = 0; begin < items.size(); begin += size_t(count)) {
    size_t end = items.size() - begin > size_t(count) ? begin + size_t(count) : items.size();
    std::vector<Value> batch(items.begin() + long(begin), items.begin() + long(end));
    if (bound[1] && !bound[1]->isNone() && batch.size() < size_t(count)) {
      STRATA_RETURN_IF_ERROR(evaluator.spend(uint64_t(count)));
      batch.resize(size_t(count), *bound[1]);
    }
    STRATA_ASSIGN_OR_RETURN(Value list, evaluator.makeList(std::move(batch)));
    batches.push_back(std::move(list));
    if (end == items.size())
      break;
  }
  return evaluator.makeList(std::move(batches), ListKind::Iterator);
}

Result<Value> slice(Evaluator &evaluator, const Value &input, const CallArguments &arguments) {
  STRATA_ASSIGN_OR_RETURN(BoundArguments bound, BoundArguments::bind("filter 'slice'", arguments,
                                                                     {"slices", "fill_with"}, 1));
  STRATA_ASSIGN_OR_RETURN(int64_t slices, bound.wholeOr(0, 1));
  if (slices < 1)
    return makeError(StatusCode::InvalidData, "filter 'slice': {} slices; at least 1", slices);
  STRATA_ASSIGN_OR_RETURN(std::vector<Value> items, evaluator.iterate(input));
  STRATA_RETURN_IF_ERROR(evaluator.spend(uint64_t(slices)));
  size_t each = items.size() / size_t(slices), longer = items.size() % size_t(slices);
  std::vector<Value> parts;
  auto at = items.begin();
  for (size_t i = 0; i < size_t(slices); ++i) {
    auto end = at + long(each + (i < longer));
    std::vector<Value> part(at, end);
    at = end;
    if (bound[1] && !bound[1]->isNone() && i >= longer)
      part.push_back(*bound[1]);
    STRATA_ASSIGN_OR_RETURN(Value list, evaluator.makeList(std::move(part)));
    parts.push_back(std::move(list));
  }
  return evaluator.makeList(std::move(parts), ListKind::Iterator);
}

Result<std::vector<Value>> pairsOf(Evaluator &evaluator, const Value &input,
                                   std::string_view filter) {
  std::vector<Value> pairs;
  if (!input.isDict())
    return makeError(StatusCode::InvalidData, "filter '{}' needs a dict, not a {}", filter,
                     input.isUndefined() ? *input.as<Undefined>().why
                                         : std::string(input.typeName()));
  for (const auto &[key, value] : input.dict().entries()) {
    STRATA_ASSIGN_OR_RETURN(Value pair, evaluator.makeList({key, value}, ListKind::Tuple));
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

Result<Value> items(Evaluator &evaluator, const Value &input, const CallArguments &arguments) {
  STRATA_RETURN_IF_ERROR(BoundArguments::bind("filter 'items'", arguments, {}).status());
  std::vector<Value> pairs;
  if (!input.isUndefined()) {
    STRATA_ASSIGN_OR_RETURN(pairs, pairsOf(evaluator, input, "items"));
  }
  return evaluator.makeList(std::move(pairs), ListKind::Iterator);
}

Result<Value> dictSort(Evaluator &evaluator, const Value &input, const CallArguments &arguments) {
  STRATA_ASSIGN_OR_RETURN(
      BoundArguments bound,
      BoundArguments::bind("filter 'dictsort'", arguments, {"case_sensitive", "by", "reverse"}));
  std::string by = bound[1] && bound[1]->isText() ? bound[1]->bytes() : "key";
  if (by != "key" && by != "value")
    return makeError(StatusCode::InvalidData, "filter 'dictsort' sorts by key or by value");
  STRATA_ASSIGN_OR_RETURN(std::vector<Value> pairs, pairsOf(evaluator, input, "dictsort"));
  std::vector<Keyed> keyed;
  for (const Value &pair : pairs) {
    STRATA_ASSIGN_OR_RETURN(
        Value key, sortKey(evaluator, pair.list().items[by == "value"], bound.trueOr(0, false)));
    keyed.push_back({std::move(key), pair});
  }
  STRATA_RETURN_IF_ERROR(sortByKey(evaluator, keyed, bound.trueOr(2, false)));
  return valuesOf(evaluator, std::move(keyed));
}

Result<Value> groupBy(Evaluator &evaluator, const Value &input, const CallArguments &arguments) {
  STRATA_ASSIGN_OR_RETURN(BoundArguments bound,
                          BoundArguments::bind("filter 'groupby'", arguments,
                                               {"attribute", "default", "case_sensitive"}, 1));
  STRATA_ASSIGN_OR_RETURN(AttributePath path, attributePath(evaluator, bound[0]));
  if (bound[1] && !bound[1]->isNone())
    path.standard = *bound[1];
  STRATA_ASSIGN_OR_RETURN(std::vector<Value> items, evaluator.iterate(input));
  std::vector<Keyed> keyed;
  for (const Value &item : items) {
    STRATA_ASSIGN_OR_RETURN(Value key, follow(evaluator, path, item));
    STRATA_ASSIGN_OR_RETURN(key, sortKey(evaluator, key, bound.trueOr(2, false)));
    keyed.push_back({std::move(key), item});
  }
  STRATA_RETURN_IF_ERROR(sortByKey(evaluator, keyed, false));
  std::vector<Value> groups;
  for (size_t begin = 0; begin < keyed.size();) {
    size_t end = begin + 1;
    for (; end < keyed.size(); ++end) {
      STRATA_ASSIGN_OR_RETURN(bool same, evaluator.areEqual(keyed[end].key, keyed[begin].key));
      if (!same)
        break;
    }
    // The name of a group has the case of its first item.
    STRATA_ASSIGN_OR_RETURN(Value name, follow(evaluator, path, keyed[begin].value));
    std::vector<Value> members;
    for (size_t i = begin; i < end; ++i)
      members.push_back(keyed[i].value);
    STRATA_ASSIGN_OR_RETURN(Value list, evaluator.makeList(std::move(members)));
    STRATA_ASSIGN_OR_RETURN(
        Value group, evaluator.makeList({std::move(name), std::move(list)}, ListKind::Group));
    groups.push_back(std::move(group));
    begin = end;
  }
  return evaluator.makeList(std::move(groups));
}

Result<Value> standard(Evaluator &, const Value &input, const CallArguments &arguments) {
  STRATA_ASSIGN_OR_RETURN(BoundArguments bound, BoundArguments::bind("filter 'default'", arguments,
                                                                     {"default_value", "boolean"}));
  if (!input.isUndefined() && !(bound.trueOr(1, false) && !isTrue(input)))
    return input;
  return bound.valueOr(0, Value::text(Text()));
}

Result<Value> attribute(Evaluator &evaluator, const Value &input, const CallArguments &arguments) {
  STRATA_ASSIGN_OR_RETURN(BoundArguments bound,
                          BoundArguments::bind("filter 'attr'", arguments, {"name"}, 1));
  if (!bound[0]->isText())
    return makeError(StatusCode::InvalidData, "filter 'attr': the name is of type {}, not str",
                     bound[0]->typeName());
  if (input.isDict() && !hasMethod(input, bound[0]->bytes()))
    return Value::undefined(
        fmt::format("'dict object' has no attribute '{}'", bound[0]->bytes().substr(0, 256)));
  return evaluator.attributeOf(input, bound[0]->bytes());
}

} // namespace

FilterFunction findSequenceFilter(std::string_view name) {
  static constexpr NamedFunction<FilterFunction> filters[] = {
      {"attr", attribute},  {"batch", batch},       {"count", length},
      {"d", standard},      {"default", standard},  {"dictsort", dictSort},
      {"first", first},     {"groupby", groupBy},   {"items", items},
      {"join", join},       {"last", last},         {"length", length},
      {"list", toList},     {"max", extreme<true>}, {"min", extreme<false>},
      {"reverse", reverse}, {"slice", slice},       {"sort", sort},
      {"sum", sum},         {"unique", unique},
  };
  return findNamed(filters, name);
}

} // namespace strata::chat
