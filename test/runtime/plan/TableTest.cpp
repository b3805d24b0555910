// Tables of layers in a plan: a stage holds layers of its own, at the place that all stages agree
// on, and a command reads its own layer and no other (row 4 of docs/guarantees.md).
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/plan/MemoryTable.h"
#include "runtime/plan/PlanVerifier.h"
#include "runtime/plan/WeightPlaces.h"
#include "test/runtime/plan/TinyPlan.h"

using namespace strata;
using namespace strata::test;
using testing::HasSubstr;

namespace {

constexpr uint64_t layerBytes = 32 * 32 * 4; // a layer's q

/// The tiny plan with every layer's q in one table, a segment of its own; each stage holds its
/// part.
fb::PlanT tablePlan(uint32_t stages) {
  fb::PlanT plan = tinyPlan({.stages = stages});
  auto segment = std::make_unique<fb::SegmentT>(*plan.segments[0]);
  segment->label = std::string("q");
  segment->bytes = 2 * layerBytes;
  plan.segments.push_back(std::move(segment));
  for (auto &stage : plan.stages) {
    uint32_t first = stage->first_layer, end = stage->end_layer;
    uint32_t table = UINT32_MAX;
    for (uint32_t i = 0; i < stage->weights.size(); ++i) {
      fb::WeightT &weight = *stage->weights[i];
      if (!weight.name.ends_with(".q"))
        continue;
      uint32_t layer = uint32_t(std::stoi(weight.name));
      for (auto &forward : stage->forwards)
        for (auto &command : forward->commands)
          for (fb::Slot &slot : command->slots)
            if (slot.kind() == fb::SlotKind::Weight && slot.object() == i)
              slot = {slot.kind(), slot.access(), std::min(table, i), (layer - first) * layerBytes,
                      layerBytes};
      if (table != UINT32_MAX)
        continue; // left behind, read by nobody
      table = i;
      weight.name = std::string("q");
      weight.shape = {end - first, 32, 32};
      weight.segment = uint32_t(plan.segments.size() - 1);
      weight.offset = first * layerBytes;
      weight.bytes = (end - first) * layerBytes;
      weight.first_layer = first;
      weight.end_layer = end;
    }
  }
  return plan;
}

fb::WeightT &tableOf(fb::PlanT &plan, size_t stage) {
  for (auto &weight : plan.stages[stage]->weights)
    if (weight->name == "q")
      return *weight;
  std::abort();
}

/// The slot of q in the first command that reads it, for layer `layer`.
fb::Slot &slotOf(fb::PlanT &plan, size_t stage, int32_t layer) {
  for (auto &command : plan.stages[stage]->forwards[R2S2]->commands)
    for (fb::Slot &slot : command->slots)
      if (command->layer == layer && slot.kind() == fb::SlotKind::Weight &&
          plan.stages[stage]->weights[slot.object()]->name == "q")
        return slot;
  std::abort();
}

void moveSlot(fb::Slot &slot, uint64_t offset) {
  slot = {slot.kind(), slot.access(), slot.object(), offset, slot.bytes()};
}

Status verify(const fb::PlanT &plan) {
  return verifyPlan(packPlan(plan), {4096, 1 << 20}).status();
}

TEST(Table, Row04EachStageHoldsItsLayers) {
  for (uint32_t stages : {1u, 2u}) {
    fb::PlanT plan = tablePlan(stages);
    Status status = verify(plan);
    ASSERT_TRUE(status.isOk()) << status.toString();
    std::vector<uint8_t> bytes = packPlan(plan);
    const fb::Plan &read = *fb::GetPlan(bytes.data());
    for (uint32_t s = 0; s < stages; ++s) {
      // What the stage takes of the table is its part: one run, which begins where the layer does.
      WeightPlaces places(*read.stages()->Get(s));
      std::vector<WeightRun> runs;
      for (const WeightRun &run : places.runs)
        if (run.segment + 1 == plan.segments.size())
          runs.push_back(run);
      ASSERT_EQ(runs.size(), 1u);
      EXPECT_EQ(runs[0].begin, s * layerBytes);
      EXPECT_EQ(runs[0].bytes, 2 / stages * layerBytes);
    }
    const char *layers = stages == 1 ? "layers 0..2, 8.00 KiB" : "layers 1..2";
    EXPECT_THAT(memoryTableText(read), HasSubstr(std::string("table q: ").append(layers)));
  }
}

struct Break {
  const char *name;
  uint32_t stages;
  std::function<void(fb::PlanT &)> apply;
  std::vector<std::string> expected;
};

class BrokenTable : public testing::TestWithParam<Break> {};

TEST_P(BrokenTable, Row04IsRefused) {
  fb::PlanT plan = tablePlan(GetParam().stages);
  ASSERT_TRUE(verify(plan).isOk()) << verify(plan).toString();
  GetParam().apply(plan);
  Status status = verify(plan);
  ASSERT_FALSE(status.isOk());
  for (const std::string &part : GetParam().expected)
    EXPECT_THAT(status.toString(), HasSubstr(part));
}

INSTANTIATE_TEST_SUITE_P(
    Table, BrokenTable,
    testing::Values(Break{"AnotherLayer",
                          1,
                          [](fb::PlanT &p) { moveSlot(slotOf(p, 0, 1), 0); },
                          {"bytes 0..+4096 of table 'q', where layer 1 has 4096..+4096",
                           "stage 's0'"}},
                    Break{"AcrossLayers",
                          1,
                          [](fb::PlanT &p) { moveSlot(slotOf(p, 0, 0), 64); },
                          {"bytes 64..+4096 of table 'q', where layer 0 has 0..+4096"}},
                    Break{"NotOfTheStage",
                          2,
                          [](fb::PlanT &p) {
                            tableOf(p, 1).first_layer = 0, tableOf(p, 1).end_layer = 1;
                            tableOf(p, 1).offset = 0;
                          },
                          {"table 'q' holds 1 layers, [0, 1); the stage's are [1, 2)"}},
                    Break{"EmptyRange",
                          2,
                          [](fb::PlanT &p) { tableOf(p, 1).first_layer = 2; },
                          {"holds 1 layers, [2, 2)"}},
                    Break{"ShapeCountsOthers",
                          1,
                          [](fb::PlanT &p) { tableOf(p, 0).shape = {4, 16, 32}; },
                          {"holds 4 layers, [0, 2)"}},
                    Break{"Bytes",
                          1,
                          [](fb::PlanT &p) { tableOf(p, 0).bytes -= 64; },
                          {"elements of type 'f32' take 8192"}},
                    Break{"PastItsSegment",
                          1,
                          [](fb::PlanT &p) { tableOf(p, 0).offset = 64; },
                          {"bytes 64..+8192 of segment 'q', which ends at 8192"}},
                    Break{"AnotherPlace",
                          2,
                          [](fb::PlanT &p) { tableOf(p, 1).offset = 0; },
                          {"table 'q' of stage 's1' has layer 1 at byte 0", "'s0'"}}),
    [](const auto &info) { return std::string(info.param.name); });

} // namespace
