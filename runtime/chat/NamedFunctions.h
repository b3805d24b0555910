// Tables of what templates can name.
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>

namespace strata::chat {

template <class Function> using NamedFunction = std::pair<std::string_view, Function>;

/// Null where the table has no such name.
template <class Function, size_t count>
Function findNamed(const NamedFunction<Function> (&table)[count], std::string_view name) {
  for (const auto &[known, function] : table)
    if (known == name)
      return function;
  return nullptr;
}

} // namespace strata::chat
