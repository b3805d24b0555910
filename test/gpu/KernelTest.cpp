// Every CUDA kernel against the CPU's, which are held to references in F64, on random inputs: at
// one row, an odd number, one below the bucket, the bucket, and one above (in a bucket of its own).
// Runs on a GPU, by test/gpu/run.
#include <cmath>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <tuple>

#include <flatbuffers/flatbuffers.h>
#include <gtest/gtest.h>

#include "codegen/cpu/KernelTable.h"
#include "codegen/cuda/compile/Nvrtc.h"
#include "codegen/cuda/compile/Program.h"
#include "runtime/base/CheckedMath.h"
#include "runtime/checkpoint/WeightTypeTable.h"
#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/stage/RandomWeights.h"
#include "test/codegen/cuda/Shapes.h"

namespace strata::cuda {
namespace {

using Bytes = std::vector<std::byte>;

constexpr uint64_t buckets[] = {1, 3, 8, 12, 13, 140};
constexpr uint32_t sequences = 3, poolBlocks = 27;

std::mt19937_64 random(1);
float normal() { return std::normal_distribution<float>()(random); }

template <class T> Bytes bytesOf(const std::vector<T> &values) {
  auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

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

/// One invocation: what lies in each slot, the same for both devices.
struct Invocation {
  const KernelSignature *signature;
  std::string kernel;
  uint64_t rows, valid;
  std::vector<Bytes> memory; ///< Empty for constants.
  Bytes counts;              ///< The step's valid rows.

  std::string part(uint32_t index) const {
    std::string rest = kernel;
    for (; index > 0; --index)
      rest = rest.substr(rest.find('.') + 1);
    return rest.substr(0, rest.find('.'));
  }
  /// Whether activations become whole numbers of 16 bits (codegen/cuda/StreamOperand.cuh).
  bool roundsActivations() const {
    std::string_view family = signature->family;
    if (family != "linear" && !family.starts_with("norm_"))
      return false;
    const WeightType *type = findWeightType(part(family == "norm_gated" ? 2 : 1));
    return type && type->blockElements > 1 && cuda::isStreamed(type->ggufId, 32, 1);
  }
  bool slotState() const { return signature->family == "conv" || signature->family == "ssm_scan"; }
  bool keepsFloats(const SlotSpec &slot) const {
    return slot.kind == fb::SlotKind::State && slotState();
  }
  uint64_t constant(std::string_view name) const { return sampleConstant(name); }
  Bytes content(const SlotSpec &slot) const;
  Bytes buffer(std::string_view name) const;
  Bytes routingOrLists(std::string_view name) const;
  Bytes expertLists() const;
  Bytes weight(std::string_view name) const;
  Bytes field(std::string_view name) const;
};

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
  if (family == "norm_qkv" && name == "y")
    return floats(rows * constant("query_heads") * constant("head_width"));
  if (family == "linear" || family.starts_with("norm_"))
    return floats(rows * constant(name == "x" ? "columns" : "outputs"));
  if (family == "attention")
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
  bool isGated = family == "norm_gated", isQkv = family == "norm_qkv";
  bool isLinear = family == "linear" || family == "norm_linear";
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

Bytes Invocation::content(const SlotSpec &slot) const {
  using enum fb::SlotKind;
  switch (slot.kind) {
  case Buffer:
    return buffer(slot.name);
  case Weight:
    return weight(slot.name);
  case State: {
    bool isQkv = signature->family == "norm_qkv";
    std::string type = slotState() ? "f32" : part((slot.name == "v" ? 2 : 1) + (isQkv ? 1 : 0));
    return weights(type, poolBlocks * constant("block_stride") / findWeightType(type)->blockBytes,
                   1);
  }
  case Step:
  case Table:
  case Out:
    return field(slot.name);
  default:
    return {};
  }
}

/// What a slot or constant of the CPU's kernel is where it is not what its name says.
using Overrides = std::map<std::string_view, uint64_t>;

uint64_t addressOf(const Bytes &bytes) { return reinterpret_cast<uint64_t>(bytes.data()); }

/// Runs `kernel` of the CPU on the memory of `invocation`, slots by their names.
void callCpu(const Invocation &invocation, const std::string &kernel, const Overrides &overrides) {
  cpu::KernelFunction function = cpu::findKernel(kernel, cpu::Isa::X86_64_v3);
  ASSERT_NE(function, nullptr) << kernel;
  const KernelSignature &signature = *findSignature(kernel);
  auto constant = [&](std::string_view name) {
    auto found = overrides.find(name);
    return found != overrides.end() ? found->second : sampleConstant(name);
  };
  uint64_t width = constant(signature.family == "sample"   ? "vocabulary"
                            : signature.family == "router" ? "experts"
                                                           : "columns");
  Bytes scratch(cpu::scratchBytes(kernel, width) + 64);
  std::vector<uint64_t> slots;
  for (const SlotSpec &slot : signature.slots) {
    auto given = std::find_if(
        invocation.signature->slots.begin(), invocation.signature->slots.end(),
        [&](const SlotSpec &each) { return each.name == slot.name && each.kind == slot.kind; });
    if (slot.kind == fb::SlotKind::Constant)
      slots.push_back(constant(slot.name));
    else if (auto found = overrides.find(slot.name); found != overrides.end())
      slots.push_back(found->second);
    else if (slot.kind == fb::SlotKind::Scratch)
      slots.push_back(addressOf(scratch));
    else if (slot.name == "valid_rows" || slot.name == "valid_head_rows")
      slots.push_back(addressOf(invocation.counts));
    else if (given != invocation.signature->slots.end())
      slots.push_back(
          addressOf(invocation.memory[size_t(given - invocation.signature->slots.begin())]));
    else
      FAIL() << kernel << " has no " << slot.name;
  }
  uint64_t items = invocation.valid;
  std::string_view family = signature.family;
  uint64_t tiles = ceilDiv(constant("outputs"), uint64_t(linearItemOutputs));
  if (family.starts_with("attention"))
    items *= constant("query_heads");
  if (family == "linear" || family == "expert_down")
    items = tiles;
  if (family == "expert_up")
    items = tiles * constant("count");
  if (family == "expert_lists")
    items = 1;
  if (family == "conv")
    items = ceilDiv(constant("width"), uint64_t(cpu::convChannels));
  if (family == "ssm_scan" || family == "head_linear")
    items = constant("heads");
  function(slots.data(), 0, uint32_t(items), 0);
}

/// Runs in place what the CPU has for the kernel: itself, or the kernels that it stands for.
void runOnCpu(Invocation &invocation) {
  std::string_view family = invocation.signature->family;
  if (!family.starts_with("norm_"))
    return callCpu(invocation, invocation.kernel, {});
  auto memory = [&](std::string_view name) {
    const auto &slots = invocation.signature->slots;
    auto found = std::find_if(slots.begin(), slots.end(),
                              [&](const SlotSpec &slot) { return slot.name == name; });
    return addressOf(invocation.memory[size_t(found - slots.begin())]);
  };
  Bytes normed(invocation.rows * sampleConstant("columns") * sizeof(float));
  callCpu(
      invocation, "rms_norm",
      {{"weight", memory("norm")}, {"y", addressOf(normed)}, {"width", sampleConstant("columns")}});
  auto linear = [&](const std::string &type, uint64_t weight, uint64_t bias, uint64_t y,
                    uint64_t outputs) {
    callCpu(invocation, "linear." + type,
            {{"x", addressOf(normed)},
             {"weight", weight},
             {"bias", bias},
             {"y", y},
             {"outputs", outputs},
             {"accumulate", 0}});
  };
  uint64_t outputs = sampleConstant("outputs");
  if (family == "norm_linear")
    return linear(invocation.part(1), memory("weight"), memory("bias"), memory("y"), outputs);
  if (family == "norm_gated") {
    Bytes gate(invocation.rows * outputs * sizeof(float)), up(gate);
    linear(invocation.part(2), memory("gate"), 0, addressOf(gate), outputs);
    linear(invocation.part(2), memory("up"), 0, addressOf(up), outputs);
    return callCpu(invocation, "gated." + invocation.part(1),
                   {{"gate", addressOf(gate)}, {"up", addressOf(up)}, {"width", outputs}});
  }
  uint64_t width = sampleConstant("head_width"), heads = sampleConstant("query_heads");
  uint64_t kvHeads = sampleConstant("kv_heads"), kvWidth = kvHeads * width;
  Bytes key(invocation.rows * kvWidth * sizeof(float)), value(key);
  linear(invocation.part(1), memory("q_weight"), memory("q_bias"), memory("y"), heads * width);
  linear(invocation.part(1), memory("k_weight"), memory("k_bias"), addressOf(key), kvWidth);
  linear(invocation.part(1), memory("v_weight"), memory("v_bias"), addressOf(value), kvWidth);
  callCpu(invocation, "rope", {{"x", memory("y")}, {"heads", heads}, {"first", 0}});
  callCpu(invocation, "rope", {{"x", addressOf(key)}, {"heads", kvHeads}, {"first", 0}});
  callCpu(invocation, "kv_write." + invocation.part(2),
          {{"x", addressOf(key)}, {"state", memory("k")}, {"width", kvWidth}});
  callCpu(invocation, "kv_write." + invocation.part(3),
          {{"x", addressOf(value)}, {"state", memory("v")}, {"width", kvWidth}});
}

/// Of kernels that take weight types as linear does, some stand for all.
std::vector<std::string> kernels() {
  std::vector<std::string> names;
  for (std::string &name : kernelNames())
    if (!hasTypesOfLinear(name) || !isOneOfMany(name))
      names.push_back(std::move(name));
  return names;
}

std::vector<uint64_t> bucketsOf(std::string_view kernel) {
  std::vector<uint64_t> result(std::begin(buckets), std::end(buckets));
  std::erase_if(result, [&](uint64_t rows) { return rows > mostRows(kernel); });
  return result;
}

/// The values of a slot that holds numbers with rounding, and by how much they may differ, absolute
/// and relative; nothing where bytes must agree.
struct Numbers {
  std::vector<float> values;
  float tolerance;
};

std::optional<Numbers> numbersIn(const Invocation &invocation, size_t index) {
  const SlotSpec &slot = invocation.signature->slots[index];
  std::string type = "f32";
  float tolerance = invocation.roundsActivations() ? 1e-4f : 2e-5f;
  if (slot.kind == fb::SlotKind::State && invocation.signature->family == "norm_qkv") {
    type = invocation.part(slot.name == "v" ? 3 : 2);
    tolerance = type == "bf16" ? 8e-3f : type == "f16" ? 1e-3f : tolerance;
  } else if (slot.name == "lists" ||
             (slot.kind != fb::SlotKind::Buffer && !invocation.keepsFloats(slot) &&
              !slot.name.ends_with("log_probability"))) {
    return std::nullopt;
  }
  const WeightType &element = *findWeightType(type);
  const Bytes &bytes = invocation.memory[index];
  Numbers result{std::vector<float>(bytes.size() / element.blockBytes), tolerance};
  dequantiseRow(element, reinterpret_cast<const uint8_t *>(bytes.data()), result.values.size(),
                result.values.data());
  return result;
}

class CudaKernels : public testing::Test {
protected:
  void SetUp() override {
    for (const std::string &kernel : kernels())
      for (uint64_t rows : bucketsOf(kernel))
        if (Specialisation each = sampleSpecialisation(kernel, rows, cudaSm90);
            std::find(specialisations_.begin(), specialisations_.end(), each) ==
            specialisations_.end())
          specialisations_.push_back(each);
    auto device = createCudaDevice("cuda:0", 0, "cuda:sm_90", {});
    ASSERT_TRUE(device.isOk()) << device.status().toString();
    device_ = std::move(*device);
    auto code = compileModule(moduleSource(specialisations_, cudaSm90), cudaSm90);
    ASSERT_TRUE(code.isOk()) << code.status().toString();
    Status loaded = device_->loadModule(std::as_bytes(std::span(*code)));
    ASSERT_TRUE(loaded.isOk()) << loaded.toString();
    auto memory = device_->allocate("the test", memoryBytes);
    ASSERT_TRUE(memory.isOk()) << memory.status().toString();
    memory_ = *memory;
  }

  /// Runs the GPU's kernel; memory comes back in `invocation`.
  Status runOnGpu(Invocation &invocation);

  static constexpr uint64_t memoryBytes = 64 << 20;
  std::vector<Specialisation> specialisations_;
  std::unique_ptr<Device> device_;
  std::byte *memory_ = nullptr;
  uint32_t launches_ = 0;
};

Status CudaKernels::runOnGpu(Invocation &invocation) {
  DeviceCommand command;
  command.op = command.kernel = invocation.kernel;
  std::vector<std::byte *> places;
  uint64_t at = 0;
  auto place = [&](const Bytes &bytes) -> Result<std::byte *> {
    std::byte *to = memory_ + at;
    at += alignUp(bytes.size(), 256);
    EXPECT_LE(at, memoryBytes);
    STRATA_RETURN_IF_ERROR(device_->write(to, bytes));
    return to;
  };
  for (size_t i = 0; i < invocation.memory.size(); ++i) {
    const SlotSpec &slot = invocation.signature->slots[i];
    places.push_back(nullptr);
    if (slot.kind == fb::SlotKind::Constant || slot.kind == fb::SlotKind::Scratch) {
      uint64_t value = slot.kind == fb::SlotKind::Scratch ? 0 : sampleConstant(slot.name);
      if (slot.kind == fb::SlotKind::Scratch && invocation.signature->family == "sample") {
        STRATA_ASSIGN_OR_RETURN(std::byte * scratch,
                                place(Bytes(invocation.rows * sampleConstant("scratch_stride"))));
        value = reinterpret_cast<uint64_t>(scratch);
      }
      command.slots.push_back(value);
      continue;
    }
    STRATA_ASSIGN_OR_RETURN(places.back(), place(invocation.memory[i]));
    command.slots.push_back(reinterpret_cast<uint64_t>(places.back()));
  }
  STRATA_ASSIGN_OR_RETURN(std::byte * counts, place(invocation.counts));
  command.validRows = reinterpret_cast<uint64_t>(counts);
  Specialisation wanted = sampleSpecialisation(invocation.kernel, invocation.rows, cudaSm90);
  auto found = std::find(specialisations_.begin(), specialisations_.end(), wanted);
  LaunchShape shape = launchShape(invocation.kernel, invocation.rows, sampleConstant, cudaSm90);
  command.code = {functionName(uint32_t(found - specialisations_.begin())), uint32_t(shape.gridX),
                  uint32_t(shape.gridY), shape.threads, shape.sharedBytes};
  STRATA_ASSIGN_OR_RETURN(LineId line, device_->prepare(invocation.kernel, {command}));
  Timeline ended;
  DeviceLaunch launch{.line = line, .signals = {{&ended, 1}}};
  STRATA_RETURN_IF_ERROR(device_->enqueue(launch));
  STRATA_ASSIGN_OR_RETURN(bool isReached, device_->wait({&ended, 1}, std::chrono::seconds(20)));
  if (!isReached)
    return makeError(StatusCode::DeadlineExceeded, "the kernel does not end");
  for (size_t i = 0; i < places.size(); ++i)
    if (places[i])
      STRATA_RETURN_IF_ERROR(device_->read(invocation.memory[i], places[i]));
  return {};
}

/// Every byte agrees, but numbers that the CPU's kernel has written: those within a tolerance.
void compare(const Invocation &before, const Invocation &gpu, const Invocation &cpu) {
  for (size_t i = 0; i < cpu.memory.size(); ++i) {
    const SlotSpec &slot = cpu.signature->slots[i];
    std::optional<Numbers> found = numbersIn(gpu, i), wanted = numbersIn(cpu, i);
    if (!wanted) {
      ASSERT_EQ(gpu.memory[i], cpu.memory[i]) << "slot " << slot.name;
      continue;
    }
    std::vector<float> old = numbersIn(before, i)->values;
    for (size_t at = 0; at < wanted->values.size(); ++at) {
      float a = found->values[at], b = wanted->values[at];
      if (a == b || (std::isnan(a) && std::isnan(b)))
        continue;
      ASSERT_NE(b, old[at]) << "slot " << slot.name << " was written at " << at
                            << ", past the valid rows";
      ASSERT_LE(std::fabs(a - b), wanted->tolerance * (1 + std::fabs(b)))
          << "slot " << slot.name << " at " << at;
    }
  }
}

TEST_F(CudaKernels, GiveTheCpusResults) {
  std::set<std::string> run;
  for (const std::string &kernel : kernels())
    for (uint64_t rows : bucketsOf(kernel)) {
      std::set<uint64_t> valids = {1, std::min<uint64_t>(5, rows), rows - (rows > 1), rows};
      for (uint64_t valid : valids) {
        SCOPED_TRACE(fmt::format("{} in a bucket of {} with {} rows", kernel, rows, valid));
        Invocation before{findSignature(kernel), kernel, rows, valid, {}, {}};
        for (const SlotSpec &slot : before.signature->slots) {
          before.memory.push_back(before.content(slot));
          if (slot.name == "valid_rows" || slot.name == "valid_head_rows")
            before.memory.back() = bytesOf(std::vector<uint32_t>{uint32_t(valid)});
        }
        before.counts = bytesOf(std::vector<uint32_t>{uint32_t(valid)});
        Invocation gpu = before, cpu = before;
        runOnCpu(cpu);
        Status status = runOnGpu(gpu);
        ASSERT_TRUE(status.isOk()) << status.toString();
        compare(before, gpu, cpu);
        run.insert(kernel);
      }
    }
  EXPECT_EQ(run.size(), kernels().size());
}

} // namespace
} // namespace strata::cuda
