// `"%s: %d" % (a, b)` and "{}: {}".format(a, b).
#include <charconv>
#include <cmath>

#include "runtime/chat/Methods.h"
#include "runtime/chat/Unicode.h"
#include "runtime/chat/ValueText.h"

namespace strata::chat {
namespace {

constexpr int64_t maxWidth = 1000;

struct Directive {
  std::string key;
  bool hasKey = false;
  bool minus = false, zero = false, plus = false, space = false;
  int64_t width = 0, precision = -1;
  char kind = 0;
};

/// Reads what follows a `%`; `at` moves behind it.
Result<Directive> readDirective(std::string_view text, size_t &at) {
  Directive directive;
  if (at < text.size() && text[at] == '(') {
    size_t close = text.find(')', at);
    if (close == std::string_view::npos)
      return makeError(StatusCode::InvalidData, "%: the key that begins with ( is not closed");
    directive.key = text.substr(at + 1, close - at - 1);
    directive.hasKey = true;
    at = close + 1;
  }
  for (; at < text.size() && std::string_view("-0+ #").find(text[at]) != std::string_view::npos;
       ++at) {
    if (text[at] == '#')
      return makeError(StatusCode::Unimplemented, "%: the flag # is not supported");
    (text[at] == '-'   ? directive.minus
     : text[at] == '0' ? directive.zero
     : text[at] == '+' ? directive.plus
                       : directive.space) = true;
  }
  auto number = [&](int64_t &value) -> Status {
    value = 0;
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
      value = value * 10 + (text[at] - '0');
      if (value > maxWidth)
        return makeError(StatusCode::InvalidData, "%: a width beyond {}", maxWidth);
    }
    return Status::ok();
  };
  STRATA_RETURN_IF_ERROR(number(directive.width));
  if (at < text.size() && text[at] == '.') {
    ++at;
    STRATA_RETURN_IF_ERROR(number(directive.precision));
  }
  if (at >= text.size() ||
      std::string_view("srdiufFeEgGxXoc%").find(text[at]) == std::string_view::npos)
    return makeError(StatusCode::InvalidData, "%: '{}' is no format",
                     at < text.size() ? std::string(1, text[at]) : std::string("end of text"));
  directive.kind = text[at++];
  return directive;
}

Result<std::string> formatNumber(const Directive &directive, const Value &value) {
  if (!value.isNumber())
    return makeError(StatusCode::InvalidData, "%{} needs a number, not a {}", directive.kind,
                     value.typeName());
  bool whole = std::string_view("diuxXoc").find(directive.kind) != std::string_view::npos;
  std::string digits;
  bool negative = false;
  if (whole) {
    if (value.is<double>() && !(std::fabs(value.as<double>()) < 9e18))
      return makeError(StatusCode::InvalidData, "%{}: {} is no integer of 64 bits", directive.kind,
                       formatFloat(value.as<double>()));
    if (value.is<double>() &&
        std::string_view("xXoc").find(directive.kind) != std::string_view::npos)
      return makeError(StatusCode::InvalidData, "%{} needs an integer, not a float",
                       directive.kind);
    int64_t number = value.is<double>() ? int64_t(value.as<double>()) : value.whole();
    negative = number < 0;
    uint64_t magnitude = negative ? uint64_t(0) - uint64_t(number) : uint64_t(number);
    digits = directive.kind == 'x'   ? fmt::format("{:x}", magnitude)
             : directive.kind == 'X' ? fmt::format("{:X}", magnitude)
             : directive.kind == 'o' ? fmt::format("{:o}", magnitude)
                                     : std::to_string(magnitude);
    if (int64_t(digits.size()) < directive.precision)
      digits.insert(0, size_t(directive.precision) - digits.size(), '0');
  } else {
    double number = value.number();
    negative = std::signbit(number);
    int precision = directive.precision < 0 ? 6 : int(directive.precision);
    std::string format = std::string("%.*") + directive.kind;
    std::vector<char> buffer(size_t(precision) + 400);
    int length =
        std::snprintf(buffer.data(), buffer.size(), format.c_str(), precision, std::fabs(number));
    digits.assign(buffer.data(), size_t(length));
  }
  std::string sign = negative ? "-" : directive.plus ? "+" : directive.space ? " " : "";
  if (directive.zero && !directive.minus) {
    int64_t missing = directive.width - int64_t(sign.size() + digits.size());
    if (missing > 0)
      digits.insert(0, size_t(missing), '0');
  }
  return sign + digits;
}

Status appendDirective(Evaluator &evaluator, const Directive &directive, const Value &value,
                       Text &out) {
  Text text;
  if (directive.kind == 's') {
    STRATA_RETURN_IF_ERROR(evaluator.appendString(value, text));
  } else if (directive.kind == 'r') {
    STRATA_RETURN_IF_ERROR(evaluator.spendOn(value));
    STRATA_ASSIGN_OR_RETURN(std::string repr, writeRepr(value, 1 << 20));
    text.append(repr, Origin::Input);
  } else if (directive.kind == 'c') {
    return makeError(StatusCode::Unimplemented, "%c is not supported");
  } else {
    STRATA_ASSIGN_OR_RETURN(std::string digits, formatNumber(directive, value));
    text.append(digits, Origin::Input);
  }
  auto length = int64_t(countCharacters(text.bytes()));
  bool isText = directive.kind == 's' || directive.kind == 'r';
  if (isText && directive.precision >= 0 && length > directive.precision) {
    size_t end = 0;
    for (length = 0; length < directive.precision; ++length)
      end += characterAt(text.bytes(), end).length;
    text = text.slice(0, end);
  }
  std::string padding(size_t(std::max<int64_t>(0, directive.width - length)), ' ');
  if (!directive.minus)
    out.append(padding, Origin::Input);
  out.append(text);
  if (directive.minus)
    out.append(padding, Origin::Input);
  return evaluator.checkTextBytes(out.size());
}

} // namespace

