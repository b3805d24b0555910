#include "runtime/checkpoint/EndOfGeneration.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include "runtime/checkpoint/Json.h"
#include "runtime/checkpoint/Text.h"

namespace strata {
namespace {

constexpr std::array<std::string_view, 7> turnEnds = {
    "<|eot_id|>",    "<|im_end|>", "<|end|>",        "<end_of_turn>",
    "<|endoftext|>", "<|eom_id|>", "<|end_of_text|>"};

Result<int32_t> tokenId(const nlohmann::ordered_json &value, std::string_view where) {
  constexpr int32_t limit = std::numeric_limits<int32_t>::max();
  if (!value.is_number_unsigned() || value.get<uint64_t>() > uint64_t(limit))
    return makeError(StatusCode::InvalidData,
                     "'eos_token_id' of {} holds {}; it must be token ids of 0 to {}", where,
                     printable(value.dump(-1, ' ', true)), limit);
  return value.get<int32_t>();
}

} // namespace

Result<std::vector<int32_t>>
configuredEndOfGeneration(const nlohmann::ordered_json &generationConfig,
                          const nlohmann::ordered_json &config) {
  std::string_view where = "generation_config.json";
  const nlohmann::ordered_json *value = findMember(generationConfig, "eos_token_id");
  if (!value) {
    where = "config.json";
    value = findMember(config, "eos_token_id");
  }
  std::vector<int32_t> ids;
  if (!value)
    return ids;
  if (!value->is_array()) {
    STRATA_ASSIGN_OR_RETURN(int32_t id, tokenId(*value, where));
    ids.push_back(id);
    return ids;
  }
  for (const nlohmann::ordered_json &element : *value) {
    STRATA_ASSIGN_OR_RETURN(int32_t id, tokenId(element, where));
    ids.push_back(id);
  }
  return ids;
}

Status setEndOfGeneration(Vocabulary &vocabulary, std::vector<int32_t> ids) {
  if (vocabulary.eosId >= 0)
    ids.push_back(vocabulary.eosId);
  for (int32_t id : ids)
    if (size_t(id) >= vocabulary.tokens.size())
      return makeError(StatusCode::InvalidData,
                       "the end-of-generation token {} is outside the vocabulary of {} tokens", id,
                       vocabulary.tokens.size());
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id)
    if (std::find(turnEnds.begin(), turnEnds.end(), vocabulary.tokens[id]) != turnEnds.end())
      ids.push_back(int32_t(id));
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  vocabulary.endOfGeneration = std::move(ids);
  return Status::ok();
}

} // namespace strata
