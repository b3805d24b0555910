// The checker and the lower bound share no code with the solver, so they are tested on their own.
#include <random>

#include <gtest/gtest.h>

#include "passes/planner/Planner.h"

namespace strata::planner {
namespace {

TEST(Check, AcceptsTouchingBuffers) {
  // In time: [0, 2) then [2, 4) at the same offset. In bytes: 0..8 below 8..12.
  EXPECT_FALSE(check({{0, 2, 8}, {2, 4, 8}, {0, 4, 4}}, {0, 0, 8}));
}

TEST(Check, NamesTheOverlappingPair) {
  std::optional<Conflict> conflict = check({{0, 2, 8}, {5, 9, 4}, {1, 4, 8}}, {0, 0, 7});
  ASSERT_TRUE(conflict);
  EXPECT_EQ(conflict->first, 0u);
  EXPECT_EQ(conflict->second, 2u);
}

TEST(Check, NamesABufferBelowZero) {
  std::optional<Conflict> conflict = check({{0, 2, 8}, {0, 2, 8}}, {0, -8});
  ASSERT_TRUE(conflict);
  EXPECT_EQ(conflict->first, 1u);
  EXPECT_EQ(conflict->second, 1u);
}

TEST(Check, RefusesMissingOffsets) { EXPECT_TRUE(check({{0, 1, 1}, {0, 1, 1}}, {0})); }

TEST(Check, RefusesAnEndBeyond64Bits) {
  EXPECT_TRUE(check({{0, 1, 8}}, {std::numeric_limits<Bytes>::max() - 7}));
  EXPECT_FALSE(check({{0, 1, 8}}, {std::numeric_limits<Bytes>::max() - 8}));
}

/// Against the definition, pair by pair, on answers with one offset moved.
TEST(Check, FindsExactlyTheInjectedConflicts) {
  std::mt19937_64 random(7);
  int found = 0;
  for (int round = 0; round < 2000; ++round) {
    std::vector<Buffer> buffers;
    for (int k = 0; k < 12; ++k) {
      Time lower = random() % 20;
      buffers.push_back({lower, lower + 1 + Time(random() % 8), 1 + Bytes(random() % 9)});
    }
    Problem problem;
    problem.buffers = buffers;
    std::vector<Bytes> offsets = solve(problem).offsets;
    ASSERT_FALSE(check(buffers, offsets));
    size_t moved = random() % buffers.size();
    offsets[moved] = random() % 30;
    bool overlaps = false;
    for (size_t k = 0; k < buffers.size(); ++k)
      overlaps |= k != moved && buffers[k].lower < buffers[moved].upper &&
                  buffers[moved].lower < buffers[k].upper &&
                  offsets[k] < offsets[moved] + buffers[moved].size &&
                  offsets[moved] < offsets[k] + buffers[k].size;
    std::optional<Conflict> conflict = check(buffers, offsets);
    EXPECT_EQ(conflict.has_value(), overlaps);
    if (conflict) {
      EXPECT_TRUE(conflict->first == moved || conflict->second == moved);
      ++found;
    }
  }
  EXPECT_GT(found, 200);
}

TEST(MaximumLiveBytes, CountsHalfOpenLifetimes) {
  // [0, 2): 100; at 1 also 80: 180; at 2 the first is gone: 80 + 60 = 140.
  EXPECT_EQ(maximumLiveBytes({{0, 2, 100}, {1, 3, 80}, {2, 4, 60}}), 180);
  EXPECT_EQ(maximumLiveBytes({}), 0);
}

} // namespace
} // namespace strata::planner
