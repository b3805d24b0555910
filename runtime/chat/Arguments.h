// Arguments by place and by name, bound to parameters as Python binds them.
#pragma once

#include <array>

#include "runtime/base/Status.h"
#include "runtime/chat/Function.h"

namespace strata::chat {

/// Of one call; refers to the CallArguments that it was bound from.
class BoundArguments {
public:
  static constexpr size_t maxParameters = 6;

  /// `what` names the callee in errors: `filter 'join'`. InvalidData: too many, unknown, given
  /// twice, or one of the first `required` missing.
  static Result<BoundArguments> bind(std::string_view what, const CallArguments &arguments,
                                     std::initializer_list<std::string_view> names,
                                     size_t required = 0);

  const Value *operator[](size_t index) const { return values_[index]; } ///< Null where absent.
  Value valueOr(size_t index, Value standard) const {
    return values_[index] ? *values_[index] : standard;
  }
  /// Errors: InvalidData where it is given but no integer.
  Result<int64_t> wholeOr(size_t index, int64_t standard) const;
  bool trueOr(size_t index, bool standard) const {
    return values_[index] ? isTrue(*values_[index]) : standard;
  }

private:
  std::string_view what_;
  std::array<const Value *, maxParameters> values_{};
  std::array<std::string_view, maxParameters> names_{};
};

} // namespace strata::chat
