// Which tokens end a generation.
#pragma once

#include <cstdint>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/base/Status.h"
#include "runtime/tokenizer/Vocabulary.h"

namespace strata {

/// `eos_token_id` (an id or a list) of generation_config.json where it states one, else of
/// config.json; either may be null. In the order stated. Errors: InvalidData (no ids, negative).
Result<std::vector<int32_t>>
configuredEndOfGeneration(const nlohmann::ordered_json &generationConfig,
                          const nlohmann::ordered_json &config);

/// Sets `vocabulary.endOfGeneration` to the union of `ids`, `eosId` and the tokens that models are
/// known to end a turn by (`<|im_end|>`, `<end_of_turn>`, ...), where the vocabulary has them: a
/// GGUF file states one id, and a turn often ends by another token. Errors: InvalidData (an id
/// outside the vocabulary).
Status setEndOfGeneration(Vocabulary &vocabulary, std::vector<int32_t> ids);

} // namespace strata
