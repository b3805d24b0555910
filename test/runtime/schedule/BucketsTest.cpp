#include "runtime/schedule/Buckets.h"

#include <gtest/gtest.h>

#include "test/runtime/schedule/Harness.h"

namespace strata::test {
namespace {

TEST(Buckets, RowsFallAsSequencesGrow) {
  ScheduleConfig config = makeConfig({"r8s8", "b128s1", "b64s3", "h4"}, 5, 64);
  Buckets table(config);
  EXPECT_EQ(table.rowsFor(1), 128u);
  EXPECT_EQ(table.rowsFor(2), 64u);
  EXPECT_EQ(table.rowsFor(3), 64u);
  EXPECT_EQ(table.rowsFor(4), 8u);
  EXPECT_EQ(table.rowsFor(6), 0u) << "only 5 sequences are ever admitted";
  EXPECT_EQ(table.maxRows(), 128u);
  EXPECT_EQ(table.maxHeadRows(), 8u);
  EXPECT_EQ(table.maxHeadAloneRows(), 4u);
}

TEST(Buckets, EveryBatchGetsTheSmallestThatHoldsIt) {
  for (const BucketSet &set : bucketSets()) {
    ScheduleConfig config = makeConfig(set.buckets, 8, 64);
    Buckets table(config);
    for (uint32_t sequences = 1; sequences <= 8; ++sequences)
      for (uint32_t rows = sequences; rows <= table.rowsFor(sequences); ++rows) {
        const ScheduleConfig::Bucket &chosen = config.buckets[table.body(rows, sequences, true)];
        ASSERT_TRUE(chosen.body && chosen.rows >= rows && chosen.sequences >= sequences);
        for (const ScheduleConfig::Bucket &other : config.buckets) {
          if (!other.body || other.rows < rows || other.sequences < sequences)
            continue;
          ASSERT_LE(std::pair(chosen.rows, chosen.sequences),
                    std::pair(other.rows, other.sequences))
              << set.name << " " << rows << " rows of " << sequences;
        }
      }
  }
}

TEST(Buckets, AmongEqualsTheHeadDecides) {
  ScheduleConfig config = makeConfig({"b4s4", "r4s4", "h4"}, 4, 64);
  Buckets table(config);
  EXPECT_EQ(table.body(3, 2, true), 1u);
  EXPECT_EQ(table.body(3, 2, false), 0u);
}

TEST(Buckets, HeadAlone) {
  ScheduleConfig config = makeConfig({"b4s4", "h8s1", "h2s2", "h1"}, 4, 64);
  Buckets table(config);
  EXPECT_EQ(table.headAlone(1, 1), 3u);
  EXPECT_EQ(table.headAlone(2, 2), 2u);
  EXPECT_EQ(table.headAlone(2, 1), 2u) << "fewer rows come before fewer sequences";
  EXPECT_EQ(table.headAlone(3, 1), 1u);
  EXPECT_EQ(table.headAlone(3, 2), std::nullopt);
}

} // namespace
} // namespace strata::test
