// What a plan says of a GPU's launches, broken alone, is found and named: a tiny plan with launches
// in place of code, whose first product is a library's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen/cuda/KernelTable.h"
#include "runtime/base/CheckedMath.h"
#include "runtime/plan/DriverLines.h"
#include "runtime/plan/PlanVerifier.h"
#include "test/runtime/plan/TinyPlan.h"

using namespace strata;
using namespace strata::test;
using fb::Access;
using fb::SlotKind;
using testing::HasSubstr;

namespace {

constexpr char target[] = "cuda:sm_90";

Status verify(const fb::PlanT &plan) {
  return verifyPlan(packPlan(plan), {4096, 1 << 20}).status();
}

size_t slotIndex(std::string_view kernel, std::string_view slot) {
  std::span<const SlotSpec> specs = findSignature(kernel)->slots;
  return size_t(std::ranges::find(specs, slot, &SlotSpec::name) - specs.begin());
}

/// One command of `stage`, whose kernel is its own.
struct Site {
  fb::StageT &stage;
  fb::ForwardT &forward;
  fb::CommandT &command;

  fb::KernelT &kernel() const { return *stage.kernels[command.kernel]; }
  fb::Slot &slot(std::string_view name) const {
    return command.slots[slotIndex(kernel().name, name)];
  }
  /// The constant in the command, and the one that its code is made for.
  void setConstant(std::string_view name, uint64_t value) const {
    slot(name) = fb::Slot(SlotKind::Constant, Access::None, 0, value, 0);
    kernel().constants = constants();
  }
  std::vector<uint64_t> constants() const {
    return cuda::constantValues(*findSignature(kernel().name), command.slots,
                                [](const fb::Slot &slot) { return slot.offset(); });
  }
  /// A buffer of the command alone, above all others.
  fb::Slot addBuffer(const char *name, uint64_t bytes, Access access) const {
    auto at = uint32_t(
        std::ranges::find(forward.commands, &command, [](auto &each) { return each.get(); }) -
        forward.commands.begin());
    auto buffer = std::make_unique<fb::BufferT>();
    buffer->name = name;
    buffer->bytes = bytes;
    buffer->offset = alignUp(forward.peak, 64);
    buffer->lower = at;
    buffer->upper = at + 1;
    forward.peak = buffer->offset + bytes;
    forward.lower_bound = forward.peak;
    stage.arena_bytes = std::max(stage.arena_bytes, forward.peak);
    fb::Slot slot(SlotKind::Buffer, access, 0, buffer->offset, bytes);
    forward.buffers.push_back(std::move(buffer));
    return slot;
  }
  /// Turns the command into one of `kernel` with these slots.
  void become(const std::string &name, std::vector<fb::Slot> slots, fb::Items items) const {
    kernel().name = name;
    command.slots = std::move(slots);
    *command.items = items;
  }
  /// Launches the kernel as its constants want it.
  void launch(uint64_t rows) const {
    kernel().constants = constants();
    if (cuda::isGemm(kernel().name)) {
      command.kind = fb::CommandKind::Gemm;
      return;
    }
    cuda::LaunchShape shape = cuda::launchShape(
        kernel().name, rows, [&](std::string_view name) { return slot(name).offset(); },
        *findCudaTarget(target));
    kernel().function = "f";
    kernel().threads = shape.threads;
    kernel().shared_bytes = shape.sharedBytes;
    kernel().rows = shape.rows;
    command.grid = std::make_unique<fb::Grid>(uint32_t(shape.gridX), uint32_t(shape.gridY));
  }
};

fb::Slot constant(uint64_t value) { return {SlotKind::Constant, Access::None, 0, value, 0}; }

Site find(fb::PlanT &plan, const std::string &op) {
  fb::StageT &stage = *plan.stages[0];
  fb::ForwardT &forward = *stage.forwards[R4S1];
  for (auto &command : forward.commands)
    if (command->op == op)
      return {stage, forward, *command};
  std::abort();
}

/// linear 0.q of bucket r4s1 is a library's.
void useLibrary(fb::PlanT &plan) {
  Site site = find(plan, "linear 0.q");
  std::vector<fb::Slot> from = site.command.slots;
  fb::Slot workspace =
      site.addBuffer("workspace", findCudaTarget(target)->gemmWorkspaceBytes, Access::Write);
  site.become("gemm.f32",
              {from[0], from[1], constant(0), constant(0), constant(0), from[3], workspace,
               constant(4), constant(TinyModel::hidden), constant(TinyModel::hidden), constant(0)},
              fb::Items(0, 0, 0, 1));
}

/// A plan for a GPU: each command has a kernel of its own, launched as it must be.
fb::PlanT gpuPlan() {
  fb::PlanT plan = tinyPlan({.target = target});
  fb::StageT &stage = *plan.stages[0];
  stage.module_.assign(64, 0);
  const uint8_t magic[] = {0x7F, 'E', 'L', 'F', 2};
  std::ranges::copy(magic, stage.module_.begin());
  stage.module_[18] = 190; // EM_CUDA
  using namespace driver_line;
  for (const char *name : {modules, libraries, graphs, localMemory, context, driver_line::floor}) {
    plan.memory.push_back(std::make_unique<fb::MemoryLineT>());
    plan.memory.back()->name = name;
  }
  std::vector<std::unique_ptr<fb::KernelT>> kernels;
  for (auto &forward : stage.forwards)
    for (auto &command : forward->commands) {
      kernels.push_back(std::make_unique<fb::KernelT>());
      kernels.back()->name = stage.kernels[command->kernel]->name;
      command->kernel = uint32_t(kernels.size() - 1);
    }
  stage.kernels = std::move(kernels);
  useLibrary(plan);
  for (auto &forward : stage.forwards) {
    uint64_t rows = plan.buckets[forward->bucket]->rows;
    for (auto &command : forward->commands)
      Site{stage, *forward, *command}.launch(rows);
  }
  return plan;
}

struct Break {
  const char *name;
  const char *op;
  std::function<void(const Site &)> apply;
  std::vector<std::string> expected;
};

constexpr char gemm[] = "linear 0.q";

std::vector<Break> breaks() {
  auto set = [](std::string_view name, uint64_t value) {
    return [=](const Site &site) { site.setConstant(name, value); };
  };
  auto shift = [](std::string_view name, int64_t by) { // keeps the end
    return [=](const Site &site) {
      fb::Slot &slot = site.slot(name);
      slot = fb::Slot(slot.kind(), slot.access(), slot.object(), slot.offset() + uint64_t(by),
                      slot.bytes() - uint64_t(by));
    };
  };
  return {
      {"ProductDispatched",
       gemm,
       [](const Site &site) { site.command.kind = fb::CommandKind::Dispatch; },
       {"kernel 'gemm.f32' is run by a Gemm, but its command is a Dispatch"}},
      {"KernelAsAProduct",
       "norm",
       [](const Site &site) { site.command.kind = fb::CommandKind::Gemm; },
       {"kernel 'rms_norm' is run by a Dispatch, but its command is a Gemm"}},
      {"KernelAsACopy",
       "norm",
       [](const Site &site) { site.command.kind = fb::CommandKind::Copy; },
       {"its command is a Copy"}},
      {"ProductWithAGrid",
       gemm,
       [](const Site &site) { site.command.grid = std::make_unique<fb::Grid>(1, 1); },
       {"kernel 'gemm.f32' of a library has a grid"}},
      {"ProductWithCode",
       gemm,
       [](const Site &site) { site.kernel().threads = 32; },
       {"kernel 'gemm.f32' of a library has code of its own"}},
      {"ProductOfOtherRows", gemm, set("rows", 5), {"multiplies 5 rows of a bucket of 4"}},
      {"ProductOfNoRows", gemm, set("rows", 0), {"multiplies 0 rows"}},
      {"ProductOfNoColumns", gemm, set("columns", 0), {"make slot 'x' empty"}},
      {"ProductOfNoOutputs", gemm, set("outputs", 0), {"make slot 'y' empty"}},
      {"ColumnsThatOverflow",
       gemm,
       set("columns", uint64_t(1) << 62),
       {"make slot 'x' empty or larger"}},
      {"ColumnsPastX",
       gemm,
       set("columns", 33),
       {"touches 528 bytes of slot 'x', which has 512"}}, // 4 rows x 33 x 4
      {"OutputsPastTheWeights",
       gemm,
       [](const Site &site) { site.setConstant("outputs", 31); },
       {"has 31 outputs of 32 columns, but weights of 4096 bytes"}}, // 32 x 32 x 4
      {"SmallWorkspace",
       gemm,
       [](const Site &site) {
         fb::Slot &slot = site.slot("workspace");
         slot = fb::Slot(slot.kind(), slot.access(), 0, slot.offset(), slot.bytes() - 256);
       },
       {"is given a workspace of 33554176 bytes; 33554432 is right"}},
      {"WeightsApart",
       gemm,
       [](const Site &site) { // q and v: k lies between
         site.slot("weight_2") = fb::Slot(SlotKind::Weight, Access::Read, 4, 0, 4096);
       },
       {"reads weights '0.q' and '0.v' as one, but the second does not lie behind the first"}},
      {"PartOfAJoinedWeight",
       gemm,
       [](const Site &site) {
         fb::Slot &slot = site.slot("weight");
         slot = fb::Slot(slot.kind(), slot.access(), slot.object(), 0, 2048);
         site.slot("weight_2") =
             fb::Slot(SlotKind::Weight, Access::Read, slot.object() + 1, 0, 2048);
       },
       {"reads weights '0.q' and '0.k' as one"}},
      {"ProductOfAnotherType",
       gemm,
       [](const Site &site) { site.kernel().name = "gemm.bf16"; },
       {"weight '0.q' is of type 'f32'; the kernel reads 'bf16'"}},
      {"UnalignedBuffer", "linear 0.k", shift("x", 4), {"is no multiple of 16", "slot 'x'"}},
      {"UnalignedWeight", "linear 0.k", shift("weight", 8), {"begins at byte 8, which is no"}},
      {"UnalignedState", "kv_write", shift("state", 4), {"is no multiple of 16", "slot 'state'"}},
      {"CodeForOtherConstants",
       "linear 0.k",
       [](const Site &site) { ++site.kernel().constants[0]; },
       {"was made for a 'scratch_stride'"}},
      {"TooFewConstants",
       "linear 0.k",
       [](const Site &site) { site.kernel().constants.pop_back(); },
       {"is made for 3 constants; it takes 4"}},
      {"NoGrid",
       "linear 0.k",
       [](const Site &site) { site.command.grid.reset(); },
       {"is launched with 0 x 0 blocks"}},
      {"SmallGrid",
       "norm",
       [](const Site &site) { *site.command.grid = fb::Grid(3, 1); },
       {"is launched with 3 x 1 blocks"}},
      {"ConvertedRowsNotByFour",
       "norm",
       [](const Site &site) {
         fb::Slot y = site.addBuffer("narrow", 256, Access::Write);
         site.become("convert.bf16", {site.slot("x"), y, constant(30)}, fb::Items(1, 0, 0, 0));
         site.launch(4);
       },
       {"kernel 'convert.bf16' has rows of 30 elements"}},
      {"PairsNotBySixteenBytes",
       "norm",
       [](const Site &site) {
         fb::Slot y = site.addBuffer("narrow", 256, Access::Write);
         site.become("gated_pair.silu.bf16", {site.slot("x"), y, constant(12)},
                     fb::Items(1, 0, 0, 0));
         site.launch(4);
       },
       {"kernel 'gated_pair.silu.bf16' has rows of 12 elements"}},
      {"AttentionOfNoHeads",
       "attention",
       [](const Site &site) { site.setConstant("kv_heads", 0); },
       {"has 2 query heads for 0 of keys and values"}},
  };
}

class BrokenGpuPlan : public testing::TestWithParam<Break> {};

TEST_P(BrokenGpuPlan, IsNamed) {
  fb::PlanT plan = gpuPlan();
  ASSERT_TRUE(verify(plan).isOk()) << verify(plan).toString();
  GetParam().apply(find(plan, GetParam().op));
  Status status = verify(plan);
  ASSERT_FALSE(status.isOk());
  for (const std::string &part : GetParam().expected)
    EXPECT_THAT(status.toString(), HasSubstr(part));
}

INSTANTIATE_TEST_SUITE_P(PlanVerifier, BrokenGpuPlan, testing::ValuesIn(breaks()),
                         [](const auto &info) { return info.param.name; });

// q, k and v lie one behind the other: 32 outputs each.
TEST(GpuPlan, MultipliesJoinedWeights) {
  fb::PlanT plan = gpuPlan();
  Site site = find(plan, gemm);
  for (uint32_t i : {1, 2})
    site.slot(i == 1 ? "weight_2" : "weight_3") =
        fb::Slot(SlotKind::Weight, Access::Read, site.slot("weight").object() + i, 0, 4096);
  site.setConstant("outputs", 96);
  EXPECT_THAT(verify(plan).toString(), HasSubstr("touches 1536 bytes of slot 'y', which has 512"));
  site.slot("y") = site.addBuffer("joined", 1536, Access::ReadWrite);
  // What was computed before is missed by its readers, not by the rules of one command.
  Status status = verify(plan);
  EXPECT_TRUE(status.isOk()) << status.toString();
}

} // namespace
