#include "runtime/chat/DepthGuard.h"
#include "runtime/chat/Filters.h"
#include "runtime/chat/Tests.h"
#include "runtime/chat/Unicode.h"

namespace strata::chat {
namespace {

template <class... Handlers> struct Overloaded : Handlers... {
  using Handlers::operator()...;
};
template <class... Handlers> Overloaded(Handlers...) -> Overloaded<Handlers...>;

/// Where the steps of a slice begin and how many there are, as Python clamps them.
struct SlicePlan {
  int64_t begin, count, step;
};

SlicePlan planSlice(int64_t length, std::optional<int64_t> begin, std::optional<int64_t> end,
                    int64_t step) {
  int64_t low = step < 0 ? -1 : 0, high = step < 0 ? length - 1 : length;
  auto clamp = [&](std::optional<int64_t> place, int64_t standard) {
    if (!place)
      return standard;
    int64_t at = *place < 0 ? std::max(*place, -length) + length : *place;
    return *place < 0 && *place < -length ? low : std::clamp(at, low, high);
  };
  int64_t first = clamp(begin, step < 0 ? high : low);
  int64_t last = clamp(end, step < 0 ? low : high);
  if (step > 0)
    return {first, first < last ? (last - first - 1) / step + 1 : 0, step};
  // -step overflows for the least integer; one step is then enough to leave any sequence.
  uint64_t stride = uint64_t(0) - uint64_t(step);
  return {first, first > last ? int64_t(uint64_t(first - last - 1) / stride) + 1 : 0, step};
}

} // namespace

Result<Value> Evaluator::evaluate(const Expression &expression, const ScopePtr &scope) {
  DepthGuard guard(depth_);
  Result<Value> value = [&]() -> Result<Value> {
    STRATA_RETURN_IF_ERROR(guard.check(options_.limits.depth));
    STRATA_RETURN_IF_ERROR(spend(1));
    return evaluateNode(expression, scope);
  }();
  if (!value.isOk() && !errorLine_)
    errorLine_ = expression.line;
  return value;
}

Result<Value> Evaluator::evaluateNode(const Expression &expression, const ScopePtr &scope) {
  return std::visit(
      Overloaded{
          [&](const Literal &node) -> Result<Value> { return node.value; },
          [&](const NameUse &node) -> Result<Value> { return lookUp(node.name, *scope); },
          [&](const ListDisplay &node) -> Result<Value> {
            std::vector<Value> items;
            for (const ExpressionPtr &item : node.items) {
              STRATA_ASSIGN_OR_RETURN(Value value, evaluate(*item, scope));
              items.push_back(std::move(value));
            }
            return makeList(std::move(items), node.tuple ? ListKind::Tuple : ListKind::List);
          },
          [&](const DictDisplay &node) -> Result<Value> {
            Dict dict;
            for (const auto &[keyNode, valueNode] : node.entries) {
              STRATA_ASSIGN_OR_RETURN(Value key, evaluate(*keyNode, scope));
              STRATA_ASSIGN_OR_RETURN(Value value, evaluate(*valueNode, scope));
              STRATA_RETURN_IF_ERROR(addToDict(dict, std::move(key), std::move(value), "dict"));
            }
            return makeDict(std::move(dict));
          },
          [&](const Attribute &node) -> Result<Value> {
            STRATA_ASSIGN_OR_RETURN(Value object, evaluate(*node.object, scope));
            return attributeOf(object, node.name);
          },
          [&](const Subscript &node) -> Result<Value> {
            STRATA_ASSIGN_OR_RETURN(Value object, evaluate(*node.object, scope));
            STRATA_ASSIGN_OR_RETURN(Value index, evaluate(*node.index, scope));
            return itemOf(object, index);
          },
          [&](const Slice &node) { return evaluateSlice(node, scope); },
          [&](const Call &node) { return evaluateCall(node, scope, {}); },
          [&](const FilterUse &node) { return evaluateFilter(node, scope, {}); },
          [&](const TestUse &node) -> Result<Value> {
            STRATA_ASSIGN_OR_RETURN(Value input, evaluate(*node.input, scope));
            STRATA_ASSIGN_OR_RETURN(CallArguments arguments,
                                    evaluateArguments(node.arguments, scope));
            STRATA_ASSIGN_OR_RETURN(bool holds, callTest(node.name, input, arguments));
            return Value(holds);
          },
          [&](const Unary &node) { return evaluateUnary(node, scope); },
          [&](const Binary &node) -> Result<Value> {
            STRATA_ASSIGN_OR_RETURN(Value left, evaluate(*node.left, scope));
            STRATA_ASSIGN_OR_RETURN(Value right, evaluate(*node.right, scope));
            return binary(node.op, left, right);
          },
          [&](const Logical &node) -> Result<Value> {
            STRATA_ASSIGN_OR_RETURN(Value left, evaluate(*node.left, scope));
            if (isTrue(left) != node.isAnd)
              return left;
            return evaluate(*node.right, scope);
          },
          [&](const Compare &node) { return evaluateCompare(node, scope); },
          [&](const Conditional &node) -> Result<Value> {
            STRATA_ASSIGN_OR_RETURN(Value test, evaluate(*node.test, scope));
            if (isTrue(test))
              return evaluate(*node.then, scope);
            if (node.otherwise)
              return evaluate(*node.otherwise, scope);
            return Value::undefined("the inline if has no else and its condition is false");
          },
          [&](const Concatenation &node) { return evaluateConcatenation(node, scope); },
      },
      expression.node);
}

Value Evaluator::lookUp(std::string_view name, const Scope &innermost) const {
  for (const Scope *scope = &innermost; scope; scope = scope->parent.get())
    if (auto variable = scope->variables.find(name); variable != scope->variables.end())
      return variable->second;
  static constexpr std::string_view builtins[] = {"range",           "dict",        "namespace",
                                                  "cycler",          "joiner",      "lipsum",
                                                  "raise_exception", "strftime_now"};
  if (std::find(std::begin(builtins), std::end(builtins), name) != std::end(builtins))
    return FunctionPtr(std::make_shared<const Function>(
        Function{Function::Kind::Builtin, std::string(name), {}, nullptr, nullptr}));
  return Value::undefined(fmt::format("'{}' is undefined", name));
}

Result<Value> Evaluator::evaluateConcatenation(const Concatenation &node, const ScopePtr &scope) {
  Text text;
  for (const ExpressionPtr &part : node.parts) {
    STRATA_ASSIGN_OR_RETURN(Value value, evaluate(*part, scope));
    STRATA_RETURN_IF_ERROR(appendString(value, text));
  }
  return makeText(std::move(text));
}

Result<Value> Evaluator::evaluateUnary(const Unary &node, const ScopePtr &scope) {
  STRATA_ASSIGN_OR_RETURN(Value value, evaluate(*node.operand, scope));
  if (node.op == UnaryOperator::Not)
    return Value(!isTrue(value));
  bool negate = node.op == UnaryOperator::Negate;
  if (value.is<double>())
    return Value(negate ? -value.as<double>() : value.as<double>());
  if (value.isUndefined())
    return makeError(StatusCode::InvalidData, "{}", *value.as<Undefined>().why);
  if (!value.isWhole())
    return makeError(StatusCode::InvalidData, "a value of type {} has no sign", value.typeName());
  int64_t result = value.whole();
  if (negate && __builtin_sub_overflow(int64_t(0), result, &result))
    return makeError(StatusCode::Unimplemented, "integers beyond 64 bits are not supported");
  return Value(result);
}

Result<Value> Evaluator::evaluateCompare(const Compare &node, const ScopePtr &scope) {
  STRATA_ASSIGN_OR_RETURN(Value left, evaluate(*node.first, scope));
  for (const auto &[comparison, operand] : node.rest) {
    STRATA_ASSIGN_OR_RETURN(Value right, evaluate(*operand, scope));
    Result<bool> holds = true;
    switch (comparison) {
    case Comparison::Equal:
    case Comparison::NotEqual:
      holds = areEqual(left, right);
      break;
    case Comparison::Less:
      holds = isLess(left, right, "<");
      break;
    case Comparison::Greater:
      holds = isLess(right, left, ">");
      break;
    case Comparison::LessEqual:
    case Comparison::GreaterEqual: {
      bool less = comparison == Comparison::LessEqual;
      holds = isLess(less ? left : right, less ? right : left, less ? "<=" : ">=");
      if (holds.isOk() && !*holds)
        holds = areEqual(left, right);
      break;
    }
    case Comparison::In:
    case Comparison::NotIn:
      holds = contains(right, left);
      break;
    }
    STRATA_ASSIGN_OR_RETURN(bool result, std::move(holds));
    if (comparison == Comparison::NotEqual || comparison == Comparison::NotIn)
      result = !result;
    if (!result)
      return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

Result<Value> Evaluator::evaluateSlice(const Slice &node, const ScopePtr &scope) {
  STRATA_ASSIGN_OR_RETURN(Value object, evaluate(*node.object, scope));
  std::optional<int64_t> bounds[3];
  const ExpressionPtr *parts[] = {&node.begin, &node.end, &node.step};
  for (size_t i = 0; i < 3; ++i) {
    if (!*parts[i])
      continue;
    STRATA_ASSIGN_OR_RETURN(Value bound, evaluate(**parts[i], scope));
    if (bound.isNone())
      continue;
    if (!bound.isWhole())
      return makeError(StatusCode::InvalidData, "a slice's bound is of type {}; it must be an int",
                       bound.typeName());
    bounds[i] = bound.whole();
  }
  int64_t step = bounds[2].value_or(1);
  if (step == 0)
    return makeError(StatusCode::InvalidData, "a slice's step is 0; it must not be");
  if (object.isUndefined())
    return makeError(StatusCode::InvalidData, "{}", *object.as<Undefined>().why);

  if (object.isList() && object.list().isSequence()) {
    const List &list = object.list();
    SlicePlan plan = planSlice(int64_t(list.items.size()), bounds[0], bounds[1], step);
    std::vector<Value> items;
    STRATA_RETURN_IF_ERROR(spend(uint64_t(plan.count)));
    items.reserve(size_t(plan.count));
    for (int64_t i = 0; i < plan.count; ++i)
      items.push_back(list.items[size_t(plan.begin + i * step)]);
    // A slice of a range is a range to Python; nothing but its repr would tell.
    return makeList(std::move(items), list.isTuple() ? ListKind::Tuple : ListKind::List);
  }
  if (!object.isText())
    return makeError(StatusCode::InvalidData, "a value of type {} cannot be sliced",
                     object.typeName());
  const Text &text = object.asText();
  STRATA_ASSIGN_OR_RETURN(int64_t length, lengthOf(object));
  SlicePlan plan = planSlice(length, bounds[0], bounds[1], step);
  bool ascii = size_t(length) == text.size();
  if (step != 1 && plan.count > 1)
    STRATA_RETURN_IF_ERROR(spend(uint64_t(plan.count)));
  std::vector<size_t> places; // Of characters; needed where they have several bytes.
  auto placeOf = [&](int64_t character) {
    return ascii ? size_t(character) : places[size_t(character)];
  };
  if (!ascii) {
    STRATA_RETURN_IF_ERROR(spend(uint64_t(length) / 16));
    places.reserve(size_t(length) + 1);
    for (size_t i = 0; i < text.size(); i += characterAt(text.bytes(), i).length)
      places.push_back(i);
    places.push_back(text.size());
  }
  Text part;
  if (step == 1) {
    part = text.slice(placeOf(plan.begin), placeOf(plan.begin + plan.count));
  } else {
    for (int64_t i = 0; i < plan.count; ++i) {
      int64_t character = plan.begin + i * step;
      part.append(text, placeOf(character), placeOf(character + 1));
    }
    part.markup = text.markup;
  }
  return makeText(std::move(part));
}

Result<CallArguments> Evaluator::evaluateArguments(const Arguments &arguments,
                                                   const ScopePtr &scope) {
  CallArguments out;
  for (const ExpressionPtr &argument : arguments.positional) {
    STRATA_ASSIGN_OR_RETURN(Value value, evaluate(*argument, scope));
    out.positional.push_back(std::move(value));
  }
  if (arguments.starred) {
    STRATA_ASSIGN_OR_RETURN(Value list, evaluate(*arguments.starred, scope));
    STRATA_ASSIGN_OR_RETURN(std::vector<Value> items, iterate(list));
    out.positional.insert(out.positional.end(), items.begin(), items.end());
  }
  for (const auto &[name, argument] : arguments.keywords) {
    STRATA_ASSIGN_OR_RETURN(Value value, evaluate(*argument, scope));
    out.keywords.emplace_back(name, std::move(value));
  }
  if (arguments.doubleStarred) {
    STRATA_ASSIGN_OR_RETURN(Value dict, evaluate(*arguments.doubleStarred, scope));
    if (!dict.isDict())
      return makeError(StatusCode::InvalidData, "** needs a dict; this is of type {}",
                       dict.typeName());
    STRATA_RETURN_IF_ERROR(spend(dict.dict().entries().size()));
    for (const auto &[key, value] : dict.dict().entries()) {
      if (!key.isText())
        return makeError(StatusCode::InvalidData, "names of arguments must be strings, not {}",
                         key.typeName());
      out.keywords.emplace_back(key.bytes(), value);
    }
  }
  return out;
}

Result<Value> Evaluator::evaluateCall(const Call &node, const ScopePtr &scope, Value caller) {
  STRATA_ASSIGN_OR_RETURN(Value callee, evaluate(*node.callee, scope));
  STRATA_ASSIGN_OR_RETURN(CallArguments arguments, evaluateArguments(node.arguments, scope));
  if (!caller.isUndefined())
    arguments.keywords.emplace_back("caller", std::move(caller));
  return call(callee, std::move(arguments));
}

Result<Value> Evaluator::evaluateFilter(const FilterUse &node, const ScopePtr &scope,
                                        const Value &start) {
  Value input = start;
  if (node.input) {
    // The start of a filter block's chain stands at its innermost input.
    bool chain = std::holds_alternative<FilterUse>(node.input->node);
    Result<Value> value =
        chain ? evaluateChain(*node.input, scope, start) : evaluate(*node.input, scope);
    STRATA_ASSIGN_OR_RETURN(input, std::move(value));
  }
  STRATA_ASSIGN_OR_RETURN(CallArguments arguments, evaluateArguments(node.arguments, scope));
  return callFilter(node.name, input, arguments);
}

Result<Value> Evaluator::evaluateChain(const Expression &filters, const ScopePtr &scope,
                                       const Value &start) {
  DepthGuard guard(depth_);
  STRATA_RETURN_IF_ERROR(guard.check(options_.limits.depth));
  STRATA_RETURN_IF_ERROR(spend(1));
  Result<Value> value = evaluateFilter(std::get<FilterUse>(filters.node), scope, start);
  if (!value.isOk() && !errorLine_)
    errorLine_ = filters.line;
  return value;
}

Result<Value> Evaluator::callFilter(std::string_view name, const Value &input,
                                    const CallArguments &arguments) {
  DepthGuard guard(depth_); // map('map', 'map', ...) goes as deep as it has arguments.
  STRATA_RETURN_IF_ERROR(guard.check(options_.limits.depth));
  FilterFunction filter = findFilter(name);
  if (!filter)
    return makeError(StatusCode::Unimplemented, "unknown filter '{}'", name);
  return filter(*this, input, arguments);
}

Result<bool> Evaluator::callTest(std::string_view name, const Value &input,
                                 const CallArguments &arguments) {
  TestFunction test = findTest(name);
  if (!test)
    return makeError(StatusCode::Unimplemented, "unknown test '{}'", name);
  return test(*this, input, arguments);
}

} // namespace strata::chat
