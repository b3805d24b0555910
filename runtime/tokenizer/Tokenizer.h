// Text to ids and back.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/Status.h"
#include "runtime/tokenizer/Vocabulary.h"

namespace strata {

struct EncodeOptions {
  bool addBos = true;        ///< BOS in front, EOS behind, each where the vocabulary says so.
  bool parseSpecial = false; ///< Control tokens written in the text become their ids.
};

/// Immutable after creation; safe to share between threads.
class Tokenizer {
public:
  virtual ~Tokenizer() = default;

  /// Errors: InvalidData (sizes that disagree, a merge of unknown tokens, a pattern that does not
  /// compile), Unimplemented (a pre-tokeniser that is not known, by name: it has no patterns).
  /// Of tokens with the same text the lowest id is the one that encoding gives.
  static Result<std::unique_ptr<Tokenizer>> create(Vocabulary vocabulary);

  /// O(n log n) in the text's bytes, which need not be valid UTF-8. Errors: InvalidArgument (no
  /// token covers a piece), InvalidData (a pattern that backtracks without bound on this text).
  virtual Result<std::vector<int32_t>> encode(std::string_view text,
                                              const EncodeOptions &options) const = 0;

  /// The bytes that `id` stands for, which may end inside a character; empty for control tokens
  /// unless `special` (then the token's own text), and for ids outside the vocabulary.
  virtual std::string piece(int32_t id, bool special = false) const = 0;

  /// What it was made from, without the merges: those were turned into a table and freed.
  const Vocabulary &vocabulary() const { return vocabulary_; }
  bool endsGeneration(int32_t id) const;

protected:
  explicit Tokenizer(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}
  Vocabulary vocabulary_;
};

/// Turns ids into text one at a time without ever splitting a character: bytes are held back until
/// the character that they begin is complete or impossible. What it gives is always valid UTF-8:
/// bytes that are none become U+FFFD. One instance a sequence; the tokenizer must outlive it.
class Detokenizer {
public:
  /// `atStart`: the first token opens the text, so a prefix space that encoding added is dropped.
  Detokenizer(const Tokenizer &tokenizer, bool special, bool atStart);

  std::string push(int32_t id); ///< The text that became certain.
  std::string finish();         ///< What was held back; incomplete characters become U+FFFD.

private:
  const Tokenizer *tokenizer_;
  std::string pending_;
  bool special_;
  bool dropSpace_;
};

} // namespace strata
