// What byte-level and SentencePiece tokenizers share: special tokens, BOS and EOS around the text
// in between.
#pragma once

#include "runtime/tokenizer/SpecialTokens.h"
#include "runtime/tokenizer/Tokenizer.h"

namespace strata {

class BpeTokenizer : public Tokenizer {
public:
  Result<std::vector<int32_t>> encode(std::string_view text,
                                      const EncodeOptions &options) const final;
  std::string piece(int32_t id, bool special) const final;

protected:
  explicit BpeTokenizer(Vocabulary vocabulary);

  /// Appends the ids of a text without special tokens. `opens`: it starts the input or follows a
  /// special token.
  virtual Status encodeText(std::string_view text, bool opens, std::vector<int32_t> &ids) const = 0;

  /// The bytes of a token that is neither control nor unknown.
  virtual std::string textOf(int32_t id) const = 0;

private:
  SpecialTokens userDefined_, allSpecial_;
};

/// Ids of the tokens that merging may produce, in the order in which they claim a text: ordinary
/// tokens by id, then user-defined ones (which are cut out before and rarely needed here). Control,
/// unknown and byte tokens are not among them: text must never become one of those by merging.
std::vector<int32_t> mergeableIds(const Vocabulary &vocabulary);

// The vocabulary has passed the checks of Tokenizer::create.
Result<std::unique_ptr<Tokenizer>> createByteLevelBpe(Vocabulary vocabulary);
Result<std::unique_ptr<Tokenizer>> createSentencePieceBpe(Vocabulary vocabulary);

/// U+2581 (the SentencePiece space) to a space.
std::string unescapeSpaces(std::string_view text);

} // namespace strata
