// Pre-tokenisation: regular expressions, applied in sequence, that cut a text into pieces.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/Status.h"
#include "runtime/tokenizer/Pattern.h"
#include "runtime/tokenizer/Vocabulary.h"

namespace strata {

/// Immutable after creation; safe to share between threads.
class PatternSplitter {
public:
  /// Bytes of a text; never empty.
  struct Piece {
    size_t begin, end;
  };

  /// Errors: Unimplemented (a pre-tokeniser without patterns, by name), InvalidData (a pattern that
  /// does not compile: name, number, place and reason).
  static Result<PatternSplitter> create(PreTokenizer preTokenizer);

  /// The pieces of `text` in order. Matches and the gaps between them are pieces alike, so nothing
  /// is lost but what a pattern's use removes. Bytes that are not UTF-8 are pieces apart,
  /// and a pattern sees the text beside them as it sees the text's own ends.
  /// Errors: InvalidData (a pattern that backtracks without bound on this text).
  Result<std::vector<Piece>> split(std::string_view text) const;

private:
  PatternSplitter() = default;

  Status splitPiece(size_t pattern, std::string_view text, Piece piece, PatternSearch &search,
                    std::vector<Piece> &pieces) const;

  PreTokenizer preTokenizer_;
  std::vector<Pattern> patterns_;
};

} // namespace strata
