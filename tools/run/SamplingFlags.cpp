#include "tools/run/SamplingFlags.h"

#include <charconv>

#include "tools/run/OptionChecks.h"
#include "tools/run/Prompt.h"

namespace strata::run {
namespace {

/// `ID=VALUE`. from_chars reads "inf" and "nan" too; what is allowed is the engine's to say.
LogitBias parseBias(const std::string &text) {
  LogitBias bias{};
  const char *end = text.data() + text.size();
  auto id = std::from_chars(text.data(), end, bias.id);
  bool isWhole = id.ec == std::errc() && id.ptr != end && *id.ptr == '=';
  const char *value = isWhole ? id.ptr + 1 : end;
  value += value != end && *value == '+';
  auto number = std::from_chars(value, end, bias.value);
  if (!isWhole || number.ec != std::errc() || number.ptr != end)
    throw CLI::ValidationError(
        "--logit-bias", fmt::format("'{}' is not ID=VALUE, such as 15043=-2.5 or 2=-inf", text));
  return bias;
}

} // namespace

void SamplingFlags::addTo(CLI::App &command) {
  SamplingParameters &p = parameters;
  command.add_option("--temperature", p.temperature, "0 takes the likeliest token")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  command.add_option("--top-k", p.topK, "Keep the K likeliest tokens; 0 keeps all")
      ->check(CLI::Range(0, INT32_MAX))
      ->capture_default_str();
  command.add_option("--top-p", p.topP, "Keep the likeliest tokens that sum to P")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command.add_option("--min-p", p.minP, "Drop tokens below P times the likeliest")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command
      .add_option(
          "--repetition-penalty", p.repetitionPenalty,
          "Divide positive logits of tokens already there by this, multiply others; 1: none")
      ->check(CLI::Range(1e-3, 100.0))
      ->capture_default_str();
  command
      .add_option("--presence-penalty", p.presencePenalty,
                  "Subtract this from the logits of tokens already there")
      ->check(CLI::Range(-2.0, 2.0))
      ->capture_default_str();
  command
      .add_option("--frequency-penalty", p.frequencyPenalty,
                  "Subtract this for every time that a token is already there")
      ->check(CLI::Range(-2.0, 2.0))
      ->capture_default_str();
  command
      .add_option("--penalty-window", p.penaltyWindow,
                  "Newest tokens, prompt and generated, that penalties count; 0: all")
      ->check(CLI::Range(0, INT32_MAX))
      ->capture_default_str();
  auto addBiases = [this](const std::vector<std::string> &values) {
    for (const std::string &value : values)
      biases.push_back(parseBias(value));
  };
  command
      .add_option_function<std::vector<std::string>>(
          "--logit-bias", addBiases,
          "Add VALUE to the logit of token ID; -inf forbids it; give it again for others")
      ->type_name("ID=VALUE")
      ->allow_extra_args(false);
  addIdList(command, "--allow-ids", "Draw only these tokens", allowedIds);
  command.add_option("--stop", stops, "End before this text; give it again for further ones")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  command.add_option("--seed", p.seed, "Same seed, same text")
      ->check(wholeNumber)
      ->capture_default_str();
}

Result<StopFilter> SamplingFlags::stopFilter(const Tokenizer *tokenizer) const {
  if (!tokenizer && !stops.empty())
    return makeError(StatusCode::InvalidArgument,
                     "--stop needs text, and the plan has no vocabulary, since its checkpoint had "
                     "none");
  return StopFilter::create(stops);
}

Status SamplingFlags::apply(uint32_t vocabularySize, Request &request) const {
  request.sampling = parameters;
  request.logitBias = biases;
  if (allowedIds.empty())
    return {};
  request.allowedTokens.assign(maskWords(vocabularySize), 0);
  for (int32_t id : allowedIds) {
    if (id < 0 || uint32_t(id) >= vocabularySize)
      return makeError(StatusCode::InvalidArgument,
                       "id {} of --allow-ids is outside the vocabulary of {} tokens", id,
                       vocabularySize);
    request.allowedTokens[size_t(id) / 32] |= 1u << id % 32;
  }
  return {};
}

} // namespace strata::run
