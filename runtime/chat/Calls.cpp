#include <cmath>

#include "runtime/chat/Arguments.h"
#include "runtime/chat/DepthGuard.h"
#include "runtime/chat/Methods.h"

namespace strata::chat {
namespace {

// As the sandbox of Jinja2 has it.
constexpr uint64_t maxRange = 100'000;

Result<Value> callRange(Evaluator &evaluator, const CallArguments &arguments) {
  STRATA_ASSIGN_OR_RETURN(BoundArguments bound,
                          BoundArguments::bind("range", arguments, {"start", "stop", "step"}, 1));
  STRATA_ASSIGN_OR_RETURN(int64_t start, bound.wholeOr(0, 0));
  STRATA_ASSIGN_OR_RETURN(int64_t stop, bound.wholeOr(1, 0));
  STRATA_ASSIGN_OR_RETURN(int64_t step, bound.wholeOr(2, 1));
  if (!bound[1])
    stop = std::exchange(start, 0);
  if (step == 0)
    return makeError(StatusCode::InvalidData, "range: its step is 0; it must not be");
  bool any = step > 0 ? start < stop : start > stop;
  uint64_t distance =
      step > 0 ? uint64_t(stop) - uint64_t(start) : uint64_t(start) - uint64_t(stop);
  uint64_t stride = step > 0 ? uint64_t(step) : uint64_t(0) - uint64_t(step);
  uint64_t count = any ? (distance - 1) / stride + 1 : 0;
  if (count > maxRange)
    return makeError(StatusCode::ResourceExhausted, "range: it has {} items; at most {}", count,
                     maxRange);
  STRATA_RETURN_IF_ERROR(evaluator.spend(count));
  std::vector<Value> items;
  items.reserve(count);
  for (uint64_t i = 0; i < count; ++i)
    items.push_back(int64_t(uint64_t(start) + i * uint64_t(step)));
  std::string name = step == 1 ? fmt::format("range({}, {})", start, stop)
                               : fmt::format("range({}, {}, {})", start, stop, step);
  return evaluator.makeList(std::move(items), ListKind::Range, std::move(name));
}

/// dict(mapping or pairs, name=value, ...), also for namespace().
Result<Dict> gatherDict(Evaluator &evaluator, std::string_view what, CallArguments arguments) {
  if (arguments.positional.size() > 1)
    return makeError(StatusCode::InvalidData, "{} takes at most 1 argument by place; {} are given",
                     what, arguments.positional.size());
  Dict dict;
  if (!arguments.positional.empty() && arguments.positional[0].isDict()) {
    STRATA_RETURN_IF_ERROR(evaluator.spendOn(arguments.positional[0]));
    dict = arguments.positional[0].dict();
  } else if (!arguments.positional.empty()) {
    STRATA_ASSIGN_OR_RETURN(std::vector<Value> pairs, evaluator.iterate(arguments.positional[0]));
    for (const Value &pair : pairs) {
      STRATA_ASSIGN_OR_RETURN(std::vector<Value> parts, evaluator.iterate(pair));
      if (parts.size() != 2)
        return makeError(StatusCode::InvalidData, "{}: an element of {} items where a pair must be",
                         what, parts.size());
      STRATA_RETURN_IF_ERROR(evaluator.addToDict(dict, parts[0], parts[1], what));
    }
  }
  for (auto &[name, value] : arguments.keywords) {
    STRATA_ASSIGN_OR_RETURN(Value key, evaluator.makeText(name, Origin::Template));
    STRATA_RETURN_IF_ERROR(evaluator.addToDict(dict, std::move(key), std::move(value), what));
  }
  return dict;
}

Result<Value> callNamespace(Evaluator &evaluator, CallArguments arguments) {
  STRATA_ASSIGN_OR_RETURN(Dict dict, gatherDict(evaluator, "namespace", std::move(arguments)));
  if (dict.holdsReference)
    return makeError(StatusCode::Unimplemented,
                     "namespaces, macros and loops inside a namespace are not supported");
  auto made = std::make_shared<Namespace>();
  for (const auto &[key, value] : dict.entries()) {
    STRATA_ASSIGN_OR_RETURN(Value name, evaluator.stringOf(key));
    made->attributes.insert_or_assign(name.bytes(), value);
  }
  return Value(std::move(made));
}

Result<Value> callRaiseException(Evaluator &evaluator, const CallArguments &arguments) {
  STRATA_ASSIGN_OR_RETURN(BoundArguments bound,
                          BoundArguments::bind("raise_exception", arguments, {"message"}, 1));
  STRATA_ASSIGN_OR_RETURN(Value message, evaluator.stringOf(*bound[0]));
  return makeError(StatusCode::InvalidArgument, "the template refuses the messages: {}",
                   message.bytes().substr(0, 4096));
}

Result<Value> callStrftimeNow(Evaluator &evaluator, const CallArguments &arguments) {
  STRATA_ASSIGN_OR_RETURN(BoundArguments bound,
                          BoundArguments::bind("strftime_now", arguments, {"format"}, 1));
  if (!bound[0]->isText())
    return makeError(StatusCode::InvalidData, "strftime_now: its format is of type {}, not str",
                     bound[0]->typeName());
  const std::string &format = bound[0]->bytes();
  if (format.size() > 256 || format.find('\0') != std::string::npos)
    return makeError(StatusCode::InvalidData,
                     "strftime_now: a format of {} bytes; at most 256, none of them zero",
                     format.size());
  for (size_t i = 0; (i = format.find('%', i)) != std::string::npos; i += 2) {
    i += i + 1 < format.size() && format[i + 1] == '-';
    if (i + 1 >= format.size() ||
        std::string_view("aAwdbBmyYHIMSpjUWcxXGuVDFTRehnt%").find(format[i + 1]) ==
            std::string_view::npos)
      return makeError(StatusCode::Unimplemented, "strftime_now: '{}' is not supported in a format",
                       format.substr(i, 2));
  }
  std::tm now{};
  if (evaluator.options().clock) {
    now = evaluator.options().clock();
  } else {
    std::time_t seconds = std::time(nullptr);
    localtime_r(&seconds, &now);
  }
  std::vector<char> text(format.size() * 64 + 64);
  size_t length = std::strftime(text.data(), text.size(), format.c_str(), &now);
  return evaluator.makeText(std::string(text.data(), length), Origin::Template);
}

Result<Value> callBuiltin(Evaluator &evaluator, std::string_view name, CallArguments arguments) {
  if (name == "range")
    return callRange(evaluator, arguments);
  if (name == "namespace")
    return callNamespace(evaluator, std::move(arguments));
  if (name == "raise_exception")
    return callRaiseException(evaluator, arguments);
  if (name == "strftime_now")
    return callStrftimeNow(evaluator, arguments);
  if (name == "dict") {
    STRATA_ASSIGN_OR_RETURN(Dict dict, gatherDict(evaluator, "dict", std::move(arguments)));
    return evaluator.makeDict(std::move(dict));
  }
  return makeError(StatusCode::Unimplemented, "the function '{}' is not supported", name);
}

} // namespace

Result<Value> Evaluator::call(const Value &callee, CallArguments arguments) {
  DepthGuard guard(depth_);
  STRATA_RETURN_IF_ERROR(guard.check(options_.limits.depth));
  if (callee.isUndefined())
    return makeError(StatusCode::InvalidData, "{}; it cannot be called",
                     *callee.as<Undefined>().why);
  if (callee.is<LoopPtr>())
    return callLoop(*callee.as<LoopPtr>(), arguments);
  if (!callee.is<FunctionPtr>())
    return makeError(StatusCode::InvalidData, "a value of type {} cannot be called",
                     callee.typeName());
  const Function &function = *callee.as<FunctionPtr>();
  if (function.kind == Function::Kind::Macro)
    return callMacro(function, std::move(arguments));
  if (function.kind == Function::Kind::Builtin)
    return callBuiltin(*this, function.name, std::move(arguments));
  if (function.self.is<LoopPtr>())
    return callLoopMethod(*function.self.as<LoopPtr>(), function.name, arguments);
  return callMethod(*this, function.self, function.name, arguments);
}

Result<Value> Evaluator::callMacro(const Function &function, CallArguments arguments) {
  const MacroDefinition &macro = *function.macro;
  STRATA_ASSIGN_OR_RETURN(ScopePtr scope, makeScope(function.closure, macro.body));
  // False, with `value` as it was, where there is no such argument.
  auto takeKeyword = [&](std::string_view name, Value &value) {
    for (auto it = arguments.keywords.begin(); it != arguments.keywords.end(); ++it)
      if (it->first == name) {
        value = std::move(it->second);
        arguments.keywords.erase(it);
        return true;
      }
    return false;
  };
  // Every parameter hides the outer name while the defaults are worked out.
  std::vector<const Parameter *> absent;
  for (size_t i = 0; i < macro.parameters.size(); ++i) {
    const Parameter &parameter = macro.parameters[i];
    Value value = Value::undefined(fmt::format("parameter '{}' was not provided", parameter.name));
    if (i < arguments.positional.size())
      value = arguments.positional[i];
    else if (!takeKeyword(parameter.name, value))
      absent.push_back(&parameter);
    scope->variables[parameter.name] = std::move(value);
  }
  for (const Parameter *parameter : absent)
    if (parameter->standard) {
      STRATA_ASSIGN_OR_RETURN(Value value, evaluate(*parameter->standard, scope));
      scope->variables[parameter->name] = std::move(value);
    }
  if (macro.usesCaller) {
    Value caller = Value::undefined("No caller defined");
    takeKeyword("caller", caller);
    scope->variables["caller"] = std::move(caller);
  }
  if (macro.usesKwargs) {
    CallArguments rest;
    rest.keywords = std::exchange(arguments.keywords, {});
    STRATA_ASSIGN_OR_RETURN(Dict dict, gatherDict(*this, macro.name, std::move(rest)));
    STRATA_ASSIGN_OR_RETURN(scope->variables["kwargs"], makeDict(std::move(dict)));
  } else if (!arguments.keywords.empty()) {
    return makeError(StatusCode::InvalidData, "macro '{}' takes no argument '{}'", macro.name,
                     arguments.keywords[0].first);
  }
  size_t count = std::min(arguments.positional.size(), macro.parameters.size());
  if (macro.usesVarargs) {
    std::vector<Value> rest(arguments.positional.begin() + long(count), arguments.positional.end());
    STRATA_ASSIGN_OR_RETURN(scope->variables["varargs"],
                            makeList(std::move(rest), ListKind::Tuple));
  } else if (arguments.positional.size() > count) {
    return makeError(StatusCode::InvalidData, "macro '{}' takes at most {} arguments; {} are given",
                     macro.name, macro.parameters.size(), arguments.positional.size());
  }
  Text text;
  STRATA_ASSIGN_OR_RETURN(Flow flow, execute(macro.body.statements, scope, text));
  (void)flow; // The parser lets no break out of a macro.
  return makeText(std::move(text));
}

Result<Value> Evaluator::callLoop(Loop &loop, const CallArguments &arguments) {
  if (!loop.statement->recursive)
    return makeError(StatusCode::InvalidData, "this loop is called but is not marked 'recursive'");
  STRATA_ASSIGN_OR_RETURN(BoundArguments bound,
                          BoundArguments::bind("loop", arguments, {"iterable"}, 1));
  Text text;
  STRATA_ASSIGN_OR_RETURN(Flow flow,
                          runLoop(*loop.statement, *bound[0], loop.outer, loop.depth + 1, text));
  (void)flow;
  return makeText(std::move(text));
}

Result<Value> Evaluator::callLoopMethod(Loop &loop, std::string_view name,
                                        const CallArguments &arguments) {
  if (!arguments.keywords.empty())
    return makeError(StatusCode::InvalidData, "loop.{} takes no argument '{}'", name,
                     arguments.keywords[0].first);
  const std::vector<Value> &values = arguments.positional;
  if (name == "cycle") {
    if (values.empty())
      return makeError(StatusCode::InvalidData, "loop.cycle needs at least one argument");
    return values[loop.index % values.size()];
  }
  bool same = loop.changed && loop.changed->size() == values.size();
  for (size_t i = 0; same && i < values.size(); ++i) {
    STRATA_ASSIGN_OR_RETURN(same, areEqual((*loop.changed)[i], values[i]));
  }
  // What refers back would keep the loop alive for ever.
  for (const Value &value : values)
    if (holdsReference(value))
      return makeError(StatusCode::Unimplemented, "loop.changed does not compare a {}",
                       value.typeName());
  loop.changed = values;
  return Value(!same);
}

} // namespace strata::chat
