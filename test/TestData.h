// Where the shared test data lies: the folder named by STRATA_TEST_DATA, else the one beside the
// checkout. It is not part of the repository; a test that needs it says so by its first line:
//
//   STRATA_REQUIRE_TEST_DATA("stories260K");
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace strata::test {

/// Path of `name` inside the data folder, whether or not it is there.
inline std::string testData(std::string_view name) {
  const char *folder = std::getenv("STRATA_TEST_DATA");
  return (std::filesystem::path(folder && *folder ? folder : STRATA_TEST_DATA_DEFAULT) / name)
      .string();
}

} // namespace strata::test

/// Skips the test where `name` is absent from the data folder.
#define STRATA_REQUIRE_TEST_DATA(name)                                                             \
  if (!std::filesystem::exists(::strata::test::testData(name)))                                    \
  GTEST_SKIP() << "no test data at " << ::strata::test::testData(name) << "; set STRATA_TEST_DATA"
