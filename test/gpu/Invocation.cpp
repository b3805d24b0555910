#include "test/gpu/Invocation.h"

#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <tuple>

#include <flatbuffers/flatbuffers.h>
#include <gtest/gtest.h>

#include "codegen/cpu/KernelTable.h"
#include "runtime/checkpoint/WeightTypeTable.h"
#include "runtime/checkpoint/WeightTypes.h"
#include "runtime/stage/RandomWeights.h"
#include "test/codegen/cuda/Shapes.h"

namespace strata::cuda {

Bytes narrowed(Bytes wide, std::string_view type) {
  if (type == "f32")
    return wide;
  std::vector<uint16_t> values;
  for (size_t at = 0; at < wide.size(); at += sizeof(float)) {
    float value;
    std::memcpy(&value, &wide[at], sizeof value);
    values.push_back(type == "bf16" ? floatToBfloat(value) : floatToHalf(value));
  }
  return bytesOf(values);
}

std::vector<float> numbersOf(const Bytes &bytes, std::string_view type) {
  const WeightType &element = *findWeightType(type);
  std::vector<float> values(bytes.size() / element.blockBytes);
  dequantiseRow(element, reinterpret_cast<const uint8_t *>(bytes.data()), values.size(),
                values.data());
  return values;
}

namespace {

constexpr uint32_t sequences = 3, poolBlocks = 27;

std::mt19937_64 random(1);
float normal() { return std::normal_distribution<float>()(random); }

Bytes floats(uint64_t count) {
  std::vector<float> values(count);
  for (float &value : values)
    value = normal();
  return bytesOf(values);
}

/// Blocks of a weight type whose values are of the size that a model's are; the same every time.
const Bytes &weights(std::string_view type, uint64_t rows, uint64_t columns) {
  static std::map<std::tuple<std::string, uint64_t, uint64_t>, Bytes> made;
  Bytes &result = made[{std::string(type), rows, columns}];
  if (!result.empty())
    return result;
  uint64_t bytes = *findWeightType(type)->bytesFor(rows * columns);
  flatbuffers::FlatBufferBuilder builder;
  std::vector<uint64_t> shape = {rows, columns};
  builder.Finish(fb::CreateWeightDirect(builder, "weight", std::string(type).c_str(), "rows",
                                        &shape, 0, 0, bytes));
  result.resize(bytes);
  Status status = fillRandomWeight(*flatbuffers::GetRoot<fb::Weight>(builder.GetBufferPointer()), 7,
                                   false, result);
  EXPECT_TRUE(status.isOk()) << status.toString();
  return result;
}

} // namespace

/// A product of the library has all rows of its bucket, and outputs that the library takes at once.
/// Where it stores 16 bits it has no sum and no bias.
uint64_t Invocation::constant(std::string_view name) const {
  if (signature->family == "gemm") {
    if (name == "rows")
      return rows;
    if (name == "outputs")
      return 512;
    if (name == "accumulate")
      return part(2).empty() ? 1 : 0;
  }
  return sampleConstant(name);
}

bool Invocation::roundsActivations() const {
  std::string_view family = signature->family;
  if (family != "linear" && !family.starts_with("norm_"))
    return false;
  const WeightType *type = findWeightType(part(family == "norm_gated" ? 2 : 1));
  return type && type->blockElements > 1 && cuda::isStreamed(type->ggufId, 32, 1);
}

/// Every row's choices, each expert at most once; or room for the lists.
Bytes Invocation::routingOrLists(std::string_view name) const {
  uint64_t experts = constant("experts"), used = constant("used");
  if (name == "lists")
    return Bytes((2 + 2 * experts + 2 * rows * used) * sizeof(uint32_t));
  std::vector<float> routing;
  for (uint64_t row = 0; row < rows; ++row) {
    uint64_t first = random() % experts;
    for (uint64_t i = 0; i < used; ++i)
      routing.push_back(float((first + 5 * i) % experts));
    for (uint64_t i = 0; i < used; ++i)
      routing.push_back(normal());
  }
  return bytesOf(routing);
}

/// The lists that the CPU's kernel makes of such choices.
Bytes Invocation::expertLists() const {
  Bytes routing = routingOrLists("routing"), lists = routingOrLists("lists");
  auto count = uint32_t(valid);
  auto address = [](const void *of) { return reinterpret_cast<uint64_t>(of); };
  uint64_t slots[] = {address(routing.data()), address(lists.data()), address(&count),
                      constant("experts"), constant("used")};
  cpu::findKernel("expert_lists", cpu::Isa::X86_64_v3)(slots, 0, 1, 0);
  return lists;
}

Bytes Invocation::buffer(std::string_view name) const {
  std::string_view family = signature->family;
  if (name == "lists" || name == "routing")
    return name == "lists" && family != "expert_lists" ? expertLists() : routingOrLists(name);
  if (family.starts_with("expert_"))
    return floats((family == "expert_up") == (name == "x")
                      ? rows * constant("row_width")
                      : rows * constant("used") * constant(name == "x" ? "columns" : "outputs"));
  if (family == "router")
    return floats(rows * (name == "y" ? 2 * constant("used") : constant("experts")));
  if (family == "row_gated" && name == "gate")
    return floats(rows);
  if (family == "ssm_scan" && name != "dt")
    return floats(rows * (constant("heads") * constant("head_width") +
                          (name == "x" ? 2 * constant("groups") * constant("state_width") : 0)));
  if (family == "ssm_scan")
    return floats(rows * constant("heads"));
  if (family == "head_linear")
    return floats(rows * constant("heads") *
                  (constant(name == "x" ? "columns" : "weight_rows") + constant("tail")));
  if (family == "attention_latent" && name == "q")
    return floats(rows * constant("query_heads") *
                  (constant("key_width") + constant("value_width")));
  if (family == "attention_latent")
    return floats(rows * constant("query_heads") * constant("value_width"));
  if (name == "workspace")
    return Bytes(cudaSm90.gemmWorkspaceBytes);
  if (family == "qkv_rope" && name == "x")
    return floats(rows * (constant("query_heads") + 2 * constant("kv_heads")) *
                  constant("head_width"));
  if (family == "gated_pair" && name == "x")
    return floats(rows * 2 * constant("width"));
  if ((family == "norm_qkv" || family == "qkv_rope") && name == "y")
    return floats(rows * constant("query_heads") * constant("head_width"));
  if (family == "linear" || family == "gemm" || family.starts_with("norm_"))
    return floats(rows * constant(name == "x" ? "columns" : "outputs"));
  if (family == "attention" || family == "attention_prompt")
    return floats(rows * constant("query_heads") *
                  constant(name == "q" ? "key_width" : "value_width"));
  if (family == "rope" || family == "rms_norm_heads")
    return floats(rows * constant("heads") * constant("head_width"));
  if (family != "sample")
    return floats(rows * constant("width"));
  std::vector<float> logits(rows * constant("vocabulary"));
  for (float &logit : logits) // few values, so that many are equal
    logit = std::round(4 * normal()) / 2;
  return bytesOf(logits);
}

Bytes Invocation::field(std::string_view name) const {
  std::vector<int32_t> values;
  auto fill = [&](uint64_t count, auto valueAt) {
    for (uint64_t i = 0; i < count; ++i)
      values.push_back(int32_t(valueAt(i)));
    return bytesOf(values);
  };
  auto fillFloats = [&](std::initializer_list<float> each) {
    return bytesOf(std::vector<float>(each));
  };
  if (name == "row_id")
    return fill(rows, [&](uint64_t i) {
      return i % 4 == 1   ? -1
             : i % 7 == 5 ? int(constant("vocabulary"))
                          : int(random() % constant("vocabulary"));
    });
  bool isPrompt = signature->family == "attention_prompt";
  // The last sequence of a prompt has most of the rows, which are consecutive.
  auto promptStart = [&](uint64_t i) {
    return std::min(valid, i < sequences ? rows * i / (2 * sequences) : rows);
  };
  auto promptSequence = [&](uint64_t row) {
    return row < promptStart(1) ? 0u : row < promptStart(2) ? 1u : 2u;
  };
  if (isPrompt && name == "row_sequence")
    return fill(rows, promptSequence);
  if (isPrompt && name == "row_position")
    return fill(rows, [&](uint64_t i) {
      return i - promptStart(promptSequence(i)) + std::array{0, 70, 41}[promptSequence(i)];
    });
  if (isPrompt && name == "query_start")
    return fill(sequences + 1, promptStart);
  if (name == "row_sequence" || name == "head_sequence")
    return fill(rows, [&](uint64_t i) { return i * sequences / rows; });
  if (name == "row_position")
    return fill(rows, [](uint64_t i) { return 17 * i % 143; }); // each once
  if (name == "query_start")
    return fill(sequences + 1, [&](uint64_t i) { return std::min(valid, rows * i / sequences); });
  if (name == "valid_sequences")
    return fill(1, [](uint64_t) { return sequences; });
  if (name == "head_row")
    return fill(rows, [&](uint64_t i) { return rows - 1 - i; });
  if (name == "sequence_slot")
    return fill(sequences, [](uint64_t i) { return 2 - i; });
  if (name == "last_id")
    return fill(sequences, [](uint64_t i) { return 11 * i + 5; });
  if (name == "sequence_length")
    return fill(sequences, [](uint64_t i) { return 90 * i + 3; });
  if (name == "block_table")
    return fill(sequences * constant("max_blocks"),
                [](uint64_t i) { return (i * 10 + 4) % poolBlocks; });
  if (name == "top_k")
    return fill(sequences, [](uint64_t i) { return i == 1 ? 40 : 0; });
  if (name == "temperature")
    return fillFloats({0.0f, 0.8f, 1.3f});
  if (name == "top_p")
    return fillFloats({1.0f, 0.9f, 0.7f});
  if (name == "min_p")
    return fillFloats({0.0f, 0.02f, 0.0f});
  if (name == "seed")
    return bytesOf(std::vector<uint64_t>{1, 22, 333});
  if (name == "repetition_penalty")
    return fillFloats({1.2f, 1.0f, 1.3f});
  if (name == "presence_penalty")
    return fillFloats({0.1f, 0.0f, 0.0f});
  if (name == "frequency_penalty")
    return fillFloats({0.0f, 0.0f, 0.2f});
  if (name == "penalty_window")
    return fill(sequences, [](uint64_t i) { return i == 2 ? 70 : 0; });
  if (name == "history")
    return fill(sequences * constant("context"),
                [&](uint64_t) { return random() % constant("vocabulary"); });
  if (name == "bias_count")
    return fill(sequences, [](uint64_t i) { return 40 * i; });
  if (name == "bias_id") // many of them several times, some outside the vocabulary
    return fill(sequences * 512, [&](uint64_t) { return random() % 40 * 116; });
  if (name == "bias_value")
    return floats(sequences * 512);
  if (name == "is_masked")
    return fill(sequences, [](uint64_t i) { return i == 2; });
  if (name == "mask")
    return fill(sequences * ((constant("vocabulary") + 31) / 32),
                [&](uint64_t) { return random(); });
  if (name == "nonfinite_layer")
    return fill(sequences, [](uint64_t) { return -1; });
  return fill(rows * 20, [](uint64_t) { return 77; }); // results, a report of twenty at most
}

Bytes Invocation::weight(std::string_view name) const {
  std::string_view family = signature->family;
  uint64_t experts = constant("experts");
  if (name == "table")
    return weights(part(1), constant("vocabulary"), constant("width"));
  if (name == "expert_slot" || name == "labels") {
    std::vector<float> numbers;
    for (uint64_t e = 0; e < experts; ++e)
      numbers.push_back(float(name == "labels" ? e % 2 : (5 * e + 1) % experts));
    return bytesOf(numbers);
  }
  bool isGated = family == "norm_gated", isQkv = family == "norm_qkv" || family == "qkv_rope";
  bool isLinear = family == "linear" || family == "norm_linear" || family == "gemm";
  if (name == "weight_2" || name == "weight_3" ||
      (family == "gemm" && name == "bias" && !part(2).empty()))
    return {}; // none
  if ((name == "weight" && isLinear) || (isGated && name != "norm"))
    return weights(part(isGated ? 2 : 1), constant("outputs"), constant("columns"));
  uint64_t width =
      constant(name.starts_with("q_") ? "query_heads" : "kv_heads") * constant("head_width");
  if (isQkv && name.ends_with("_weight"))
    return weights(part(1), width, constant("columns"));
  if (name == "weight" && family.starts_with("expert_"))
    return weights(part(1), experts * constant("outputs"), constant("columns"));
  if (name == "weight" && family == "head_linear")
    return weights(part(1), constant("heads") * constant("weight_rows"), constant("columns"));
  if (name == "weight" && family == "conv")
    return floats(constant("width") * constant("taps"));
  if (name == "a") { // below 0
    Bytes rates = floats(constant("heads"));
    for (size_t sign = 3; sign < rates.size(); sign += sizeof(float))
      rates[sign] |= std::byte{0x80};
    return rates;
  }
  return floats(isQkv && name.ends_with("_bias") ? width
                : name == "bias" && isLinear     ? constant("outputs")
                                                 : 768);
}

std::string Invocation::stateType(const SlotSpec &slot) const {
  if (slotState())
    return "f32";
  if (signature->family == "attention_prompt")
    return part(1);
  return part((slot.name == "v" ? 2 : 1) + (signature->family == "norm_qkv" ? 1 : 0));
}

Bytes Invocation::content(const SlotSpec &slot) const {
  using enum fb::SlotKind;
  switch (slot.kind) {
  case Buffer:
    return narrowed(buffer(slot.name), typeOf(slot));
  case Weight:
    return weight(slot.name);
  case State: {
    const WeightType &type = *findWeightType(stateType(slot));
    return weights(type.name, poolBlocks * constant("block_stride") / type.blockBytes, 1);
  }
  case Step:
  case Table:
  case Out:
    return field(slot.name);
  default:
    return {};
  }
}

} // namespace strata::cuda
