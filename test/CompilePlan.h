// Plans of real models, for tests of the runtime: strata-compile makes them.
#pragma once

#include <cstdlib>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "test/TestData.h"

namespace strata::test {

/// Runs strata-compile (which is there: STRATA_REQUIRE_FILE(testTool("strata-compile"))) on
/// `model`. What it says goes to a file beside `plan`.
inline testing::AssertionResult compilePlan(const std::string &model, const std::string &options,
                                            const std::string &plan) {
  std::string command = fmt::format("'{}' '{}' {} -o '{}' 2> '{}.errors'",
                                    testTool("strata-compile"), model, options, plan, plan);
  // NOLINTNEXTLINE(bugprone-command-processor): of paths that the tests choose
  if (std::system(command.c_str()) == 0)
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << command;
}

} // namespace strata::test
