// Every CUDA kernel against the CPU's, which are held to references in F64, on random inputs: at
// one row, an odd number, one below the bucket, the bucket, and one above (in a bucket of its own).
// Runs on a GPU, by test/gpu/run.
#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include <gtest/gtest.h>

#include "codegen/cuda/compile/Nvrtc.h"
#include "codegen/cuda/compile/Program.h"
#include "runtime/base/CheckedMath.h"
#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/stage/GemmCommand.h"
#include "test/codegen/cuda/Shapes.h"
#include "test/gpu/Invocation.h"

namespace strata::cuda {
namespace {

constexpr uint64_t buckets[] = {1, 3, 8, 12, 13, 140};

/// Of kernels that take weight types as linear does, some stand for all.
std::vector<std::string> kernels() {
  std::vector<std::string> names;
  for (std::string &name : kernelNames())
    if ((!hasTypesOfLinear(name) || !isOneOfMany(name)) && !storesAnotherType(name))
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
  float size; ///< What is small beside it counts as it: 1, or the root of the mean square.
};

std::optional<Numbers> numbersIn(const Invocation &invocation, size_t index) {
  const SlotSpec &slot = invocation.signature->slots[index];
  std::string_view family = invocation.signature->family;
  std::string type(invocation.typeOf(slot));
  bool isWritten =
      slot.kind == fb::SlotKind::State && (family == "norm_qkv" || family == "qkv_rope");
  if (isWritten)
    type = invocation.stateType(slot);
  float tolerance = type == "bf16" ? 8e-3f : type == "f16" ? 1e-3f : 2e-5f;
  if (family == "attention_prompt") // queries and weights are rounded too
    tolerance = std::max(tolerance, invocation.part(1) == "bf16" ? 2e-2f : 3e-3f);
  if (invocation.roundsActivations())
    tolerance = std::max(tolerance, 1e-4f);
  if (slot.name == "lists" ||
      (!isWritten && slot.kind != fb::SlotKind::Buffer && !invocation.keepsFloats(slot) &&
       !slot.name.ends_with("log_probability")))
    return std::nullopt;
  Numbers result{numbersOf(invocation.memory[index], type), tolerance, 1};
  if (tolerance > 1e-4f) {
    double sum = 0;
    for (float value : result.values)
      sum += double(value) * value;
    result.size = float(std::sqrt(sum / double(result.values.size())));
  }
  return result;
}

class CudaKernels : public testing::Test {
protected:
  void SetUp() override {
    for (const std::string &kernel : kernels())
      for (uint64_t rows : isGemm(kernel) ? std::vector<uint64_t>() : bucketsOf(kernel))
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
      uint64_t value = slot.kind == fb::SlotKind::Scratch ? 0 : invocation.constant(slot.name);
      if (slot.kind == fb::SlotKind::Scratch && invocation.signature->family == "sample") {
        STRATA_ASSIGN_OR_RETURN(std::byte * scratch,
                                place(Bytes(invocation.rows * sampleConstant("scratch_stride"))));
        value = reinterpret_cast<uint64_t>(scratch);
      }
      command.slots.push_back(value);
      continue;
    }
    if (slot.optional && invocation.memory[i].empty()) {
      command.slots.push_back(0);
      continue;
    }
    STRATA_ASSIGN_OR_RETURN(places.back(), place(invocation.memory[i]));
    command.slots.push_back(reinterpret_cast<uint64_t>(places.back()));
  }
  STRATA_ASSIGN_OR_RETURN(std::byte * counts, place(invocation.counts));
  command.validRows = reinterpret_cast<uint64_t>(counts);
  if (isGemm(invocation.kernel)) {
    command.gemm = gemmOf(invocation.kernel, command.slots, cudaSm90.gemmWorkspaceBytes);
  } else {
    Specialisation wanted = sampleSpecialisation(invocation.kernel, invocation.rows, cudaSm90);
    auto found = std::find(specialisations_.begin(), specialisations_.end(), wanted);
    LaunchShape shape = launchShape(invocation.kernel, invocation.rows, sampleConstant, cudaSm90);
    command.code = {functionName(uint32_t(found - specialisations_.begin())), uint32_t(shape.gridX),
                    uint32_t(shape.gridY), shape.threads, shape.sharedBytes};
  }
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
    if (slot.name == "workspace")
      continue;
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
      ASSERT_LE(std::fabs(a - b), wanted->tolerance * (wanted->size + std::fabs(b)))
          << "slot " << slot.name << " at " << at
          << (b == old[at] ? ", which is past the valid rows" : "");
    }
  }
}

TEST_F(CudaKernels, GiveTheCpusResults) {
  std::set<std::string> run;
  for (const std::string &kernel : kernels())
    for (uint64_t rows : bucketsOf(kernel)) {
      std::set<uint64_t> valids = {1, std::min<uint64_t>(5, rows), rows - (rows > 1), rows};
      if (isGemm(kernel)) // whether valid or not
        valids = {rows};
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
