#include "runtime/chat/Arguments.h"

#include <algorithm>

namespace strata::chat {

Result<BoundArguments> BoundArguments::bind(std::string_view what, const CallArguments &arguments,
                                            std::initializer_list<std::string_view> names,
                                            size_t required) {
  BoundArguments bound;
  bound.what_ = what;
  std::copy(names.begin(), names.end(), bound.names_.begin());
  if (arguments.positional.size() > names.size())
    return makeError(StatusCode::InvalidData, "{} takes at most {} arguments; {} are given", what,
                     names.size(), arguments.positional.size());
  for (size_t i = 0; i < arguments.positional.size(); ++i)
    bound.values_[i] = &arguments.positional[i];
  for (const auto &[name, value] : arguments.keywords) {
    auto place = std::find(names.begin(), names.end(), name);
    if (place == names.end())
      return makeError(StatusCode::InvalidData, "{} takes no argument '{}'", what, name);
    const Value *&slot = bound.values_[size_t(place - names.begin())];
    if (slot)
      return makeError(StatusCode::InvalidData, "{} is given its argument '{}' twice", what, name);
    slot = &value;
  }
  for (size_t i = 0; i < required; ++i)
    if (!bound.values_[i])
      return makeError(StatusCode::InvalidData, "{} needs the argument '{}'", what,
                       bound.names_[i]);
  return bound;
}

Result<int64_t> BoundArguments::wholeOr(size_t index, int64_t standard) const {
  if (!values_[index])
    return standard;
  if (!values_[index]->isWhole())
    return makeError(StatusCode::InvalidData,
                     "{}: the argument '{}' is of type {}; it must be an int", what_, names_[index],
                     values_[index]->typeName());
  return values_[index]->whole();
}

} // namespace strata::chat
