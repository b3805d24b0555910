#include "tools/compile/OptionValues.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string_view>

#include "codegen/targets/Target.h"
#include "runtime/checkpoint/WeightTypeTable.h"

namespace strata::compile {
namespace {

constexpr int64_t maxRows = maxBatchTokens;

/// At least one part; an empty one is some parser's error.
std::vector<std::string> splitAtCommas(std::string_view text) {
  std::vector<std::string> parts;
  for (size_t comma; (comma = text.find(',')) != std::string_view::npos;) {
    parts.emplace_back(text.substr(0, comma));
    text.remove_prefix(comma + 1);
  }
  parts.emplace_back(text);
  return parts;
}

/// The whole of `text` as a count.
std::optional<int64_t> parseCount(std::string_view text, int64_t least, int64_t most) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most)
    return std::nullopt;
  return value;
}

} // namespace

Result<std::vector<ImportDevice>> parseDevices(const std::string &text) {
  std::vector<ImportDevice> devices;
  for (const std::string &part : splitAtCommas(text)) {
    STRATA_ASSIGN_OR_RETURN(DeviceRequest request, parseDevice(part));
    devices.push_back({request.target.name, static_cast<int64_t>(request.bytes)});
  }
  return devices;
}

Result<std::vector<int64_t>> parseSplit(const std::string &text) {
  std::vector<int64_t> split;
  if (text == "auto")
    return split;
  for (const std::string &part : splitAtCommas(text)) {
    std::optional<int64_t> layers = parseCount(part, 0, 1 << 16);
    if (!layers)
      return makeError(StatusCode::InvalidArgument,
                       "--split {}: '{}' is no number of layers; write `auto` or layers a stage, "
                       "such as 24,24",
                       text, part);
    split.push_back(*layers);
  }
  return split;
}

Result<std::vector<int64_t>> parseBuckets(const std::string &text, int64_t maxSequences) {
  std::set<std::pair<int64_t, int64_t>> buckets;
  for (const std::string &part : splitAtCommas(text)) {
    size_t middle = part.find('s');
    std::optional<int64_t> rows, sequences;
    if (part.starts_with('r') && middle != std::string::npos) {
      rows = parseCount(std::string_view(part).substr(1, middle - 1), 1, maxRows);
      sequences = parseCount(std::string_view(part).substr(middle + 1), 1, maxRows);
    }
    if (!rows || !sequences)
      return makeError(
          StatusCode::InvalidArgument,
          "--buckets: '{}' is no bucket; write rows and sequences such as r8s4, each 1 "
          "to {}",
          part, maxRows);
    if (*sequences > *rows || *sequences > maxSequences)
      return makeError(StatusCode::InvalidArgument,
                       "--buckets: '{}' has {} sequences; at most its {} rows and the {} of "
                       "--max-seqs",
                       part, *sequences, *rows, maxSequences);
    if (!buckets.insert({*rows, *sequences}).second)
      return makeError(StatusCode::InvalidArgument, "--buckets: '{}' stands there twice", part);
  }
  std::vector<int64_t> flat;
  for (auto [rows, sequences] : buckets)
    flat.insert(flat.end(), {rows, sequences});
  return flat;
}

Result<int64_t> parseBatchTokens(const std::string &text) {
  if (std::optional<int64_t> rows = parseCount(text, 1, maxRows))
    return *rows;
  return makeError(StatusCode::InvalidArgument,
                   "--max-batch-tokens is '{}', must be `auto` or a number of 1 to {}", text,
                   maxRows);
}

Status checkCacheType(const std::string &flag, const std::string &type) {
  if (type == "f32" || type == "f16" || type == "bf16")
    return Status::ok();
  if (type == "int8")
    return makeError(StatusCode::Unimplemented, "{} int8 is not built yet; use f16, bf16 or f32",
                     flag);
  return makeError(StatusCode::InvalidArgument, "{} is '{}', must be f16, bf16 or f32", flag, type);
}

Status checkModelName(const std::string &name) {
  for (size_t i = 0; i < name.size(); ++i)
    if (static_cast<unsigned char>(name[i]) < 0x20 || name[i] == 0x7F)
      return makeError(StatusCode::InvalidArgument,
                       "--name has a control character ({:#04x}) at byte {}; a name is one line of "
                       "plain text",
                       static_cast<unsigned char>(name[i]), i);
  return Status::ok();
}

Status checkWeightType(const std::string &type) {
  if (type.empty() || findWeightType(type))
    return Status::ok();
  std::string known;
  for (const WeightType &row : weightTypes())
    known += fmt::format("{}{}", known.empty() ? "" : ", ", row.name);
  return makeError(StatusCode::InvalidArgument, "--weight-type is '{}', must be one of {}", type,
                   known);
}

Status checkActivations(const std::string &type) {
  if (type == "f32")
    return Status::ok();
  if (type == "int8")
    return makeError(StatusCode::Unimplemented, "--activations int8 is not built yet; use f32");
  return makeError(StatusCode::InvalidArgument, "--activations is '{}', must be f32", type);
}

} // namespace strata::compile
