#include "runtime/chat/ValueText.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "runtime/chat/Function.h"
#include "runtime/chat/Unicode.h"

namespace strata::chat {

std::string formatFloat(double number) {
  if (std::isnan(number))
    return "nan";
  if (std::isinf(number))
    return number < 0 ? "-inf" : "inf";
  char digits[40];
  double magnitude = std::fabs(number);
  // Python's repr changes to exponents where float64's integers end to be exact to the digit.
  bool exponent = magnitude != 0 && (magnitude < 1e-4 || magnitude >= 1e16);
  auto format = exponent ? std::chars_format::scientific : std::chars_format::fixed;
  std::string text(digits, std::to_chars(digits, digits + sizeof digits, number, format).ptr);
  if (!exponent && text.find('.') == std::string::npos)
    text += ".0";
  return text;
}

namespace {

void appendEscape(char32_t point, std::string &out) {
  if (point < 0x100)
    out += fmt::format("\\x{:02x}", uint32_t(point));
  else if (point < 0x10000)
    out += fmt::format("\\u{:04x}", uint32_t(point));
  else
    out += fmt::format("\\U{:08x}", uint32_t(point));
}

void appendTextRepr(std::string_view text, std::string &out) {
  bool single = text.find('\'') != std::string_view::npos;
  char quote = single && text.find('"') == std::string_view::npos ? '"' : '\'';
  out += quote;
  for (size_t i = 0; i < text.size();) {
    Character character = characterAt(text, i);
    char32_t c = character.point;
    if (c == char32_t(quote) || c == '\\')
      out += '\\';
    if (c == '\n' || c == '\r' || c == '\t')
      out += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    else if (c < 0x110000 && !isPrintable(c))
      appendEscape(c, out);
    else
      out += text.substr(i, character.length);
    i += character.length;
  }
  out += quote;
}

class ReprWriter {
public:
  explicit ReprWriter(uint64_t maxBytes) : maxBytes_(maxBytes) {}

  Status write(const Value &value) {
    if (out.size() > maxBytes_)
      return makeError(StatusCode::ResourceExhausted,
                       "a value is longer than {} bytes as text; at most that many", maxBytes_);
    if (value.isUndefined())
      out += "Undefined";
    else if (value.isNone())
      out += "None";
    else if (value.is<bool>())
      out += value.as<bool>() ? "True" : "False";
    else if (value.is<int64_t>())
      out += std::to_string(value.as<int64_t>());
    else if (value.is<double>())
      out += formatFloat(value.as<double>());
    else if (value.isText())
      writeText(value.asText());
    else if (value.isList())
      return writeList(value.list());
    else if (value.isDict())
      return writeDict(value.dict());
    else
      return makeError(StatusCode::InvalidData, "a value of type {} cannot become text",
                       value.typeName());
    return Status::ok();
  }

  std::string out;

private:
  void writeText(const Text &text) {
    if (text.markup)
      out += "Markup(";
    appendTextRepr(text.bytes(), out);
    if (text.markup)
      out += ")";
  }

  Status writeList(const List &list) {
    if (list.kind == ListKind::Range) {
      out += list.name;
      return Status::ok();
    }
    if (list.kind == ListKind::Iterator)
      return makeError(StatusCode::InvalidData,
                       "a generator cannot become text; make it a list with |list");
    bool tuple = list.isTuple();
    out += list.name + (list.kind == ListKind::View ? "([" : tuple ? "(" : "[");
    for (size_t i = 0; i < list.items.size(); ++i) {
      if (i)
        out += ", ";
      STRATA_RETURN_IF_ERROR(write(list.items[i]));
    }
    if (tuple && list.items.size() == 1)
      out += ",";
    out += list.kind == ListKind::View ? "])" : tuple ? ")" : "]";
    return Status::ok();
  }

  Status writeDict(const Dict &dict) {
    out += "{";
    bool first = true;
    for (const auto &[key, value] : dict.entries()) {
      if (!std::exchange(first, false))
        out += ", ";
      STRATA_RETURN_IF_ERROR(write(key));
      out += ": ";
      STRATA_RETURN_IF_ERROR(write(value));
    }
    out += "}";
    return Status::ok();
  }

  uint64_t maxBytes_;
};

class JsonWriter {
public:
  JsonWriter(const JsonOptions &options, uint64_t maxBytes)
      : options_(options), maxBytes_(maxBytes) {}