Result<Value> formatPercent(Evaluator &evaluator, const Value &format, const Value &values) {
  const Text &text = format.asText();
  if (text.markup)
    return makeError(StatusCode::Unimplemented, "% on text that is marked safe is not supported");
  bool tuple = values.isList() && values.list().isTuple();
  std::vector<Value> queue = tuple ? values.list().items : std::vector<Value>{values};
  size_t taken = 0;
  bool usedKeys = false;
  Text out;
  const std::string &bytes = text.bytes();
  for (size_t at = 0; at < bytes.size();) {
    size_t percent = std::min(bytes.find('%', at), bytes.size());
    out.append(text, at, percent);
    at = percent + 1;
    if (percent == bytes.size())
      break;
    STRATA_RETURN_IF_ERROR(evaluator.spend(1));
    STRATA_ASSIGN_OR_RETURN(Directive directive, readDirective(bytes, at));
    if (directive.kind == '%') {
      out.append("%", text.originAt(percent));
      continue;
    }
    if (directive.hasKey) {
      const Value *value =
          values.isDict() ? values.dict().find(std::string_view(directive.key)) : nullptr;
      if (!value)
        return makeError(StatusCode::InvalidData, "%: there is no value for the key '{}'",
                         directive.key);
      usedKeys = true;
      STRATA_RETURN_IF_ERROR(appendDirective(evaluator, directive, *value, out));
      continue;
    }
    if (taken == queue.size())
      return makeError(StatusCode::InvalidData, "%: the format needs more than {} values",
                       queue.size());
    STRATA_RETURN_IF_ERROR(appendDirective(evaluator, directive, queue[taken++], out));
  }
  // What takes subscripts may be there for keys that the format does not name.
  bool subscripted = values.isDict() || values.isUndefined() || (values.isList() && !tuple);
  if (taken < queue.size() && !usedKeys && !subscripted)
    return makeError(StatusCode::InvalidData, "%: {} values are given, the format takes {}",
                     queue.size(), taken);
  return evaluator.makeText(std::move(out));
}

Result<Value> formatBraces(Evaluator &evaluator, const Value &format,
                           const CallArguments &arguments) {
  const Text &text = format.asText();
  const std::string &bytes = text.bytes();
  Text out;
  size_t automatic = 0;
  for (size_t at = 0; at < bytes.size();) {
    size_t brace = std::min(bytes.find_first_of("{}", at), bytes.size());
    out.append(text, at, brace);
    at = brace + 1;
    if (brace == bytes.size())
      break;
    STRATA_RETURN_IF_ERROR(evaluator.spend(1));
    if (at < bytes.size() && bytes[at] == bytes[brace]) {
      out.append(text, at, at + 1);
      ++at;
      continue;
    }
    size_t close = bytes.find('}', at);
    if (bytes[brace] == '}' || close == std::string::npos)
      return makeError(StatusCode::InvalidData, "str.format: a single '{}' in the format",
                       bytes[brace]);
    std::string field = bytes.substr(at, close - at);
    at = close + 1;
    bool repr = field.ends_with("!r");
    if (repr || field.ends_with("!s"))
      field.resize(field.size() - 2);
    if (field.find_first_of(":!.[{") != std::string::npos)
      return makeError(
          StatusCode::Unimplemented,
          "str.format: the field '{{{}}}' is not supported; only names and numbers are",
          field.substr(0, 64));
    const Value *value = nullptr;
    bool number = field.find_first_not_of("0123456789") == std::string::npos;
    if (number) {
      size_t index = automatic;
      if (field.empty())
        ++automatic;
      else if (std::from_chars(field.data(), field.data() + field.size(), index).ec != std::errc())
        index = SIZE_MAX;
      if (index < arguments.positional.size())
        value = &arguments.positional[index];
    } else {
      for (const auto &[name, candidate] : arguments.keywords)
        if (name == field)
          value = &candidate;
    }
    if (!value)
      return makeError(StatusCode::InvalidData,
                       "str.format: there is no value for the field '{{{}}}'", field.substr(0, 64));
    Directive directive;
    directive.kind = repr ? 'r' : 's';
    STRATA_RETURN_IF_ERROR(appendDirective(evaluator, directive, *value, out));
  }
  out.markup = text.markup;
  return evaluator.makeText(std::move(out));
}

} // namespace strata::chat
