// The tail table decides how every prompt ends; a remainder without an entry, or with buckets that
// do not hold it, would stall a request.
#include "passes/planner/Tails.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

namespace strata::planner {
namespace {

struct Cost {
  int64_t rows;
  int64_t launches;
  int64_t padding;
  auto operator<=>(const Cost &) const = default;
};

Cost costOf(const Tail &tail, TailCost cost) {
  int64_t launches = static_cast<int64_t>(tail.buckets.size());
  return {launches * cost.launch + tail.padding * cost.paddedRow, launches, tail.padding};
}

/// Least cost of any multiset of buckets that holds `remainder` rows, found without a table.
Cost bruteForce(int64_t remainder, const std::vector<int64_t> &rows, TailCost each, size_t from) {
  Cost best{INT64_MAX, 0, 0};
  for (size_t bucket = from; bucket < rows.size(); ++bucket) {
    int64_t padding = std::max<int64_t>(0, rows[bucket] - remainder);
    Cost cost{each.launch + padding * each.paddedRow, 1, padding};
    if (remainder > rows[bucket]) {
      Cost rest = bruteForce(remainder - rows[bucket], rows, each, bucket);
      cost = {cost.rows + rest.rows, cost.launches + rest.launches, cost.padding + rest.padding};
    }
    best = std::min(best, cost);
  }
  return best;
}

void expectUsable(const Tail &tail, const std::vector<int64_t> &rows) {
  ASSERT_FALSE(tail.buckets.empty());
  int64_t held = 0, full = 0;
  for (size_t i = 0; i < tail.buckets.size(); ++i) {
    ASSERT_LT(tail.buckets[i], rows.size());
    full = held;
    held += rows[tail.buckets[i]];
  }
  EXPECT_TRUE(std::is_sorted(tail.buckets.rbegin(), tail.buckets.rend())) << "larger ones first";
  EXPECT_LT(full, tail.rows) << "all but the last are full, so the last holds at least one row";
  EXPECT_GE(held, tail.rows) << "the buckets hold the remainder";
  EXPECT_EQ(tail.padding, held - tail.rows);
}

TEST(Tails, OfAChunk) {
  // 547 = 4 * 128 + 35. Where an empty row costs as much as any and a launch 4: 32 + 4 cost 1 + 2 *
  // 4 = 9, 32 + 2 + 1 cost 3 * 4 = 12, 64 alone 29 + 4 = 33. A launch worth 32 rows: 64 costs 61,
  // 32 + 4 cost 65.
  std::vector<int64_t> rows{1, 2, 4, 8, 16, 32, 64, 128};
  EXPECT_EQ(tailTable(rows, {4, 1})[35 - 1].buckets, (std::vector<size_t>{5, 2})) << "32 + 4";
  EXPECT_EQ(tailTable(rows, {4, 1})[35 - 1].padding, 1);
  EXPECT_EQ(tailTable(rows, {32, 1})[35 - 1].buckets, (std::vector<size_t>{6}));
  EXPECT_EQ(tailTable(rows, {32, 1})[35 - 1].padding, 64 - 35);
}

TEST(Tails, WherePaddingIsFreeTheSmallestBucketThatHoldsIt) {
  std::vector<int64_t> rows{1, 2, 4, 8, 16, 32, 64, 128};
  std::vector<Tail> table = tailTable(rows, {4, 0});
  EXPECT_EQ(table[35 - 1].buckets, (std::vector<size_t>{6})) << "547 = 4 * 128 + 35 in 64";
  for (const Tail &tail : table) {
    ASSERT_EQ(tail.buckets.size(), 1u);
    size_t bucket = tail.buckets[0];
    EXPECT_GE(rows[bucket], tail.rows);
    EXPECT_TRUE(bucket == 0 || rows[bucket - 1] < tail.rows) << tail.rows;
  }
}

TEST(Tails, OneBucketTakesAll) {
  std::vector<Tail> table = tailTable({16}, {4, 1});
  ASSERT_EQ(table.size(), 15u);
  for (const Tail &tail : table) {
    EXPECT_EQ(tail.buckets, std::vector<size_t>{0});
    EXPECT_EQ(tail.padding, 16 - tail.rows);
  }
}

TEST(Tails, NoRemainderOfAChunkOfOneRow) { EXPECT_TRUE(tailTable({1}, {4, 1}).empty()); }

TEST(Tails, TiesGoToFewerLaunches) {
  // 4 rows with free launches: {4} and {2, 2} and {1, 1, 1, 1} all cost 0.
  EXPECT_EQ(tailTable({1, 2, 4, 8}, {0, 1})[4 - 1].buckets, (std::vector<size_t>{2}));
  // 3 rows: {2, 1} costs 0 and {4} costs 1.
  EXPECT_EQ(tailTable({1, 2, 4, 8}, {0, 1})[3 - 1].buckets, (std::vector<size_t>{1, 0}));
}

TEST(Tails, LeastCostOfAllMultisets) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<int64_t> all(40);
    std::iota(all.begin(), all.end(), 1);
    std::shuffle(all.begin(), all.end(), random);
    std::vector<int64_t> rows(all.begin(), all.begin() + 1 + random() % 4);
    std::sort(rows.begin(), rows.end());
    // Small buckets make very many multisets of a large remainder.
    if (rows.front() < 3 && rows.back() > 24)
      continue;
    TailCost cost{static_cast<int64_t>(random() % 12), static_cast<int64_t>(random() % 3)};
    std::vector<Tail> table = tailTable(rows, cost);
    ASSERT_EQ(table.size(), static_cast<size_t>(rows.back() - 1));
    for (size_t i = 0; i < table.size(); ++i) {
      const Tail &tail = table[i];
      SCOPED_TRACE(::testing::Message() << "round " << round << ", remainder " << i + 1);
      ASSERT_EQ(tail.rows, static_cast<int64_t>(i + 1));
      expectUsable(tail, rows);
      EXPECT_EQ(costOf(tail, cost), bruteForce(tail.rows, rows, cost, 0));
    }
  }
}

