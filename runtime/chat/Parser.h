// Tokens to a tree. The grammar is Jinja's, its odd corners included: `~` binds tighter than `+`,
// a filter behind `-x` applies to the negated value, `is` takes one argument without brackets.
#pragma once

#include <memory>

#include "runtime/chat/Lexer.h"
#include "runtime/chat/Tree.h"

namespace strata::chat {

class Parser {
public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  /// Errors: InvalidData (syntax), Unimplemented (include, import, extends, block and unknown
  /// filters and tests, by name); each with its line.
  Result<Statements> parse();

private:
  using ParsedExpression = Result<ExpressionPtr>;
  using EndTags = std::initializer_list<std::string_view>;

  const Token &current() const { return tokens_[at_]; }
  const Token &next() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  Token take();
  bool isOperator(std::string_view text) const;
  bool isName(std::string_view text) const;
  bool takeOperator(std::string_view text);
  bool takeName(std::string_view text);
  Status expectOperator(std::string_view text);
  Status expectName(std::string_view text);
  Result<std::string> expectAnyName();
  Status expectBlockEnd();
  Status unexpected(std::string_view wanted) const;
  Status error(std::string_view message) const { return templateError(current().line, message); }

  // StatementParser.cpp
  Status parseStatements(EndTags endTags, Statements &out);
  Status parseStatement(Statements &out);
  Status parseBody(EndTags endTags, Statements &out); ///< Behind a tag, up to an end tag's name.
  Status parseScopedBody(std::string_view endTag, Statements &out);
  Status parseSet(uint32_t line, Statements &out);
  Status parseFor(uint32_t line, Statements &out);
  Status parseIf(uint32_t line, Statements &out);
  Status parseMacro(uint32_t line, Statements &out);
  Status parseCallBlock(uint32_t line, Statements &out);
  Status parseFilterBlock(uint32_t line, Statements &out);
  Status parseWith(uint32_t line, Statements &out);
  Status parsePrint(uint32_t line, Statements &out);
  Status parseSignature(MacroDefinition &macro);
  Status parseMacroBody(std::string_view endTag, MacroDefinition &macro);
  Result<Target> parseTarget(bool allowsAttribute);
  Result<Target> parseTargetPart();

  // ExpressionParser.cpp
  ParsedExpression parseTuple(bool conditionals, bool inBrackets = false);
  ParsedExpression parseExpression(bool conditionals = true);
  ParsedExpression parseConditional();
  ParsedExpression parseOr();
  ParsedExpression parseAnd();
  ParsedExpression parseNot();
  ParsedExpression parseComparison();
  ParsedExpression parseSum();
  ParsedExpression parseConcatenation();
  ParsedExpression parseProduct();
  ParsedExpression parsePower();
  ParsedExpression parseUnary(bool filters);
  bool tupleEnds() const;

  // OperandParser.cpp
  ParsedExpression parsePrimary();
  ParsedExpression parseNumber();
  ParsedExpression parseList();
  ParsedExpression parseDict();
  ParsedExpression parsePostfix(ExpressionPtr expression);
  ParsedExpression parseFiltersAndTests(ExpressionPtr expression);
  ParsedExpression parseAttribute(ExpressionPtr object);
  ParsedExpression parseSubscript(ExpressionPtr object);
  ParsedExpression parseCall(ExpressionPtr callee);
  ParsedExpression parseFilter(ExpressionPtr input, bool pipeTaken);
  ParsedExpression parseTest(ExpressionPtr input);
  Status parseArguments(Arguments &arguments);

  /// Wraps a node, and refuses trees too deep to walk.
  Status checkTreeDepth(uint32_t line, uint32_t depthOfChildren) const;
  template <class T> ParsedExpression make(uint32_t line, uint32_t depthOfChildren, T node);

  std::vector<Token> tokens_;
  size_t at_ = 0;
  uint32_t statementDepth_ = 0, expressionDepth_ = 0;
  /// Inside ifs, where Jinja looks names of filters up when they run.
  uint32_t conditionDepth_ = 0;
  uint32_t loopDepth_ = 0;           ///< Loops that break and continue can reach.
  std::vector<Status> unknownNames_; ///< Of filters and tests that are used unconditionally.
  bool mentionsCaller_ = false, mentionsVarargs_ = false, mentionsKwargs_ = false;
};

template <class T>
Result<ExpressionPtr> Parser::make(uint32_t line, uint32_t depthOfChildren, T node) {
  STRATA_RETURN_IF_ERROR(checkTreeDepth(line, depthOfChildren));
  return std::make_unique<Expression>(std::in_place_type<T>, std::move(node), line,
                                      depthOfChildren + 1);
}

} // namespace strata::chat
