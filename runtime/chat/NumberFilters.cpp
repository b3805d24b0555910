#include <charconv>
#include <cmath>

#include "runtime/chat/Filters.h"
#include "runtime/chat/NamedFunctions.h"
#include "runtime/chat/Unicode.h"

namespace strata::chat {
namespace {

Status useOfUndefined(const Value &value) {
  return makeError(StatusCode::InvalidData, "{}", *value.as<Undefined>().why);
}

/// Without the white space around it and the underscores between digits; nothing where an
/// underscore stands elsewhere.
std::optional<std::string> cleanDigits(std::string_view text) {
  Trimmed kept = trimSpaces(text, true, true);
  text = text.substr(kept.begin, kept.end - kept.begin);
  std::string digits;
  auto isDigit = [](char c) {
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
  };
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_')
      digits += text[i];
    else if (i == 0 || i + 1 == text.size() || !isDigit(text[i - 1]) || !isDigit(text[i + 1]))
      return std::nullopt;
  }
  return digits;
}

std::optional<double> parseFloat(std::string_view text) {
  std::optional<std::string> digits = cleanDigits(text);
  if (!digits)
    return std::nullopt;
  std::string_view rest = *digits;
  bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+'))
    rest.remove_prefix(1);
  if (rest.starts_with('-') || rest.find('(') != std::string_view::npos)
    return std::nullopt;
  double number = 0;
  auto parsed = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (parsed.ptr != rest.data() + rest.size() || parsed.ec == std::errc::invalid_argument)
    return std::nullopt;
  if (parsed.ec == std::errc::result_out_of_range)
    number = rest.find("e-") != std::string_view::npos || rest.find("E-") != std::string_view::npos
                 ? 0
                 : HUGE_VAL;
  return negative ? -number : number;
}

std::optional<int64_t> parseWhole(std::string_view text, int64_t base, bool &overflows) {
  std::optional<std::string> digits = cleanDigits(text);
  if (!digits)
    return std::nullopt;
  std::string_view rest = *digits;
  std::string sign = rest.starts_with('-') ? "-" : "";
  if (rest.starts_with('-') || rest.starts_with('+'))
    rest.remove_prefix(1);
  char prefix = rest.size() > 2 && rest[0] == '0' ? char(rest[1] | 32) : 0;
  int64_t prefixBase = prefix == 'x' ? 16 : prefix == 'o' ? 8 : prefix == 'b' ? 2 : 0;
  if (prefixBase && (base == prefixBase || base == 0)) {
    rest.remove_prefix(2);
    base = prefixBase;
  }
  if (rest.empty() || rest[0] == '-')
    return std::nullopt;
  std::string number = sign + std::string(rest);
  int64_t value = 0;
  auto parsed =
      std::from_chars(number.data(), number.data() + number.size(), value, base ? int(base) : 10);
  overflows = parsed.ec == std::errc::result_out_of_range;
  if (parsed.ec != std::errc() || parsed.ptr != number.data() + number.size())
    return std::nullopt;
  return value;
}

Result<Value> truncate(double number) {
  if (!(std::fabs(number) < 9.2e18))
    return makeError(StatusCode::Unimplemented, "integers beyond 64 bits are not supported");
  return Value(int64_t(number));
}

Result<Value> toInt(Evaluator &evaluator, const Value &input, const CallArguments &arguments) {
  STRATA_ASSIGN_OR_RETURN(BoundArguments bound,
                          BoundArguments::bind("filter 'int'", arguments, {"default", "base"}));
  STRATA_ASSIGN_OR_RETURN(int64_t base, bound.wholeOr(1, 10));
  if (input.isUndefined())
    return useOfUndefined(input);
  if (input.isWhole())
    return Value(input.whole());
  if (input.is<double>())
    return truncate(input.as<double>());
  if (base != 0 && (base < 2 || base > 36))
    return makeError(StatusCode::InvalidData, "filter 'int': a base of {}; it must be 2 to 36",
                     base);
  if (input.isText()) {
    STRATA_RETURN_IF_ERROR(evaluator.spendOn(input));
    bool overflows = false;
    if (std::optional<int64_t> number = parseWhole(input.bytes(), base, overflows))
      return Value(*number);
    if (overflows)
      return makeError(StatusCode::Unimplemented, "integers beyond 64 bits are not supported");
    if (std::optional<double> number = parseFloat(input.bytes()); number && !std::isnan(*number))
      return truncate(*number);
  }
  return bound.valueOr(0, Value(int64_t(0)));
}

Result<Value> toFloat(Evaluator &evaluator, const Value &input, const CallArguments &arguments) {
  STRATA_ASSIGN_OR_RETURN(BoundArguments bound,
                          BoundArguments::bind("filter 'float'", arguments, {"default"}));
  if (input.isUndefined())
    return useOfUndefined(input);
  if (input.isNumber())
    return Value(input.number());
  if (input.isText()) {
    STRATA_RETURN_IF_ERROR(evaluator.spendOn(input));
    if (std::optional<double> number = parseFloat(input.bytes()))
      return Value(*number);
  }
  return bound.valueOr(0, Value(0.0));
}

Result<Value> absolute(Evaluator &, const Value &input, const CallArguments &arguments) {
  STRATA_RETURN_IF_ERROR(BoundArguments::bind("filter 'abs'", arguments, {}).status());
  if (input.isUndefined())
    return useOfUndefined(input);
  if (input.is<double>())
    return Value(std::fabs(input.as<double>()));
  if (!input.isWhole())
    return makeError(StatusCode::InvalidData, "filter 'abs' needs a number, not a {}",
                     input.typeName());
  if (input.whole() == INT64_MIN)
    return makeError(StatusCode::Unimplemented, "integers beyond 64 bits are not supported");
  return Value(std::abs(input.whole()));
}

Result<Value> round(Evaluator &, const Value &input, const CallArguments &arguments) {
  STRATA_ASSIGN_OR_RETURN(BoundArguments bound, BoundArguments::bind("filter 'round'", arguments,
                                                                     {"precision", "method"}));
  STRATA_ASSIGN_OR_RETURN(int64_t precision, bound.wholeOr(0, 0));
  std::string method = bound[1] && bound[1]->isText() ? bound[1]->bytes() : "common";
  if (method != "common" && method != "ceil" && method != "floor")
    return makeError(StatusCode::InvalidData,
                     "filter 'round': the method must be common, ceil or floor");
  if (input.isUndefined())
    return useOfUndefined(input);
  if (!input.isNumber())
    return makeError(StatusCode::InvalidData, "filter 'round' needs a number, not a {}",
                     input.typeName());
  if (precision < 0 || precision > 300)
    return makeError(StatusCode::Unimplemented, "filter 'round': a precision of {}; 0 to 300 work",
                     precision);
  if (method != "common") {
    double scale = std::pow(10.0, double(precision));
    double scaled = input.number() * scale;
    return Value((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
  }
  if (input.isWhole())
    return Value(input.whole());
  // Printing is exact and rounds halves to even, as Python's round does.
  char digits[700];
  auto printed = std::to_chars(digits, digits + sizeof digits, input.as<double>(),
                               std::chars_format::fixed, int(precision));
  double rounded = 0;
  if (std::isfinite(input.as<double>()))
    std::from_chars(digits, printed.ptr, rounded);
  else
    rounded = input.as<double>();
  return Value(rounded);
}

} // namespace

FilterFunction findNumberFilter(std::string_view name) {
  static constexpr NamedFunction<FilterFunction> filters[] = {
      {"abs", absolute}, {"float", toFloat}, {"int", toInt}, {"round", round}};
  return findNamed(filters, name);
}

} // namespace strata::chat
