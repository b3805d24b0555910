// A vocabulary's regular expression, and a search of it through one text in a bounded number of
// steps: a file's pattern may backtrack without end.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "runtime/base/Status.h"

struct pcre2_real_code_8;
struct pcre2_real_match_context_8;
struct pcre2_real_match_data_8;

namespace strata {

/// Immutable after creation; safe to share between threads.
class Pattern {
public:
  /// Errors: InvalidData (it does not compile: the reason and the byte).
  static Result<Pattern> create(std::string_view pattern);

private:
  friend class PatternSearch;
  struct CodeDeleter {
    void operator()(pcre2_real_code_8 *code) const;
  };
  std::unique_ptr<pcre2_real_code_8, CodeDeleter> code_;
};

/// The searches of one text, by one pattern after another.
class PatternSearch {
public:
  struct Match {
    size_t begin, end;
  };

  /// For a text of so many bytes. Errors: ResourceExhausted.
  static Result<PatternSearch> create(size_t textBytes);

  /// The first match in `subject` (the text or a part of it, UTF-8) at or behind `from`.
  /// Errors: InvalidData (the text takes more steps than its bytes allow; the match takes more
  /// memory than is allowed).
  Result<std::optional<Match>> find(const Pattern &pattern, std::string_view subject, size_t from);

private:
  struct Deleter {
    void operator()(pcre2_real_match_context_8 *context) const;
    void operator()(pcre2_real_match_data_8 *data) const;
  };

  /// PCRE2's result of a match with at most so many steps at a place.
  int run(const Pattern &pattern, std::string_view subject, size_t from, uint32_t options,
          uint32_t steps);

  std::unique_ptr<pcre2_real_match_context_8, Deleter> context_;
  std::unique_ptr<pcre2_real_match_data_8, Deleter> data_;
  size_t textBytes_ = 0;
  uint64_t stepsLeft_ = 0; ///< Beyond the few that every place has.
};

} // namespace strata
