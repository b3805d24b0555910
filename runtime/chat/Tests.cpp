#include "runtime/chat/Tests.h"
#include "runtime/chat/NamedFunctions.h"

#include "runtime/chat/Arguments.h"
#include "runtime/chat/Filters.h"
#include "runtime/chat/Methods.h"

namespace strata::chat {
namespace {

Status noArguments(const CallArguments &arguments) {
  return BoundArguments::bind("a test of this kind", arguments, {}).status();
}

template <bool (*holds)(const Value &)>
Result<bool> kind(Evaluator &, const Value &input, const CallArguments &arguments) {
  STRATA_RETURN_IF_ERROR(noArguments(arguments));
  return holds(input);
}

bool isDefined(const Value &value) { return !value.isUndefined(); }
bool isUndefined(const Value &value) { return value.isUndefined(); }
bool isNone(const Value &value) { return value.isNone(); }
bool isBoolean(const Value &value) { return value.is<bool>(); }
bool isTrueItself(const Value &value) { return value.is<bool>() && value.as<bool>(); }
bool isFalseItself(const Value &value) { return value.is<bool>() && !value.as<bool>(); }
bool isInteger(const Value &value) { return value.is<int64_t>(); }
bool isFloat(const Value &value) { return value.is<double>(); }
bool isNumber(const Value &value) { return value.isNumber(); }
bool isString(const Value &value) { return value.isText(); }
bool isMapping(const Value &value) { return value.isDict(); }
bool isEscaped(const Value &value) { return value.isText() && value.asText().markup; }

bool isIterable(const Value &value) {
  return value.isUndefined() || value.isText() || value.isList() || value.isDict() ||
         value.is<LoopPtr>();
}

bool isSequence(const Value &value) {
  return value.isUndefined() || value.isText() || value.isDict() ||
         (value.isList() && value.list().isSequence());
}

bool isCallable(const Value &value) {
  return value.isUndefined() || value.is<FunctionPtr>() || value.is<LoopPtr>();
}

Result<int64_t> remainder(Evaluator &evaluator, const Value &input, const Value &divisor) {
  if (!input.isNumber() && !input.isUndefined())
    return makeError(StatusCode::InvalidData, "a {} cannot be divided", input.typeName());
  STRATA_ASSIGN_OR_RETURN(Value rest, evaluator.binary(BinaryOperator::Modulo, input, divisor));
  return rest.number() == 0 ? 0 : rest.number() == 1 ? 1 : 2;
}

template <int64_t wanted>
Result<bool> parity(Evaluator &evaluator, const Value &input, const CallArguments &arguments) {
  STRATA_RETURN_IF_ERROR(noArguments(arguments));
  STRATA_ASSIGN_OR_RETURN(int64_t rest, remainder(evaluator, input, Value(int64_t(2))));
  return rest == wanted;
}

Result<bool> divisibleBy(Evaluator &evaluator, const Value &input, const CallArguments &arguments) {
  STRATA_ASSIGN_OR_RETURN(BoundArguments bound,
                          BoundArguments::bind("test 'divisibleby'", arguments, {"num"}, 1));
  STRATA_ASSIGN_OR_RETURN(int64_t rest, remainder(evaluator, input, *bound[0]));
  return rest == 0;
}

template <bool negated>
Result<bool> equal(Evaluator &evaluator, const Value &input, const CallArguments &arguments) {
  STRATA_ASSIGN_OR_RETURN(BoundArguments bound,
                          BoundArguments::bind("test of equality", arguments, {"other"}, 1));
  STRATA_ASSIGN_OR_RETURN(bool same, evaluator.areEqual(input, *bound[0]));
  return same != negated;
}

/// a < b, or with the operands exchanged a > b; `orEqual` adds equality.
template <bool exchanged, bool orEqual>
Result<bool> ordered(Evaluator &evaluator, const Value &input, const CallArguments &arguments) {
  STRATA_ASSIGN_OR_RETURN(BoundArguments bound,
                          BoundArguments::bind("test of order", arguments, {"other"}, 1));
  const Value &other = *bound[0];
  STRATA_ASSIGN_OR_RETURN(bool less,
                          evaluator.isLess(exchanged ? other : input, exchanged ? input : other));
  if (less || !orEqual)
    return less;
  return evaluator.areEqual(input, other);
}

Result<bool> isIn(Evaluator &evaluator, const Value &input, const CallArguments &arguments) {
  STRATA_ASSIGN_OR_RETURN(BoundArguments bound,
                          BoundArguments::bind("test 'in'", arguments, {"seq"}, 1));
  return evaluator.contains(*bound[0], input);
}

Result<bool> sameAs(Evaluator &evaluator, const Value &input, const CallArguments &arguments) {
  STRATA_ASSIGN_OR_RETURN(BoundArguments bound,
                          BoundArguments::bind("test 'sameas'", arguments, {"other"}, 1));
  const Value &other = *bound[0];
  if (input.typeName() != other.typeName())
    return false;
  if (input.isList())
    return input.as<ListPtr>() == other.as<ListPtr>();
  if (input.isDict())
    return input.as<DictPtr>() == other.as<DictPtr>();
  return evaluator.areEqual(input, other);
}

template <bool upper>
Result<bool> inCase(Evaluator &evaluator, const Value &input, const CallArguments &arguments) {
  STRATA_RETURN_IF_ERROR(noArguments(arguments));
  STRATA_ASSIGN_OR_RETURN(Value text, evaluator.stringOf(input));
  STRATA_ASSIGN_OR_RETURN(
      Value holds, callMethod(evaluator, text, upper ? "isupper" : "islower", CallArguments()));
  return isTrue(holds);
}

template <bool filters>
Result<bool> isKnown(Evaluator &, const Value &input, const CallArguments &arguments) {
  STRATA_RETURN_IF_ERROR(noArguments(arguments));
  return input.isText() &&
         (filters ? findFilter(input.bytes()) != nullptr : findTest(input.bytes()) != nullptr);
}

} // namespace

TestFunction findTest(std::string_view name) {
  static constexpr NamedFunction<TestFunction> tests[] = {
      {"!=", equal<true>},
      {"<", ordered<false, false>},
      {"<=", ordered<false, true>},
      {"==", equal<false>},
      {">", ordered<true, false>},
      {">=", ordered<true, true>},
      {"boolean", kind<isBoolean>},
      {"callable", kind<isCallable>},
      {"defined", kind<isDefined>},
      {"divisibleby", divisibleBy},
      {"eq", equal<false>},
      {"equalto", equal<false>},
      {"escaped", kind<isEscaped>},
      {"even", parity<0>},
      {"false", kind<isFalseItself>},
      {"filter", isKnown<true>},
      {"float", kind<isFloat>},
      {"ge", ordered<true, true>},
      {"greaterthan", ordered<true, false>},
      {"gt", ordered<true, false>},
      {"in", isIn},
      {"integer", kind<isInteger>},
      {"iterable", kind<isIterable>},
      {"le", ordered<false, true>},
      {"lessthan", ordered<false, false>},
      {"lower", inCase<false>},
      {"lt", ordered<false, false>},
      {"mapping", kind<isMapping>},
      {"ne", equal<true>},
      {"none", kind<isNone>},
      {"number", kind<isNumber>},
      {"odd", parity<1>},
      {"sameas", sameAs},
      {"sequence", kind<isSequence>},
      {"string", kind<isString>},
      {"test", isKnown<false>},
      {"true", kind<isTrueItself>},
      {"undefined", kind<isUndefined>},
      {"upper", inCase<true>},
  };
  return findNamed(tests, name);
}

Status unknownTest(uint32_t line, std::string_view name) {
  return makeError(StatusCode::Unimplemented, "chat template, line {}: the test '{}' is not known",
                   line, name);
}

} // namespace strata::chat
