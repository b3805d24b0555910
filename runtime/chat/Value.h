// The values of a template, as Python has them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/chat/Text.h"

namespace strata::chat {

struct List;
class Dict;
struct Namespace;
struct Function;
struct Loop;

struct Undefined {
  std::shared_ptr<const std::string> why; ///< `'tools' is undefined`; null where nobody can see it.
};
struct None {};

using ListPtr = std::shared_ptr<const List>;
using DictPtr = std::shared_ptr<const Dict>;
using NamespacePtr = std::shared_ptr<Namespace>;
using FunctionPtr = std::shared_ptr<const Function>;
using LoopPtr = std::shared_ptr<Loop>;

/// Cheap to copy; everything but namespaces and loops is immutable.
class Value {
public:
  using Data = std::variant<Undefined, None, bool, int64_t, double, TextPtr, ListPtr, DictPtr,
                            NamespacePtr, FunctionPtr, LoopPtr>;

  Value() = default; ///< Undefined.
  template <class T> Value(T data) : data_(std::move(data)) {}

  static Value none() { return None{}; }
  static Value text(Text text) { return std::make_shared<const Text>(std::move(text)); }
  static Value undefined(std::string why) {
    return Undefined{std::make_shared<const std::string>(std::move(why))};
  }

  template <class T> bool is() const { return std::holds_alternative<T>(data_); }
  template <class T> const T &as() const { return std::get<T>(data_); }

  bool isUndefined() const { return is<Undefined>(); }
  bool isNone() const { return is<None>(); }
  bool isText() const { return is<TextPtr>(); }
  bool isList() const { return is<ListPtr>(); }
  bool isDict() const { return is<DictPtr>(); }
  bool isNumber() const { return is<bool>() || is<int64_t>() || is<double>(); }
  bool isWhole() const { return is<bool>() || is<int64_t>(); }

  const Text &asText() const { return *as<TextPtr>(); }
  const std::string &bytes() const { return asText().bytes(); }
  const List &list() const { return *as<ListPtr>(); }
  const Dict &dict() const { return *as<DictPtr>(); }
  int64_t whole() const { return is<bool>() ? int64_t(as<bool>()) : as<int64_t>(); }
  double number() const { return is<double>() ? as<double>() : double(whole()); }

  std::string_view typeName() const; ///< As Python names it: `str`, `NoneType`, ...

private:
  Data data_;
};

enum class ListKind : uint8_t {
  List,
  Tuple,
  Group, ///< A tuple of groupby: its two elements are also `grouper` and `list`.
  Range,
  View,     ///< dict.items(), keys(), values(): no subscripts, no order.
  Iterator, ///< A generator: may be walked once, has no length.
};

struct List {
  ListKind kind = ListKind::List;
  std::vector<Value> items;
  std::string name;            ///< How repr begins: `range(0, 3)`, `dict_items`; else empty.
  uint32_t depth = 1;          ///< Containers inside each other.
  uint64_t weight = 1;         ///< See weightOf.
  bool holdsReference = false; ///< A namespace, macro or loop anywhere inside.
  mutable size_t taken = 0;    ///< Iterators: how many are gone.

  bool isTuple() const { return kind == ListKind::Tuple || kind == ListKind::Group; }
  bool hasLength() const { return kind != ListKind::Iterator; }
  bool isSequence() const { return hasLength() && kind != ListKind::View; }
};

/// In order of insertion.
class Dict {
public:
  using Entry = std::pair<Value, Value>;

  const std::vector<Entry> &entries() const { return entries_; }
  const Value *find(const Value &key) const;
  const Value *find(std::string_view key) const;
  void set(Value key, Value value); ///< `key` is hashable.

  uint32_t depth = 1;
  uint64_t weight = 1;
  bool holdsReference = false;

private:
  const size_t *findKey(const std::string &key) const;

  std::vector<Entry> entries_;
  std::map<std::string, size_t> places_; ///< By hashKey.
};

struct Namespace {
  std::map<std::string, Value, std::less<>> attributes;
};

/// Whether Python can hash it: no lists or dicts, also not inside tuples.
bool isHashable(const Value &value);
/// Equal for equal values, different for different ones; `value` is hashable.
std::string hashKey(const Value &value);

uint64_t addSaturating(uint64_t left, uint64_t right);

bool isTrue(const Value &value);
bool equals(const Value &left, const Value &right);
uint32_t depthOf(const Value &value);
/// The steps that walking it takes: one a value, one for 64 bytes of text. A value that is reached
/// in two ways counts twice. Saturates.
uint64_t weightOf(const Value &value);
bool holdsReference(const Value &value);

} // namespace strata::chat
