#include <algorithm>

#include "runtime/chat/Methods.h"
#include "runtime/chat/NamedFunctions.h"
#include "runtime/chat/TextSearch.h"
#include "runtime/chat/Unicode.h"

namespace strata::chat {
namespace {

Result<const Text *> textArgument(std::string_view what, const Value &value) {
  if (!value.isText())
    return makeError(StatusCode::InvalidData, "str.{} needs a string, not a {}", what,
                     value.isUndefined() ? *value.as<Undefined>().why
                                         : std::string(value.typeName()));
  return value.as<TextPtr>().get();
}

template <Side side>
Result<Value> strip(Evaluator &evaluator, const Value &self, const CallArguments &arguments) {
  STRATA_ASSIGN_OR_RETURN(BoundArguments bound,
                          BoundArguments::bind("str.strip", arguments, {"chars"}));
  return stripText(evaluator, self, bound[0], side);
}

template <CaseRule rule>
Result<Value> inCase(Evaluator &evaluator, const Value &self, const CallArguments &arguments) {
  STRATA_RETURN_IF_ERROR(BoundArguments::bind("str's change of case", arguments, {}).status());
  return changeCase(evaluator, self, rule);
}

/// The places between which the parts stand, for white space as separator.
std::vector<std::pair<size_t, size_t>> splitAtSpaces(std::string_view text, size_t limit,
                                                     bool backward) {
  std::vector<std::pair<size_t, size_t>> words;
  for (size_t i = 0; i < text.size();) {
    size_t begin = i + trimSpaces(text.substr(i), true, false).begin;
    if (begin == text.size())
      break;
    i = begin;
    while (i < text.size() && !isSpace(characterAt(text, i).point))
      i += characterAt(text, i).length;
    words.emplace_back(begin, i);
  }
  if (words.size() > limit + 1 && limit != SIZE_MAX) {
    if (backward) {
      size_t kept = words.size() - limit; // The first part ends where the last of them does.
      std::pair<size_t, size_t> first{0, words[kept - 1].second};
      words.erase(words.begin(), words.begin() + long(kept));
      words.insert(words.begin(), first);
    } else {
      words.resize(limit + 1);
      words.back().second = text.size();
    }
  }
  return words;
}

template <bool backward>
Result<Value> split(Evaluator &evaluator, const Value &self, const CallArguments &arguments) {
  STRATA_ASSIGN_OR_RETURN(BoundArguments bound,
                          BoundArguments::bind("str.split", arguments, {"sep", "maxsplit"}));
  STRATA_ASSIGN_OR_RETURN(int64_t maxSplit, bound.wholeOr(1, -1));
  size_t limit = maxSplit < 0 ? SIZE_MAX : size_t(maxSplit);
  const Text &text = self.asText();
  STRATA_RETURN_IF_ERROR(evaluator.spend(1 + text.size() / 16));
  std::vector<std::pair<size_t, size_t>> parts;
  if (!bound[0] || bound[0]->isNone()) {
    parts = splitAtSpaces(text.bytes(), limit, backward);
  } else {
    STRATA_ASSIGN_OR_RETURN(const Text *separator, textArgument("split", *bound[0]));
    if (separator->size() == 0)
      return makeError(StatusCode::InvalidData, "str.split: the separator is empty");
    std::vector<size_t> places = backward ? findAllBackward(text.bytes(), separator->bytes(), limit)
                                          : findAll(text.bytes(), separator->bytes(), limit);
    if (backward)
      std::reverse(places.begin(), places.end());
    size_t begin = 0;
    for (size_t place : places) {
      parts.emplace_back(begin, place);
      begin = place + separator->size();
    }
    parts.emplace_back(begin, text.size());
  }
  std::vector<Value> items;
  for (auto [begin, end] : parts) {
    STRATA_ASSIGN_OR_RETURN(Value part, evaluator.makeText(text.slice(begin, end)));
    items.push_back(std::move(part));
  }
  return evaluator.makeList(std::move(items));
}

Result<Value> splitlines(Evaluator &evaluator, const Value &self, const CallArguments &arguments) {
  STRATA_ASSIGN_OR_RETURN(BoundArguments bound,
                          BoundArguments::bind("str.splitlines", arguments, {"keepends"}));
  STRATA_ASSIGN_OR_RETURN(std::vector<Value> lines,
                          splitLines(evaluator, self, bound.trueOr(0, false)));
  return evaluator.makeList(std::move(lines));
}

template <bool backward>
Result<Value> partition(Evaluator &evaluator, const Value &self, const CallArguments &arguments) {
  STRATA_ASSIGN_OR_RETURN(BoundArguments bound,
                          BoundArguments::bind("str.partition", arguments, {"sep"}, 1));
  STRATA_ASSIGN_OR_RETURN(const Text *separator, textArgument("partition", *bound[0]));
  if (separator->size() == 0)
    return makeError(StatusCode::InvalidData, "str.partition: the separator is empty");
  const Text &text = self.asText();
  std::vector<size_t> places = backward ? findAllBackward(text.bytes(), separator->bytes(), 1)
                                        : findAll(text.bytes(), separator->bytes(), 1);
  Text parts[3];
  if (places.empty()) {
    parts[backward ? 2 : 0] = text;
  } else {
    size_t end = places[0] + separator->size();
    parts[0] = text.slice(0, places[0]);
    parts[1] = *separator;
    parts[2] = text.slice(end, text.size());
  }
  std::vector<Value> items;
  for (Text &part : parts) {
    STRATA_ASSIGN_OR_RETURN(Value item, evaluator.makeText(std::move(part)));
    items.push_back(std::move(item));
  }
  return evaluator.makeList(std::move(items), ListKind::Tuple);
}

/// The bytes that [start, end) of Python spans.
Result<std::pair<size_t, size_t>> window(Evaluator &evaluator, const Value &self,
                                         const BoundArguments &bound, bool &beyond) {
  const std::string &bytes = self.bytes();
  STRATA_ASSIGN_OR_RETURN(int64_t length, evaluator.lengthOf(self));
  auto clamp = [&](int64_t place) {
    return std::clamp<int64_t>(place < 0 ? std::max(place, -length) + length : place, 0, length);
  };
  int64_t bounds[2] = {0, length};
  for (size_t i = 0; i < 2; ++i)
    if (bound[i + 1] && !bound[i + 1]->isNone()) {
      STRATA_ASSIGN_OR_RETURN(bounds[i], bound.wholeOr(i + 1, 0));
    }
  beyond = bounds[0] > length || clamp(bounds[0]) > clamp(bounds[1]);
  size_t places[2];
  for (size_t i = 0; i < 2; ++i) {
    places[i] = 0;
    for (int64_t left = clamp(bounds[i]); left > 0; --left)
      places[i] += characterAt(bytes, places[i]).length;
  }
  return std::pair(places[0], std::max(places[0], places[1]));
}

template <bool atEnd>
Result<Value> startsOrEnds(Evaluator &evaluator, const Value &self,
                           const CallArguments &arguments) {
  constexpr std::string_view name = atEnd ? "endswith" : "startswith";
  STRATA_ASSIGN_OR_RETURN(BoundArguments bound,
                          BoundArguments::bind(name, arguments, {"prefix", "start", "end"}, 1));
  std::vector<Value> candidates = {*bound[0]};
  if (bound[0]->isList() && bound[0]->list().isTuple())
    candidates = bound[0]->list().items;
  bool beyond = false;
  std::pair<size_t, size_t> range{0, self.asText().size()};
  if (bound[1]) {
    STRATA_ASSIGN_OR_RETURN(range, window(evaluator, self, bound, beyond));
  }
  std::string_view text =
      std::string_view(self.bytes()).substr(range.first, range.second - range.first);
  for (const Value &candidate : candidates) {
    STRATA_ASSIGN_OR_RETURN(const Text *part, textArgument(name, candidate));
    STRATA_RETURN_IF_ERROR(evaluator.spendOn(candidate));
    if (!beyond && (atEnd ? text.ends_with(part->bytes()) : text.starts_with(part->bytes())))
      return Value(true);
  }
  return Value(false);
}

enum class Search { Find, Index, Count };

template <Search search, bool backward>
Result<Value> find(Evaluator &evaluator, const Value &self, const CallArguments &arguments) {
  STRATA_ASSIGN_OR_RETURN(BoundArguments bound,
                          BoundArguments::bind("str.find", arguments, {"sub", "start", "end"}, 1));
  STRATA_ASSIGN_OR_RETURN(const Text *part, textArgument("find", *bound[0]));
  bool beyond = false;
  STRATA_ASSIGN_OR_RETURN(auto range, window(evaluator, self, bound, beyond));
  std::string_view text =
      std::string_view(self.bytes()).substr(range.first, range.second - range.first);
  STRATA_RETURN_IF_ERROR(evaluator.spend(text.size() / 16));
  if (search == Search::Count) {
    if (part->size() == 0)
      return Value(beyond ? int64_t(0) : int64_t(countCharacters(text)) + 1);
    return Value(int64_t(findAll(text, part->bytes(), SIZE_MAX).size()));
  }
  size_t place = std::string_view::npos;
  if (part->size() == 0) {
    place = beyond ? place : backward ? text.size() : 0;
  } else {
    std::vector<size_t> places =
        backward ? findAllBackward(text, part->bytes(), 1) : findAll(text, part->bytes(), 1);
    place = places.empty() ? place : places[0];
  }
  if (place != std::string_view::npos)
    return Value(
        int64_t(countCharacters(std::string_view(self.bytes()).substr(0, range.first + place))));
  if (search == Search::Index)
    return makeError(StatusCode::InvalidData, "str.index: the string is not found");
  return Value(int64_t(-1));
}

Result<Value> replace(Evaluator &evaluator, const Value &self, const CallArguments &arguments) {
  STRATA_ASSIGN_OR_RETURN(BoundArguments bound, BoundArguments::bind("str.replace", arguments,
                                                                     {"old", "new", "count"}, 2));
  STRATA_RETURN_IF_ERROR(textArgument("replace", *bound[0]).status());
  STRATA_RETURN_IF_ERROR(textArgument("replace", *bound[1]).status());
  STRATA_ASSIGN_OR_RETURN(int64_t count, bound.wholeOr(2, -1));
  return replaceText(evaluator, self, *bound[0], *bound[1], count);
}

Result<Value> join(Evaluator &evaluator, const Value &self, const CallArguments &arguments) {
  STRATA_ASSIGN_OR_RETURN(BoundArguments bound,
                          BoundArguments::bind("str.join", arguments, {"iterable"}, 1));
  STRATA_ASSIGN_OR_RETURN(std::vector<Value> parts, evaluator.iterate(*bound[0]));
  for (const Value &part : parts)
    STRATA_RETURN_IF_ERROR(textArgument("join", part).status());
  return joinTexts(evaluator, self, parts);
}

template <bool suffix>
Result<Value> remove(Evaluator &evaluator, const Value &self, const CallArguments &arguments) {
  STRATA_ASSIGN_OR_RETURN(BoundArguments bound,
                          BoundArguments::bind("str.removeprefix", arguments, {"affix"}, 1));
  STRATA_ASSIGN_OR_RETURN(const Text *part, textArgument("removeprefix", *bound[0]));
  const Text &text = self.asText();
  bool found = suffix ? text.bytes().ends_with(part->bytes()) && part->size() > 0
                      : text.bytes().starts_with(part->bytes());
  if (!found)
    return self;
  size_t kept = text.size() - part->size();
  return evaluator.makeText(suffix ? text.slice(0, kept) : text.slice(part->size(), text.size()));
}

template <Side side>
Result<Value> justify(Evaluator &evaluator, const Value &self, const CallArguments &arguments) {
  STRATA_ASSIGN_OR_RETURN(BoundArguments bound,
                          BoundArguments::bind("str.center", arguments, {"width", "fillchar"}, 1));
  STRATA_ASSIGN_OR_RETURN(int64_t width, bound.wholeOr(0, 0));
  char32_t fill = ' ';
  if (bound[1]) {
    STRATA_ASSIGN_OR_RETURN(const Text *text, textArgument("center", *bound[1]));
    if (countCharacters(text->bytes()) != 1)
      return makeError(StatusCode::InvalidData, "str.center: the fill must be one character");
    fill = characterAt(text->bytes(), 0).point;
  }
  return centerText(evaluator, self, width, fill, side);
}

Result<Value> zfill(Evaluator &evaluator, const Value &self, const CallArguments &arguments) {
  STRATA_ASSIGN_OR_RETURN(BoundArguments bound,
                          BoundArguments::bind("str.zfill", arguments, {"width"}, 1));
  STRATA_ASSIGN_OR_RETURN(int64_t width, bound.wholeOr(0, 0));
  const Text &text = self.asText();
  bool sign = text.bytes().starts_with("-") || text.bytes().starts_with("+");
  STRATA_ASSIGN_OR_RETURN(Value digits, evaluator.makeText(text.slice(sign, text.size())));
  STRATA_ASSIGN_OR_RETURN(Value padded,
                          centerText(evaluator, digits, width - sign, '0', Side::Left));
  Text out = text.slice(0, sign);
  out.append(padded.asText());
  return evaluator.makeText(std::move(out));
}

template <bool (*holds)(char32_t)>
Result<Value> isAll(Evaluator &evaluator, const Value &self, const CallArguments &) {
  const std::string &bytes = self.bytes();
  STRATA_RETURN_IF_ERROR(evaluator.spend(1 + bytes.size() / 16));
  bool all = !bytes.empty();
  for (size_t i = 0; all && i < bytes.size(); i += characterAt(bytes, i).length)
    all = holds(characterAt(bytes, i).point);
  return Value(all);
}

bool isAlphanumeric(char32_t c) {
  return isAlphabetic(c) || isDecimal(c) || isDigit(c) || isNumeric(c);
}

/// isupper and islower: some character has a case and none has the other.
template <bool (*wanted)(char32_t), bool (*other)(char32_t)>
Result<Value> isInCase(Evaluator &evaluator, const Value &self, const CallArguments &) {
  const std::string &bytes = self.bytes();
  STRATA_RETURN_IF_ERROR(evaluator.spend(1 + bytes.size() / 16));
  bool any = false;
  for (size_t i = 0; i < bytes.size(); i += characterAt(bytes, i).length) {
    char32_t point = characterAt(bytes, i).point;
    if (other(point) || isTitleCase(point))
      return Value(false);
    any |= wanted(point);
  }
  return Value(any);
}

} // namespace

StringMethod findStringMethod(std::string_view name) {
  static constexpr NamedFunction<StringMethod> methods[] = {
      {"capitalize", inCase<CaseRule::Capitalize>},
      {"center", justify<Side::Both>},
      {"count", find<Search::Count, false>},
      {"endswith", startsOrEnds<true>},
      {"find", find<Search::Find, false>},
      {"format", formatBraces},
      {"index", find<Search::Index, false>},
      {"isalnum", isAll<isAlphanumeric>},
      {"isalpha", isAll<isAlphabetic>},
      {"isdecimal", isAll<isDecimal>},
      {"isdigit", isAll<isDigit>},
      {"islower", isInCase<isLowerCase, isUpperCase>},
      {"isnumeric", isAll<isNumeric>},
      {"isspace", isAll<isSpace>},
      {"isupper", isInCase<isUpperCase, isLowerCase>},
      {"join", join},
      {"ljust", justify<Side::Right>},
      {"lower", inCase<CaseRule::Lower>},
      {"lstrip", strip<Side::Left>},
      {"partition", partition<false>},
      {"removeprefix", remove<false>},
      {"removesuffix", remove<true>},
      {"replace", replace},
      {"rfind", find<Search::Find, true>},
      {"rindex", find<Search::Index, true>},
      {"rjust", justify<Side::Left>},
      {"rpartition", partition<true>},
      {"rsplit", split<true>},
      {"rstrip", strip<Side::Right>},
      {"split", split<false>},
      {"splitlines", splitlines},
      {"startswith", startsOrEnds<false>},
      {"strip", strip<Side::Both>},
      {"swapcase", inCase<CaseRule::Swap>},
      {"title", inCase<CaseRule::Title>},
      {"upper", inCase<CaseRule::Upper>},
      {"zfill", zfill},
  };
  return findNamed(methods, name);
}

} // namespace strata::chat
