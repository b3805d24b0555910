#include "runtime/chat/Lexer.h"

#include <algorithm>

#include "runtime/chat/Unicode.h"

namespace strata::chat {

Status templateError(uint32_t line, std::string_view message) {
  return makeError(StatusCode::InvalidData, "chat template, line {}: {}", line, message);
}

namespace {

bool isNameCharacter(char c) {
  return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_';
}

/// Newlines become `\n` and one at the end goes.
std::string normalizeNewlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      i += i + 1 < source.size() && source[i + 1] == '\n';
    } else {
      out += source[i];
    }
  }
  if (!out.empty() && out.back() == '\n')
    out.pop_back();
  return out;
}

class Lexer {
public:
  explicit Lexer(std::string_view source) : source_(source) {}
  Result<std::vector<Token>> run();

private:
  bool startsWith(std::string_view text) const { return source_.substr(at_).starts_with(text); }
  void push(TokenType type, std::string text = {}) {
    tokens_.push_back({type, std::move(text), line_});
  }
  /// Goes to `end`, counting lines.
  void advance(size_t end);
  Status error(std::string_view message) const { return templateError(line_, message); }

  bool consumeTagEnd(std::string_view close, bool trimsNewline);
  bool rawBegins(size_t &bodyBegin) const;
  void pushData(size_t begin, size_t end, char sign, bool strips);
  Status lexTag(bool block);
  Status lexComment();
  Status lexRaw();
  Status lexToken();
  bool lexNumber();
  Status lexString();
  Status lexOperator();

  std::string_view source_;
  size_t at_ = 0;
  uint32_t line_ = 1;
  bool lineStarting_ = true; ///< The last thing matched ended a line.
  std::vector<char> brackets_;
  std::vector<Token> tokens_;
};

void Lexer::advance(size_t end) {
  line_ += uint32_t(std::count(source_.begin() + at_, source_.begin() + end, '\n'));
  at_ = end;
}

/// `-%}` eats the white space behind it, `%}` one newline, `+%}` nothing.
bool Lexer::consumeTagEnd(std::string_view close, bool trimsNewline) {
  size_t begin = at_, end = at_;
  bool minus = startsWith("-"), plus = trimsNewline && startsWith("+");
  if (minus || plus)
    ++end;
  if (!source_.substr(end).starts_with(close))
    return false;
  end += close.size();
  if (minus)
    end += trimSpaces(source_.substr(end), true, false).begin;
  else if (!plus && trimsNewline && end < source_.size() && source_[end] == '\n')
    ++end;
  advance(end);
  lineStarting_ = end > begin && source_[end - 1] == '\n';
  return true;
}

/// What stands before a tag: `{%-` eats its trailing white space; a block or comment that is alone
/// on its line eats the indentation.
void Lexer::pushData(size_t begin, size_t end, char sign, bool strips) {
  std::string_view text = source_.substr(begin, end - begin);
  if (sign == '-') {
    text = text.substr(0, trimSpaces(text, false, true).end);
  } else if (sign != '+' && strips) {
    size_t newline = text.rfind('\n');
    size_t lineBegin = newline == std::string_view::npos ? 0 : newline + 1;
    std::string_view indentation = text.substr(lineBegin);
    if ((lineBegin > 0 || lineStarting_) &&
        trimSpaces(indentation, true, false).begin == indentation.size())
      text = text.substr(0, lineBegin);
  }
  if (!text.empty())
    push(TokenType::Data, std::string(text));
}

/// At `{%`: whether a raw block begins here, and where its body does.
bool Lexer::rawBegins(size_t &bodyBegin) const {
  size_t i = at_ + 2;
  if (i < source_.size() && (source_[i] == '-' || source_[i] == '+'))
    ++i;
  i += trimSpaces(source_.substr(i), true, false).begin;
  if (!source_.substr(i).starts_with("raw"))
    return false;
  i += 3;
  i += trimSpaces(source_.substr(i), true, false).begin;
  bool minus = source_.substr(i).starts_with("-");
  i += minus;
  if (!source_.substr(i).starts_with("%}"))
    return false;
  i += 2;
  bodyBegin = minus ? i + trimSpaces(source_.substr(i), true, false).begin : i;
  return true;
}

