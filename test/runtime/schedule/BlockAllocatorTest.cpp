#include "runtime/schedule/BlockAllocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace strata {
namespace {

using testing::ElementsAre;

std::vector<int32_t> tableOf(const BlockAllocator &blocks, uint32_t slot) {
  auto table = blocks.table(slot);
  return {table.begin(), table.end()};
}

TEST(BlockAllocator, HandsOutInTheGivenOrder) {
  std::vector<uint32_t> order = {2, 0, 3, 1};
  BlockAllocator blocks(4, 2, 3, order);
  ASSERT_TRUE(blocks.reserve(0, 2));
  ASSERT_TRUE(blocks.reserve(1, 2));
  blocks.hold(0, 0, 1);
  blocks.hold(1, 0, 2);
  blocks.hold(0, 0, 2);
  EXPECT_THAT(tableOf(blocks, 0), ElementsAre(2, 1, -1));
  EXPECT_THAT(tableOf(blocks, 1), ElementsAre(0, 3, -1));
}

TEST(BlockAllocator, ReservationsNeverPromiseABlockTwice) {
  BlockAllocator blocks(4, 3, 4);
  EXPECT_TRUE(blocks.reserve(0, 3));
  EXPECT_FALSE(blocks.reserve(1, 2)); // 4 - 3 reserved = 1, though all 4 are still free
  EXPECT_TRUE(blocks.reserve(1, 1));
  EXPECT_EQ(blocks.heldBlocks(), 0u);
  EXPECT_EQ(blocks.reservedBlocks(), 4u);
  blocks.release(0);
  EXPECT_TRUE(blocks.reserve(2, 3));
}

TEST(BlockAllocator, AWindowGivesBackWhatItLeavesBehindBeforeItTakes) {
  BlockAllocator blocks(2, 1, 6);
  ASSERT_TRUE(blocks.reserve(0, 2));
  blocks.hold(0, 0, 2);
  EXPECT_THAT(tableOf(blocks, 0), ElementsAre(0, 1, -1, -1, -1, -1));
  blocks.hold(0, 1, 3); // the pool of 2 is enough: block 0 comes back first
  EXPECT_THAT(tableOf(blocks, 0), ElementsAre(-1, 1, 0, -1, -1, -1));
  blocks.hold(0, 4, 6); // both left behind at once
  EXPECT_EQ(blocks.heldBlocks(), 2u);
  EXPECT_EQ(tableOf(blocks, 0)[2], -1);
  blocks.release(0);
  EXPECT_EQ(blocks.heldBlocks(), 0u);
  EXPECT_EQ(blocks.reservedBlocks(), 0u);
  EXPECT_THAT(tableOf(blocks, 0), ElementsAre(-1, -1, -1, -1, -1, -1));
}

TEST(BlockAllocator, CompactingLeavesTheFreeBlocksBehind) {
  std::vector<uint32_t> order = {5, 1, 4, 0, 2, 3};
  BlockAllocator blocks(6, 2, 3, order);
  ASSERT_TRUE(blocks.reserve(0, 3));
  ASSERT_TRUE(blocks.reserve(1, 2));
  blocks.hold(0, 0, 2);
  blocks.hold(1, 0, 1); // 5, 1 and 4 are held
  int32_t from, to;
  ASSERT_TRUE(blocks.compact(from, to));
  EXPECT_EQ(std::pair(from, to), std::pair(5, 0));
  ASSERT_TRUE(blocks.compact(from, to));
  EXPECT_EQ(std::pair(from, to), std::pair(4, 2));
  EXPECT_FALSE(blocks.compact(from, to));
  EXPECT_THAT(tableOf(blocks, 0), ElementsAre(0, 1, -1));
  EXPECT_THAT(tableOf(blocks, 1), ElementsAre(2, -1, -1));
  EXPECT_EQ(blocks.heldBlocks(), 3u);
  blocks.hold(0, 0, 3); // what was left is free again, each once
  blocks.hold(1, 0, 2);
  std::vector<int32_t> last = {tableOf(blocks, 0)[2], tableOf(blocks, 1)[1]};
  EXPECT_THAT(last, testing::IsSubsetOf({3, 4, 5}));
  EXPECT_NE(last[0], last[1]);
}

TEST(BlockAllocator, NothingToCompact) {
  BlockAllocator blocks(2, 1, 2);
  int32_t from, to;
  EXPECT_FALSE(blocks.compact(from, to)); // all free
  ASSERT_TRUE(blocks.reserve(0, 2));
  blocks.hold(0, 0, 2);
  EXPECT_FALSE(blocks.compact(from, to)); // none free
}

TEST(BlockAllocator, ReleaseWithoutHoldingGivesBackTheReservation) {
  BlockAllocator blocks(1, 2, 1);
  ASSERT_TRUE(blocks.reserve(0, 1));
  blocks.release(0);
  blocks.release(0); // nothing left to give back
  EXPECT_EQ(blocks.reservedBlocks(), 0u);
  EXPECT_TRUE(blocks.reserve(1, 1));
}

} // namespace
} // namespace strata
