#include "runtime/schedule/ScheduleConfig.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/runtime/schedule/Harness.h"

namespace strata::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <class Change> std::string refusal(Change change) {
  ScheduleConfig config = makeConfig({"r1s1", "r8s4"}, 4, 64);
  change(config);
  Status status = config.verify();
  return status.isOk() ? "accepted" : status.message();
}

TEST(ScheduleConfig, RefusesWhatCouldNeverRun) {
  EXPECT_EQ(refusal([](ScheduleConfig &) {}), "accepted");
  EXPECT_THAT(refusal([](auto &c) { c.buckets[1].rows = 0; }), HasSubstr("bucket 'r8s4'"));
  EXPECT_THAT(refusal([](auto &c) { c.buckets.clear(); }), HasSubstr("none of the 0 buckets"));
  EXPECT_THAT(refusal([](auto &c) { c.buckets = buckets({"h1"}); }), HasSubstr("runs the body"));
  EXPECT_THAT(refusal([](auto &c) { c.buckets[1].head = false; }), HasSubstr("head alone"));
  EXPECT_THAT(refusal([](auto &c) { c.buckets[1].head = c.buckets[1].body = false; }),
              HasSubstr("neither"));
  EXPECT_THAT(refusal([](auto &c) { c.tails = {{0}, {0}}; }), HasSubstr("covers only 1"));
  EXPECT_THAT(refusal([](auto &c) { c.tails = {{0, 0}}; }), HasSubstr("goes on after 1"));
  EXPECT_THAT(refusal([](auto &c) { c.tails = {{2}}; }), HasSubstr("bucket 2"));
  EXPECT_THAT(refusal([](auto &c) { c.maxContext = 65; }), HasSubstr("16 blocks of 4 tokens"));
  EXPECT_THAT(refusal([](auto &c) { c.maxContext = 1; }), HasSubstr("context of 1"));
  EXPECT_THAT(refusal([](auto &c) { c.maxSequences = 0; }), HasSubstr("0 sequences"));
  EXPECT_THAT(refusal([](auto &c) { c.groups[0].blocks = 0; }), HasSubstr("no block"));
  EXPECT_THAT(refusal([](auto &c) {
                c.groups[0].blocks = 2;
                c.groups[0].blockOrder = {1, 1};
              }),
              HasSubstr("permutation"));
}

TEST(ScheduleConfig, BlocksNeeded) {
  ScheduleConfig config = makeConfig({"r8s4"}, 4, 64);
  ScheduleConfig::Group group{"w", 0, 4, 16, 64, {}};
  EXPECT_EQ(config.blocksNeeded(group, 17, 8), 5u); // ceil(17 / 4)
  group.window = 5;
  EXPECT_EQ(config.blocksNeeded(group, 64, 8), 4u); // 5 - 1 + 8 = 12 tokens: ceil(11 / 4) + 1
  EXPECT_EQ(config.blocksNeeded(group, 9, 8), 3u);  // the whole sequence is shorter
  group.window = 1;
  EXPECT_EQ(config.blocksNeeded(group, 64, 1), 1u); // a token sees itself alone
}

TEST(ScheduleConfig, ReadsAPlan) {
  flatbuffers::FlatBufferBuilder builder;
  auto group = [&](const char *name, fb::StateKind kind, uint32_t window) {
    return fb::CreateStateGroupDirect(builder, name, kind, window, 16, 4096, 4, 8);
  };
  auto makePlan = [&](std::vector<flatbuffers::Offset<fb::StateGroup>> first,
                      std::vector<flatbuffers::Offset<fb::StateGroup>> second) {
    std::vector<flatbuffers::Offset<fb::Stage>> stages;
    for (auto *states : {&first, &second}) {
      auto vector = builder.CreateVector(*states);
      fb::StageBuilder stage(builder);
      stage.add_states(vector);
      stages.push_back(stage.Finish());
    }
    std::vector<flatbuffers::Offset<fb::Bucket>> shapes = {
        fb::CreateBucketDirect(builder, "r2s2", 2, 2, true, true),
        fb::CreateBucketDirect(builder, "r4s1", 4, 1, true, false),
        fb::CreateBucketDirect(builder, "h2", 2, 2, false, true)};
    std::vector<uint32_t> one = {0}, three = {1};
    std::vector<flatbuffers::Offset<fb::Tail>> tails = {fb::CreateTailDirect(builder, 1, &one),
                                                        fb::CreateTailDirect(builder, 2, &one),
                                                        fb::CreateTailDirect(builder, 3, &three)};
    std::vector<int32_t> ends = {2, 7};
    auto stageVector = builder.CreateVector(stages);
    auto bucketVector = builder.CreateVector(shapes);
    auto tailVector = builder.CreateVector(tails);
    auto endVector = builder.CreateVector(ends);
    fb::PlanBuilder plan(builder);
    plan.add_vocabulary_size(100);
    plan.add_max_context(64);
    plan.add_max_sequences(2);
    plan.add_stages(stageVector);
    plan.add_buckets(bucketVector);
    plan.add_tails(tailVector);
    plan.add_end_of_generation(endVector);
    builder.Finish(plan.Finish());
    return flatbuffers::GetRoot<fb::Plan>(builder.GetBufferPointer());
  };

  const fb::Plan *plan =
      makePlan({group("kv", fb::StateKind::Paged, 0)},
               {group("kv", fb::StateKind::Paged, 0), group("local", fb::StateKind::Window, 24)});
  std::vector<uint32_t> counts = {8, 5};
  auto config = scheduleConfig(*plan, counts, 0);
  ASSERT_TRUE(config.isOk()) << config.status().toString();
  EXPECT_EQ(config->maxSequences, 2u);
  EXPECT_EQ(config->maxContext, 64u);
  EXPECT_EQ(config->vocabularySize, 100u);
  EXPECT_THAT(config->endOfGeneration, ElementsAre(2, 7));
  ASSERT_EQ(config->buckets.size(), 3u);
  EXPECT_EQ(config->buckets[1].name, "r4s1");
  EXPECT_FALSE(config->buckets[1].head);
  EXPECT_THAT(config->tails, ElementsAre(ElementsAre(0u), ElementsAre(0u), ElementsAre(1u)));
  ASSERT_EQ(config->groups.size(), 2u);
  EXPECT_EQ(config->groups[0].window, 0u);
  EXPECT_EQ(config->groups[1].window, 24u);
  EXPECT_EQ(config->groups[1].blocks, 5u);
  EXPECT_EQ(config->groups[1].blocksPerSequence, 4u);

  EXPECT_EQ(scheduleConfig(*plan, counts, 1)->maxSequences, 1u);
  EXPECT_THAT(scheduleConfig(*plan, counts, 3).status().message(), HasSubstr("--max-seqs 3"));
  counts.pop_back();
  EXPECT_THAT(scheduleConfig(*plan, counts, 0).status().message(), HasSubstr("the plan has 2"));

  builder.Clear();
  plan = makePlan({group("ssm", fb::StateKind::SlotPerSequence, 0)}, {});
  counts = {2};
  // One slot a sequence is a block as long as any sequence.
  auto slots = scheduleConfig(*plan, counts, 0);
  ASSERT_TRUE(slots.isOk()) << slots.status().toString();
  EXPECT_EQ(slots->groups[0].blockTokens, plan->max_context());
  EXPECT_EQ(slots->blocksNeeded(slots->groups[0], plan->max_context(), 1), 1u);
}

} // namespace
} // namespace strata::test
