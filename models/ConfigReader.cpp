#include "models/ConfigReader.h"

#include <algorithm>
#include <cmath>

#include <fmt/ranges.h>

#include "runtime/checkpoint/Json.h"
#include "runtime/checkpoint/Text.h"

namespace strata {

using Json = nlohmann::ordered_json;

ConfigReader::ConfigReader(const Json &object, const std::vector<std::string> &accepted)
    : ConfigReader(object, accepted, nullptr, "") {}

ConfigReader::ConfigReader(const Json &object, const std::vector<std::string> &accepted,
                           ConfigReader *parent, std::string prefix)
    : object_(object), accepted_(accepted), parent_(parent), prefix_(std::move(prefix)) {}

void ConfigReader::record(Status status) {
  if (root().status_.isOk())
    root().status_ = std::move(status);
}

bool ConfigReader::has(const std::string &key) const { return findMember(object_, key); }

bool ConfigReader::states(const std::string &key) const { return object_.contains(key); }

const Json *ConfigReader::read(const std::string &key) {
  read_.insert(key);
  return findMember(object_, key);
}

const Json *ConfigReader::require(const std::string &key) {
  const Json *value = read(key);
  if (!value)
    record(makeError(StatusCode::InvalidData, "the configuration has no key '{}{}'", prefix_, key));
  return value;
}

void ConfigReader::expect(const std::string &key, std::string_view wanted, const Json &found) {
  record(makeError(
      StatusCode::InvalidData, "configuration key '{}{}' is {}, must be {}", prefix_, key,
      found.is_structured() ? std::string(jsonKind(found))
                            : printable(found.dump(-1, ' ', true, Json::error_handler_t::replace)),
      wanted));
}

int64_t ConfigReader::toInteger(const std::string &key, const Json &value, IntegerRange range) {
  bool fits = value.is_number_unsigned()
                  ? value.get<uint64_t>() <= uint64_t(range.most) &&
                        int64_t(value.get<uint64_t>()) >= range.least
                  : value.is_number_integer() && value.get<int64_t>() >= range.least &&
                        value.get<int64_t>() <= range.most;
  if (fits)
    return value.get<int64_t>();
  expect(key, fmt::format("an integer of {} to {}", range.least, range.most), value);
  return range.least;
}

double ConfigReader::toNumber(const std::string &key, const Json &value, NumberRange range) {
  double number = value.is_number() ? value.get<double>() : std::nan("");
  if (number >= range.least && number <= range.most)
    return number;
  bool bounded = range.most < NumberRange().most;
  expect(key, bounded ? fmt::format("a number of {} to {}", range.least, range.most) : "a number",
         value);
  return range.least;
}

std::string ConfigReader::toString(const std::string &key, const Json &value) {
  if (value.is_string())
    return value.get<std::string>();
  expect(key, "a string", value);
  return {};
}

int64_t ConfigReader::integer(const std::string &key, IntegerRange range) {
  const Json *value = require(key);
  return value ? toInteger(key, *value, range) : range.least;
}

double ConfigReader::number(const std::string &key, NumberRange range) {
  const Json *value = require(key);
  return value ? toNumber(key, *value, range) : range.least;
}

std::string ConfigReader::string(const std::string &key) {
  const Json *value = require(key);
  return value ? toString(key, *value) : std::string();
}

std::optional<int64_t> ConfigReader::optionalInteger(const std::string &key, IntegerRange range) {
  if (const Json *value = read(key))
    return toInteger(key, *value, range);
  return std::nullopt;
}

std::optional<double> ConfigReader::optionalNumber(const std::string &key, NumberRange range) {
  if (const Json *value = read(key))
    return toNumber(key, *value, range);
  return std::nullopt;
}

std::optional<bool> ConfigReader::optionalBoolean(const std::string &key) {
  const Json *value = read(key);
  if (!value)
    return std::nullopt;
  if (value->is_boolean())
    return value->get<bool>();
  expect(key, "true or false", *value);
  return false;
}

std::optional<std::string> ConfigReader::optionalString(const std::string &key) {
  if (const Json *value = read(key))
    return toString(key, *value);
  return std::nullopt;
}

std::vector<std::string> ConfigReader::strings(const std::string &key) {
  std::vector<std::string> values;
  const Json *list = read(key);
  if (!list)
    return values;
  if (!list->is_array()) {
    expect(key, "a list of strings", *list);
    return values;
  }
  for (const Json &value : *list)
    values.push_back(toString(key, value));
  return values;
}

std::vector<int64_t> ConfigReader::integers(const std::string &key, size_t count,
                                            IntegerRange range) {
  const Json *value = require(key);
  if (value && value->is_array() && value->size() != count)
    fail(key, fmt::format("lists {} numbers, must list {}", value->size(), count));
  else if (value && !value->is_array())
    return std::vector<int64_t>(count, toInteger(key, *value, range));
  std::vector<int64_t> numbers;
  if (value && value->size() == count)
    for (const Json &number : *value)
      numbers.push_back(toInteger(key, number, range));
  numbers.resize(count, range.least);
  return numbers;
}

std::vector<double> ConfigReader::numbers(const std::string &key) {
  std::vector<double> values;
  const Json *list = read(key);
  if (!list)
    return values;
  if (!list->is_array()) {
    expect(key, "a list of numbers", *list);
    return values;
  }
  for (const Json &item : *list) {
    const Json &value = item.is_object() && item.contains("__float__") ? item["__float__"] : item;
    bool isInfinite = value.is_string() && (value == "Infinity" || value == "inf");
    values.push_back(isInfinite          ? std::numeric_limits<double>::infinity()
                     : value.is_number() ? value.get<double>()
                                         : toNumber(key, value, {}));
  }
  return values;
}

ConfigReader *ConfigReader::object(const std::string &key) {
  const Json *value = read(key);
  if (!value)
    return nullptr;
  if (!value->is_object()) {
    expect(key, "an object", *value);
    return nullptr;
  }
  nested_.push_back(std::unique_ptr<ConfigReader>(
      new ConfigReader(*value, accepted_, this, prefix_ + key + ".")));
  return nested_.back().get();
}

void ConfigReader::ignore(std::initializer_list<std::string_view> keys) {
  ignored_.insert(ignored_.end(), keys.begin(), keys.end());
}

void ConfigReader::refuse(const std::string &key, std::string_view value, std::string_view known) {
  record(makeError(StatusCode::Unimplemented,
                   "configuration key '{}{}' is '{}', which has no definition here; known: {}",
                   prefix_, key, printable(value), known));
}

void ConfigReader::fail(const std::string &key, std::string_view message) {
  record(makeError(StatusCode::InvalidData, "configuration key '{}{}' {}", prefix_, key, message));
}

bool ConfigReader::isIgnorable(const std::string &key, const Json &value) const {
  if (value.is_null() || (value.is_boolean() && !value.get<bool>()) || key.starts_with('_') ||
      read_.contains(key))
    return true;
  auto matches = [&](std::string_view pattern) {
    if (pattern.ends_with('*'))
      return std::string_view(key).starts_with(pattern.substr(0, pattern.size() - 1));
    return key == pattern;
  };
  return std::any_of(ignored_.begin(), ignored_.end(), matches) ||
         std::find(accepted_.begin(), accepted_.end(), prefix_ + key) != accepted_.end();
}

void ConfigReader::collectUnread(std::vector<std::string> &unread) const {
  for (const auto &[key, value] : object_.items())
    if (!isIgnorable(key, value))
      unread.push_back(prefix_ + key);
  for (const auto &reader : nested_)
    reader->collectUnread(unread);
}

/// Whether `key` leads to a value; a key itself may hold dots.
static bool holds(const Json &object, std::string_view key) {
  if (object.contains(key))
    return true;
  for (size_t dot = key.find('.'); dot != key.npos; dot = key.find('.', dot + 1)) {
    auto outer = object.find(key.substr(0, dot));
    if (outer != object.end() && outer->is_object() && holds(*outer, key.substr(dot + 1)))
      return true;
  }
  return false;
}

Status ConfigReader::finish() const {
  STRATA_RETURN_IF_ERROR(status());
  for (const std::string &key : accepted_)
    if (!holds(object_, key))
      return makeError(StatusCode::InvalidArgument,
                       "--ignore-config names '{}', but the configuration has no such key",
                       printable(key));
  std::vector<std::string> unread;
  collectUnread(unread);
  if (unread.empty())
    return Status::ok();
  std::vector<std::string> quoted;
  for (const std::string &key : unread)
    quoted.push_back(fmt::format("'{}'", printable(key)));
  return makeError(StatusCode::Unimplemented,
                   "the configuration has {} that the model's definition does not know: {}; if it "
                   "does not change what the model computes, accept it with --ignore-config {}",
                   unread.size() == 1 ? "a key" : "keys", fmt::join(quoted, ", "),
                   printable(unread.front()));
}

} // namespace strata
