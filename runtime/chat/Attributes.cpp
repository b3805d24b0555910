#include "runtime/chat/Evaluator.h"
#include "runtime/chat/Methods.h"
#include "runtime/chat/Unicode.h"

namespace strata::chat {
namespace {

Value method(const Value &object, std::string_view name) {
  return FunctionPtr(std::make_shared<const Function>(
      Function{Function::Kind::Method, std::string(name), object, nullptr, nullptr}));
}

Value noAttribute(const Value &object, std::string_view name) {
  return Value::undefined(
      object.isNone() ? fmt::format("'None' has no attribute '{}'", name)
                      : fmt::format("'{} object' has no attribute '{}'", object.typeName(), name));
}

Status useOfUndefined(const Value &value) {
  return makeError(StatusCode::InvalidData, "{}", *value.as<Undefined>().why);
}

/// What Python's getattr finds; nothing where it finds none.
std::optional<Value> pythonAttribute(const Value &object, std::string_view name) {
  if (isForbiddenMethod(object, name) || name.starts_with("__"))
    return Value::undefined(
        fmt::format("access to attribute '{}' of '{}' object is unsafe", name, object.typeName()));
  if (hasMethod(object, name))
    return method(object, name);
  if (object.isList() && object.list().kind == ListKind::Group)
    if (name == "grouper" || name == "list")
      return object.list().items[name == "list"];
  if (object.is<NamespacePtr>()) {
    const auto &attributes = object.as<NamespacePtr>()->attributes;
    if (auto attribute = attributes.find(name); attribute != attributes.end())
      return attribute->second;
  }
  if (object.is<FunctionPtr>() && object.as<FunctionPtr>()->macro && name == "name")
    return Value::text(Text(object.as<FunctionPtr>()->name, Origin::Template));
  return std::nullopt;
}

Result<std::optional<Value>> elementAt(Evaluator &evaluator, const Value &object,
                                       const Value &index) {
  if (object.isDict()) {
    STRATA_RETURN_IF_ERROR(evaluator.spendOn(index));
    const Value *value = object.dict().find(index);
    return value ? std::optional<Value>(*value) : std::nullopt;
  }
  if (!index.isWhole())
    return std::optional<Value>();
  int64_t place = index.whole();
  if (object.isList() && object.list().isSequence()) {
    const auto &items = object.list().items;
    place += place < 0 ? int64_t(items.size()) : 0;
    if (place >= 0 && place < int64_t(items.size()))
      return std::optional<Value>(items[size_t(place)]);
  }
  if (object.isText()) {
    const Text &text = object.asText();
    STRATA_ASSIGN_OR_RETURN(int64_t length, evaluator.lengthOf(object));
    place += place < 0 ? length : 0;
    if (place < 0 || place >= length)
      return std::optional<Value>();
    size_t begin = size_t(place);
    if (size_t(length) != text.size())
      for (begin = 0; place > 0; --place)
        begin += characterAt(text.bytes(), begin).length;
    STRATA_ASSIGN_OR_RETURN(
        Value character,
        evaluator.makeText(text.slice(begin, begin + characterAt(text.bytes(), begin).length)));
    return std::optional<Value>(std::move(character));
  }
  return std::optional<Value>();
}

} // namespace

Result<Value> Evaluator::attributeOf(const Value &object, std::string_view name) {
  if (object.isUndefined())
    return useOfUndefined(object);
  if (object.is<LoopPtr>()) {
    if (name == "cycle" || name == "changed")
      return method(object, name);
    return loopAttribute(*object.as<LoopPtr>(), name);
  }
  if (std::optional<Value> attribute = pythonAttribute(object, name))
    return *attribute;
  if (object.isDict())
    if (const Value *value = object.dict().find(name))
      return *value;
  return noAttribute(object, name);
}

Result<Value> Evaluator::itemOf(const Value &object, const Value &index) {
  if (object.isUndefined())
    return useOfUndefined(object);
  STRATA_ASSIGN_OR_RETURN(std::optional<Value> element, elementAt(*this, object, index));
  if (element)
    return *element;
  if (index.isText()) {
    if (object.is<LoopPtr>())
      return attributeOf(object, index.bytes());
    if (std::optional<Value> attribute = pythonAttribute(object, index.bytes()))
      return *attribute;
    return noAttribute(object, index.bytes().substr(0, 256));
  }
  return Value::undefined(fmt::format("a {} has no such element", object.typeName()));
}

Result<size_t> Evaluator::loopLength(Loop &loop) {
  if (loop.length)
    return *loop.length;
  if (!loop.statement->condition) {
    loop.length = loop.source.size();
    return *loop.length;
  }
  // The rest must pass the condition now.
  size_t seen = loop.index + 1;
  std::vector<Value> rest;
  for (;;) {
    STRATA_ASSIGN_OR_RETURN(std::optional<Value> item, pullItem(loop));
    if (!item)
      break;
    rest.push_back(std::move(*item));
  }
  loop.length = seen + rest.size();
  loop.source = std::move(rest);
  loop.pulled = 0;
  loop.conditionDone = true;
  return *loop.length;
}

Result<Value> Evaluator::loopAttribute(Loop &loop, std::string_view name) {
  auto index = int64_t(loop.index);
  if (name == "index")
    return Value(index + 1);
  if (name == "index0")
    return Value(index);
  if (name == "first")
    return Value(index == 0);
  if (name == "depth")
    return Value(int64_t(loop.depth) + 1);
  if (name == "depth0")
    return Value(int64_t(loop.depth));
  if (name == "previtem")
    return index ? loop.previous : Value::undefined("there is no previous item");
  if (name == "last" || name == "nextitem") {
    if (!loop.peeked) {
      STRATA_ASSIGN_OR_RETURN(loop.peeked, pullItem(loop));
    }
    if (name == "last")
      return Value(!loop.peeked);
    return loop.peeked ? *loop.peeked : Value::undefined("there is no next item");
  }
  if (name == "length" || name == "revindex" || name == "revindex0") {
    STRATA_ASSIGN_OR_RETURN(size_t length, loopLength(loop));
    return Value(name == "length" ? int64_t(length)
                                  : int64_t(length) - index - (name == "revindex0"));
  }
  return Value::undefined(fmt::format("'loop' has no attribute '{}'", name));
}

} // namespace strata::chat
