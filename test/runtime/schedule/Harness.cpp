#include "test/runtime/schedule/Harness.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "runtime/base/CheckedMath.h"

namespace strata::test {

std::vector<ScheduleConfig::Bucket> buckets(const std::vector<std::string> &names) {
  std::vector<ScheduleConfig::Bucket> result;
  for (const std::string &name : names) {
    size_t s = name.find('s');
    auto rows = static_cast<uint32_t>(std::stoul(name.substr(1)));
    uint32_t sequences = s == std::string::npos ? rows : std::stoul(name.substr(s + 1));
    result.push_back({name, rows, sequences, name[0] != 'h', name[0] != 'b'});
  }
  return result;
}

std::vector<BucketSet> bucketSets() {
  return {
      {"OneRow", {"r1s1"}},
      {"OneLarge", {"r64s8"}},
      {"Powers",
       {"r1s1", "r2s2", "r4s4", "r8s8", "b16s8", "b32s1", "b32s8", "h1", "h2", "h4", "h8"}},
      {"BodiesAlone", {"b1s1", "b5s5", "b7s2", "b100s1", "h1", "h3"}},
      {"NarrowHead", {"b16s5", "h2s1"}},
      {"Unsorted", {"r24s3", "r3s3", "r10s1", "r6s5"}},
  };
}

ScheduleConfig makeConfig(const std::vector<std::string> &bucketNames, uint32_t sequences,
                          uint32_t context) {
  ScheduleConfig config;
  config.buckets = buckets(bucketNames);
  config.vocabularySize = 97;
  config.maxContext = context;
  config.maxSequences = sequences;
  config.endOfGeneration = {5, 11};
  auto perSequence = static_cast<uint32_t>(ceilDiv(context, 4));
  config.groups.push_back({"kv", 0, 4, perSequence, perSequence * sequences, {}});
  return config;
}

void addWindowGroup(ScheduleConfig &config, uint32_t window) {
  ScheduleConfig::Group group{"local", window, 3, 0, 0, {}};
  group.blocksPerSequence = static_cast<uint32_t>(ceilDiv(config.maxContext, 3));
  uint32_t chunk = 0;
  for (const ScheduleConfig::Bucket &bucket : config.buckets)
    chunk = std::max(chunk, bucket.body ? bucket.rows : 0);
  group.blocks = config.blocksNeeded(group, config.maxContext, chunk) * config.maxSequences;
  config.groups.push_back(group);
}

void addBinaryTails(ScheduleConfig &config) {
  std::vector<uint32_t> bodies;
  for (uint32_t i = 0; i < config.buckets.size(); ++i)
    if (config.buckets[i].body)
      bodies.push_back(i);
  std::sort(bodies.begin(), bodies.end(), [&](uint32_t a, uint32_t b) {
    return config.buckets[a].rows > config.buckets[b].rows;
  });
  for (uint32_t remainder = 1; remainder < config.buckets[bodies.front()].rows; ++remainder) {
    std::vector<uint32_t> &tail = config.tails.emplace_back();
    uint32_t left = remainder;
    for (uint32_t index : bodies)
      for (; left >= config.buckets[index].rows; left -= config.buckets[index].rows)
        tail.push_back(index);
    if (left > 0)
      tail.push_back(bodies.back());
  }
}

void shuffleBlocks(ScheduleConfig &config, uint32_t seed) {
  std::mt19937 random(seed);
  for (ScheduleConfig::Group &group : config.groups) {
    group.blockOrder.resize(group.blocks);
    for (uint32_t i = 0; i < group.blocks; ++i)
      group.blockOrder[i] = i;
    std::shuffle(group.blockOrder.begin(), group.blockOrder.end(), random);
  }
}

std::vector<int32_t> makePrompt(uint32_t length, uint32_t seed, uint32_t vocabulary) {
  std::mt19937 random(seed * 7919 + length);
  std::vector<int32_t> prompt(length);
  for (int32_t &id : prompt)
    id = static_cast<int32_t>(random() % vocabulary);
  return prompt;
}

Harness::Harness(const ScheduleConfig &given) : config(given), executor(given) {
  auto created = Schedule::create(given);
  EXPECT_TRUE(created.isOk()) << created.status().toString();
  schedule = std::move(*created);
  step = schedule->makeStep();
  result = schedule->makeResult();
}

RequestId Harness::submit(Request request) {
  auto id = schedule->submit(std::move(request));
  EXPECT_TRUE(id.isOk()) << id.status().toString();
  return id.isOk() ? *id : 0;
}

bool Harness::launch() {
  if (!schedule->next(step))
    return false;
  launches.push_back(
      {config.buckets[step.bucket].name, step.validRows, step.validSequences, step.validHeadRows});
  checkInvariants();
  Status status = executor.run(step, result);
  EXPECT_TRUE(status.isOk()) << status.toString();
  status = schedule->launchDone(result);
  EXPECT_TRUE(status.isOk()) << status.toString();
  takeEvents();
  return !testing::Test::HasFailure();
}

void Harness::run() {
  takeEvents();
  while (launch()) {
  }
  EXPECT_FALSE(schedule->busy());
  checkIdle();
}

void Harness::takeEvents() {
  TokenEvent event;
  while (schedule->takeEvent(event)) {
    Generation &generation = outcomes[event.request];
    EXPECT_EQ(generation.finish, FinishReason::None) << "an event after the last one";
    if (event.id >= 0 && generation.ids.empty())
      firstTokens.push_back(event.request);
    if (event.id >= 0) {
      generation.ids.push_back(event.id);
      EXPECT_EQ(event.logProbability, -static_cast<float>(event.id));
    }
    generation.finish = event.finish;
  }
}

void Harness::checkInvariants() const {
  for (uint32_t g = 0; g < config.groups.size(); ++g) {
    const BlockAllocator &blocks = schedule->blocks(g);
    std::vector<bool> seen(blocks.blocks());
    uint32_t held = 0;
    for (uint32_t slot = 0; slot < config.maxSequences; ++slot)
      for (int32_t block : blocks.table(slot)) {
        if (block < 0)
          continue;
        ++held;
        EXPECT_FALSE(seen[block]) << "block " << block << " is held twice";
        seen[block] = true;
      }
    EXPECT_EQ(held, blocks.heldBlocks());
    EXPECT_LE(blocks.heldBlocks(), blocks.reservedBlocks());
    EXPECT_LE(blocks.reservedBlocks(), blocks.blocks());
  }
}

void Harness::checkIdle() const {
  EXPECT_EQ(schedule->freeSlots(), config.maxSequences);
  for (uint32_t g = 0; g < config.groups.size(); ++g) {
    EXPECT_EQ(schedule->blocks(g).heldBlocks(), 0u);
    EXPECT_EQ(schedule->blocks(g).reservedBlocks(), 0u);
  }
  checkInvariants();
}

} // namespace strata::test
