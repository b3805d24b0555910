#include "runtime/schedule/Replay.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "runtime/base/MappedFile.h"

namespace strata {
namespace {

using Json = nlohmann::json;

constexpr uint64_t maxStep = uint64_t{1} << 62; ///< Far from where counting on would overflow.

/// Reads one line's object key by key; what was not read at the end is unknown.
class LineReader {
public:
  LineReader(const Json &object, size_t line) : object_(object), line_(line) {}

  template <class... Args> Status error(fmt::format_string<Args...> format, Args &&...args) const {
    return makeError(StatusCode::InvalidData, "line {}: {}", line_,
                     fmt::format(format, std::forward<Args>(args)...));
  }

  const Json *find(std::string_view key) {
    auto found = object_.find(key);
    if (found == object_.end())
      return nullptr;
    ++read_;
    return &*found;
  }

  /// Leaves `out` as it is where the key is absent.
  template <class T>
  Status whole(std::string_view key, T &out, uint64_t least = 0,
               uint64_t most = std::numeric_limits<T>::max()) {
    const Json *value = find(key);
    if (!value)
      return Status::ok();
    if (!value->is_number_unsigned() || value->get<uint64_t>() < least ||
        value->get<uint64_t>() > most)
      return error("'{}' is {}; a whole number of {} to {} is needed", key, shown(*value), least,
                   most);
    out = static_cast<T>(value->get<uint64_t>());
    return Status::ok();
  }

  Status real(std::string_view key, float &out) {
    const Json *value = find(key);
    if (!value)
      return Status::ok();
    if (!value->is_number())
      return error("'{}' is {}; a number is needed", key, shown(*value));
    out = value->get<float>();
    return Status::ok();
  }

  Status finish(std::initializer_list<std::string_view> known) const {
    if (read_ == object_.size())
      return Status::ok();
    for (const auto &[key, value] : object_.items())
      if (std::find(known.begin(), known.end(), key) == known.end())
        return error("key '{}' is not known; known are {}", key, fmt::join(known, ", "));
    return Status::ok();
  }

  /// A value as it stands in the line, cut where it is long.
  static std::string shown(const Json &value) {
    std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
    return text.size() > 40 ? text.substr(0, 40) + "..." : text;
  }

private:
  const Json &object_;
  size_t line_;
  size_t read_ = 0;
};

Status readPrompt(LineReader &reader, const ReplayLimits &limits, Request &request) {
  const Json *prompt = reader.find("prompt");
  uint32_t length = 0;
  STRATA_RETURN_IF_ERROR(reader.whole("prompt_length", length, 1, limits.maxContext));
  if (!prompt == (length == 0))
    return reader.error("exactly one of 'prompt' and 'prompt_length' is needed");
  if (!prompt) {
    request.prompt.resize(length);
    for (uint32_t i = 0; i < length; ++i)
      request.prompt[i] =
          static_cast<int32_t>(uniformAt(request.sampling.seed, i) * limits.vocabularySize);
    return Status::ok();
  }
  if (!prompt->is_array() || prompt->empty() || prompt->size() > limits.maxContext)
    return reader.error("'prompt' is {}; a list of 1 to {} ids is needed",
                        LineReader::shown(*prompt), limits.maxContext);
  for (const Json &id : *prompt) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= limits.vocabularySize)
      return reader.error("'prompt' holds {}; ids are whole numbers of 0 to {}",
                          LineReader::shown(id), limits.vocabularySize - 1);
    request.prompt.push_back(id.get<int32_t>());
  }
  return Status::ok();
}

Status readBiases(LineReader &reader, const ReplayLimits &limits, Request &request) {
  const Json *biases = reader.find("logit_bias");
  if (!biases)
    return Status::ok();
  if (!biases->is_array() || biases->size() > maxLogitBiases)
    return reader.error("'logit_bias' is {}; a list of at most {} pairs [id, value] is needed",
                        LineReader::shown(*biases), maxLogitBiases);
  for (const Json &pair : *biases) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number_unsigned() ||
        pair[0].get<uint64_t>() >= limits.vocabularySize || !pair[1].is_number())
      return reader.error(
          "'logit_bias' holds {}; a pair of an id of 0 to {} and a number is needed",
          LineReader::shown(pair), limits.vocabularySize - 1);
    request.logitBias.push_back({pair[0].get<int32_t>(), pair[1].get<float>()});
  }
  return Status::ok();
}

