#include <algorithm>

#include "runtime/chat/Parser.h"

namespace strata::chat {
namespace {

// Brackets and operators inside each other. Each level of brackets takes a dozen C++ frames to
// parse; a chain such as `a + b + c` is one level deeper per operator and takes one to evaluate.
constexpr uint32_t maxBracketDepth = 64;
constexpr uint32_t maxTreeDepth = 300;

class DepthGuard {
public:
  explicit DepthGuard(uint32_t &depth) : depth_(depth) { ++depth_; }
  ~DepthGuard() { --depth_; }

private:
  uint32_t &depth_;
};

} // namespace

Status Parser::checkTreeDepth(uint32_t line, uint32_t depthOfChildren) const {
  if (depthOfChildren >= maxTreeDepth)
    return templateError(line, fmt::format("an expression of more than {} operators inside each "
                                           "other; assign its parts to names with set",
                                           maxTreeDepth));
  return Status::ok();
}

bool Parser::tupleEnds() const {
  return current().type == TokenType::VariableEnd || current().type == TokenType::BlockEnd ||
         isOperator(")");
}

Result<ExpressionPtr> Parser::parseTuple(bool conditionals, bool inBrackets) {
  uint32_t line = current().line, depth = 0;
  std::vector<ExpressionPtr> items;
  bool isTuple = false;
  for (;;) {
    if (!items.empty())
      STRATA_RETURN_IF_ERROR(expectOperator(","));
    if (tupleEnds() || (!conditionals && isName("recursive")))
      break;
    STRATA_ASSIGN_OR_RETURN(ExpressionPtr item, parseExpression(conditionals));
    depth = std::max(depth, item->depth);
    items.push_back(std::move(item));
    if (!isOperator(","))
      break;
    isTuple = true;
  }
  if (!isTuple && !items.empty())
    return std::move(items[0]);
  if (!isTuple && !inBrackets)
    return unexpected("an expression");
  return make(line, depth, ListDisplay{true, std::move(items)});
}

Result<ExpressionPtr> Parser::parseExpression(bool conditionals) {
  DepthGuard guard(expressionDepth_);
  if (expressionDepth_ > maxBracketDepth)
    return error(fmt::format("brackets nested deeper than {}", maxBracketDepth));
  return conditionals ? parseConditional() : parseOr();
}

Result<ExpressionPtr> Parser::parseConditional() {
  DepthGuard guard(expressionDepth_);
  if (expressionDepth_ > 2 * maxBracketDepth)
    return error(fmt::format("conditions nested deeper than {}", maxBracketDepth));
  uint32_t line = current().line;
  size_t unknownNames = unknownNames_.size();
  STRATA_ASSIGN_OR_RETURN(ExpressionPtr value, parseOr());
  while (takeName("if")) {
    unknownNames_.resize(unknownNames); // The value turns out to be conditional.
    DepthGuard condition(conditionDepth_);
    STRATA_ASSIGN_OR_RETURN(ExpressionPtr test, parseOr());
    ExpressionPtr otherwise;
    if (takeName("else")) {
      STRATA_ASSIGN_OR_RETURN(otherwise, parseConditional());
    }
    uint32_t depth = std::max({value->depth, test->depth, depthOf(otherwise)});
    STRATA_ASSIGN_OR_RETURN(
        value,
        make(line, depth, Conditional{std::move(test), std::move(value), std::move(otherwise)}));
  }
  return value;
}

Result<ExpressionPtr> Parser::parseOr() {
  uint32_t line = current().line;
  STRATA_ASSIGN_OR_RETURN(ExpressionPtr left, parseAnd());
  while (takeName("or")) {
    STRATA_ASSIGN_OR_RETURN(ExpressionPtr right, parseAnd());
    uint32_t depth = std::max(left->depth, right->depth);
    STRATA_ASSIGN_OR_RETURN(left,
                            make(line, depth, Logical{false, std::move(left), std::move(right)}));
  }
  return left;
}

Result<ExpressionPtr> Parser::parseAnd() {
  uint32_t line = current().line;
  STRATA_ASSIGN_OR_RETURN(ExpressionPtr left, parseNot());
  while (takeName("and")) {
    STRATA_ASSIGN_OR_RETURN(ExpressionPtr right, parseNot());
    uint32_t depth = std::max(left->depth, right->depth);
    STRATA_ASSIGN_OR_RETURN(left,
                            make(line, depth, Logical{true, std::move(left), std::move(right)}));
  }
  return left;
}

Result<ExpressionPtr> Parser::parseNot() {
  DepthGuard guard(expressionDepth_);
  if (expressionDepth_ > 2 * maxBracketDepth)
    return error(fmt::format("operators nested deeper than {}", maxBracketDepth));
  uint32_t line = current().line;
  if (!takeName("not"))
    return parseComparison();
  STRATA_ASSIGN_OR_RETURN(ExpressionPtr operand, parseNot());
  uint32_t depth = operand->depth;
  return make(line, depth, Unary{UnaryOperator::Not, std::move(operand)});
}

Result<ExpressionPtr> Parser::parseComparison() {
  static constexpr std::pair<std::string_view, Comparison> operators[] = {
      {"==", Comparison::Equal},     {"!=", Comparison::NotEqual}, {"<", Comparison::Less},
      {"<=", Comparison::LessEqual}, {">", Comparison::Greater},   {">=", Comparison::GreaterEqual},
  };
  uint32_t line = current().line;
  STRATA_ASSIGN_OR_RETURN(ExpressionPtr first, parseSum());
  Compare compare;
  uint32_t depth = first->depth;
  for (;;) {
    std::optional<Comparison> comparison;
    for (const auto &[text, meaning] : operators)
      if (isOperator(text))
        comparison = meaning;
    if (isName("in"))
      comparison = Comparison::In;
    if (isName("not") && next().type == TokenType::Name && next().text == "in") {
      comparison = Comparison::NotIn;
      take();
    }
    if (!comparison)
      break;
    take();
    STRATA_ASSIGN_OR_RETURN(ExpressionPtr operand, parseSum());
    depth = std::max(depth, operand->depth);
    compare.rest.emplace_back(*comparison, std::move(operand));
  }
  if (compare.rest.empty())
    return first;
  compare.first = std::move(first);
  return make(line, depth, std::move(compare));
}

Result<ExpressionPtr> Parser::parseSum() {
  uint32_t line = current().line;
  STRATA_ASSIGN_OR_RETURN(ExpressionPtr left, parseConcatenation());
  while (isOperator("+") || isOperator("-")) {
    BinaryOperator op = take().text == "+" ? BinaryOperator::Add : BinaryOperator::Subtract;
    STRATA_ASSIGN_OR_RETURN(ExpressionPtr right, parseConcatenation());
    uint32_t depth = std::max(left->depth, right->depth);
    STRATA_ASSIGN_OR_RETURN(left, make(line, depth, Binary{op, std::move(left), std::move(right)}));
  }
  return left;
}

Result<ExpressionPtr> Parser::parseConcatenation() {
  uint32_t line = current().line;
  STRATA_ASSIGN_OR_RETURN(ExpressionPtr first, parseProduct());
  if (!isOperator("~"))
    return first;
  Concatenation concatenation;
  uint32_t depth = first->depth;
  concatenation.parts.push_back(std::move(first));
  while (takeOperator("~")) {
    STRATA_ASSIGN_OR_RETURN(ExpressionPtr part, parseProduct());
    depth = std::max(depth, part->depth);
    concatenation.parts.push_back(std::move(part));
  }
  return make(line, depth, std::move(concatenation));
}

Result<ExpressionPtr> Parser::parseProduct() {
  static constexpr std::pair<std::string_view, BinaryOperator> operators[] = {
      {"*", BinaryOperator::Multiply},
      {"/", BinaryOperator::Divide},
      {"//", BinaryOperator::FloorDivide},
      {"%", BinaryOperator::Modulo},
  };
  uint32_t line = current().line;
  STRATA_ASSIGN_OR_RETURN(ExpressionPtr left, parsePower());
  for (;;) {
    auto op = std::find_if(std::begin(operators), std::end(operators),
                           [&](const auto &candidate) { return isOperator(candidate.first); });
    if (op == std::end(operators))
      return left;
    take();
    STRATA_ASSIGN_OR_RETURN(ExpressionPtr right, parsePower());
    uint32_t depth = std::max(left->depth, right->depth);
    STRATA_ASSIGN_OR_RETURN(
        left, make(line, depth, Binary{op->second, std::move(left), std::move(right)}));
  }
}

Result<ExpressionPtr> Parser::parsePower() {
  uint32_t line = current().line;
  STRATA_ASSIGN_OR_RETURN(ExpressionPtr left, parseUnary(true));
  while (takeOperator("**")) {
    STRATA_ASSIGN_OR_RETURN(ExpressionPtr right, parseUnary(true));
    uint32_t depth = std::max(left->depth, right->depth);
    STRATA_ASSIGN_OR_RETURN(
        left, make(line, depth, Binary{BinaryOperator::Power, std::move(left), std::move(right)}));
  }
  return left;
}

Result<ExpressionPtr> Parser::parseUnary(bool filters) {
  DepthGuard guard(expressionDepth_);
  if (expressionDepth_ > 2 * maxBracketDepth)
    return error(fmt::format("operators nested deeper than {}", maxBracketDepth));
  uint32_t line = current().line;
  ExpressionPtr expression;
  if (isOperator("-") || isOperator("+")) {
    UnaryOperator op = take().text == "-" ? UnaryOperator::Negate : UnaryOperator::Plus;
    STRATA_ASSIGN_OR_RETURN(ExpressionPtr operand, parseUnary(false));
    uint32_t depth = operand->depth;
    STRATA_ASSIGN_OR_RETURN(expression, make(line, depth, Unary{op, std::move(operand)}));
  } else {
    STRATA_ASSIGN_OR_RETURN(expression, parsePrimary());
  }
  STRATA_ASSIGN_OR_RETURN(expression, parsePostfix(std::move(expression)));
  if (filters)
    return parseFiltersAndTests(std::move(expression));
  return expression;
}

} // namespace strata::chat
