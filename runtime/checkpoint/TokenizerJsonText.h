// What a tokenizer.json does to a text before its model sees it: `normalizer` and `pre_tokenizer`.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/base/Status.h"
#include "runtime/tokenizer/Vocabulary.h"

namespace strata {

/// Both fields together say which kind of BPE the file holds.
struct TokenizerText {
  bool byteLevel = false;            ///< Bytes become printable code points.
  std::vector<std::string> patterns; ///< Byte-level: as in PreTokenizer, with a use for each.
  std::vector<PatternUse> uses;
  std::vector<TextStep> steps;    ///< As in Vocabulary.
  bool spacesBecomeMarks = false; ///< SentencePiece: every space becomes U+2581.
  bool addSpacePrefix = false;    ///< As in Vocabulary, like those that follow.
  bool prefixStartOnly = false;
  bool prefixUnlessSpace = false;
  bool splitAtSpaces = false;

  void addPattern(std::string pattern, PatternUse use = {}) {
    patterns.push_back(std::move(pattern));
    uses.push_back(use);
  }
};

/// `tokenizer` is the whole document. Errors: Unimplemented for a step that is not read, by name;
/// InvalidData for one that is malformed.
Result<TokenizerText> readTokenizerText(const nlohmann::ordered_json &tokenizer);

/// The steps of `field`: none where it is absent or null, those of a `Sequence`, else the one.
Result<std::vector<const nlohmann::ordered_json *>>
tokenizerSteps(const nlohmann::ordered_json &tokenizer, std::string_view field,
               std::string_view sequenceMember);

/// The `type` of a step. Errors: InvalidData where it has none.
Result<std::string> stepType(const nlohmann::ordered_json &step, std::string_view field);

/// A boolean member, or `fallback` where it is absent. Errors: InvalidData for another kind.
Result<bool> booleanMember(const nlohmann::ordered_json &object, std::string_view key,
                           bool fallback);

} // namespace strata
