// Damaged and hostile plans: whatever the bytes, opening ends with an error or with a plan that
// passes every check; it never crashes (the sanitizers watch) and never takes long.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include <gtest/gtest.h>

#include "runtime/plan/MemoryTable.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/plan/PlanVerifier.h"
#include "test/runtime/plan/TinyPlan.h"

using namespace strata;
using namespace strata::test;

namespace {

std::vector<uint8_t> tinyBytes(uint32_t stages) {
  fb::PlanT plan = tinyPlan({.stages = stages});
  plan.vocabulary = std::make_unique<fb::VocabularyT>();
  plan.vocabulary->tokens = {'a', 'b', 'c'};
  plan.vocabulary->token_ends = {1, 3};
  plan.vocabulary->kinds = {1, 6};
  plan.vocabulary->scores = {0, -1};
  return packPlan(plan);
}

/// How many damaged plans passed: a name may change unnoticed, an offset may not.
struct Outcomes {
  int accepted = 0, refused = 0;

  // What follows a successful verification must hold too: readers trust it.
  void verify(std::span<const uint8_t> bytes) {
    auto plan = verifyPlan(bytes, {4096, 1 << 20});
    ++(plan.isOk() ? accepted : refused);
    if (!plan.isOk())
      return;
    EXPECT_FALSE(memoryTableText(**plan).empty());
    EXPECT_FALSE(memoryTableJson(**plan).empty());
  }
};

TEST(PlanDamage, TruncatedAnywhere) {
  TemporaryFolder folder;
  fb::PlanT plan = tinyPlan();
  ASSERT_TRUE(writeTinyPlan(folder / "a", plan, TinyModel()).isOk());
  auto size = std::filesystem::file_size(folder / "a");
  std::mt19937_64 random(3);
  for (uint64_t length = size - 1; length > 0; length -= std::min(length, 1 + random() % 500)) {
    std::filesystem::resize_file(folder / "a", length);
    ASSERT_FALSE(PlanFile::open(folder / "a").isOk()) << length;
  }
}

TEST(PlanDamage, TruncatedFlatBuffer) {
  std::vector<uint8_t> bytes = tinyBytes(2);
  Outcomes outcomes;
  for (size_t length = 0; length < bytes.size(); length += 7)
    outcomes.verify(std::vector<uint8_t>(bytes.begin(), bytes.begin() + int64_t(length)));
  EXPECT_EQ(outcomes.accepted, 0);
}

// As if the hash had been made to fit: the FlatBuffer itself is verified.
TEST(PlanDamage, FlippedBytes) {
  std::vector<uint8_t> good = tinyBytes(2);
  std::mt19937_64 random(4);
  Outcomes outcomes;
  for (size_t at = 0; at < good.size(); at += 1 + random() % 24) {
    std::vector<uint8_t> bytes = good;
    bytes[at] = uint8_t(random());
    outcomes.verify(bytes);
  }
  EXPECT_GT(outcomes.accepted, 0);
  EXPECT_GT(outcomes.refused, outcomes.accepted);
}

TEST(PlanDamage, FlippedWords) {
  std::vector<uint8_t> good = tinyBytes(1);
  std::mt19937_64 random(5);
  Outcomes outcomes;
  const uint32_t extremes[] = {0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFC};
  for (int i = 0; i < 4000; ++i) {
    std::vector<uint8_t> bytes = good;
    for (uint64_t flips = 1 + random() % 4; flips > 0; --flips) {
      size_t at = random() % (bytes.size() / 4) * 4;
      std::memcpy(&bytes[at], &extremes[random() % std::size(extremes)], 4);
    }
    outcomes.verify(bytes);
  }
  EXPECT_GT(outcomes.accepted, 0);
  EXPECT_GT(outcomes.refused, outcomes.accepted);
}

} // namespace
