// Walks the tree of a template. One instance a rendering.
#pragma once

#include "runtime/base/Status.h"
#include "runtime/chat/Function.h"
#include "runtime/chat/Template.h"

namespace strata::chat {

class Evaluator {
public:
  /// `inputBytes`: of all text in the variables; the limits grow with it.
  Evaluator(const RenderOptions &options, uint64_t inputBytes);
  ~Evaluator();

  Result<Text> run(const Tree &tree, const ScopePtr &variables);
  /// Where the error that `run` returned arose.
  uint32_t errorLine() const { return errorLine_; }

  // What filters, tests and methods need. Their errors carry no line: the caller adds it.

  const RenderOptions &options() const { return options_; }

  /// Takes steps; an error when there are none left. Whoever loops over something that a template
  /// can make large takes its steps first.
  Status spend(uint64_t steps);
  Status spendOn(const Value &value) { return spend(weightOf(value)); }
  Status checkTextBytes(uint64_t bytes) const;
  uint64_t maxTextBytes() const { return maxTextBytes_; }

  Result<Value> makeText(Text text);
  Result<Value> makeText(std::string text, Origin origin);
  Result<Value> makeList(std::vector<Value> items, ListKind kind = ListKind::List,
                         std::string name = {});
  Status addToDict(Dict &dict, Value key, Value value, std::string_view what);
  Result<Value> makeDict(Dict dict);

  /// The items of anything that Python can iterate over; takes them out of an iterator.
  Result<std::vector<Value>> iterate(const Value &value);
  Result<int64_t> lengthOf(const Value &value);

  /// str(): strings stay as they are.
  Result<Value> stringOf(const Value &value);
  /// Like str(), appended.
  Status appendString(const Value &value, Text &out);

  Result<Value> attributeOf(const Value &object, std::string_view name); ///< object.name
  Result<Value> itemOf(const Value &object, const Value &index);         ///< object[index]
  Result<bool> contains(const Value &container, const Value &value);
  Result<bool> areEqual(const Value &left, const Value &right);
  Result<bool> isLess(const Value &left, const Value &right, std::string_view symbol = "<");
  Result<Value> binary(BinaryOperator op, const Value &left, const Value &right);

  Result<Value> call(const Value &callee, CallArguments arguments);
  Result<Value> callFilter(std::string_view name, const Value &input,
                           const CallArguments &arguments);
  Result<bool> callTest(std::string_view name, const Value &input, const CallArguments &arguments);

private:
  enum class Flow { Next, Break, Continue };
  class DepthGuard;

  // StatementEvaluator.cpp
  Result<ScopePtr> makeScope(const ScopePtr &parent, const Body &body);
  Result<Flow> executeBody(const Body &body, const ScopePtr &parent, Text &out);
  Result<Flow> execute(const Statements &statements, const ScopePtr &scope, Text &out);
  Result<Flow> execute(const Statement &statement, const ScopePtr &scope, Text &out);
  Result<Flow> executeNode(const Statement &statement, const ScopePtr &scope, Text &out);
  Result<Flow> executeIf(const If &node, const ScopePtr &scope, Text &out);
  Result<Flow> executeBlockAssignment(const BlockAssignment &node, const ScopePtr &scope);
  Result<Flow> executeFilterBlock(const FilterBlock &node, const ScopePtr &scope, Text &out);
  Status executeCallBlock(const CallBlock &node, const ScopePtr &scope, Text &out);
  Result<Flow> executeWith(const With &node, const ScopePtr &scope, Text &out);
  Result<Flow> runLoop(const For &node, const Value &items, const ScopePtr &scope, size_t depth,
                       Text &out);
  Result<std::optional<Value>> pullItem(Loop &loop);
  Result<Value> loopAttribute(Loop &loop, std::string_view name);
  Result<size_t> loopLength(Loop &loop);
  Status assign(const Target &target, const Value &value, Scope &scope);
  Status assignAttribute(const Target &target, const Value &value, const Scope &scope);
  Value makeMacro(const MacroDefinition &macro, const ScopePtr &scope);

  // ExpressionEvaluator.cpp
  Result<Value> evaluate(const Expression &expression, const ScopePtr &scope);
  Result<Value> evaluateNode(const Expression &expression, const ScopePtr &scope);
  Result<Value> evaluateFilter(const FilterUse &node, const ScopePtr &scope, const Value &start);
  Result<Value> evaluateChain(const Expression &filters, const ScopePtr &scope, const Value &start);
  Result<Value> evaluateSlice(const Slice &node, const ScopePtr &scope);
  Result<Value> evaluateCompare(const Compare &node, const ScopePtr &scope);
  Result<Value> evaluateUnary(const Unary &node, const ScopePtr &scope);
  Result<Value> evaluateCall(const Call &node, const ScopePtr &scope, Value caller);
  Result<Value> evaluateConcatenation(const Concatenation &node, const ScopePtr &scope);
  Result<CallArguments> evaluateArguments(const Arguments &arguments, const ScopePtr &scope);
  Value lookUp(std::string_view name, const Scope &scope) const;

  // Calls.cpp
  Result<Value> callMacro(const Function &function, CallArguments arguments);
  Result<Value> callLoop(Loop &loop, const CallArguments &arguments);
  Result<Value> callLoopMethod(Loop &loop, std::string_view name, const CallArguments &arguments);

  // Operators.cpp
  Result<Value> add(const Value &left, const Value &right);
  Result<Value> repeat(const Value &sequence, int64_t count);

  const RenderOptions &options_;
  uint64_t stepsLeft_, bytesLeft_, maxTextBytes_, maxSteps_, maxBytes_;
  uint32_t depth_ = 0;
  uint32_t errorLine_ = 0;
  /// Scopes that macros hold: they may hold the macros, so they are emptied at the end.
  std::vector<ScopePtr> captured_;
};

} // namespace strata::chat
