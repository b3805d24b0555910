// The pre-tokenisers that GGUF files name in `tokenizer.ggml.pre`.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/base/Status.h"
#include "runtime/tokenizer/Vocabulary.h"

namespace strata {

/// What a pre-tokeniser's name implies beside its patterns; a file's own keys override it.
struct NamedPreTokenizer {
  PreTokenizer preTokenizer;
  bool ignoreMerges = false;
  bool addBos = false;
};

/// Errors: Unimplemented for a name that is not known (the message lists those that are).
Result<NamedPreTokenizer> namedPreTokenizer(std::string_view name);

/// Every name that is known.
std::vector<std::string_view> preTokenizerNames();

/// What `ByteLevel` with `use_regex` of a tokenizer.json splits by: GPT-2's pattern.
std::string_view byteLevelPattern();

} // namespace strata
