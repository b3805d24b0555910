#include "runtime/chat/Evaluator.h"

#include "runtime/chat/Unicode.h"
#include "runtime/chat/ValueText.h"

namespace strata::chat {
namespace {

// Counted for each string and list beside its contents: the object, its run, its allocation.
constexpr uint64_t objectBytes = 128;

uint64_t grown(const RenderLimits::Limit &limit, uint64_t inputBytes) {
  uint64_t more = 0;
  if (__builtin_mul_overflow(limit.perInputByte, inputBytes, &more))
    more = UINT64_MAX;
  return addSaturating(limit.base, more);
}

} // namespace

Evaluator::Evaluator(const RenderOptions &options, uint64_t inputBytes) : options_(options) {
  maxSteps_ = stepsLeft_ = grown(options.limits.steps, inputBytes);
  maxBytes_ = bytesLeft_ = grown(options.limits.bytes, inputBytes);
  maxTextBytes_ = grown(options.limits.textBytes, inputBytes);
}

Evaluator::~Evaluator() {
  for (const ScopePtr &scope : captured_)
    scope->variables.clear();
}

Status Evaluator::spend(uint64_t steps) {
  if (steps > stepsLeft_)
    return makeError(StatusCode::ResourceExhausted,
                     "the template takes more than {} steps; it loops over too much or for ever",
                     maxSteps_);
  stepsLeft_ -= steps;
  return Status::ok();
}

Status Evaluator::checkTextBytes(uint64_t bytes) const {
  if (bytes > maxTextBytes_)
    return makeError(
        StatusCode::ResourceExhausted,
        "the template makes a string of {} bytes; at most {} for an input of this size", bytes,
        maxTextBytes_);
  return Status::ok();
}

Result<Value> Evaluator::makeText(Text text) {
  STRATA_RETURN_IF_ERROR(checkTextBytes(text.size()));
  uint64_t bytes = objectBytes + text.size() + text.runs().size() * sizeof(Text::Run);
  if (bytes > bytesLeft_)
    return makeError(StatusCode::ResourceExhausted,
                     "the template builds more than {} bytes of text and lists", maxBytes_);
  bytesLeft_ -= bytes;
  STRATA_RETURN_IF_ERROR(spend(bytes / 64));
  return Value::text(std::move(text));
}

Result<Value> Evaluator::makeText(std::string text, Origin origin) {
  return makeText(Text(std::move(text), origin));
}

Result<Value> Evaluator::makeList(std::vector<Value> items, ListKind kind, std::string name) {
  uint64_t bytes = objectBytes + items.size() * sizeof(Value);
  if (bytes > bytesLeft_)
    return makeError(StatusCode::ResourceExhausted,
                     "the template builds more than {} bytes of text and lists", maxBytes_);
  bytesLeft_ -= bytes;
  STRATA_RETURN_IF_ERROR(spend(items.size()));
  auto list = std::make_shared<List>();
  list->kind = kind;
  list->name = std::move(name);
  for (const Value &item : items) {
    list->depth = std::max(list->depth, depthOf(item) + 1);
    list->weight = addSaturating(list->weight, weightOf(item));
    list->holdsReference |= holdsReference(item);
  }
  if (list->depth > options_.limits.containerDepth)
    return makeError(StatusCode::ResourceExhausted, "lists nested deeper than {}",
                     options_.limits.containerDepth);
  list->items = std::move(items);
  return Value(ListPtr(std::move(list)));
}

Status Evaluator::addToDict(Dict &dict, Value key, Value value, std::string_view what) {
  STRATA_RETURN_IF_ERROR(spendOn(key)); // Before anything walks it.
  if (!isHashable(key))
    return makeError(StatusCode::InvalidData, "{}: a {} cannot be a key", what, key.typeName());
  dict.set(std::move(key), std::move(value));
  return Status::ok();
}

Result<Value> Evaluator::makeDict(Dict dict) {
  uint64_t bytes = objectBytes * (1 + dict.entries().size());
  if (bytes > bytesLeft_)
    return makeError(StatusCode::ResourceExhausted,
                     "the template builds more than {} bytes of text and lists", maxBytes_);
  bytesLeft_ -= bytes;
  STRATA_RETURN_IF_ERROR(spend(dict.entries().size()));
  if (dict.depth > options_.limits.containerDepth)
    return makeError(StatusCode::ResourceExhausted, "dicts nested deeper than {}",
                     options_.limits.containerDepth);
  return Value(DictPtr(std::make_shared<const Dict>(std::move(dict))));
}

Result<std::vector<Value>> Evaluator::iterate(const Value &value) {
  std::vector<Value> items;
  if (value.isUndefined())
    return items;
  if (value.isList()) {
    const List &list = value.list();
    STRATA_RETURN_IF_ERROR(spend(list.items.size() - list.taken));
    items.assign(list.items.begin() + long(list.taken), list.items.end());
    if (list.kind == ListKind::Iterator)
      list.taken = list.items.size();
    return items;
  }
  if (value.isDict()) {
    STRATA_RETURN_IF_ERROR(spend(value.dict().entries().size()));
    for (const auto &[key, unused] : value.dict().entries())
      items.push_back(key);
    return items;
  }
  if (value.isText()) {
    const Text &text = value.asText();
    for (size_t i = 0; i < text.size();) {
      size_t end = i + characterAt(text.bytes(), i).length;
      Text character = text.slice(i, end);
      character.markup = false;
      STRATA_ASSIGN_OR_RETURN(Value item, makeText(std::move(character)));
      items.push_back(std::move(item));
      i = end;
    }
    return items;
  }
  return makeError(StatusCode::InvalidData, "a value of type {} is not iterable", value.typeName());
}

Result<int64_t> Evaluator::lengthOf(const Value &value) {
  if (value.isUndefined())
    return 0;
  if (value.isText()) {
    STRATA_RETURN_IF_ERROR(spendOn(value));
    return int64_t(countCharacters(value.bytes()));
  }
  if (value.isList() && value.list().hasLength())
    return int64_t(value.list().items.size());
  if (value.isDict())
    return int64_t(value.dict().entries().size());
  if (value.is<LoopPtr>()) {
    STRATA_ASSIGN_OR_RETURN(size_t length, loopLength(*value.as<LoopPtr>()));
    return int64_t(length);
  }
  return makeError(StatusCode::InvalidData, "a value of type {} has no length", value.typeName());
}

Status Evaluator::appendString(const Value &value, Text &out) {
  if (value.isText()) {
    STRATA_RETURN_IF_ERROR(checkTextBytes(out.size() + value.asText().size()));
    out.append(value.asText());
    return spendOn(value);
  }
  STRATA_RETURN_IF_ERROR(spendOn(value));
  STRATA_ASSIGN_OR_RETURN(std::string text, writeString(value, maxTextBytes_));
  STRATA_RETURN_IF_ERROR(checkTextBytes(out.size() + text.size()));
  out.append(text, Origin::Input);
  return Status::ok();
}

Result<Value> Evaluator::stringOf(const Value &value) {
  if (value.isText())
    return value;
  Text text;
  STRATA_RETURN_IF_ERROR(appendString(value, text));
  return makeText(std::move(text));
}

} // namespace strata::chat