TEST(Tails, EveryRemainderOfALargeChunk) {
  std::vector<int64_t> rows{1, 2, 4, 8, 16, 32, 64, 128, 256, 512};
  std::vector<Tail> table = tailTable(rows, {4, 1});
  ASSERT_EQ(table.size(), 511u);
  for (const Tail &tail : table)
    expectUsable(tail, rows);
}

/// Full chunks and then the tail: every prompt of up to four chunks is held, whatever the buckets,
/// and no launch before the last has an empty row.
TEST(Tails, Row09EveryPromptWhateverTheBuckets) {
  constexpr int64_t chunk = 10;
  for (uint32_t smaller = 0; smaller < 1u << (chunk - 1); ++smaller) {
    std::vector<int64_t> rows;
    for (int64_t size = 1; size < chunk; ++size)
      if (smaller >> (size - 1) & 1)
        rows.push_back(size);
    rows.push_back(chunk);
    for (TailCost cost : {TailCost{4, 1}, TailCost{32, 1}, TailCost{0, 1}, TailCost{1, 0}}) {
      std::vector<Tail> table = tailTable(rows, cost);
      ASSERT_EQ(table.size(), size_t(chunk - 1));
      for (int64_t prompt = 1; prompt <= 4 * chunk; ++prompt) {
        int64_t left = prompt % chunk; // what full chunks leave
        if (left == 0)
          continue;
        const Tail &tail = table[left - 1];
        ASSERT_EQ(tail.rows, left);
        expectUsable(tail, rows);
        Cost best = bruteForce(left, rows, cost, 0);
        EXPECT_EQ(costOf(tail, cost), best) << left << " of buckets " << smaller;
      }
    }
  }
}

} // namespace
} // namespace strata::planner
