// What tests find outside the repository. None of it need be there: a test that needs it says so by
// its first line, and is counted as skipped.
//
//   STRATA_REQUIRE_TEST_DATA("stories260K");
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace strata::test {

inline std::string pathBelow(const char *variable, const char *fallback, std::string_view name) {
  const char *folder = std::getenv(variable);
  return (std::filesystem::path(folder && *folder ? folder : fallback) / name)
      .lexically_normal()
      .string();
}

/// The shared test data: the folder STRATA_TEST_DATA, else the one beside the checkout.
inline std::string testData(std::string_view name) {
  return pathBelow("STRATA_TEST_DATA", STRATA_TEST_DATA_DEFAULT, name);
}

/// Real models that the project's own scripts fetch (`.ci/fetch-model`).
inline std::string cachedModel(std::string_view name) {
  return pathBelow("STRATA_MODELS", STRATA_MODELS_CACHE, name);
}

/// A tool of this build, or of the build whose `bin` folder STRATA_TEST_BIN names: a runtime that
/// was built alone takes `strata-compile` from there.
inline std::string testTool(std::string_view name) {
  return pathBelow("STRATA_TEST_BIN", STRATA_TEST_BIN_DEFAULT, name);
}

} // namespace strata::test

#define STRATA_REQUIRE_FILE(path)                                                                  \
  if (!std::filesystem::exists(path))                                                              \
  GTEST_SKIP() << (path) << " is absent"

#define STRATA_REQUIRE_TEST_DATA(name) STRATA_REQUIRE_FILE(::strata::test::testData(name))
