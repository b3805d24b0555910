// Each rule of verifyPlan(), broken alone, is found and named with the place and the numbers.
#include "runtime/plan/PlanVerifier.h"

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/runtime/plan/TinyPlan.h"

using namespace strata;
using namespace strata::test;
using testing::HasSubstr;

namespace {

Status verify(const fb::PlanT &plan) {
  std::vector<uint8_t> bytes = packPlan(plan);
  return verifyPlan(bytes, {4096, 1 << 20}).status();
}

void setSlot(fb::PlanT &plan, const std::string &op, size_t slot,
             const std::function<fb::Slot(const fb::Slot &)> &change, size_t stage = 0) {
  for (auto &command : plan.stages[stage]->forwards[R2S2]->commands)
    if (command->op == op) {
      command->slots[slot] = change(command->slots[slot]);
      return;
    }
  FAIL() << "no command " << op;
}

struct Break {
  const char *name;
  std::function<void(fb::PlanT &)> apply;
  std::vector<std::string> expected;
  uint32_t stages = 1;
};

std::vector<Break> breaks() {
  using fb::Access;
  using fb::Slot;
  using fb::SlotKind;
  auto fieldOf = [](fb::BlockLayoutT &block, const std::string &name) -> fb::FieldT & {
    for (auto &field : block.fields)
      if (field->name == name)
        return *field;
    std::abort();
  };
  auto constant = [](uint64_t value) {
    return [=](const Slot &) { return Slot(SlotKind::Constant, Access::None, 0, value, 0); };
  };
  auto fieldOffset = [fieldOf](fb::PlanT &plan, const std::string &name) {
    return fieldOf(*plan.stages[0]->step, name).offset;
  };
  return {
      {"KernelIndex",
       [](auto &p) { p.stages[0]->forwards[0]->commands[3]->kernel = 99; },
       {"runs kernel 99 of", "command '3 (linear 0.k)'", "forward 'r1s1'", "stage 's0'"}},
      {"UnknownKernel",
       [](auto &p) { p.stages[0]->kernels[0]->name = "embed.q9"; },
       {"no kernel 'embed.q9'"}},
      {"SlotCount",
       [](auto &p) { p.stages[0]->forwards[0]->commands[0]->slots.pop_back(); },
       {"kernel 'embed.f32' takes 9 slots but the command has 8"}},
      {"SlotKind",
       [](auto &p) {
         setSlot(p, "norm", 0,
                 [](const Slot &s) { return Slot(SlotKind::Scratch, s.access(), 0, 0, 64); });
       },
       {"is a Scratch (Read) where the kernel takes a Buffer (Read)", "slot 'x'"}},
      {"SlotAccess",
       [](auto &p) {
         setSlot(p, "norm", 0, [](const Slot &s) {
           return Slot(s.kind(), Access::Write, 0, s.offset(), s.bytes());
         });
       },
       {"Buffer (Write) where the kernel takes a Buffer (Read)"}},
      {"OptionalConstantOtherThanNull",
       [](auto &p) {
         setSlot(p, "linear 0.q", 2,
                 [](const Slot &) { return Slot(SlotKind::Constant, Access::None, 0, 4096, 0); });
       },
       {"slot 'bias'"}},
      {"BufferPastItsEnd",
       [](auto &p) {
         setSlot(p, "norm", 0, [](const Slot &s) {
           return Slot(s.kind(), s.access(), 0, s.offset(), s.bytes() + 4);
         });
       },
       // 2 rows of 32 F32 = 256 bytes at 0
       {"bytes 0..+260 of the arena, but buffer 'residual' ends at 256"}},
      {"BufferOutsideTheArena",
       [](auto &p) {
         setSlot(p, "norm", 2, [](const Slot &s) {
           return Slot(s.kind(), s.access(), 0, uint64_t(1) << 40, s.bytes());
         });
       },
       {"belongs to no buffer alive here"}},
      {"BufferExtentOverflows",
       [](auto &p) {
         setSlot(p, "norm", 0,
                 [](const Slot &s) { return Slot(s.kind(), s.access(), 0, 4, UINT64_MAX); });
       },
       {"buffer 'residual' ends at 256"}},
      {"DeadBuffer",
       [](auto &p) {
         // The norm's output is read by three products: let it die after the first.
         for (auto &buffer : p.stages[0]->forwards[R2S2]->buffers)
           if (buffer->name == "0.n")
             buffer->upper = 3;
       },
       {"belongs to no buffer alive here", "linear 0.k"}},
      {"BuffersOverlap",
       [](auto &p) {
         for (auto &buffer : p.stages[0]->forwards[R2S2]->buffers)
           if (buffer->name == "0.q rows")
             buffer->offset -= 4;
       },
       {"are alive at once and overlap"}},
      {"Peak", [](auto &p) { p.stages[0]->forwards[R2S2]->peak += 1; }, {"the peak is said to be"}},
      {"Arena", [](auto &p) { p.stages[0]->arena_bytes += 64; }, {"arena_bytes is"}},
      {"LowerBoundTooLow",
       [](auto &p) { p.stages[0]->forwards[R2S2]->lower_bound = 8; },
       {"alive at once but the lower bound says 8"}},
      {"BufferLifetime",
       [](auto &p) { p.stages[0]->forwards[0]->buffers[0]->upper = 1000; },
       {"is alive during commands [0, 1000) of"}},
      {"WeightIndex",
       [](auto &p) {
         setSlot(p, "embed", 0, [](const Slot &s) { return Slot(s.kind(), s.access(), 77, 0, 4); });
       },
       {"weight 77 of 12"}}, // embedding, 5 a layer, final norm
      {"WeightExtent",
       [](auto &p) {
         setSlot(p, "embed", 0, [](const Slot &s) {
           return Slot(s.kind(), s.access(), s.object(), 4, s.bytes());
         });
       },
       {"bytes 4..+5120 of weight 'embedding', which has 5120"}},
      {"WeightPastItsSegment",
       [](auto &p) { p.stages[0]->weights[0]->offset = 64; },
       {"bytes 64..+5120 of segment 'embedding', which ends at 5120"}},
      {"WeightAlignment",
       [](auto &p) {
         p.segments[0]->bytes += 64;
         p.stages[0]->weights[0]->offset = 32;
       },
       {"lies at byte 32 of its segment"}},
      {"WeightBytes",
       [](auto &p) { p.stages[0]->weights[0]->shape[0] = 41; },
       {"1312 elements of type 'f32' take 5248"}}, // 41 * 32 * 4
      {"WeightShapeOverflows",
       [](auto &p) { p.stages[0]->weights[0]->shape = {1ull << 40, 1ull << 40}; },
       {"shape of no elements or of more"}},
      {"WeightType", [](auto &p) { p.stages[0]->weights[0]->type = "f31"; }, {"type 'f31'"}},
      {"WeightLayout",
       [](auto &p) { p.stages[0]->weights[0]->layout = "tiled"; },
       {"layout 'tiled'"}},
      {"StateExtent",
       [](auto &p) {
         setSlot(p, "attention", 2, [](const Slot &s) {
           return Slot(s.kind(), s.access(), 0, s.offset() + 2048, s.bytes());
         });
       },
       {"of a block of state 'kv', which ends at 2048"}}, // 2 layers x k, v x 4 tokens x 128
      {"StateComponents",
       [](auto &p) { p.stages[0]->states[0]->components[1]->offset -= 4; },
       {"components 'k' (0..512) and 'v' (508..1020) of state 'kv' overlap"}},
      {"StateBlocks",
       [](auto &p) { p.stages[0]->states[0]->blocks_per_sequence = 5; },
       {"has 5 blocks a sequence; a context of 24 tokens needs 6"}},
      {"StatePromise",
       [](auto &p) { p.stages[0]->states[0]->promised_blocks = 5; },
       {"state 'kv' promises 5 blocks of 2048 bytes; at least 6 are needed"}},
      {"StepField",
       [fieldOf](auto &p) { fieldOf(*p.stages[0]->step, "seed").offset = 1 << 20; },
       {"field 'seed' of the step block has 3 elements of 8 bytes at 1048576"}},
      {"StepSlot",
       [](auto &p) {
         setSlot(p, "norm", 3, [](const Slot &s) {
           return Slot(s.kind(), s.access(), 0, s.offset(), s.bytes() + 1);
         });
       },
       {"lie in no field of a block"}},
      {"FieldOverlap",
       [](auto &p) { p.stages[0]->out->fields[1]->offset = 4; },
       {"fields 'id' (0..8) and 'log_probability' (4..12) of the out block overlap"}},
      {"FieldType", [](auto &p) { p.stages[0]->out->fields[1]->type = "f64"; }, {"type 'f64'"}},
      {"ScratchStride",
       [](auto &p) {
         setSlot(p, "linear 0.q", 6,
                 [](const Slot &) { return Slot(SlotKind::Constant, Access::None, 0, 64, 0); });
       },
       {"the stride 64 is outside", "slot 'scratch_stride'"}},
      {"Items",
       [](auto &p) {
         *p.stages[0]->forwards[0]->commands[0]->items = fb::Items(UINT32_MAX, 0, 0, UINT32_MAX);
       },
       {"items; 1 to 4294967295 are allowed"}},
      // Constants and items that would take a kernel out of its slots.
      {"WidthPastTheBuffer",
       [constant](auto &p) { setSlot(p, "norm", 5, constant(33)); },
       {"kernel 'rms_norm' touches 264 bytes of slot 'x', which has 256"}}, // 2 rows x 33 x 4
      {"WidthThatOverflows",
       [constant](auto &p) { setSlot(p, "gather", 3, constant(uint64_t(1) << 62)); },
       {"kernel 'gather_rows' has constants that make slot 'x' empty or larger"}},
      {"NoWidth",
       [constant](auto &p) { setSlot(p, "norm", 5, constant(0)); },
       {"has constants that make slot 'x' empty"}},
      {"OutputsPastTheWeight",
       [constant](auto &p) { setSlot(p, "linear embedding", 8, constant(41)); },
       {"kernel 'linear.f32' touches 328 bytes of slot 'y', which has 320"}}, // 2 rows x 41 x 4
      {"VocabularyPastTheTable",
       [constant](auto &p) { setSlot(p, "embed", 7, constant(41)); },
       {"touches 5248 bytes of slot 'table', which has 5120"}}, // 41 x 32 x 4
      {"VocabularyOfTheSampler",
       [constant](auto &p) { setSlot(p, "sample", 27, constant(39)); },
       {"draws from 39 tokens of a vocabulary of 40"}},
      {"ContextOfTheSampler",
       [constant](auto &p) { setSlot(p, "sample", 28, constant(TinyModel::context - 1)); },
       {"keeps a history of"}},
      {"HistoryOfTooFewTokens",
       [](auto &p) {
         setSlot(p, "sample", 15, [](const Slot &s) {
           return Slot(s.kind(), s.access(), 0, s.offset(), s.bytes() - 4);
         });
       },
       {"kernel 'sample' touches", "of slot 'history'"}},
      {"MaskOfTooFewWords",
       [](auto &p) {
         setSlot(p, "sample", 20, [](const Slot &s) {
           return Slot(s.kind(), s.access(), 0, s.offset(), s.bytes() - 4);
         });
       },
       {"kernel 'sample' touches", "of slot 'mask'"}},
      {"HeadsThatDoNotDivide",
       [constant](auto &p) { setSlot(p, "attention", 8, constant(0)); },
       {"has 2 query heads for 0 of keys and values"}},
      {"KeyWidthPastTheBlock",
       [constant](auto &p) { setSlot(p, "attention", 10, constant(17)); },
       {"touches 272 bytes of slot 'y', which has 256"}}, // 2 rows x 2 heads x 17 x 4
      {"BlockStride",
       [constant](auto &p) { setSlot(p, "kv_write", 7, constant(4096)); },
       {"walks blocks of 4 tokens, 4096 bytes apart, 6 a sequence", "have 4, 2048 and 6"}},
      {"ItemsPastTheRows",
       [](auto &p) { *p.stages[0]->forwards[R2S2]->commands[0]->items = fb::Items(2, 0, 0, 0); },
       {"kernel 'embed.f32' has 2 items a row"}},
      {"TilesPastTheOutputs",
       [](auto &p) { *p.stages[0]->forwards[R2S2]->commands[2]->items = fb::Items(0, 0, 0, 3); },
       {"kernel 'linear.f32' has 3 items; 32 outputs are 2"}},
      {"ProductOfALibraryOnACpu",
       [](auto &p) { p.stages[0]->forwards[R2S2]->commands[2]->kind = fb::CommandKind::Gemm; },
       {"kernel 'linear.f32' is run by a Dispatch, but its command is a Gemm"}},
      {"LibraryKernelOnACpu",
       [](auto &p) { p.stages[0]->kernels[2]->name = "gemm.f32"; },
       {"this build has no kernel 'gemm.f32' for cpu:"}},
      {"UnalignedBuffer",
       [](auto &p) {
         setSlot(p, "norm", 0, [](const Slot &s) {
           return Slot(s.kind(), s.access(), 0, s.offset() + 2, s.bytes() - 2);
         });
       },
       {"begins at byte 2, which is no multiple of 4", "slot 'x'"}},
      {"WeightOfAnotherType",
       [](auto &p) {
         p.stages[0]->weights[1]->type = "f16"; // the same bytes
         p.stages[0]->weights[1]->shape = {64};
       },
       {"weight '0.norm' is of type 'f16'; the kernel reads 'f32'", "slot 'weight'"}},
      {"StateOfAnotherType",
       [](auto &p) { p.stages[0]->states[0]->components[0]->type = "f16"; },
       {"bytes 0..+512 of a block of state 'kv' are no component of type 'f32'"}},
      {"AnotherFieldForAnIndex",
       [fieldOffset](auto &p) {
         setSlot(p, "norm", 3, [&](const Slot &s) {
           return Slot(s.kind(), s.access(), 0, fieldOffset(p, "seed"), s.bytes());
         });
       },
       {"takes field 'row_sequence' as slot 'row_sequence' but is given 'seed'"}},
      {"ContentBesideASegment",
       [](auto &p) {
         p.weights_place = fb::WeightsPlace::Store;
         p.store = "w";
         for (auto &segment : p.segments)
           segment->name = std::string(32, 'a');
         p.stages[0]->weights[0]->content.assign(p.stages[0]->weights[0]->bytes, 0);
       },
       {"has a content of its own beside"}},
      {"ContentOfAnotherSize",
       [](auto &p) { p.stages[0]->weights[0]->content.assign(4, 0); },
       {"bytes but a content of 4"}},
      {"Logits", [](auto &p) { p.stages[0]->forwards[R2S2]->logits = 0; }, {"logits buffer"}},
      {"LogitsIndex",
       [](auto &p) { p.stages[0]->forwards[R2S2]->logits = 500; },
       {"the logits are buffer 500 of"}},
      {"TailCount", [](auto &p) { p.tails.pop_back(); }, {"has 2 tails; chunks of 4 rows need 3"}},
      {"TailTooShort",
       [](auto &p) { p.tails[2]->buckets = {R2S2}; },
       {"the tail of 3 rows covers only 2"}},
      {"TailTooLong",
       [](auto &p) { p.tails[0]->buckets = {R1S1, R1S1}; },
       {"goes on after 1 rows are covered"}},
      {"TailWithoutBody",
       [](auto &p) { p.tails[0]->buckets = {H1}; },
       {"uses bucket 'h1', which has no body"}},
      {"BucketMaximum", [](auto &p) { p.max_rows = 8; }, {"max_rows is 8"}},
      {"BucketName",
       [](auto &p) { p.buckets[1]->name = "r1s1"; },
       {"two buckets are named 'r1s1'"}},
      {"ForwardMissing",
       [](auto &p) { p.stages[0]->forwards.erase(p.stages[0]->forwards.begin()); },
       {"bucket 'r1s1' has no forward"}},
      {"ForwardTwice",
       [](auto &p) { p.stages[0]->forwards[1]->bucket = 0; },
       {"bucket 'r1s1' has two forwards"}},
      {"Target", [](auto &p) { p.stages[0]->target = "cpu:6502"; }, {"target 'cpu:6502'"}},
      {"Layers", [](auto &p) { p.stages[0]->end_layer = 1; }, {"hold 1 layers, the plan 2"}},
      {"EndOfGeneration",
       [](auto &p) { p.end_of_generation = {40}; },
       {"id 40 of a vocabulary of 40"}},
      {"SegmentNameInPlanWithoutWeights",
       [](auto &p) { p.segments[0]->name = std::string(32, 'a'); },
       {"in a plan without weights"}},
      {"SegmentName",
       [](auto &p) {
         p.weights_place = fb::WeightsPlace::Store, p.store = "w",
         p.segments[0]->name = "../../etc/passwd";
       },
       {"is not named by 32 lower-case hexadecimal digits"}},
      {"SegmentPlace",
       [](auto &p) {
         p.weights_place = fb::WeightsPlace::Inside;
         for (auto &segment : p.segments) {
           segment->name = std::string(32, 'a');
           segment->file_offset = 1 << 20;
         }
       },
       {"has bytes 1048576..+5120 but segments lie in 4096..1048576"}},
      {"NameWithControlCharacter",
       [](auto &p) { p.stages[0]->weights[0]->name = "a\x1b[2J"; },
       {"control character 0x1b"}},
      {"Vocabulary",
       [](auto &p) {
         p.vocabulary = std::make_unique<fb::VocabularyT>();
         p.vocabulary->tokens = {'a', 'b'};
         p.vocabulary->token_ends = {1, 3};
         p.vocabulary->kinds = {1, 1};
       },
       {"token 1 ends at byte 3, outside 1..2"}},
      // Two stages.
      {"ForeignHandoffWritten",
       [](auto &p) {
         setSlot(
             p, "gather", 1,
             [](const Slot &s) { return Slot(SlotKind::HandoffOut, s.access(), 0, 0, 256); }, 1);
       },
       {"handoff 's0 to s1' is written by stage 's0', not by this one", "stage 's1'"},
       2},
      {"ForeignHandoffRead",
       [](auto &p) {
         setSlot(p, "norm", 0,
                 [](const Slot &s) { return Slot(SlotKind::HandoffIn, s.access(), 0, 0, 256); });
       },
       {"handoff 's0 to s1' is read by stage 's1', not by this one", "stage 's0'"},
       2},
      {"HandoffCycle",
       [](auto &p) { p.handoffs[0]->producer = 1, p.handoffs[0]->consumer = 0; },
       {"leads from stage 1 back to stage 0"},
       2},
      {"HandoffExtent",
       [](auto &p) {
         setSlot(
             p, "receive", 0,
             [](const Slot &s) { return Slot(s.kind(), s.access(), 0, 384, s.bytes()); }, 1);
       },
       {"bytes 384..+256 of handoff 's0 to s1', whose slots end at 512"},
       2},
      {"HandoffSlotBytes",
       [](auto &p) { p.handoffs[0]->slot_bytes = 256; },
       {"2 slots of 256 bytes for 4 rows of 128 bytes"},
       2},
      {"StagesOutOfOrder",
       [](auto &p) { std::swap(p.stages[0], p.stages[1]); },
       {"holds layers [1, 2) where [0, ...) comes next"},
       2},
      {"StateDisagrees",
       [](auto &p) { p.stages[1]->states[0]->promised_blocks += 1; },
       {"state 'kv' of stage 's1'"},
       2},
  };
}

class BrokenPlan : public testing::TestWithParam<Break> {};

TEST_P(BrokenPlan, IsNamed) {
  fb::PlanT plan = tinyPlan({.stages = GetParam().stages});
  ASSERT_TRUE(verify(plan).isOk()) << verify(plan).toString();
  GetParam().apply(plan);
  Status status = verify(plan);
  ASSERT_FALSE(status.isOk());
  for (const std::string &part : GetParam().expected)
    EXPECT_THAT(status.toString(), HasSubstr(part));
}

INSTANTIATE_TEST_SUITE_P(PlanVerifier, BrokenPlan, testing::ValuesIn(breaks()),
                         [](const auto &info) { return info.param.name; });

TEST(PlanVerifier, AcceptsBothInstructionSets) {
  for (const char *target : {"cpu:x86-64-v3", "cpu:x86-64-v4"}) {
    Status status = verify(tinyPlan({.stages = 2, .target = target}));
    EXPECT_TRUE(status.isOk()) << status.toString();
  }
}

TEST(PlanVerifier, RefusesNoBytes) { EXPECT_FALSE(verifyPlan({}, {}).isOk()); }

} // namespace
