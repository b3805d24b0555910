// Checks of option values that CLI11 has not.
#pragma once

#include <CLI/CLI.hpp>

namespace strata::run {

/// A whole number from 0 to 2^64 - 1: CLI11 reads -1 as the largest one.
inline const CLI::Validator wholeNumber(
    [](const std::string &text) -> std::string {
      bool isWhole = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
      std::string digits = text.substr(std::min(text.find_first_not_of('0'), text.size()));
      const std::string most = std::to_string(UINT64_MAX);
      if (isWhole &&
          (digits.size() < most.size() || (digits.size() == most.size() && digits <= most)))
        return {};
      return "'" + text + "' is not a whole number of 0 to " + most;
    },
    "UINT64");

} // namespace strata::run