  Status write(const Value &value) {
    if (out.size() > maxBytes_)
      return makeError(StatusCode::ResourceExhausted,
                       "a value is longer than {} bytes as JSON; at most that many", maxBytes_);
    if (value.isNone())
      out += "null";
    else if (value.is<bool>())
      out += value.as<bool>() ? "true" : "false";
    else if (value.is<int64_t>())
      out += std::to_string(value.as<int64_t>());
    else if (value.is<double>())
      writeFloat(value.as<double>());
    else if (value.isText())
      writeText(value.bytes());
    else if (value.isList() && (value.list().kind == ListKind::List || value.list().isTuple()))
      return writeList(value.list());
    else if (value.isDict())
      return writeDict(value.dict());
    else
      return makeError(StatusCode::InvalidData, "a value of type {} cannot become JSON",
                       value.typeName());
    return Status::ok();
  }

  std::string out;

private:
  void writeFloat(double number) {
    out += std::isnan(number)   ? "NaN"
           : std::isinf(number) ? number < 0 ? "-Infinity" : "Infinity"
                                : formatFloat(number);
  }

  void writeText(std::string_view text) {
    out += '"';
    for (size_t i = 0; i < text.size();) {
      Character character = characterAt(text, i);
      char32_t c = character.point;
      static constexpr std::string_view special = "\"\\\n\r\t\f\b", letters = "\"\\nrtfb";
      size_t place = c < 0x80 ? special.find(char(c)) : std::string_view::npos;
      if (place != std::string_view::npos)
        out += {'\\', letters[place]};
      else if (c < 0x20 || (options_.ensureAscii && c > 0x7F && c < 0x10000))
        out += fmt::format("\\u{:04x}", uint32_t(c));
      else if (options_.ensureAscii && c >= 0x10000 && c < 0x110000)
        out += fmt::format("\\u{:04x}\\u{:04x}", 0xD7C0 + uint32_t(c >> 10),
                           0xDC00 + uint32_t(c & 0x3FF));
      else
        out += text.substr(i, character.length);
      i += character.length;
    }
    out += '"';
  }

  void newLine() {
    if (!options_.indent)
      return;
    out += '\n';
    for (uint32_t i = 0; i < level_; ++i)
      out += *options_.indent;
  }

  Status writeList(const List &list) {
    if (list.items.empty()) {
      out += "[]";
      return Status::ok();
    }
    out += '[';
    ++level_;
    for (size_t i = 0; i < list.items.size(); ++i) {
      if (i)
        out += options_.itemSeparator;
      newLine();
      STRATA_RETURN_IF_ERROR(write(list.items[i]));
    }
    --level_;
    newLine();
    out += ']';
    return Status::ok();
  }

  Status writeKey(const Value &key) {
    if (key.isText()) {
      writeText(key.bytes());
      return Status::ok();
    }
    if (!key.isNumber() && !key.isNone())
      return makeError(StatusCode::InvalidData, "a key of type {} cannot become JSON",
                       key.typeName());
    out += '"';
    STRATA_RETURN_IF_ERROR(write(key));
    out += '"';
    return Status::ok();
  }

  Status writeDict(const Dict &dict) {
    if (dict.entries().empty()) {
      out += "{}";
      return Status::ok();
    }
    std::vector<const Dict::Entry *> entries;
    for (const Dict::Entry &entry : dict.entries())
      entries.push_back(&entry);
    if (options_.sortKeys) {
      for (const Dict::Entry *entry : entries)
        if (!entry->first.isText())
          return makeError(StatusCode::InvalidData,
                           "keys of type {} cannot be sorted for JSON; only strings can",
                           entry->first.typeName());
      std::sort(entries.begin(), entries.end(), [](const auto *left, const auto *right) {
        return left->first.bytes() < right->first.bytes();
      });
    }
    out += '{';
    ++level_;
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i)
        out += options_.itemSeparator;
      newLine();
      STRATA_RETURN_IF_ERROR(writeKey(entries[i]->first));
      out += options_.keySeparator;
      STRATA_RETURN_IF_ERROR(write(entries[i]->second));
    }
    --level_;
    newLine();
    out += '}';
    return Status::ok();
  }

  const JsonOptions &options_;
  uint64_t maxBytes_;
  uint32_t level_ = 0;
};

} // namespace

Result<std::string> writeRepr(const Value &value, uint64_t maxBytes) {
  ReprWriter writer(maxBytes);
  STRATA_RETURN_IF_ERROR(writer.write(value));
  return std::move(writer.out);
}

Result<std::string> writeString(const Value &value, uint64_t maxBytes) {
  if (value.isText())
    return value.bytes();
  return value.isUndefined() ? std::string() : writeRepr(value, maxBytes);
}

Result<std::string> writeJson(const Value &value, const JsonOptions &options, uint64_t maxBytes) {
  JsonWriter writer(options, maxBytes);
  STRATA_RETURN_IF_ERROR(writer.write(value));
  return std::move(writer.out);
}

} // namespace strata::chat
