// What all tokenizers share: special tokens, text steps, BOS and EOS around the text in between.
#pragma once

#include <optional>

#include "runtime/tokenizer/SpecialTokens.h"
#include "runtime/tokenizer/TextNormalizer.h"
#include "runtime/tokenizer/Tokenizer.h"

namespace strata {

class CommonTokenizer : public Tokenizer {
public:
  Result<std::vector<int32_t>> encode(std::string_view text,
                                      const EncodeOptions &options) const final;
  std::string piece(int32_t id, bool special) const final;

  /// Compiles the text steps; before the first use. Errors: InvalidData.
  Status prepare();

protected:
  explicit CommonTokenizer(Vocabulary vocabulary);

  /// Appends the ids of a text without special tokens, after the text steps. `starts`: it begins
  /// the input.
  virtual Status encodeText(std::string_view text, bool starts,
                            std::vector<int32_t> &ids) const = 0;

  /// The bytes of a token that is neither control nor unknown.
  virtual std::string textOf(int32_t id) const = 0;

private:
  Status encodeFragment(std::string_view text, bool starts, bool parseSpecial,
                        std::vector<int32_t> &ids) const;

  SpecialTokens userDefined_, allSpecial_;
  std::optional<TextNormalizer> normalizer_;
  /// Those that are found in the text that the steps made.
  std::unique_ptr<SpecialTokens> normalizedUserDefined_, normalizedSpecial_;
};

/// Ids of the tokens that merging may produce, in the order in which they claim a text: ordinary
/// tokens by id, then user-defined ones (which are cut out before and rarely needed here). Control,
/// unknown and byte tokens are not among them: text must never become one of those by merging.
std::vector<int32_t> mergeableIds(const Vocabulary &vocabulary);

// The vocabulary has passed the checks of Tokenizer::create.
Result<std::unique_ptr<Tokenizer>> createByteLevelBpe(Vocabulary vocabulary);
Result<std::unique_ptr<Tokenizer>> createSentencePieceBpe(Vocabulary vocabulary);
Result<std::unique_ptr<Tokenizer>> createUnigram(Vocabulary vocabulary);

} // namespace strata
