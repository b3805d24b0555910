#include "runtime/schedule/RequestChecks.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace strata {
namespace {

template <class... Args> Status refuse(fmt::format_string<Args...> format, Args &&...args) {
  return makeError(StatusCode::InvalidArgument, format, std::forward<Args>(args)...);
}

Status checkParameters(const SamplingParameters &sampling) {
  if (!(sampling.temperature >= 0) || std::isinf(sampling.temperature))
    return refuse("temperature is {}; allowed is 0 and above", sampling.temperature);
  if (sampling.topK < 0)
    return refuse("top-k is {}; allowed is 0 (all) and above", sampling.topK);
  if (!(sampling.topP > 0 && sampling.topP <= 1))
    return refuse("top-p is {}; allowed is above 0, up to 1", sampling.topP);
  if (!(sampling.minP >= 0 && sampling.minP <= 1))
    return refuse("min-p is {}; allowed is 0 to 1", sampling.minP);
  if (!(sampling.repetitionPenalty > 0 && sampling.repetitionPenalty <= 100))
    return refuse("repetition penalty is {}; allowed is above 0, up to 100 (1: none)",
                  sampling.repetitionPenalty);
  if (!(std::fabs(sampling.presencePenalty) <= 2))
    return refuse("presence penalty is {}; allowed is -2 to 2", sampling.presencePenalty);
  if (!(std::fabs(sampling.frequencyPenalty) <= 2))
    return refuse("frequency penalty is {}; allowed is -2 to 2", sampling.frequencyPenalty);
  if (sampling.penaltyWindow < 0)
    return refuse("penalty window is {}; allowed is 0 (the whole sequence) and above",
                  sampling.penaltyWindow);
  return {};
}

Status checkBiases(const Request &request, uint32_t vocabularySize) {
  if (request.logitBias.size() > maxLogitBiases)
    return refuse("{} logit biases are given; {} are allowed", request.logitBias.size(),
                  maxLogitBiases);
  for (const LogitBias &bias : request.logitBias) {
    if (bias.id < 0 || uint32_t(bias.id) >= vocabularySize)
      return refuse("the logit bias of id {} is outside the vocabulary of {} tokens", bias.id,
                    vocabularySize);
    if (!std::isfinite(bias.value) && bias.value != -std::numeric_limits<float>::infinity())
      return refuse("the logit bias of id {} is {}; allowed are finite numbers and -inf (never)",
                    bias.id, bias.value);
  }
  return {};
}

Status checkMask(const Request &request, uint32_t vocabularySize) {
  const std::vector<uint32_t> &mask = request.allowedTokens;
  if (mask.empty())
    return {};
  if (mask.size() != maskWords(vocabularySize))
    return refuse("the token mask has {} words; a vocabulary of {} tokens takes {}", mask.size(),
                  vocabularySize, maskWords(vocabularySize));
  bool isAny = std::any_of(mask.begin(), mask.end() - 1, [](uint32_t word) { return word != 0; });
  uint32_t lastIds = (vocabularySize - 1) % 32 + 1;
  if (!isAny && (mask.back() & (UINT32_MAX >> (32 - lastIds))) == 0)
    return refuse("the token mask allows none of the {} tokens; at least one is needed",
                  vocabularySize);
  return {};
}

} // namespace

Status checkSampling(const Request &request, uint32_t vocabularySize) {
  STRATA_RETURN_IF_ERROR(checkParameters(request.sampling));
  STRATA_RETURN_IF_ERROR(checkBiases(request, vocabularySize));
  return checkMask(request, vocabularySize);
}

} // namespace strata
