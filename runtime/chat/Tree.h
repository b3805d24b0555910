// A parsed template. Immutable; safe to share between threads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "runtime/chat/Value.h"

namespace strata::chat {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

struct Arguments {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> keywords;
  ExpressionPtr starred, doubleStarred; ///< `*list` and `**dict`; may be null.
};

struct Literal {
  Value value;
};
struct NameUse {
  std::string name;
};
struct ListDisplay {
  bool tuple;
  std::vector<ExpressionPtr> items;
};
struct DictDisplay {
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> entries;
};
struct Attribute {
  ExpressionPtr object;
  std::string name;
};
struct Subscript {
  ExpressionPtr object, index;
};
struct Slice {
  ExpressionPtr object;
  ExpressionPtr begin, end, step; ///< May be null.
};
struct Call {
  ExpressionPtr callee;
  Arguments arguments;
};
struct FilterUse {
  ExpressionPtr input; ///< Null at the start of a filter block's chain.
  std::string name;
  Arguments arguments;
};
struct TestUse {
  ExpressionPtr input;
  std::string name;
  Arguments arguments;
};
enum class UnaryOperator : uint8_t { Not, Negate, Plus };
struct Unary {
  UnaryOperator op;
  ExpressionPtr operand;
};
enum class BinaryOperator : uint8_t { Add, Subtract, Multiply, Divide, FloorDivide, Modulo, Power };
struct Binary {
  BinaryOperator op;
  ExpressionPtr left, right;
};
struct Logical {
  bool isAnd;
  ExpressionPtr left, right;
};
enum class Comparison : uint8_t {
  Equal,
  NotEqual,
  Less,
  LessEqual,
  Greater,
  GreaterEqual,
  In,
  NotIn
};
struct Compare {
  ExpressionPtr first;
  std::vector<std::pair<Comparison, ExpressionPtr>> rest;
};
struct Conditional {
  ExpressionPtr test, then, otherwise; ///< `otherwise` may be null.
};
struct Concatenation {
  std::vector<ExpressionPtr> parts;
};

struct Expression {
  using Node =
      std::variant<Literal, NameUse, ListDisplay, DictDisplay, Attribute, Subscript, Slice, Call,
                   FilterUse, TestUse, Unary, Binary, Logical, Compare, Conditional, Concatenation>;
  template <class T>
  Expression(std::in_place_type_t<T> type, T alternative, uint32_t line, uint32_t depth)
      : node(type, std::move(alternative)), line(line), depth(depth) {}

  Node node;
  uint32_t line;  ///< From 1.
  uint32_t depth; ///< Expressions inside each other, so that walking the tree is bounded.
};

inline uint32_t depthOf(const ExpressionPtr &expression) {
  return expression ? expression->depth : 0;
}

struct Statement;
using Statements = std::vector<Statement>;

/// Statements with a scope of their own.
struct Body {
  Statements statements;
  /// Names that are undefined here until they are set, whatever the variables say: Jinja2 takes
  /// them for the scope's own. findHiddenNames() fills it.
  std::vector<std::string> hiddenNames;
};

/// What is assigned to: a name, an attribute of a namespace, or a tuple of targets.
struct Target {
  std::string name;
  std::string attribute; ///< Empty unless `name.attribute`.
  std::vector<Target> parts;
  bool isTuple = false;
};

struct Output {
  ExpressionPtr value;
};
struct Assignment {
  Target target;
  ExpressionPtr value;
};
struct BlockAssignment {
  Target target;
  ExpressionPtr filters; ///< A chain with an empty start; may be null.
  Body body;
};
struct If {
  std::vector<std::pair<ExpressionPtr, Statements>> branches;
  Statements otherwise;
};
struct For {
  Target target;
  ExpressionPtr items;
  ExpressionPtr condition; ///< May be null.
  bool recursive;
  Body body, otherwise;
};
struct Parameter {
  std::string name;
  ExpressionPtr standard; ///< The default; may be null.
};
struct MacroDefinition {
  std::string name;
  std::vector<Parameter> parameters;
  Body body;
  uint32_t line;
  /// Whether the body mentions what it did not declare: then the rest of the arguments goes there.
  bool usesCaller, usesVarargs, usesKwargs;
};
struct CallBlock {
  ExpressionPtr call; ///< A Call.
  MacroDefinition caller;
};
struct FilterBlock {
  ExpressionPtr filters;
  Body body;
};
struct With {
  std::vector<std::pair<Target, ExpressionPtr>> bindings;
  Body body;
};
/// `{% generation %}`: a scope of its own around what the assistant says.
struct Generation {
  Body body;
};
struct LoopControl {
  bool isBreak;
};

using StatementNode = std::variant<Output, Assignment, BlockAssignment, If, For, MacroDefinition,
                                   CallBlock, FilterBlock, With, Generation, LoopControl>;

struct Statement {
  std::unique_ptr<StatementNode> node;
  uint32_t line;
};

struct Tree {
  Body body;
};

} // namespace strata::chat
