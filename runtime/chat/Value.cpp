#include "runtime/chat/Value.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "runtime/chat/Function.h"

namespace strata::chat {
namespace {

std::string keyOfText(std::string_view text) {
  std::string key = "s";
  key += text;
  return key;
}

} // namespace

uint64_t addSaturating(uint64_t left, uint64_t right) {
  uint64_t sum = left + right;
  return sum < left ? UINT64_MAX : sum;
}

std::string_view Value::typeName() const {
  static constexpr std::string_view names[] = {"Undefined", "NoneType", "bool",       "int",
                                               "float",     "str",      "list",       "dict",
                                               "Namespace", "function", "LoopContext"};
  if (isText() && asText().markup)
    return "Markup";
  if (isList()) {
    static constexpr std::string_view kinds[] = {"list",  "tuple",     "tuple",
                                                 "range", "dict view", "generator"};
    return kinds[size_t(list().kind)];
  }
  return names[data_.index()];
}

const size_t *Dict::findKey(const std::string &key) const {
  auto place = places_.find(key);
  return place == places_.end() ? nullptr : &place->second;
}

const Value *Dict::find(const Value &key) const {
  if (!isHashable(key))
    return nullptr;
  const size_t *place = findKey(hashKey(key));
  return place ? &entries_[*place].second : nullptr;
}

const Value *Dict::find(std::string_view key) const {
  const size_t *place = findKey(keyOfText(key));
  return place ? &entries_[*place].second : nullptr;
}

void Dict::set(Value key, Value value) {
  depth = std::max({depth, depthOf(key) + 1, depthOf(value) + 1});
  holdsReference |= chat::holdsReference(key) || chat::holdsReference(value);
  weight = addSaturating(weight, addSaturating(weightOf(key), weightOf(value)));
  auto [place, added] = places_.try_emplace(hashKey(key), entries_.size());
  if (added)
    entries_.emplace_back(std::move(key), std::move(value));
  else
    entries_[place->second].second = std::move(value);
}

bool isHashable(const Value &value) {
  if (value.isDict())
    return false;
  if (!value.isList())
    return true;
  if (!value.list().isTuple())
    return false;
  for (const Value &item : value.list().items)
    if (!isHashable(item))
      return false;
  return true;
}

std::string hashKey(const Value &value) {
  if (value.isText())
    return keyOfText(value.bytes());
  if (value.isWhole())
    return fmt::format("n{}", value.whole());
  if (value.is<double>()) {
    double number = value.as<double>();
    if (std::floor(number) == number && std::fabs(number) < 9e15)
      return fmt::format("n{}", int64_t(number));
    return fmt::format("n{}", number); // The shortest digits that give it back.
  }
  if (value.isList()) {
    std::string key = "t";
    for (const Value &item : value.list().items) {
      std::string part = hashKey(item);
      key += fmt::format("{}:{}", part.size(), part);
    }
    return key;
  }
  if (value.isNone())
    return "0";
  if (value.isUndefined())
    return "u";
  const void *identity = value.is<NamespacePtr>()  ? (const void *)value.as<NamespacePtr>().get()
                         : value.is<FunctionPtr>() ? (const void *)value.as<FunctionPtr>().get()
                                                   : (const void *)value.as<LoopPtr>().get();
  return fmt::format("o{}", identity);
}

bool isTrue(const Value &value) {
  if (value.isUndefined() || value.isNone())
    return false;
  if (value.isNumber())
    return value.number() != 0;
  if (value.isText())
    return value.asText().size() > 0;
  if (value.isList())
    return !value.list().hasLength() || !value.list().items.empty();
  if (value.isDict())
    return !value.dict().entries().empty();
  return true;
}

bool equals(const Value &left, const Value &right) {
  if (left.isNumber() && right.isNumber())
    return left.isWhole() && right.isWhole() ? left.whole() == right.whole()
                                             : left.number() == right.number();
  if (left.isText() && right.isText())
    return left.bytes() == right.bytes();
  if (left.isUndefined() || left.isNone())
    return left.isUndefined() == right.isUndefined() && left.isNone() == right.isNone();
  if (left.isList() && right.isList()) {
    const List &a = left.list(), &b = right.list();
    if (&a == &b)
      return true;
    if (a.isTuple() != b.isTuple() || (!a.isTuple() && a.kind != b.kind) || !a.isSequence() ||
        a.items.size() != b.items.size())
      return false;
    for (size_t i = 0; i < a.items.size(); ++i)
      if (!equals(a.items[i], b.items[i]))
        return false;
    return true;
  }
  if (left.isDict() && right.isDict()) {
    if (left.dict().entries().size() != right.dict().entries().size())
      return false;
    for (const auto &[key, value] : left.dict().entries()) {
      const Value *other = right.dict().find(key);
      if (!other || !equals(value, *other))
        return false;
    }
    return true;
  }
  if (left.is<NamespacePtr>() && right.is<NamespacePtr>())
    return left.as<NamespacePtr>() == right.as<NamespacePtr>();
  if (left.is<FunctionPtr>() && right.is<FunctionPtr>())
    return left.as<FunctionPtr>() == right.as<FunctionPtr>();
  if (left.is<LoopPtr>() && right.is<LoopPtr>())
    return left.as<LoopPtr>() == right.as<LoopPtr>();
  return false;
}

uint32_t depthOf(const Value &value) {
  return value.isList() ? value.list().depth : value.isDict() ? value.dict().depth : 0;
}

uint64_t weightOf(const Value &value) {
  if (value.isText())
    return 1 + value.asText().size() / 64;
  return value.isList() ? value.list().weight : value.isDict() ? value.dict().weight : 1;
}

bool holdsReference(const Value &value) {
  return value.is<NamespacePtr>() || value.is<LoopPtr>() || value.is<FunctionPtr>() ||
         (value.isList() && value.list().holdsReference) ||
         (value.isDict() && value.dict().holdsReference);
}

} // namespace strata::chat
