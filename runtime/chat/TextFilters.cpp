
#include "runtime/chat/Filters.h"
#include "runtime/chat/Methods.h"
#include "runtime/chat/NamedFunctions.h"
#include "runtime/chat/TextSearch.h"
#include "runtime/chat/Unicode.h"
#include "runtime/chat/ValueText.h"

namespace strata::chat {
namespace {

template <CaseRule rule>
Result<Value> inCase(Evaluator &evaluator, const Value &input, const CallArguments &arguments) {
  STRATA_RETURN_IF_ERROR(BoundArguments::bind("a filter of case", arguments, {}).status());
  STRATA_ASSIGN_OR_RETURN(Value text, evaluator.stringOf(input));
  return changeCase(evaluator, text, rule);
}

Result<Value> plain(Evaluator &evaluator, const Value &value) {
  STRATA_ASSIGN_OR_RETURN(Value text, evaluator.stringOf(value));
  if (!text.asText().markup)
    return text;
  Text copy = text.asText();
  copy.markup = false;
  return evaluator.makeText(std::move(copy));
}

Result<Value> trim(Evaluator &evaluator, const Value &input, const CallArguments &arguments) {
  STRATA_ASSIGN_OR_RETURN(BoundArguments bound,
                          BoundArguments::bind("filter 'trim'", arguments, {"chars"}));
  STRATA_ASSIGN_OR_RETURN(Value text, evaluator.stringOf(input));
  return stripText(evaluator, text, bound[0], Side::Both);
}

Result<Value> replace(Evaluator &evaluator, const Value &input, const CallArguments &arguments) {
  STRATA_ASSIGN_OR_RETURN(BoundArguments bound, BoundArguments::bind("filter 'replace'", arguments,
                                                                     {"old", "new", "count"}, 2));
  STRATA_ASSIGN_OR_RETURN(Value text, plain(evaluator, input));
  STRATA_ASSIGN_OR_RETURN(Value from, plain(evaluator, *bound[0]));
  STRATA_ASSIGN_OR_RETURN(Value to, plain(evaluator, *bound[1]));
  int64_t count = -1;
  if (bound[2] && !bound[2]->isNone()) {
    STRATA_ASSIGN_OR_RETURN(count, bound.wholeOr(2, -1));
  }
  return replaceText(evaluator, text, from, to, count);
}

Result<Value> toString(Evaluator &evaluator, const Value &input, const CallArguments &arguments) {
  STRATA_RETURN_IF_ERROR(BoundArguments::bind("filter 'string'", arguments, {}).status());
  return evaluator.stringOf(input);
}

Result<Value> safe(Evaluator &evaluator, const Value &input, const CallArguments &arguments) {
  STRATA_RETURN_IF_ERROR(BoundArguments::bind("filter 'safe'", arguments, {}).status());
  STRATA_ASSIGN_OR_RETURN(Value text, evaluator.stringOf(input));
  Text marked = text.asText();
  marked.markup = true;
  return evaluator.makeText(std::move(marked));
}

template <bool force>
Result<Value> escape(Evaluator &evaluator, const Value &input, const CallArguments &arguments) {
  STRATA_RETURN_IF_ERROR(BoundArguments::bind("filter 'escape'", arguments, {}).status());
  STRATA_ASSIGN_OR_RETURN(Value text, evaluator.stringOf(input));
  if (text.asText().markup && !force)
    return text;
  return evaluator.makeText(escapeHtml(text.asText()));
}

/// The default for a missing indent is four spaces; a first line and empty lines stay as they are.
Result<Value> indent(Evaluator &evaluator, const Value &input, const CallArguments &arguments) {
  STRATA_ASSIGN_OR_RETURN(BoundArguments bound, BoundArguments::bind("filter 'indent'", arguments,
                                                                     {"width", "first", "blank"}));
  if (!input.isText())
    return makeError(StatusCode::InvalidData, "filter 'indent' needs a string, not a {}",
                     input.isUndefined() ? *input.as<Undefined>().why
                                         : std::string(input.typeName()));
  Value margin;
  if (bound[0] && bound[0]->isText()) {
    margin = *bound[0];
  } else {
    STRATA_ASSIGN_OR_RETURN(int64_t width, bound.wholeOr(0, 4));
    STRATA_RETURN_IF_ERROR(evaluator.checkTextBytes(uint64_t(std::max<int64_t>(width, 0))));
    STRATA_ASSIGN_OR_RETURN(
        margin, evaluator.makeText(std::string(size_t(std::max<int64_t>(width, 0)), ' '),
                                   Origin::Template));
  }
  bool first = bound.trueOr(1, false), blank = bound.trueOr(2, false);
  Text withBreak = input.asText(); // A break at the very end is dropped by splitlines.
  withBreak.append("\n", Origin::Template);
  STRATA_ASSIGN_OR_RETURN(Value text, evaluator.makeText(std::move(withBreak)));
  STRATA_ASSIGN_OR_RETURN(std::vector<Value> lines, splitLines(evaluator, text, false));
  Text out;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i)
      out.append("\n", Origin::Template);
    if (i ? blank || lines[i].asText().size() > 0 : first)
      STRATA_RETURN_IF_ERROR(evaluator.appendString(margin, out));
    STRATA_RETURN_IF_ERROR(evaluator.appendString(lines[i], out));
  }
  out.markup = input.asText().markup;
  return evaluator.makeText(std::move(out));
}

