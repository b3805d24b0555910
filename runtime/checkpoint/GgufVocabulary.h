// The vocabulary in a GGUF file's `tokenizer.` keys.
#pragma once

#include <optional>

#include "runtime/checkpoint/GgufFile.h"
#include "runtime/tokenizer/Vocabulary.h"

namespace strata {

/// Absent where the file names no tokenizer model. Errors: InvalidData (lengths that disagree, ids
/// outside the vocabulary, keys of a wrong type), Unimplemented (a tokenizer model or pre-tokeniser
/// that is not known, by name).
Result<std::optional<Vocabulary>> readGgufVocabulary(const GgufFile &file);

} // namespace strata
