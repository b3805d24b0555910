#include "runtime/chat/Template.h"

#include <nlohmann/json.hpp>

#include "runtime/chat/Evaluator.h"
#include "runtime/chat/HiddenNames.h"
#include "runtime/chat/Parser.h"

namespace strata::chat {
namespace {

constexpr size_t maxSourceBytes = 4 << 20;

/// The variables as values, with the bytes of text in them.
class Importer {
public:
  explicit Importer(uint32_t maxDepth) : maxDepth_(maxDepth) {}
  Result<Value> import(const nlohmann::ordered_json &json, uint32_t depth = 0);
  uint64_t bytes = 0;

private:
  uint32_t maxDepth_;
};

Value inputText(const std::string &text) { return Value::text(Text(text, Origin::Input)); }

Result<Value> Importer::import(const nlohmann::ordered_json &json, uint32_t depth) {
  using Type = nlohmann::ordered_json::value_t;
  if (depth >= maxDepth_)
    return makeError(StatusCode::InvalidArgument, "the input is nested deeper than {}", maxDepth_);
  bytes += 16;
  switch (json.type()) {
  case Type::null:
    return Value::none();
  case Type::boolean:
    return Value(json.get<bool>());
  case Type::number_integer:
    return Value(json.get<int64_t>());
  case Type::number_unsigned:
    if (json.get<uint64_t>() > uint64_t(INT64_MAX))
      return makeError(StatusCode::InvalidArgument,
                       "the input holds the integer {}; at most {} is supported",
                       json.get<uint64_t>(), INT64_MAX);
    return Value(int64_t(json.get<uint64_t>()));
  case Type::number_float:
    return Value(json.get<double>());
  case Type::string:
    bytes += json.get_ref<const std::string &>().size();
    return inputText(json.get_ref<const std::string &>());
  case Type::array: {
    auto list = std::make_shared<List>();
    for (const auto &element : json) {
      STRATA_ASSIGN_OR_RETURN(Value item, import(element, depth + 1));
      list->depth = std::max(list->depth, depthOf(item) + 1);
      list->weight = addSaturating(list->weight, weightOf(item));
      list->items.push_back(std::move(item));
    }
    return Value(ListPtr(std::move(list)));
  }
  case Type::object: {
    Dict dict;
    for (const auto &[key, element] : json.items()) {
      STRATA_ASSIGN_OR_RETURN(Value value, import(element, depth + 1));
      bytes += key.size();
      dict.set(inputText(key), std::move(value));
    }
    return Value(DictPtr(std::make_shared<const Dict>(std::move(dict))));
  }
  case Type::binary:
  case Type::discarded:
    break;
  }
  return makeError(StatusCode::InvalidArgument, "the input holds a value that JSON has not");
}

} // namespace

Result<Template> Template::parse(std::string_view source) {
  if (source.size() > maxSourceBytes)
    return makeError(StatusCode::ResourceExhausted, "a chat template of {} bytes; at most {}",
                     source.size(), maxSourceBytes);
  STRATA_ASSIGN_OR_RETURN(std::vector<Token> tokens, tokenize(source));
  auto tree = std::make_shared<Tree>();
  STRATA_ASSIGN_OR_RETURN(tree->body.statements, Parser(std::move(tokens)).parse());
  findHiddenNames(*tree);
  return Template(std::move(tree));
}

Result<std::vector<Span>> Template::render(const nlohmann::ordered_json &variables,
                                           const RenderOptions &options) const {
  if (!variables.is_object())
    return makeError(StatusCode::InvalidArgument,
                     "the variables of a chat template are of type {}; they must be an object",
                     variables.type_name());
  Importer importer(options.limits.containerDepth);
  auto scope = std::make_shared<Scope>();
  for (const auto &[name, json] : variables.items()) {
    STRATA_ASSIGN_OR_RETURN(Value value, importer.import(json));
    scope->variables.insert_or_assign(name, std::move(value));
  }
  for (const auto &[name, text] : options.templateTexts)
    scope->variables.insert_or_assign(name, Value::text(Text(text, Origin::Template)));

  Evaluator evaluator(options, importer.bytes);
  Result<Text> text = evaluator.run(*tree_, scope);
  if (!text.isOk())
    return makeError(text.status().code(), "chat template, line {}: {}", evaluator.errorLine(),
                     text.status().message());
  std::vector<Span> spans;
  size_t begin = 0;
  for (const Text::Run &run : text->runs()) {
    spans.push_back({text->bytes().substr(begin, run.end - begin), run.origin == Origin::Template});
    begin = run.end;
  }
  return spans;
}

} // namespace strata::chat
