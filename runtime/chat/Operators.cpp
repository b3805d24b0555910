#include <cmath>

#include "runtime/chat/Evaluator.h"
#include "runtime/chat/Methods.h"
#include "runtime/chat/TextSearch.h"

namespace strata::chat {
namespace {

std::string_view symbolOf(BinaryOperator op) {
  static constexpr std::string_view symbols[] = {"+", "-", "*", "/", "//", "%", "**"};
  return symbols[size_t(op)];
}

Status overflow() {
  return makeError(StatusCode::Unimplemented, "integers beyond 64 bits are not supported");
}

Result<Value> power(const Value &left, const Value &right) {
  if (!left.isWhole() || !right.isWhole() || right.whole() < 0) {
    double result = std::pow(left.number(), right.number());
    if (left.number() == 0 && right.number() < 0)
      return makeError(StatusCode::InvalidData, "0 cannot be raised to a negative power");
    if (std::isnan(result) && !std::isnan(left.number()) && !std::isnan(right.number()))
      return makeError(StatusCode::Unimplemented, "complex numbers are not supported");
    return Value(result);
  }
  int64_t result = 1, base = left.whole();
  for (auto exponent = uint64_t(right.whole()); exponent; exponent >>= 1) {
    if ((exponent & 1) && __builtin_mul_overflow(result, base, &result))
      return overflow();
    if (exponent > 1 && __builtin_mul_overflow(base, base, &base)) {
      return overflow();
    }
  }
  return Value(result);
}

Result<Value> arithmetic(BinaryOperator op, const Value &left, const Value &right) {
  bool whole = left.isWhole() && right.isWhole();
  double a = left.number(), b = right.number();
  bool divides = op == BinaryOperator::Divide || op == BinaryOperator::FloorDivide ||
                 op == BinaryOperator::Modulo;
  if (divides && b == 0)
    return makeError(StatusCode::InvalidData, "division by zero");
  int64_t result = 0;
  switch (op) {
  case BinaryOperator::Add:
    if (!whole)
      return Value(a + b);
    if (__builtin_add_overflow(left.whole(), right.whole(), &result))
      return overflow();
    return Value(result);
  case BinaryOperator::Subtract:
    if (!whole)
      return Value(a - b);
    if (__builtin_sub_overflow(left.whole(), right.whole(), &result))
      return overflow();
    return Value(result);
  case BinaryOperator::Multiply:
    if (!whole)
      return Value(a * b);
    if (__builtin_mul_overflow(left.whole(), right.whole(), &result))
      return overflow();
    return Value(result);
  case BinaryOperator::Divide:
    return Value(a / b);
  case BinaryOperator::FloorDivide:
  case BinaryOperator::Modulo: {
    bool modulo = op == BinaryOperator::Modulo;
    if (!whole) {
      double rest = std::fmod(a, b);
      if (rest != 0 && (rest < 0) != (b < 0))
        rest += b;
      else if (rest == 0)
        rest = std::copysign(0.0, b);
      if (modulo)
        return Value(rest);
      double quotient = std::round((a - rest) / b);
      return Value(quotient == 0 ? std::copysign(0.0, a / b) : quotient);
    }
    int64_t x = left.whole(), y = right.whole();
    if (y == -1)
      return modulo ? Result<Value>(Value(int64_t(0)))
                    : arithmetic(BinaryOperator::Multiply, left, right);
    int64_t quotient = x / y, rest = x % y;
    if (rest != 0 && (rest < 0) != (y < 0)) {
      rest += y;
      --quotient;
    }
    return Value(modulo ? rest : quotient);
  }
  case BinaryOperator::Power:
    return power(left, right);
  }
  return overflow();
}

} // namespace

Result<Value> Evaluator::add(const Value &left, const Value &right) {
  if (left.isText() && right.isText()) {
    STRATA_RETURN_IF_ERROR(checkTextBytes(left.asText().size() + right.asText().size()));
    bool markup = left.asText().markup || right.asText().markup;
    Text sum;
    for (const Value *part : {&left, &right})
      sum.append(markup && !part->asText().markup ? escapeHtml(part->asText()) : part->asText());
    sum.markup = markup;
    return makeText(std::move(sum));
  }
  const List &a = left.list(), &b = right.list();
  STRATA_RETURN_IF_ERROR(spend(a.items.size() + b.items.size()));
  std::vector<Value> items = a.items;
  items.insert(items.end(), b.items.begin(), b.items.end());
  return makeList(std::move(items), a.isTuple() ? ListKind::Tuple : ListKind::List);
}

Result<Value> Evaluator::repeat(const Value &sequence, int64_t count) {
  auto times = uint64_t(std::max<int64_t>(count, 0));
  uint64_t total = 0;
  if (sequence.isText()) {
    const Text &text = sequence.asText();
    if (__builtin_mul_overflow(times, uint64_t(text.size()), &total))
      total = UINT64_MAX;
    STRATA_RETURN_IF_ERROR(checkTextBytes(total));
    Text repeated;
    for (uint64_t i = 0; total && i < times; ++i)
      repeated.append(text);
    repeated.markup = text.markup;
    STRATA_RETURN_IF_ERROR(spend(total ? times / 8 : 0));
    return makeText(std::move(repeated));
  }
  const List &list = sequence.list();
  if (__builtin_mul_overflow(times, uint64_t(list.items.size()), &total))
    total = UINT64_MAX;
  STRATA_RETURN_IF_ERROR(spend(total));
  if (total > bytesLeft_ / sizeof(Value))
    return makeError(StatusCode::ResourceExhausted,
                     "the template builds more than {} bytes of text and lists", maxBytes_);
  std::vector<Value> items;
  items.reserve(total);
  for (uint64_t i = 0; total && i < times; ++i)
    items.insert(items.end(), list.items.begin(), list.items.end());
  return makeList(std::move(items), list.isTuple() ? ListKind::Tuple : ListKind::List);
}

Result<Value> Evaluator::binary(BinaryOperator op, const Value &left, const Value &right) {
  for (const Value *operand : {&left, &right})
    if (operand->isUndefined() && !(op == BinaryOperator::Modulo && left.isText()))
      return makeError(StatusCode::InvalidData, "{}", *operand->as<Undefined>().why);
  if (left.isNumber() && right.isNumber())
    return arithmetic(op, left, right);
  auto repeatable = [](const Value &value) {
    return value.isText() ||
           (value.isList() && (value.list().kind == ListKind::List || value.list().isTuple()));
  };
  if (op == BinaryOperator::Add && repeatable(left) && repeatable(right) &&
      left.isText() == right.isText() &&
      (left.isText() || left.list().isTuple() == right.list().isTuple()))
    return add(left, right);
  if (op == BinaryOperator::Multiply && repeatable(left) && right.isWhole())
    return repeat(left, right.whole());
  if (op == BinaryOperator::Multiply && left.isWhole() && repeatable(right))
    return repeat(right, left.whole());
  if (op == BinaryOperator::Modulo && left.isText())
    return formatPercent(*this, left, right);
  return makeError(StatusCode::InvalidData, "the operator {} does not take a {} and a {}",
                   symbolOf(op), left.typeName(), right.typeName());
}

Result<bool> Evaluator::areEqual(const Value &left, const Value &right) {
  STRATA_RETURN_IF_ERROR(spend(std::min(weightOf(left), weightOf(right))));
  return equals(left, right);
}

Result<bool> Evaluator::isLess(const Value &left, const Value &right, std::string_view symbol) {
  STRATA_RETURN_IF_ERROR(spend(std::min(weightOf(left), weightOf(right))));
  for (const Value *operand : {&left, &right})
    if (operand->isUndefined())
      return makeError(StatusCode::InvalidData, "{}", *operand->as<Undefined>().why);
  if (left.isNumber() && right.isNumber())
    return left.isWhole() && right.isWhole() ? left.whole() < right.whole()
                                             : left.number() < right.number();
  if (left.isText() && right.isText())
    return left.bytes() < right.bytes(); // UTF-8 sorts as its characters do.
  if (left.isList() && right.isList() && left.list().kind != ListKind::Range &&
      left.list().isSequence() && right.list().isSequence() &&
      left.list().isTuple() == right.list().isTuple()) {
    const auto &a = left.list().items, &b = right.list().items;
    for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
      STRATA_ASSIGN_OR_RETURN(bool same, areEqual(a[i], b[i]));
      if (!same)
        return isLess(a[i], b[i], symbol);
    }
    return a.size() < b.size();
  }
  return makeError(StatusCode::InvalidData, "'{}' does not compare a {} with a {}", symbol,
                   left.typeName(), right.typeName());
}

Result<bool> Evaluator::contains(const Value &container, const Value &value) {
  if (container.isText()) {
    if (!value.isText())
      return makeError(StatusCode::InvalidData, "'in' a string needs a string, not a {}",
                       value.isUndefined() ? *value.as<Undefined>().why
                                           : std::string(value.typeName()));
    STRATA_RETURN_IF_ERROR(spend(weightOf(container) + weightOf(value)));
    return findFirst(container.bytes(), value.bytes()) != std::string::npos;
  }
  if (container.isDict()) {
    STRATA_RETURN_IF_ERROR(spendOn(value)); // Before anything walks it.
    if (!isHashable(value))
      return makeError(StatusCode::InvalidData, "a {} cannot be a key", value.typeName());
    return container.dict().find(value) != nullptr;
  }
  STRATA_ASSIGN_OR_RETURN(std::vector<Value> items, iterate(container));
  for (const Value &item : items) {
    STRATA_ASSIGN_OR_RETURN(bool same, areEqual(item, value));
    if (same)
      return true;
  }
  return false;
}

} // namespace strata::chat