Result<Value> toJson(Evaluator &evaluator, const Value &input, const CallArguments &arguments) {
  STRATA_ASSIGN_OR_RETURN(BoundArguments bound, BoundArguments::bind("filter 'tojson'", arguments,
                                                                     {"ensure_ascii", "indent",
                                                                      "separators", "sort_keys"}));
  constexpr int64_t maxIndent = 64;
  JsonOptions options;
  options.ensureAscii = bound.trueOr(0, false);
  options.sortKeys = bound.trueOr(3, false);
  if (bound[1] && bound[1]->isText()) {
    options.indent = bound[1]->bytes();
  } else if (bound[1] && !bound[1]->isNone()) {
    STRATA_ASSIGN_OR_RETURN(int64_t width, bound.wholeOr(1, 0));
    if (width > maxIndent)
      return makeError(StatusCode::InvalidData, "filter 'tojson': an indent of {}; at most {}",
                       width, maxIndent);
    options.indent = std::string(size_t(std::max<int64_t>(width, 0)), ' ');
  }
  if (options.indent && options.indent->size() > size_t(maxIndent))
    return makeError(StatusCode::InvalidData, "filter 'tojson': an indent of {} bytes; at most {}",
                     options.indent->size(), maxIndent);
  if (options.indent)
    options.itemSeparator.pop_back(); // No space before the end of the line.
  if (bound[2] && !bound[2]->isNone()) {
    STRATA_ASSIGN_OR_RETURN(std::vector<Value> separators, evaluator.iterate(*bound[2]));
    if (separators.size() != 2 || !separators[0].isText() || !separators[1].isText() ||
        separators[0].bytes().size() > size_t(maxIndent) ||
        separators[1].bytes().size() > size_t(maxIndent))
      return makeError(StatusCode::InvalidData,
                       "filter 'tojson': separators must be two strings of at most {} bytes",
                       maxIndent);
    options.itemSeparator = separators[0].bytes();
    options.keySeparator = separators[1].bytes();
  }
  STRATA_RETURN_IF_ERROR(evaluator.spendOn(input));
  STRATA_ASSIGN_OR_RETURN(std::string json, writeJson(input, options, evaluator.maxTextBytes()));
  return evaluator.makeText(std::move(json), Origin::Input);
}

Result<Value> center(Evaluator &evaluator, const Value &input, const CallArguments &arguments) {
  STRATA_ASSIGN_OR_RETURN(BoundArguments bound,
                          BoundArguments::bind("filter 'center'", arguments, {"width"}));
  STRATA_ASSIGN_OR_RETURN(int64_t width, bound.wholeOr(0, 80));
  STRATA_ASSIGN_OR_RETURN(Value text, evaluator.stringOf(input));
  return centerText(evaluator, text, width, ' ', Side::Both);
}

Result<Value> wordCount(Evaluator &evaluator, const Value &input, const CallArguments &arguments) {
  STRATA_RETURN_IF_ERROR(BoundArguments::bind("filter 'wordcount'", arguments, {}).status());
  STRATA_ASSIGN_OR_RETURN(Value text, evaluator.stringOf(input));
  STRATA_RETURN_IF_ERROR(evaluator.spendOn(text));
  int64_t count = 0;
  bool inside = false;
  const std::string &bytes = text.bytes();
  for (size_t i = 0; i < bytes.size(); i += characterAt(bytes, i).length) {
    char32_t c = characterAt(bytes, i).point;
    bool word = c == '_' || isAlphabetic(c) || isNumeric(c) || isDigit(c);
    count += word && !inside;
    inside = word;
  }
  return Value(count);
}

Result<Value> format(Evaluator &evaluator, const Value &input, const CallArguments &arguments) {
  STRATA_ASSIGN_OR_RETURN(Value text, evaluator.stringOf(input));
  if (!arguments.keywords.empty() && !arguments.positional.empty())
    return makeError(StatusCode::InvalidData,
                     "filter 'format' takes arguments by place or by name, not both");
  if (arguments.keywords.empty()) {
    STRATA_ASSIGN_OR_RETURN(Value values,
                            evaluator.makeList(arguments.positional, ListKind::Tuple));
    return formatPercent(evaluator, text, values);
  }
  Dict dict;
  for (const auto &[name, value] : arguments.keywords) {
    STRATA_ASSIGN_OR_RETURN(Value key, evaluator.makeText(name, Origin::Template));
    STRATA_RETURN_IF_ERROR(evaluator.addToDict(dict, std::move(key), value, "format"));
  }
  STRATA_ASSIGN_OR_RETURN(Value values, evaluator.makeDict(std::move(dict)));
  return formatPercent(evaluator, text, values);
}

} // namespace

FilterFunction findTextFilter(std::string_view name) {
  static constexpr NamedFunction<FilterFunction> filters[] = {
      {"capitalize", inCase<CaseRule::Capitalize>},
      {"center", center},
      {"e", escape<false>},
      {"escape", escape<false>},
      {"forceescape", escape<true>},
      {"format", format},
      {"indent", indent},
      {"lower", inCase<CaseRule::Lower>},
      {"replace", replace},
      {"safe", safe},
      {"string", toString},
      {"title", inCase<CaseRule::TitleFilter>},
      {"tojson", toJson},
      {"trim", trim},
      {"upper", inCase<CaseRule::Upper>},
      {"wordcount", wordCount},
  };
  return findNamed(filters, name);
}

} // namespace strata::chat
