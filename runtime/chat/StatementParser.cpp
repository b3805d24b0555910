#include <algorithm>

#include "runtime/chat/Parser.h"

namespace strata::chat {
namespace {

// Statements inside each other.
constexpr uint32_t maxStatementDepth = 64;

std::string describe(const Token &token) {
  switch (token.type) {
  case TokenType::Data:
    return "text";
  case TokenType::BlockBegin:
    return "'{%'";
  case TokenType::BlockEnd:
    return "'%}'";
  case TokenType::VariableBegin:
    return "'{{'";
  case TokenType::VariableEnd:
    return "'}}'";
  case TokenType::String:
    return "a string";
  case TokenType::End:
    return "the end of the template";
  default:
    return fmt::format("'{}'", token.text);
  }
}

template <class T> void append(Statements &out, uint32_t line, T node) {
  out.push_back({std::make_unique<StatementNode>(std::in_place_type<T>, std::move(node)), line});
}

} // namespace

Token Parser::take() {
  Token token = current();
  at_ = std::min(at_ + 1, tokens_.size() - 1);
  return token;
}

bool Parser::isOperator(std::string_view text) const {
  return current().type == TokenType::Operator && current().text == text;
}

bool Parser::isName(std::string_view text) const {
  return current().type == TokenType::Name && current().text == text;
}

bool Parser::takeOperator(std::string_view text) {
  bool found = isOperator(text);
  if (found)
    take();
  return found;
}

bool Parser::takeName(std::string_view text) {
  bool found = isName(text);
  if (found)
    take();
  return found;
}

Status Parser::unexpected(std::string_view wanted) const {
  return error(fmt::format("{} where {} is expected", describe(current()), wanted));
}

Status Parser::expectOperator(std::string_view text) {
  return takeOperator(text) ? Status::ok() : unexpected(fmt::format("'{}'", text));
}

Status Parser::expectName(std::string_view text) {
  return takeName(text) ? Status::ok() : unexpected(fmt::format("'{}'", text));
}

Result<std::string> Parser::expectAnyName() {
  if (current().type != TokenType::Name)
    return unexpected("a name");
  return take().text;
}

Status Parser::expectBlockEnd() {
  if (current().type != TokenType::BlockEnd)
    return unexpected("'%}'");
  take();
  return Status::ok();
}

Result<Statements> Parser::parse() {
  Statements statements;
  STRATA_RETURN_IF_ERROR(parseStatements({}, statements));
  if (!unknownNames_.empty())
    return unknownNames_.front();
  return statements;
}

/// Until one of the end tags, whose name is then the current token, or the template's end where
/// there are none.
Status Parser::parseStatements(EndTags endTags, Statements &out) {
  uint32_t opening = current().line;
  if (++statementDepth_ > maxStatementDepth)
    return error(fmt::format("blocks nested deeper than {}", maxStatementDepth));
  for (;;) {
    uint32_t line = current().line;
    if (current().type == TokenType::Data) {
      STRATA_ASSIGN_OR_RETURN(
          ExpressionPtr text,
          make(line, 0, Literal{Value::text(Text(take().text, Origin::Template))}));
      append(out, line, Output{std::move(text)});
    } else if (current().type == TokenType::VariableBegin) {
      take();
      STRATA_ASSIGN_OR_RETURN(ExpressionPtr value, parseTuple(true));
      append(out, line, Output{std::move(value)});
      if (current().type != TokenType::VariableEnd)
        return unexpected("'}}'");
      take();
    } else if (current().type == TokenType::BlockBegin) {
      take();
      for (std::string_view endTag : endTags)
        if (isName(endTag)) {
          --statementDepth_;
          return Status::ok();
        }
      STRATA_RETURN_IF_ERROR(parseStatement(out));
      STRATA_RETURN_IF_ERROR(expectBlockEnd());
    } else if (endTags.size() == 0) {
      --statementDepth_;
      return Status::ok();
    } else {
      return templateError(opening, fmt::format("the block that begins here is not closed: "
                                                "{{% {} %}} is missing",
                                                *std::prev(endTags.end())));
    }
  }
}

Status Parser::parseBody(EndTags endTags, Statements &out) {
  takeOperator(":");
  STRATA_RETURN_IF_ERROR(expectBlockEnd());
  return parseStatements(endTags, out);
}

/// A body from which break and continue cannot leave.
Status Parser::parseScopedBody(std::string_view endTag, Statements &out) {
  uint32_t loops = std::exchange(loopDepth_, 0);
  STRATA_RETURN_IF_ERROR(parseBody({endTag}, out));
  take();
  loopDepth_ = loops;
  return Status::ok();
}

Status Parser::parseStatement(Statements &out) {
  static constexpr std::string_view refused[] = {
      "include", "import", "from", "extends", "block", "autoescape", "do", "trans", "debug"};
  if (current().type != TokenType::Name)
    return unexpected("the name of a tag");
  uint32_t line = current().line;
  std::string tag = take().text;
  if (tag == "set")
    return parseSet(line, out);
  if (tag == "for")
    return parseFor(line, out);
  if (tag == "if")
    return parseIf(line, out);
  if (tag == "macro")
    return parseMacro(line, out);
  if (tag == "call")
    return parseCallBlock(line, out);
  if (tag == "filter")
    return parseFilterBlock(line, out);
  if (tag == "with")
    return parseWith(line, out);
  if (tag == "print")
    return parsePrint(line, out);
  if (tag == "generation") {
    Generation generation;
    STRATA_RETURN_IF_ERROR(parseScopedBody("endgeneration", generation.body.statements));
    append(out, line, std::move(generation));
    return Status::ok();
  }
  if (tag == "break" || tag == "continue") {
    if (!loopDepth_)
      return templateError(line, fmt::format("'{}' outside of a loop", tag));
    append(out, line, LoopControl{tag == "break"});
    return Status::ok();
  }
  if (std::find(std::begin(refused), std::end(refused), tag) != std::end(refused))
    return makeError(StatusCode::Unimplemented,
                     "chat template, line {}: the tag '{}' is not supported in chat templates",
                     line, tag);
  return templateError(line, fmt::format("unknown tag '{}'", tag));
}

Result<Target> Parser::parseTargetPart() {
  if (takeOperator("(")) {
    STRATA_ASSIGN_OR_RETURN(Target inner, parseTarget(false));
    STRATA_RETURN_IF_ERROR(expectOperator(")"));
    return inner;
  }
  static constexpr std::string_view constants[] = {"true", "false", "none",
                                                   "True", "False", "None"};
  for (std::string_view constant : constants)
    if (isName(constant))
      return error(fmt::format("cannot assign to '{}'", constant));
  STRATA_ASSIGN_OR_RETURN(std::string name, expectAnyName());
  return Target{.name = std::move(name)};
}

Result<Target> Parser::parseTarget(bool allowsAttribute) {
  if (++statementDepth_ > maxStatementDepth)
    return error(fmt::format("targets nested deeper than {}", maxStatementDepth));
  STRATA_ASSIGN_OR_RETURN(Target target, parseTargetPart());
  --statementDepth_;
  if (allowsAttribute && !target.isTuple && takeOperator(".")) {
    STRATA_ASSIGN_OR_RETURN(target.attribute, expectAnyName());
    return target;
  }
  if (!isOperator(","))
    return target;
  Target tuple{.isTuple = true};
  tuple.parts.push_back(std::move(target));
  while (takeOperator(",")) {
    if (isName("in") || isOperator("=") || isOperator(")"))
      break;
    STRATA_ASSIGN_OR_RETURN(Target part, parseTargetPart());
    tuple.parts.push_back(std::move(part));
  }
  return tuple;
}

Status Parser::parseSet(uint32_t line, Statements &out) {
  STRATA_ASSIGN_OR_RETURN(Target target, parseTarget(true));
  if (takeOperator("=")) {
    STRATA_ASSIGN_OR_RETURN(ExpressionPtr value, parseTuple(true));
    append(out, line, Assignment{std::move(target), std::move(value)});
    return Status::ok();
  }
  BlockAssignment block{std::move(target), nullptr, {}};
  STRATA_ASSIGN_OR_RETURN(block.filters, parseFilter(nullptr, false));
  STRATA_RETURN_IF_ERROR(parseBody({"endset"}, block.body.statements));
  take();
  append(out, line, std::move(block));
  return Status::ok();
}

Status Parser::parseFor(uint32_t line, Statements &out) {
  For loop{};
  STRATA_ASSIGN_OR_RETURN(loop.target, parseTarget(false));
  STRATA_RETURN_IF_ERROR(expectName("in"));
  STRATA_ASSIGN_OR_RETURN(loop.items, parseTuple(false));
  if (takeName("if")) {
    STRATA_ASSIGN_OR_RETURN(loop.condition, parseExpression());
  }
  loop.recursive = takeName("recursive");
  ++loopDepth_;
  STRATA_RETURN_IF_ERROR(parseBody({"else", "endfor"}, loop.body.statements));
  --loopDepth_;
  if (take().text == "else") {
    STRATA_RETURN_IF_ERROR(parseBody({"endfor"}, loop.otherwise.statements));
    take();
  }
  append(out, line, std::move(loop));
  return Status::ok();
}

Status Parser::parseIf(uint32_t line, Statements &out) {
  If branches;
  ++conditionDepth_;
  for (std::string tag = "if"; tag != "endif";) {
    if (tag == "else") {
      STRATA_RETURN_IF_ERROR(parseBody({"endif"}, branches.otherwise));
    } else {
      STRATA_ASSIGN_OR_RETURN(ExpressionPtr test, parseTuple(false));
      branches.branches.emplace_back(std::move(test), Statements());
      STRATA_RETURN_IF_ERROR(parseBody({"elif", "else", "endif"}, branches.branches.back().second));
    }
    tag = take().text;
  }
  --conditionDepth_;
  append(out, line, std::move(branches));
  return Status::ok();
}

Status Parser::parseSignature(MacroDefinition &macro) {
  STRATA_RETURN_IF_ERROR(expectOperator("("));
  while (!isOperator(")")) {
    if (!macro.parameters.empty())
      STRATA_RETURN_IF_ERROR(expectOperator(","));
    Parameter parameter;
    STRATA_ASSIGN_OR_RETURN(parameter.name, expectAnyName());
    for (const Parameter &other : macro.parameters)
      if (other.name == parameter.name)
        return error(fmt::format("the parameter '{}' is given twice", parameter.name));
    if (takeOperator("=")) {
      STRATA_ASSIGN_OR_RETURN(parameter.standard, parseExpression());
    } else if (!macro.parameters.empty() && macro.parameters.back().standard) {
      return error(fmt::format("the parameter '{}' without a default follows one with a default",
                               parameter.name));
    }
    macro.parameters.push_back(std::move(parameter));
  }
  take();
  return Status::ok();
}

Status Parser::parseMacroBody(std::string_view endTag, MacroDefinition &macro) {
  bool caller = std::exchange(mentionsCaller_, false);
  bool varargs = std::exchange(mentionsVarargs_, false);
  bool kwargs = std::exchange(mentionsKwargs_, false);
  STRATA_RETURN_IF_ERROR(parseScopedBody(endTag, macro.body.statements));
  auto declares = [&](std::string_view name) {
    return std::any_of(macro.parameters.begin(), macro.parameters.end(),
                       [&](const Parameter &parameter) { return parameter.name == name; });
  };
  macro.usesCaller = mentionsCaller_ && !declares("caller");
  macro.usesVarargs = mentionsVarargs_ && !declares("varargs");
  macro.usesKwargs = mentionsKwargs_ && !declares("kwargs");
  mentionsCaller_ |= caller;
  mentionsVarargs_ |= varargs;
  mentionsKwargs_ |= kwargs;
  return Status::ok();
}

Status Parser::parseMacro(uint32_t line, Statements &out) {
  MacroDefinition macro{.line = line};
  STRATA_ASSIGN_OR_RETURN(macro.name, expectAnyName());
  STRATA_RETURN_IF_ERROR(parseSignature(macro));
  STRATA_RETURN_IF_ERROR(parseMacroBody("endmacro", macro));
  append(out, line, std::move(macro));
  return Status::ok();
}

Status Parser::parseCallBlock(uint32_t line, Statements &out) {
  CallBlock block{nullptr, {.name = "caller", .line = line}};
  if (isOperator("("))
    STRATA_RETURN_IF_ERROR(parseSignature(block.caller));
  STRATA_ASSIGN_OR_RETURN(block.call, parseExpression());
  if (!std::holds_alternative<Call>(block.call->node))
    return templateError(line, "a call block needs a call: {% call macro(...) %}");
  STRATA_RETURN_IF_ERROR(parseMacroBody("endcall", block.caller));
  append(out, line, std::move(block));
  return Status::ok();
}

Status Parser::parseFilterBlock(uint32_t line, Statements &out) {
  FilterBlock block;
  STRATA_ASSIGN_OR_RETURN(block.filters, parseFilter(nullptr, true));
  STRATA_RETURN_IF_ERROR(parseBody({"endfilter"}, block.body.statements));
  take();
  append(out, line, std::move(block));
  return Status::ok();
}

Status Parser::parseWith(uint32_t line, Statements &out) {
  With with;
  while (current().type != TokenType::BlockEnd) {
    if (!with.bindings.empty())
      STRATA_RETURN_IF_ERROR(expectOperator(","));
    STRATA_ASSIGN_OR_RETURN(Target target, parseTargetPart());
    STRATA_RETURN_IF_ERROR(expectOperator("="));
    STRATA_ASSIGN_OR_RETURN(ExpressionPtr value, parseExpression());
    with.bindings.emplace_back(std::move(target), std::move(value));
  }
  STRATA_RETURN_IF_ERROR(parseBody({"endwith"}, with.body.statements));
  take();
  append(out, line, std::move(with));
  return Status::ok();
}

Status Parser::parsePrint(uint32_t line, Statements &out) {
  for (bool first = true; current().type != TokenType::BlockEnd; first = false) {
    if (!first)
      STRATA_RETURN_IF_ERROR(expectOperator(","));
    STRATA_ASSIGN_OR_RETURN(ExpressionPtr value, parseExpression());
    append(out, line, Output{std::move(value)});
  }
  return Status::ok();
}

} // namespace strata::chat
