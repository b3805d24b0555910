// Applies a vocabulary's text steps.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/Status.h"
#include "runtime/tokenizer/CharacterMap.h"
#include "runtime/tokenizer/Pattern.h"
#include "runtime/tokenizer/Vocabulary.h"

namespace strata {

/// Immutable after creation; safe to share between threads.
class TextNormalizer {
public:
  /// Errors: InvalidData (a pattern that does not compile, a character map that is damaged).
  static Result<TextNormalizer> create(const std::vector<TextStep> &steps);

  bool isIdentity() const { return steps_.empty(); }

  /// Bytes that are not UTF-8 stay as they are, and every run between them is normalised alone.
  /// Errors: InvalidData (a pattern that backtracks without bound on this text), ResourceExhausted
  /// (the text grows beyond 1 GiB).
  Result<std::string> apply(std::string_view text) const;

private:
  struct Step {
    TextStep::Kind kind;
    std::string content;
    std::optional<Pattern> pattern;
    std::optional<CharacterMap> map;
  };

  static Result<std::string> replaceAll(const Step &step, std::string_view text);
  static Result<std::string> applyStep(const Step &step, std::string text);

  std::vector<Step> steps_;
};

} // namespace strata
