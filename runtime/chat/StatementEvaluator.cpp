#include "runtime/chat/DepthGuard.h"

namespace strata::chat {
Result<Text> Evaluator::run(const Tree &tree, const ScopePtr &variables) {
  Text out;
  STRATA_ASSIGN_OR_RETURN(ScopePtr scope, makeScope(variables, tree.body));
  STRATA_ASSIGN_OR_RETURN(Flow flow, execute(tree.body.statements, scope, out));
  (void)flow; // The parser lets no break out of its loop.
  return out;
}

Result<ScopePtr> Evaluator::makeScope(const ScopePtr &parent, const Body &body) {
  STRATA_RETURN_IF_ERROR(spend(body.hiddenNames.size()));
  auto scope = std::make_shared<Scope>(Scope{parent, {}});
  for (const std::string &name : body.hiddenNames)
    scope->variables.emplace(name, Value::undefined(fmt::format("'{}' is undefined", name)));
  return scope;
}

Result<Evaluator::Flow> Evaluator::executeBody(const Body &body, const ScopePtr &parent,
                                               Text &out) {
  STRATA_ASSIGN_OR_RETURN(ScopePtr scope, makeScope(parent, body));
  return execute(body.statements, scope, out);
}

Result<Evaluator::Flow> Evaluator::execute(const Statements &statements, const ScopePtr &scope,
                                           Text &out) {
  for (const Statement &statement : statements) {
    STRATA_ASSIGN_OR_RETURN(Flow flow, execute(statement, scope, out));
    if (flow != Flow::Next)
      return flow;
  }
  return Flow::Next;
}

Result<Evaluator::Flow> Evaluator::execute(const Statement &statement, const ScopePtr &scope,
                                           Text &out) {
  DepthGuard guard(depth_);
  Result<Flow> flow = [&]() -> Result<Flow> {
    STRATA_RETURN_IF_ERROR(guard.check(options_.limits.depth));
    STRATA_RETURN_IF_ERROR(spend(1));
    return executeNode(statement, scope, out);
  }();
  if (!flow.isOk() && !errorLine_)
    errorLine_ = statement.line;
  return flow;
}

Result<Evaluator::Flow> Evaluator::executeNode(const Statement &statement, const ScopePtr &scope,
                                               Text &out) {
  if (auto *node = std::get_if<Output>(statement.node.get())) {
    STRATA_ASSIGN_OR_RETURN(Value value, evaluate(*node->value, scope));
    STRATA_RETURN_IF_ERROR(appendString(value, out));
  } else if (auto *node = std::get_if<Assignment>(statement.node.get())) {
    STRATA_ASSIGN_OR_RETURN(Value value, evaluate(*node->value, scope));
    STRATA_RETURN_IF_ERROR(assign(node->target, value, *scope));
  } else if (auto *node = std::get_if<If>(statement.node.get())) {
    return executeIf(*node, scope, out);
  } else if (auto *node = std::get_if<For>(statement.node.get())) {
    STRATA_ASSIGN_OR_RETURN(Value items, evaluate(*node->items, scope));
    return runLoop(*node, items, scope, 0, out);
  } else if (auto *node = std::get_if<BlockAssignment>(statement.node.get())) {
    return executeBlockAssignment(*node, scope);
  } else if (auto *node = std::get_if<MacroDefinition>(statement.node.get())) {
    scope->variables.insert_or_assign(node->name, makeMacro(*node, scope));
  } else if (auto *node = std::get_if<CallBlock>(statement.node.get())) {
    STRATA_RETURN_IF_ERROR(executeCallBlock(*node, scope, out));
  } else if (auto *node = std::get_if<FilterBlock>(statement.node.get())) {
    return executeFilterBlock(*node, scope, out);
  } else if (auto *node = std::get_if<With>(statement.node.get())) {
    return executeWith(*node, scope, out);
  } else if (auto *node = std::get_if<Generation>(statement.node.get())) {
    return executeBody(node->body, scope, out);
  } else {
    return std::get<LoopControl>(*statement.node).isBreak ? Flow::Break : Flow::Continue;
  }
  return Flow::Next;
}

Result<Evaluator::Flow> Evaluator::executeIf(const If &node, const ScopePtr &scope, Text &out) {
  for (const auto &[test, body] : node.branches) {
    STRATA_ASSIGN_OR_RETURN(Value value, evaluate(*test, scope));
    if (isTrue(value))
      return execute(body, scope, out);
  }
  return execute(node.otherwise, scope, out);
}

Result<Evaluator::Flow> Evaluator::executeBlockAssignment(const BlockAssignment &node,
                                                          const ScopePtr &scope) {
  Text text;
  STRATA_ASSIGN_OR_RETURN(ScopePtr inner, makeScope(scope, node.body));
  STRATA_ASSIGN_OR_RETURN(Flow flow, execute(node.body.statements, inner, text));
  if (flow != Flow::Next)
    return flow;
  STRATA_ASSIGN_OR_RETURN(Value value, makeText(std::move(text)));
  if (node.filters) {
    STRATA_ASSIGN_OR_RETURN(value, evaluateChain(*node.filters, inner, value));
  }
  STRATA_RETURN_IF_ERROR(assign(node.target, value, *scope));
  return Flow::Next;
}

Result<Evaluator::Flow> Evaluator::executeFilterBlock(const FilterBlock &node,
                                                      const ScopePtr &scope, Text &out) {
  Text text;
  STRATA_ASSIGN_OR_RETURN(ScopePtr inner, makeScope(scope, node.body));
  STRATA_ASSIGN_OR_RETURN(Flow flow, execute(node.body.statements, inner, text));
  if (flow != Flow::Next)
    return flow;
  STRATA_ASSIGN_OR_RETURN(Value value, makeText(std::move(text)));
  STRATA_ASSIGN_OR_RETURN(value, evaluateChain(*node.filters, inner, value));
  if (!value.isText())
    return makeError(StatusCode::InvalidData,
                     "the filters of a filter block give a {}; they must give a string",
                     value.typeName());
  STRATA_RETURN_IF_ERROR(appendString(value, out));
  return Flow::Next;
}

Status Evaluator::executeCallBlock(const CallBlock &node, const ScopePtr &scope, Text &out) {
  STRATA_ASSIGN_OR_RETURN(Value value, evaluateCall(std::get<Call>(node.call->node), scope,
                                                    makeMacro(node.caller, scope)));
  return appendString(value, out);
}

Result<Evaluator::Flow> Evaluator::executeWith(const With &node, const ScopePtr &scope, Text &out) {
  STRATA_ASSIGN_OR_RETURN(ScopePtr inner, makeScope(scope, node.body));
  for (const auto &[target, expression] : node.bindings) {
    STRATA_ASSIGN_OR_RETURN(Value value, evaluate(*expression, scope));
    STRATA_RETURN_IF_ERROR(assign(target, value, *inner));
  }
  return execute(node.body.statements, inner, out);
}

Value Evaluator::makeMacro(const MacroDefinition &macro, const ScopePtr &scope) {
  if (captured_.empty() || captured_.back() != scope)
    captured_.push_back(scope);
  return FunctionPtr(std::make_shared<const Function>(
      Function{Function::Kind::Macro, macro.name, {}, &macro, scope}));
}

Status Evaluator::assign(const Target &target, const Value &value, Scope &scope) {
  if (!target.attribute.empty())
    return assignAttribute(target, value, scope);
  if (!target.isTuple) {
    scope.variables.insert_or_assign(target.name, value);
    return Status::ok();
  }
  STRATA_ASSIGN_OR_RETURN(std::vector<Value> items, iterate(value));
  if (items.size() != target.parts.size())
    return makeError(StatusCode::InvalidData, "{} values for {} names", items.size(),
                     target.parts.size());
  for (size_t i = 0; i < items.size(); ++i)
    STRATA_RETURN_IF_ERROR(assign(target.parts[i], items[i], scope));
  return Status::ok();
}

Status Evaluator::assignAttribute(const Target &target, const Value &value, const Scope &scope) {
  Value object = lookUp(target.name, scope);
  if (!object.is<NamespacePtr>())
    return makeError(
        StatusCode::InvalidData,
        "cannot assign to '{}.{}': '{}' is of type {}; only a namespace has attributes "
        "that can be set",
        target.name, target.attribute, target.name, object.typeName());
  // What refers back would keep itself alive for ever.
  if (holdsReference(value))
    return makeError(StatusCode::Unimplemented,
                     "'{}.{}' would hold a {}: namespaces, macros and loops inside a namespace are "
                     "not supported",
                     target.name, target.attribute, value.typeName());
  object.as<NamespacePtr>()->attributes.insert_or_assign(target.attribute, value);
  return Status::ok();
}

Result<std::optional<Value>> Evaluator::pullItem(Loop &loop) {
  if (loop.peeked)
    return std::exchange(loop.peeked, std::nullopt);
  const For &statement = *loop.statement;
  while (loop.pulled < loop.source.size()) {
    const Value &item = loop.source[loop.pulled++];
    if (statement.condition && !loop.conditionDone) {
      auto inner = std::make_shared<Scope>(Scope{loop.outer, {}});
      STRATA_RETURN_IF_ERROR(assign(statement.target, item, *inner));
      STRATA_ASSIGN_OR_RETURN(Value holds, evaluate(*statement.condition, inner));
      if (!isTrue(holds))
        continue;
    }
    return std::optional<Value>(item);
  }
  return std::optional<Value>();
}

Result<Evaluator::Flow> Evaluator::runLoop(const For &node, const Value &items,
                                           const ScopePtr &scope, size_t depth, Text &out) {
  auto loop = std::make_shared<Loop>();
  loop->statement = &node;
  loop->outer = scope;
  loop->depth = depth;
  STRATA_ASSIGN_OR_RETURN(loop->source, iterate(items));
  bool ranThrough = false; // As Jinja has it: else follows unless one body reached its end.
  for (bool first = true;; first = false) {
    STRATA_RETURN_IF_ERROR(spend(1));
    STRATA_ASSIGN_OR_RETURN(std::optional<Value> item, pullItem(*loop));
    if (!item)
      break;
    loop->index += !first;
    loop->previous = std::exchange(loop->current, std::move(*item));
    STRATA_ASSIGN_OR_RETURN(ScopePtr inner, makeScope(scope, node.body));
    inner->variables.insert_or_assign("loop", Value(loop));
    STRATA_RETURN_IF_ERROR(assign(node.target, loop->current, *inner));
    STRATA_ASSIGN_OR_RETURN(Flow flow, execute(node.body.statements, inner, out));
    if (flow == Flow::Break)
      break;
    ranThrough |= flow == Flow::Next;
  }
  if (ranThrough)
    return Flow::Next;
  return executeBody(node.otherwise, scope, out);
}

} // namespace strata::chat
