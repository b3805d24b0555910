#include "runtime/plan/MemoryTable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/runtime/plan/TinyPlan.h"

using namespace strata;
using namespace strata::test;
using testing::HasSubstr;

namespace {

TEST(MemoryTable, AddsUpWhatTheStagesHold) {
  fb::PlanT source = tinyPlan({.stages = 2});
  source.memory.push_back(std::make_unique<fb::MemoryLineT>());
  source.memory.back()->class_ = fb::MemoryClass::Reserved;
  source.memory.back()->name = "stacks";
  source.memory.back()->bytes = 262144;
  source.memory.back()->per = "worker";
  std::vector<uint8_t> bytes = packPlan(source);
  const fb::Plan &plan = *fb::GetPlan(bytes.data());

  auto bytesOf = [&](uint32_t stage, const std::string &name) -> uint64_t {
    for (const MemoryEntry &entry : memoryEntries(plan))
      if (entry.stage == stage && entry.name == name)
        return entry.bytes;
    return 0;
  };
  // Stage 0: the embedding, 40 x 32 x 4 = 5120, and a layer, 128 + 4 x 4096 = 16512.
  EXPECT_EQ(bytesOf(0, "weights"), 21632u);
  // Stage 1: the same and the final norm of 32 F32.
  EXPECT_EQ(bytesOf(1, "weights"), 21760u);
  // 18 blocks of k and v, 4 tokens of 128 bytes each: 18 x 1024.
  EXPECT_EQ(bytesOf(0, "state kv"), 18432u);
  // 2 slots of 4 rows of 128 bytes, at the consumer.
  EXPECT_EQ(bytesOf(0, "handoff s0 to s1"), 0u);
  EXPECT_EQ(bytesOf(1, "handoff s0 to s1"), 1024u);
  // Three launches may be out, each with a step and an out block, and one out block is empty; four
  // slots of ids of 3 sequences return to stage 0.
  for (uint32_t stage : {0u, 1u}) {
    uint64_t step = source.stages[stage]->step->bytes, out = source.stages[stage]->out->bytes;
    EXPECT_EQ(bytesOf(stage, "launches"), 3 * (step + out) + out + (stage == 0 ? 4 * 3 * 4 : 0));
  }
  EXPECT_EQ(bytesOf(0, "arena"), source.stages[0]->arena_bytes);
  EXPECT_EQ(bytesOf(0, "stacks"), 262144u);

  auto json = nlohmann::json::parse(memoryTableJson(plan));
  uint64_t total = 0;
  for (auto &entry : json["stages"][0]["memory"])
    if (entry["class"] == "computed" && entry["per"] == "")
      total += entry["bytes"].get<uint64_t>();
  EXPECT_EQ(json["stages"][0]["totals"]["computed"], total);
  EXPECT_EQ(json["stages"][0]["forwards"][R4S1]["padding_rows"], 1); // 4 - 2 - 1
  // Remainders 1, 2, 3 run in 1, 2 and 4 rows: one of seven is padding.
  EXPECT_DOUBLE_EQ(json["tail_padding"].get<double>(), 1.0 / 7);

  std::string table = memoryTableText(plan);
  EXPECT_THAT(table, HasSubstr("stage s1"));
  EXPECT_THAT(table, HasSubstr("reserved  stacks"));
  EXPECT_THAT(table, HasSubstr("per worker"));
  EXPECT_THAT(table, HasSubstr("14.3 %"));
}

} // namespace