Status readLine(std::string_view text, size_t line, const ReplayLimits &limits,
                ReplayRequest &entry) {
  Json object = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object())
    return makeError(StatusCode::InvalidData, "line {}: not a JSON object", line);
  LineReader reader(object, line);
  Request &request = entry.request;
  request.maxTokens = 16;
  STRATA_RETURN_IF_ERROR(reader.whole("arrival", entry.arrival, 0, maxStep));
  STRATA_RETURN_IF_ERROR(reader.whole("seed", request.sampling.seed));
  STRATA_RETURN_IF_ERROR(readPrompt(reader, limits, request));
  STRATA_RETURN_IF_ERROR(reader.whole("max_tokens", request.maxTokens, 1));
  STRATA_RETURN_IF_ERROR(reader.real("temperature", request.sampling.temperature));
  STRATA_RETURN_IF_ERROR(reader.whole("top_k", request.sampling.topK));
  STRATA_RETURN_IF_ERROR(reader.real("top_p", request.sampling.topP));
  STRATA_RETURN_IF_ERROR(reader.real("min_p", request.sampling.minP));
  STRATA_RETURN_IF_ERROR(reader.real("repetition_penalty", request.sampling.repetitionPenalty));
  STRATA_RETURN_IF_ERROR(reader.real("presence_penalty", request.sampling.presencePenalty));
  STRATA_RETURN_IF_ERROR(reader.real("frequency_penalty", request.sampling.frequencyPenalty));
  STRATA_RETURN_IF_ERROR(reader.whole("penalty_window", request.sampling.penaltyWindow));
  STRATA_RETURN_IF_ERROR(readBiases(reader, limits, request));
  if (const Json *ignore = reader.find("ignore_eos")) {
    if (!ignore->is_boolean())
      return reader.error("'ignore_eos' is {}; true or false is needed",
                          LineReader::shown(*ignore));
    request.ignoreEndOfGeneration = ignore->get<bool>();
  }
  auto cancel = object.find("cancel");
  if (cancel != object.end() && cancel->is_null()) {
    (void)reader.find("cancel");
  } else if (cancel != object.end()) {
    STRATA_RETURN_IF_ERROR(reader.whole("cancel", entry.cancel.emplace(), entry.arrival, maxStep));
  }
  return reader.finish({"arrival", "prompt", "prompt_length", "seed", "max_tokens", "temperature",
                        "top_k", "top_p", "min_p", "repetition_penalty", "presence_penalty",
                        "frequency_penalty", "penalty_window", "logit_bias", "ignore_eos",
                        "cancel"});
}

/// Indices of `requests` for which `key` gives a step, by that step; equal steps keep their order.
template <class Key>
std::vector<size_t> sortedBy(std::span<const ReplayRequest> requests, Key key) {
  std::vector<size_t> order;
  for (size_t i = 0; i < requests.size(); ++i)
    if (key(requests[i]))
      order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return *key(requests[a]) < *key(requests[b]); });
  return order;
}

} // namespace

Result<std::vector<ReplayRequest>> parseReplay(std::string_view text, const ReplayLimits &limits) {
  std::vector<ReplayRequest> requests;
  for (size_t line = 1; !text.empty(); ++line) {
    size_t end = std::min(text.find('\n'), text.size());
    std::string_view content = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    size_t first = content.find_first_not_of(" \t\r");
    if (first == std::string_view::npos || content[first] == '#')
      continue;
    STRATA_RETURN_IF_ERROR(readLine(content, line, limits, requests.emplace_back()));
  }
  return requests;
}

Result<std::vector<ReplayRequest>> loadReplay(const std::string &path, const ReplayLimits &limits) {
  STRATA_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  std::span<const std::byte> bytes = file->bytes();
  auto requests = parseReplay({reinterpret_cast<const char *>(bytes.data()), bytes.size()}, limits);
  if (!requests.isOk())
    return std::move(requests).status().at("file", path);
  return requests;
}

Result<std::vector<ReplayOutcome>> replay(Engine &engine, std::span<const ReplayRequest> requests,
                                          uint64_t compactEvery) {
  std::vector<ReplayOutcome> outcomes(requests.size());
  std::vector<size_t> arrivals =
      sortedBy(requests, [](const ReplayRequest &r) { return std::optional(r.arrival); });
  std::vector<size_t> cancels = sortedBy(requests, [](const ReplayRequest &r) { return r.cancel; });
  std::vector<RequestId> ids(requests.size());
  std::unordered_map<RequestId, size_t> active;
  std::vector<TokenEvent> events(1024);

  size_t arrived = 0, cancelled = 0;
  for (uint64_t step = 0;; ++step) {
    if (!engine.busy()) {
      if (arrived == arrivals.size())
        return outcomes;
      step = std::max(step, requests[arrivals[arrived]].arrival);
    }
    for (; arrived < arrivals.size() && requests[arrivals[arrived]].arrival <= step; ++arrived) {
      size_t index = arrivals[arrived];
      Result<RequestId> id = engine.submit(requests[index].request);
      if (!id.isOk())
        return std::move(id).status().at("request", std::to_string(index));
      active.emplace(ids[index] = *id, index);
    }
    for (; cancelled < cancels.size() && *requests[cancels[cancelled]].cancel <= step; ++cancelled)
      if (RequestId id = ids[cancels[cancelled]]; active.contains(id))
        STRATA_RETURN_IF_ERROR(engine.cancel(id));
    if (compactEvery > 0 && step % compactEvery == 0)
      engine.compact();
    STRATA_ASSIGN_OR_RETURN(size_t count, engine.poll(events));
    for (const TokenEvent &event : std::span(events).first(count)) {
      auto found = active.find(event.request);
      if (found == active.end())
        continue;
      ReplayOutcome &outcome = outcomes[found->second];
      if (outcome.ids.empty())
        outcome.firstStep = step;
      if (event.id >= 0) {
        outcome.ids.push_back(event.id);
        outcome.logProbabilities.push_back(event.logProbability);
      }
      if (event.finish == FinishReason::None)
        continue;
      outcome.finish = event.finish;
      outcome.nonfiniteLayer = event.nonfiniteLayer;
      outcome.finishedStep = step;
      active.erase(found);
    }
  }
}

std::string_view finishReasonName(FinishReason reason) {
  switch (reason) {
  case FinishReason::None:
    return "none";
  case FinishReason::Stop:
    return "stop";
  case FinishReason::Length:
    return "length";
  case FinishReason::Cancelled:
    return "cancelled";
  case FinishReason::NonFinite:
    return "non-finite";
  }
  return "unknown";
}

} // namespace strata
