// What filters and string methods share. Every byte keeps the origin that it had.
#include <algorithm>

#include "runtime/chat/Methods.h"
#include "runtime/chat/TextSearch.h"
#include "runtime/chat/Unicode.h"

namespace strata::chat {
namespace {

bool isWordBreak(char32_t c) {
  return isSpace(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
}

bool isCased(char32_t c) { return isUpperCase(c) || isLowerCase(c) || isTitleCase(c); }

LetterCase caseOf(CaseRule rule, char32_t c, char32_t previous, bool first) {
  switch (rule) {
  case CaseRule::Upper:
    return LetterCase::Upper;
  case CaseRule::Lower:
    return LetterCase::Lower;
  case CaseRule::Title:
    return !first && isCased(previous) ? LetterCase::Lower : LetterCase::Title;
  case CaseRule::TitleFilter:
    return first || isWordBreak(previous) ? LetterCase::Upper : LetterCase::Lower;
  case CaseRule::Capitalize:
    return first ? LetterCase::Title : LetterCase::Lower;
  case CaseRule::Swap:
    if (isTitleCase(c))
      return LetterCase::Title; // stays
    return isUpperCase(c) ? LetterCase::Lower : LetterCase::Upper;
  }
  return LetterCase::Lower;
}

} // namespace

Result<Value> changeCase(Evaluator &evaluator, const Value &value, CaseRule rule) {
  const Text &text = value.asText();
  STRATA_RETURN_IF_ERROR(evaluator.spend(1 + text.size() / 8));
  Text out;
  char32_t previous = 0;
  size_t at = 0;
  for (const Text::Run &run : text.runs()) {
    std::string changed;
    while (at < run.end) {
      Character character = characterAt(text.bytes(), at);
      appendInCase(character.point, caseOf(rule, character.point, previous, at == 0), changed);
      previous = character.point;
      at += character.length;
    }
    out.append(changed, run.origin);
  }
  out.markup = text.markup;
  return evaluator.makeText(std::move(out));
}

Result<Value> stripText(Evaluator &evaluator, const Value &value, const Value *characters,
                        Side side) {
  const Text &text = value.asText();
  STRATA_RETURN_IF_ERROR(evaluator.spendOn(value));
  Trimmed kept{0, text.size()};
  if (!characters || characters->isNone()) {
    kept = trimSpaces(text.bytes(), side != Side::Right, side != Side::Left);
  } else if (!characters->isText()) {
    return makeError(StatusCode::InvalidData, "strip: the characters are of type {}, not str",
                     characters->typeName());
  } else {
    std::vector<char32_t> set;
    const std::string &bytes = characters->bytes();
    STRATA_RETURN_IF_ERROR(evaluator.spend(bytes.size()));
    for (size_t i = 0; i < bytes.size(); i += characterAt(bytes, i).length)
      set.push_back(characterAt(bytes, i).point);
    std::sort(set.begin(), set.end());
    std::vector<size_t> places; // Of every character; to walk from the end.
    STRATA_RETURN_IF_ERROR(evaluator.spend(text.size() / 8));
    for (size_t i = 0; i < text.size(); i += characterAt(text.bytes(), i).length)
      places.push_back(i);
    size_t first = 0, last = places.size();
    auto strips = [&](size_t index) {
      return std::binary_search(set.begin(), set.end(),
                                characterAt(text.bytes(), places[index]).point);
    };
    while (side != Side::Right && first < last && strips(first))
      ++first;
    while (side != Side::Left && first < last && strips(last - 1))
      --last;
    kept = {first < places.size() ? places[first] : text.size(),
            last < places.size() ? places[last] : text.size()};
  }
  if (kept.begin == 0 && kept.end == text.size())
    return value;
  return evaluator.makeText(text.slice(kept.begin, kept.end));
}

Result<Value> replaceText(Evaluator &evaluator, const Value &value, const Value &from,
                          const Value &to, int64_t count) {
  const Text &text = value.asText();
  const std::string &part = from.bytes();
  STRATA_RETURN_IF_ERROR(evaluator.spendOn(value));
  size_t limit = count < 0 ? SIZE_MAX : size_t(count);
  std::vector<size_t> places;
  if (part.empty()) { // Before every character and at the end.
    STRATA_RETURN_IF_ERROR(evaluator.spend(text.size()));
    for (size_t i = 0; places.size() < limit; i += characterAt(text.bytes(), i).length) {
      places.push_back(i);
      if (i == text.size())
        break;
    }
  } else {
    places = findAll(text.bytes(), part, limit);
  }
  if (places.empty())
    return value;
  STRATA_RETURN_IF_ERROR(evaluator.spend(places.size() * 2));
  uint64_t bytes = text.size() - places.size() * part.size();
  if (__builtin_mul_overflow(uint64_t(places.size()), uint64_t(to.asText().size()), &bytes))
    bytes = UINT64_MAX;
  STRATA_RETURN_IF_ERROR(evaluator.checkTextBytes(bytes));
  Text out;
  size_t at = 0;
  for (size_t place : places) {
    out.append(text, at, place);
    out.append(to.asText());
    at = place + part.size();
  }
  out.append(text, at, text.size());
  out.markup = text.markup;
  return evaluator.makeText(std::move(out));
}

Result<Value> centerText(Evaluator &evaluator, const Value &value, int64_t width, char32_t fill,
                         Side side) {
  STRATA_ASSIGN_OR_RETURN(int64_t length, evaluator.lengthOf(value));
  if (width <= length)
    return value;
  STRATA_RETURN_IF_ERROR(evaluator.checkTextBytes(uint64_t(width)));
  uint64_t missing = uint64_t(width - length);
  uint64_t left = side == Side::Left    ? missing
                  : side == Side::Right ? 0
                                        : missing / 2 + (missing & uint64_t(width) & 1);
  auto padding = [&](uint64_t count) {
    std::string text;
    for (uint64_t i = 0; i < count; ++i)
      appendUtf8(fill, text);
    return text;
  };
  Text out(padding(left), Origin::Input);
  out.append(value.asText());
  out.append(padding(missing - left), Origin::Input);
  out.markup = value.asText().markup;
  return evaluator.makeText(std::move(out));
}

Result<std::vector<Value>> splitLines(Evaluator &evaluator, const Value &value, bool keepEnds) {
  const Text &text = value.asText();
  STRATA_RETURN_IF_ERROR(evaluator.spend(1 + text.size() / 16));
  std::vector<Value> lines;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = begin, next = text.size();
    while (end < text.size()) {
      Character character = characterAt(text.bytes(), end);
      if (isLineBreak(character.point)) {
        bool both = character.point == '\r' && text.bytes().compare(end, 2, "\r\n") == 0;
        next = end + (both ? 2 : character.length);
        break;
      }
      end += character.length;
    }
    STRATA_ASSIGN_OR_RETURN(Value line,
                            evaluator.makeText(text.slice(begin, keepEnds ? next : end)));
    lines.push_back(std::move(line));
    begin = next;
  }
  return lines;
}

Result<Value> joinTexts(Evaluator &evaluator, const Value &separator,
                        const std::vector<Value> &parts) {
  Text out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i)
      STRATA_RETURN_IF_ERROR(evaluator.appendString(separator, out));
    STRATA_RETURN_IF_ERROR(evaluator.appendString(parts[i], out));
  }
  return evaluator.makeText(std::move(out));
}

} // namespace strata::chat