Status Lexer::lexRaw() {
  uint32_t opening = line_;
  lineStarting_ = at_ > 0 && source_[at_ - 1] == '\n';
  size_t begin = at_;
  for (size_t place = at_; (place = source_.find("{%", place)) != std::string_view::npos;
       place += 2) {
    size_t i = place + 2;
    char sign = i < source_.size() && (source_[i] == '-' || source_[i] == '+') ? source_[i] : 0;
    i += sign != 0;
    i += trimSpaces(source_.substr(i), true, false).begin;
    if (!source_.substr(i).starts_with("endraw"))
      continue;
    i += 6;
    i += trimSpaces(source_.substr(i), true, false).begin;
    std::string_view tail = source_.substr(i);
    if (!tail.starts_with("%}") && !tail.starts_with("-%}") && !tail.starts_with("+%}"))
      continue;
    pushData(begin, place, sign, true);
    advance(i);
    consumeTagEnd("%}", true);
    return Status::ok();
  }
  return templateError(opening, "the raw block is not closed: {% endraw %} is missing");
}

Status Lexer::lexComment() {
  uint32_t opening = line_;
  size_t close = source_.find("#}", at_);
  if (close == std::string_view::npos)
    return templateError(opening, "the comment is not closed: #} is missing");
  bool signs = close > at_ && (source_[close - 1] == '-' || source_[close - 1] == '+');
  advance(close - signs);
  consumeTagEnd("#}", true);
  return Status::ok();
}

bool Lexer::lexNumber() {
  auto digitsFrom = [&](size_t i) { // (digits_)*digits
    size_t end = i;
    while (i < source_.size() &&
           ((source_[i] >= '0' && source_[i] <= '9') || (source_[i] == '_' && end == i && i > 0))) {
      if (source_[i] != '_')
        end = i + 1;
      ++i;
    }
    return end;
  };
  if (source_[at_] < '0' || source_[at_] > '9')
    return false;
  auto take = [&](TokenType type, size_t end) {
    std::string text(source_.substr(at_, end - at_));
    std::erase(text, '_');
    push(type, std::move(text));
    at_ = end;
    return true;
  };
  size_t whole = digitsFrom(at_), end = whole;
  if (at_ == 0 || source_[at_ - 1] != '.') {
    if (end + 1 < source_.size() && source_[end] == '.' && source_[end + 1] >= '0' &&
        source_[end + 1] <= '9')
      end = digitsFrom(end + 1);
    if (end < source_.size() && (source_[end] | 32) == 'e') {
      size_t exponent = end + 1;
      if (exponent < source_.size() && (source_[exponent] == '+' || source_[exponent] == '-'))
        ++exponent;
      if (exponent < source_.size() && source_[exponent] >= '0' && source_[exponent] <= '9')
        end = digitsFrom(exponent);
    }
    if (end > whole)
      return take(TokenType::Float, end);
  }
  auto isBaseDigit = [](char c, char base) {
    return base == 'b'   ? c == '0' || c == '1'
           : base == 'o' ? c >= '0' && c <= '7'
                         : (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'f');
  };
  char base = at_ + 1 < source_.size() && source_[at_] == '0' ? char(source_[at_ + 1] | 32) : 0;
  if (base == 'b' || base == 'o' || base == 'x') {
    size_t i = at_ + 2;
    while (i < source_.size() &&
           (isBaseDigit(source_[i], base) ||
            (source_[i] == '_' && i + 1 < source_.size() && isBaseDigit(source_[i + 1], base))))
      ++i;
    if (i > at_ + 2)
      return take(TokenType::Integer, i);
  }
  if (source_[at_] == '0') // 007 is 00 and 7
    for (whole = at_ + 1; whole < source_.size() && source_[whole] == '0';)
      ++whole;
  return take(TokenType::Integer, whole);
}

Status Lexer::lexString() {
  char quote = source_[at_];
  size_t end = at_ + 1;
  while (end < source_.size() && source_[end] != quote)
    end += source_[end] == '\\' ? 2 : 1;
  if (end >= source_.size())
    return error(fmt::format("the string that begins with {} is not closed", quote));
  std::string_view raw = source_.substr(at_ + 1, end - at_ - 1);
  std::string text;
  for (size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\') {
      text += raw[i];
      continue;
    }
    static constexpr std::string_view letters = "\\'\"abfnrtv", meanings = "\\'\"\a\b\f\n\r\t\v";
    char c = raw[++i];
    size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (size_t letter = letters.find(c); letter != std::string_view::npos) {
      text += meanings[letter];
    } else if (c == '\n') {
      continue;
    } else if (c >= '0' && c <= '7') {
      char32_t point = 0;
      size_t stop = std::min(raw.size(), i + 3);
      for (; i < stop && raw[i] >= '0' && raw[i] <= '7'; ++i)
        point = point * 8 + char32_t(raw[i] - '0');
      --i;
      appendUtf8(point, text);
    } else if (digits) {
      char32_t point = 0;
      for (size_t k = 0; k < digits; ++k) {
        char digit = i + 1 < raw.size() ? raw[i + 1] : 0;
        if (!((digit >= '0' && digit <= '9') || ((digit | 32) >= 'a' && (digit | 32) <= 'f')))
          return error(fmt::format("the escape \\{} needs {} hexadecimal digits", c, digits));
        point = point << 4 | char32_t(digit <= '9' ? digit - '0' : (digit | 32) - 'a' + 10);
        ++i;
      }
      if (point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF))
        return error(fmt::format("the escape \\{} gives U+{:04X}, which is no character", c,
                                 uint32_t(point)));
      appendUtf8(point, text);
    } else if (c == 'N') {
      return error("escapes of the form \\N{name} are not supported; write \\uXXXX");
    } else {
      text += '\\';
      text += c;
    }
  }
  push(TokenType::String, std::move(text));
  advance(end + 1);
  return Status::ok();
}

