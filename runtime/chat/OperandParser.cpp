#include <algorithm>
#include <charconv>

#include "runtime/chat/Filters.h"
#include "runtime/chat/Parser.h"
#include "runtime/chat/Tests.h"

namespace strata::chat {
namespace {

uint32_t depthOf(const Arguments &arguments) {
  uint32_t depth = std::max(depthOf(arguments.starred), depthOf(arguments.doubleStarred));
  for (const ExpressionPtr &argument : arguments.positional)
    depth = std::max(depth, depthOf(argument));
  for (const auto &[name, argument] : arguments.keywords)
    depth = std::max(depth, depthOf(argument));
  return depth;
}

} // namespace

Result<ExpressionPtr> Parser::parseNumber() {
  Token token = take();
  const char *begin = token.text.data(), *end = begin + token.text.size();
  if (token.type == TokenType::Float) {
    double number = 0;
    auto parsed = std::from_chars(begin, end, number);
    if (parsed.ec != std::errc())
      return templateError(token.line,
                           fmt::format("the number {} is outside of float64", token.text));
    return make(token.line, 0, Literal{Value(number)});
  }
  char kind = token.text.size() > 1 ? char(token.text[1] | 32) : 0;
  int base = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 10;
  int64_t number = 0;
  auto parsed = std::from_chars(begin + (base == 10 ? 0 : 2), end, number, base);
  if (parsed.ec != std::errc())
    return templateError(token.line, fmt::format("the number {} does not fit 64 bits", token.text));
  return make(token.line, 0, Literal{Value(number)});
}

Result<ExpressionPtr> Parser::parsePrimary() {
  uint32_t line = current().line;
  switch (current().type) {
  case TokenType::Name: {
    std::string name = take().text;
    if (name == "true" || name == "True" || name == "false" || name == "False")
      return make(line, 0, Literal{Value(name == "true" || name == "True")});
    if (name == "none" || name == "None")
      return make(line, 0, Literal{Value::none()});
    mentionsCaller_ |= name == "caller";
    mentionsVarargs_ |= name == "varargs";
    mentionsKwargs_ |= name == "kwargs";
    return make(line, 0, NameUse{std::move(name)});
  }
  case TokenType::String: {
    std::string text;
    while (current().type == TokenType::String)
      text += take().text;
    return make(line, 0, Literal{Value::text(Text(std::move(text), Origin::Template))});
  }
  case TokenType::Integer:
  case TokenType::Float:
    return parseNumber();
  default:
    break;
  }
  if (isOperator("["))
    return parseList();
  if (isOperator("{"))
    return parseDict();
  if (!takeOperator("("))
    return unexpected("an expression");
  STRATA_ASSIGN_OR_RETURN(ExpressionPtr inner, parseTuple(true, true));
  STRATA_RETURN_IF_ERROR(expectOperator(")"));
  return inner;
}

Result<ExpressionPtr> Parser::parseList() {
  uint32_t line = take().line, depth = 0;
  std::vector<ExpressionPtr> items;
  while (!isOperator("]")) {
    if (!items.empty())
      STRATA_RETURN_IF_ERROR(expectOperator(","));
    if (isOperator("]"))
      break;
    STRATA_ASSIGN_OR_RETURN(ExpressionPtr item, parseExpression());
    depth = std::max(depth, item->depth);
    items.push_back(std::move(item));
  }
  take();
  return make(line, depth, ListDisplay{false, std::move(items)});
}

Result<ExpressionPtr> Parser::parseDict() {
  uint32_t line = take().line, depth = 0;
  DictDisplay display;
  while (!isOperator("}")) {
    if (!display.entries.empty())
      STRATA_RETURN_IF_ERROR(expectOperator(","));
    if (isOperator("}"))
      break;
    STRATA_ASSIGN_OR_RETURN(ExpressionPtr key, parseExpression());
    STRATA_RETURN_IF_ERROR(expectOperator(":"));
    STRATA_ASSIGN_OR_RETURN(ExpressionPtr value, parseExpression());
    depth = std::max({depth, key->depth, value->depth});
    display.entries.emplace_back(std::move(key), std::move(value));
  }
  take();
  return make(line, depth, std::move(display));
}

Result<ExpressionPtr> Parser::parsePostfix(ExpressionPtr expression) {
  for (;;) {
    if (isOperator(".")) {
      STRATA_ASSIGN_OR_RETURN(expression, parseAttribute(std::move(expression)));
    } else if (isOperator("[")) {
      STRATA_ASSIGN_OR_RETURN(expression, parseSubscript(std::move(expression)));
    } else if (isOperator("(")) {
      STRATA_ASSIGN_OR_RETURN(expression, parseCall(std::move(expression)));
    } else {
      return expression;
    }
  }
}

Result<ExpressionPtr> Parser::parseFiltersAndTests(ExpressionPtr expression) {
  for (;;) {
    if (takeOperator("|")) {
      STRATA_ASSIGN_OR_RETURN(expression, parseFilter(std::move(expression), true));
    } else if (isName("is")) {
      STRATA_ASSIGN_OR_RETURN(expression, parseTest(std::move(expression)));
    } else if (isOperator("(")) {
      STRATA_ASSIGN_OR_RETURN(expression, parseCall(std::move(expression)));
    } else {
      return expression;
    }
  }
}

Result<ExpressionPtr> Parser::parseAttribute(ExpressionPtr object) {
  uint32_t line = take().line, depth = object->depth;
  if (current().type == TokenType::Name)
    return make(line, depth, Attribute{std::move(object), take().text});
  if (current().type != TokenType::Integer)
    return unexpected("a name or a number behind '.'");
  STRATA_ASSIGN_OR_RETURN(ExpressionPtr index, parseNumber());
  return make(line, depth, Subscript{std::move(object), std::move(index)});
}

Result<ExpressionPtr> Parser::parseSubscript(ExpressionPtr object) {
  uint32_t line = take().line;
  ExpressionPtr parts[3];
  size_t colons = 0;
  uint32_t depth = object->depth;
  while (!isOperator("]")) {
    if (isOperator(",") || colons > 2)
      return error("subscripts take one index or one slice");
    if (takeOperator(":")) {
      ++colons;
      continue;
    }
    if (colons > 2 || parts[colons])
      return unexpected("']'");
    STRATA_ASSIGN_OR_RETURN(parts[colons], parseExpression());
    depth = std::max(depth, parts[colons]->depth);
  }
  take();
  if (colons > 2)
    return templateError(line, "a slice has at most two colons");
  if (colons)
    return make(
        line, depth,
        Slice{std::move(object), std::move(parts[0]), std::move(parts[1]), std::move(parts[2])});
  if (!parts[0])
    return templateError(line, "the subscript [] is empty");
  return make(line, depth, Subscript{std::move(object), std::move(parts[0])});
}

Status Parser::parseArguments(Arguments &arguments) {
  STRATA_RETURN_IF_ERROR(expectOperator("("));
  for (bool first = true; !isOperator(")"); first = false) {
    if (!first) {
      STRATA_RETURN_IF_ERROR(expectOperator(","));
      if (isOperator(")"))
        break;
    }
    bool named = current().type == TokenType::Name && next().type == TokenType::Operator &&
                 next().text == "=";
    if (arguments.doubleStarred || (arguments.starred && !named && !isOperator("**")) ||
        (!arguments.keywords.empty() && !named && !isOperator("**") && !isOperator("*")))
      return error("arguments come in the order: by place, by name, *list, **dict");
    if (takeOperator("*")) {
      STRATA_ASSIGN_OR_RETURN(arguments.starred, parseExpression());
    } else if (takeOperator("**")) {
      STRATA_ASSIGN_OR_RETURN(arguments.doubleStarred, parseExpression());
    } else if (named) {
      std::string name = take().text;
      take();
      for (const auto &[other, value] : arguments.keywords)
        if (other == name)
          return error(fmt::format("the argument '{}' is given twice", name));
      STRATA_ASSIGN_OR_RETURN(ExpressionPtr value, parseExpression());
      arguments.keywords.emplace_back(std::move(name), std::move(value));
    } else {
      STRATA_ASSIGN_OR_RETURN(ExpressionPtr value, parseExpression());
      arguments.positional.push_back(std::move(value));
    }
  }
  take();
  return Status::ok();
}

Result<ExpressionPtr> Parser::parseCall(ExpressionPtr callee) {
  uint32_t line = current().line;
  Arguments arguments;
  STRATA_RETURN_IF_ERROR(parseArguments(arguments));
  uint32_t depth = std::max(callee->depth, depthOf(arguments));
  return make(line, depth, Call{std::move(callee), std::move(arguments)});
}

Result<ExpressionPtr> Parser::parseFilter(ExpressionPtr input, bool pipeTaken) {
  while (pipeTaken || takeOperator("|")) {
    pipeTaken = false;
    uint32_t line = current().line;
    STRATA_ASSIGN_OR_RETURN(std::string name, expectAnyName());
    if (!conditionDepth_ && !findFilter(name))
      unknownNames_.push_back(unknownFilter(line, name));
    Arguments arguments;
    if (isOperator("("))
      STRATA_RETURN_IF_ERROR(parseArguments(arguments));
    uint32_t depth = std::max(depthOf(input), depthOf(arguments));
    STRATA_ASSIGN_OR_RETURN(
        input,
        make(line, depth, FilterUse{std::move(input), std::move(name), std::move(arguments)}));
  }
  return input;
}

Result<ExpressionPtr> Parser::parseTest(ExpressionPtr input) {
  uint32_t line = take().line;
  bool negated = takeName("not");
  STRATA_ASSIGN_OR_RETURN(std::string name, expectAnyName());
  if (!conditionDepth_ && !findTest(name))
    unknownNames_.push_back(unknownTest(line, name));
  Arguments arguments;
  bool endsHere = isName("else") || isName("or") || isName("and");
  if (isOperator("(")) {
    STRATA_RETURN_IF_ERROR(parseArguments(arguments));
  } else if (!endsHere &&
             (current().type == TokenType::Name || current().type == TokenType::String ||
              current().type == TokenType::Integer || current().type == TokenType::Float ||
              isOperator("[") || isOperator("{"))) {
    if (isName("is"))
      return error("tests cannot be chained with 'is'");
    STRATA_ASSIGN_OR_RETURN(ExpressionPtr argument, parsePrimary());
    STRATA_ASSIGN_OR_RETURN(argument, parsePostfix(std::move(argument)));
    arguments.positional.push_back(std::move(argument));
  }
  uint32_t depth = std::max(input->depth, depthOf(arguments));
  STRATA_ASSIGN_OR_RETURN(
      ExpressionPtr test,
      make(line, depth, TestUse{std::move(input), std::move(name), std::move(arguments)}));
  if (!negated)
    return test;
  depth = test->depth;
  return make(line, depth, Unary{UnaryOperator::Not, std::move(test)});
}

} // namespace strata::chat
