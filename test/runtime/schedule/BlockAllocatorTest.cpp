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