Status Lexer::lexOperator() {
  static constexpr std::string_view pairs[] = {"//", "**", "==", "!=", ">=", "<="};
  std::string_view rest = source_.substr(at_);
  std::string_view found;
  for (std::string_view pair : pairs)
    if (rest.starts_with(pair))
      found = rest.substr(0, 2);
  if (found.empty() &&
      std::string_view("+-/*%~[](){}><=.:|,;").find(rest[0]) != std::string_view::npos)
    found = rest.substr(0, 1);
  if (found.empty()) {
    Character character = characterAt(rest, 0);
    return error(
        fmt::format("unexpected character '{}' in a tag", rest.substr(0, character.length)));
  }
  char c = found[0];
  if (c == '(' || c == '[' || c == '{') {
    brackets_.push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
  } else if (c == ')' || c == ']' || c == '}') {
    if (brackets_.empty())
      return error(fmt::format("unexpected '{}'", c));
    if (brackets_.back() != c)
      return error(fmt::format("unexpected '{}', expected '{}'", c, brackets_.back()));
    brackets_.pop_back();
  }
  push(TokenType::Operator, std::string(found));
  at_ += found.size();
  return Status::ok();
}

Status Lexer::lexToken() {
  char c = source_[at_];
  if (lexNumber())
    return Status::ok();
  if (isNameCharacter(c)) {
    size_t end = at_;
    while (end < source_.size() && isNameCharacter(source_[end]))
      ++end;
    push(TokenType::Name, std::string(source_.substr(at_, end - at_)));
    at_ = end;
    return Status::ok();
  }
  return c == '\'' || c == '"' ? lexString() : lexOperator();
}

Status Lexer::lexTag(bool block) {
  uint32_t opening = line_;
  std::string_view close = block ? "%}" : "}}";
  brackets_.clear();
  for (;;) {
    if (brackets_.empty()) {
      uint32_t line = line_;
      if (consumeTagEnd(close, block)) {
        tokens_.push_back({block ? TokenType::BlockEnd : TokenType::VariableEnd, {}, line});
        return Status::ok();
      }
    }
    advance(at_ + trimSpaces(source_.substr(at_), true, false).begin);
    if (at_ == source_.size())
      return templateError(opening, fmt::format("the tag is not closed: {} is missing", close));
    if (brackets_.empty() && (startsWith(close) || startsWith(std::string("-").append(close)) ||
                              (block && startsWith("+%}"))))
      continue;
    STRATA_RETURN_IF_ERROR(lexToken());
  }
}

Result<std::vector<Token>> Lexer::run() {
  while (at_ < source_.size()) {
    size_t tag = at_;
    while ((tag = source_.find('{', tag)) != std::string_view::npos &&
           (tag + 1 == source_.size() ||
            std::string_view("{%#").find(source_[tag + 1]) == std::string_view::npos))
      ++tag;
    if (tag == std::string_view::npos) {
      push(TokenType::Data, std::string(source_.substr(at_)));
      advance(source_.size());
      break;
    }
    char kind = source_[tag + 1];
    char sign = tag + 2 < source_.size() ? source_[tag + 2] : 0;
    if (sign != '-' && sign != '+')
      sign = 0;
    pushData(at_, tag, sign, kind != '{');
    advance(tag);
    size_t rawBody = 0;
    if (kind == '%' && rawBegins(rawBody)) {
      advance(rawBody);
      STRATA_RETURN_IF_ERROR(lexRaw());
      continue;
    }
    at_ += 2 + (sign != 0);
    if (kind == '#') {
      STRATA_RETURN_IF_ERROR(lexComment());
      continue;
    }
    push(kind == '%' ? TokenType::BlockBegin : TokenType::VariableBegin);
    STRATA_RETURN_IF_ERROR(lexTag(kind == '%'));
  }
  push(TokenType::End);
  return std::move(tokens_);
}

} // namespace

Result<std::vector<Token>> tokenize(std::string_view source) {
  std::string normalized = normalizeNewlines(source);
  return Lexer(normalized).run();
}

} // namespace strata::chat
