// Reads a model's configuration so that nothing in it goes unnoticed.
//
// A configuration key that nobody looked at is how an engine writes fluent wrong text: a scale, a
// window or a rope type that the file states and the model definition never applied. So every read
// is remembered, and `finish` refuses by name each key that was neither read nor listed as
// ignorable.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/base/Status.h"

namespace strata {

/// Inclusive bounds of an integer.
struct IntegerRange {
  int64_t least;
  int64_t most;
};

/// Inclusive bounds of a number; the defaults take every finite one.
struct NumberRange {
  double least = std::numeric_limits<double>::lowest();
  double most = std::numeric_limits<double>::max();
};

/// Typed reads of one JSON object.
///
/// The first error is kept. A read that fails returns the least value that its range allows (or an
/// empty string, false, nothing), so that a definition can read all its keys, compute with them,
/// and check `status` once before it builds anything. A key that is absent and one that is null are
/// the same.
class ConfigReader {
public:
  /// `object` and `accepted` outlive the reader. `accepted` lists the keys that the user wants
  /// ignored, nested ones with dots: `rope_parameters.mystery`.
  ConfigReader(const nlohmann::ordered_json &object, const std::vector<std::string> &accepted);

  // Neither counts as a read.
  bool has(const std::string &key) const;    ///< Present and not null.
  bool states(const std::string &key) const; ///< Present, if only as null.

  // Required: absent is InvalidData.
  int64_t integer(const std::string &key, IntegerRange range);
  double number(const std::string &key, NumberRange range = {});
  std::string string(const std::string &key);

  // Nothing where absent.
  std::optional<int64_t> optionalInteger(const std::string &key, IntegerRange range);
  std::optional<double> optionalNumber(const std::string &key, NumberRange range = {});
  std::optional<bool> optionalBoolean(const std::string &key);
  std::optional<std::string> optionalString(const std::string &key);
  std::vector<std::string> strings(const std::string &key); ///< Empty where absent.
  /// One number for each of `count` things, stated as a list or as one number for all.
  std::vector<int64_t> integers(const std::string &key, size_t count, IntegerRange range);
  /// A list of numbers, infinity as JSON spells it: 1e400, `Infinity` or {"__float__": "Infinity"}.
  std::vector<double> numbers(const std::string &key); ///< Empty where absent.

  /// The reader of a nested object, or nullptr where it is absent. Lives as long as this reader,
  /// shares its first error and is finished with it.
  ConfigReader *object(const std::string &key);

  /// Keys that say nothing about what the model computes. One that ends in `*` stands for all that
  /// begin so.
  void ignore(std::initializer_list<std::string_view> keys);

  /// Refuses the value that was read of `key`: Unimplemented, with the values that are known.
  void refuse(const std::string &key, std::string_view value, std::string_view known);
  /// Records an inconsistency that the caller found: InvalidData.
  void fail(const std::string &key, std::string_view message);

  const Status &status() const { return root().status_; }

  /// The first error, or Unimplemented naming the keys that were not read, unless they are null,
  /// false, begin with `_`, are ignorable or were accepted by the user.
  Status finish() const;

private:
  ConfigReader(const nlohmann::ordered_json &object, const std::vector<std::string> &accepted,
               ConfigReader *parent, std::string prefix);

  const ConfigReader &root() const { return parent_ ? parent_->root() : *this; }
  ConfigReader &root() { return parent_ ? parent_->root() : *this; }
  const nlohmann::ordered_json *read(const std::string &key);
  const nlohmann::ordered_json *require(const std::string &key);
  void record(Status status);
  void expect(const std::string &key, std::string_view wanted, const nlohmann::ordered_json &found);
  int64_t toInteger(const std::string &key, const nlohmann::ordered_json &value,
                    IntegerRange range);
  double toNumber(const std::string &key, const nlohmann::ordered_json &value, NumberRange range);
  std::string toString(const std::string &key, const nlohmann::ordered_json &value);
  bool isIgnorable(const std::string &key, const nlohmann::ordered_json &value) const;
  void collectUnread(std::vector<std::string> &unread) const;

  const nlohmann::ordered_json &object_;
  const std::vector<std::string> &accepted_;
  ConfigReader *parent_ = nullptr;
  std::string prefix_; ///< `rope_parameters.` in messages and in `accepted`.
  std::set<std::string, std::less<>> read_;
  std::vector<std::string> ignored_;
  std::vector<std::unique_ptr<ConfigReader>> nested_;
  Status status_; ///< Of the root alone.
};

} // namespace strata
