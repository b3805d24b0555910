// Status and Result: how every fallible call of the runtime and the compiler reports failure.
//
// An error carries where it happened (device, stage, forward, op, buffer) beside what happened, so
// that the text a person reads names the thing that failed, the number found, the number allowed
// and the remedy. A Status is reported once, by whoever handles it; nothing logs and returns.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace strata {

/// Which kind of failure; tools map each to an exit code (docs/operations.md).
enum class StatusCode {
  Ok,
  InvalidArgument,    ///< The caller asked for something that can never work.
  InvalidData,        ///< A file or message is truncated, hostile or inconsistent.
  NotFound,           ///< A named file, tensor, token or symbol is absent.
  Unimplemented,      ///< A feature that this build refuses by name.
  ResourceExhausted,  ///< A planned size does not fit; retrying unchanged fails again.
  FailedPrecondition, ///< Right request, wrong state or machine (an older CPU, a drained engine).
  DeadlineExceeded,   ///< A wait ran past its deadline.
  Cancelled,          ///< The client withdrew the request.
  Internal,           ///< A broken invariant of Strata itself.
};

std::string_view statusCodeName(StatusCode code);

class [[nodiscard]] Status {
public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  static Status ok() { return {}; }

  bool isOk() const { return code_ == StatusCode::Ok; }
  StatusCode code() const { return code_; }
  const std::string &message() const { return message_; }

  /// Appends a place (`stage 's0'`, `forward 'r8s8'`, ...) outward as the error travels up.
  Status &&at(std::string_view kind, std::string_view name) &&;

  /// The one-line text for people: message, then every place, innermost first.
  std::string toString() const;

private:
  StatusCode code_ = StatusCode::Ok;
  std::string message_;
  std::string places_;
};

/// Builds an error Status from a format string.
template <class... Args>
Status makeError(StatusCode code, fmt::format_string<Args...> format, Args &&...args) {
  return Status(code, fmt::format(format, std::forward<Args>(args)...));
}

/// A value or the Status that explains its absence.
template <class T> class [[nodiscard]] Result {
public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) {}

  bool isOk() const { return value_.has_value(); }
  const Status &status() const & { return status_; }
  Status &&status() && { return std::move(status_); }

  T &operator*() & { return *value_; }
  const T &operator*() const & { return *value_; }
  T &&operator*() && { return std::move(*value_); }
  T *operator->() { return &*value_; }
  const T *operator->() const { return &*value_; }

private:
  Status status_;
  std::optional<T> value_;
};

#define STRATA_CONCAT_IMPL(a, b) a##b
#define STRATA_CONCAT(a, b) STRATA_CONCAT_IMPL(a, b)

#define STRATA_RETURN_IF_ERROR(expr)                                                               \
  do {                                                                                             \
    if (::strata::Status strataStatus = (expr); !strataStatus.isOk())                              \
      return strataStatus;                                                                         \
  } while (false)

#define STRATA_ASSIGN_OR_RETURN(lhs, expr)                                                         \
  STRATA_ASSIGN_OR_RETURN_IMPL(STRATA_CONCAT(strataResult, __LINE__), lhs, expr)
#define STRATA_ASSIGN_OR_RETURN_IMPL(result, lhs, expr)                                            \
  auto result = (expr);                                                                            \
  if (!result.isOk())                                                                              \
    return std::move(result).status();                                                             \
  lhs = std::move(*result)

} // namespace strata
