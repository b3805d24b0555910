// What the CPU's kernels make of an invocation of a GPU's.
#include <cstring>
#include <map>

#include <gtest/gtest.h>

#include "codegen/cpu/KernelTable.h"
#include "runtime/base/CheckedMath.h"
#include "test/codegen/cuda/Shapes.h"
#include "test/gpu/Invocation.h"

namespace strata::cuda {
namespace {

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
    return found != overrides.end() ? found->second : invocation.constant(name);
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

/// Runs in place what the CPU has for a kernel whose buffers are all of F32: itself, or the kernels
/// that it stands for.
void runWideOnCpu(Invocation &invocation) {
  std::string_view family = invocation.signature->family;
  auto memory = [&](std::string_view name) {
    const auto &slots = invocation.signature->slots;
    auto found = std::find_if(slots.begin(), slots.end(),
                              [&](const SlotSpec &slot) { return slot.name == name; });
    return addressOf(invocation.memory[size_t(found - slots.begin())]);
  };
  // What stands for no more than one of the CPU's.
  std::string first(namePart(invocation.kernel, 1)), second(namePart(invocation.kernel, 2));
  if (family == "rms_norm")
    return callCpu(invocation, "rms_norm", {});
  if (family == "gated")
    return callCpu(invocation, "gated." + first, {});
  if (family == "convert")
    return callCpu(invocation, "copy_rows", {});
  if (family == "attention")
    return callCpu(invocation, "attention." + first + "." + second, {});
  if (family == "attention_prompt") {
    Bytes sequences = invocation.field("row_sequence");
    return callCpu(invocation, "attention." + first + "." + first,
                   {{"row_sequence", addressOf(sequences)}});
  }
  if (family == "gemm") {
    Overrides bias;
    if (invocation.part(2).size())
      bias["bias"] = 0;
    return callCpu(invocation, "linear." + first, bias);
  }
  /// Columns `begin` on of rows of `columns` numbers.
  auto take = [&](const Bytes &rows, uint64_t columns, uint64_t begin, uint64_t width) {
    Bytes result;
    for (uint64_t row = 0; row < invocation.rows; ++row) {
      auto from = rows.begin() + std::ptrdiff_t((row * columns + begin) * sizeof(float));
      result.insert(result.end(), from, from + std::ptrdiff_t(width * sizeof(float)));
    }
    return result;
  };
  if (family == "gated_pair") {
    uint64_t width = sampleConstant("width");
    Bytes gate = take(invocation.memory[0], 2 * width, 0, width);
    Bytes up = take(invocation.memory[0], 2 * width, width, width);
    return callCpu(invocation, "gated." + first,
                   {{"gate", addressOf(gate)}, {"up", addressOf(up)}});
  }
  if (!family.starts_with("norm_") && family != "qkv_rope")
    return callCpu(invocation, invocation.kernel, {});
  uint64_t headWidth = sampleConstant("head_width");
  /// Rotates and stores, where the products lie in y, `key` and `value`.
  auto finishQkv = [&](Bytes &key, Bytes &value, uint32_t types) {
    uint64_t heads = sampleConstant("query_heads"), kvHeads = sampleConstant("kv_heads");
    callCpu(invocation, "rope", {{"x", memory("y")}, {"heads", heads}, {"first", 0}});
    callCpu(invocation, "rope", {{"x", addressOf(key)}, {"heads", kvHeads}, {"first", 0}});
    callCpu(invocation, "kv_write." + invocation.part(types),
            {{"x", addressOf(key)}, {"state", memory("k")}, {"width", kvHeads * headWidth}});
    callCpu(invocation, "kv_write." + invocation.part(types + 1),
            {{"x", addressOf(value)}, {"state", memory("v")}, {"width", kvHeads * headWidth}});
  };
  if (family == "qkv_rope") {
    uint64_t heads = sampleConstant("query_heads"), kvHeads = sampleConstant("kv_heads");
    uint64_t columns = (heads + 2 * kvHeads) * headWidth;
    auto part = [&](uint64_t firstHead, uint64_t count, std::string_view bias) {
      Bytes result = take(invocation.memory[0], columns, firstHead * headWidth, count * headWidth);
      auto *values = reinterpret_cast<float *>(result.data());
      auto *more = reinterpret_cast<const float *>(memory(bias));
      for (uint64_t i = 0; i < invocation.rows * count * headWidth; ++i)
        values[i] += more[i % (count * headWidth)];
      return result;
    };
    Bytes query = part(0, heads, "q_bias"), key = part(heads, kvHeads, "k_bias");
    Bytes value = part(heads + kvHeads, kvHeads, "v_bias");
    std::memcpy(reinterpret_cast<void *>(memory("y")), query.data(),
                invocation.valid * heads * headWidth * sizeof(float));
    return finishQkv(key, value, 1);
  }
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
  uint64_t heads = sampleConstant("query_heads");
  uint64_t kvWidth = sampleConstant("kv_heads") * headWidth;
  Bytes key(invocation.rows * kvWidth * sizeof(float)), value(key);
  linear(invocation.part(1), memory("q_weight"), memory("q_bias"), memory("y"), heads * headWidth);
  linear(invocation.part(1), memory("k_weight"), memory("k_bias"), addressOf(key), kvWidth);
  linear(invocation.part(1), memory("v_weight"), memory("v_bias"), addressOf(value), kvWidth);
  finishQkv(key, value, 2);
}

} // namespace

void runOnCpu(Invocation &invocation) {
  auto eachNarrow = [&](auto body) {
    for (size_t i = 0; i < invocation.memory.size(); ++i) {
      const SlotSpec &slot = invocation.signature->slots[i];
      if (slot.kind == fb::SlotKind::Buffer && invocation.typeOf(slot) != "f32")
        body(invocation.memory[i], invocation.typeOf(slot));
    }
  };
  eachNarrow(
      [](Bytes &memory, std::string_view type) { memory = bytesOf(numbersOf(memory, type)); });
  runWideOnCpu(invocation);
  eachNarrow([](Bytes &memory, std::string_view type) { memory = narrowed(memory, type); });
}

} // namespace strata::cuda
