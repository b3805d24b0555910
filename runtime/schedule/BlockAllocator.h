// The blocks of one state group: which are free, which sequence holds which.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace strata {

/// Hands out block numbers to sequence slots. A slot first reserves as many blocks as it will ever
/// hold at once, so that holding them later cannot fail; it then holds a contiguous range of
/// logical blocks (token t of a sequence lies in logical block t / block_tokens) that moves
/// forward.
///
/// Deterministic: the block returned last is handed out first. Nothing is allocated after
/// construction. Used from one thread at a time.
class BlockAllocator {
public:
  /// `order` is the permutation of 0..blocks-1 in which fresh blocks are handed out; empty:
  /// ascending.
  BlockAllocator(uint32_t blocks, uint32_t slots, uint32_t blocksPerSequence,
                 std::span<const uint32_t> order = {});

  /// Reserves `count` blocks for `slot`, which has none reserved. False, and nothing changes, where
  /// fewer are neither held nor reserved.
  bool reserve(uint32_t slot, uint32_t count);

  /// Makes `slot` hold exactly the logical blocks [begin, end): takes those missing and gives back
  /// those before `begin`. Neither bound ever moves back, and end - begin is at most the
  /// reservation.
  void hold(uint32_t slot, uint32_t begin, uint32_t end);

  /// Gives back every block and the reservation.
  void release(uint32_t slot);

  /// Exchanges the held block of the highest number for the free one of the lowest; false, and
  /// nothing changes, where no free one is lower. Repeated, it leaves the free blocks behind those
  /// held.
  bool compact(int32_t &from, int32_t &to);

  /// Block numbers by logical block, blocksPerSequence() entries; -1 where none is held.
  std::span<const int32_t> table(uint32_t slot) const;

  uint32_t blocks() const { return blocks_; }
  uint32_t blocksPerSequence() const { return blocksPerSequence_; }
  uint32_t heldBlocks() const { return blocks_ - static_cast<uint32_t>(free_.size()); }
  uint32_t reservedBlocks() const { return reserved_; } ///< Held ones included.

private:
  struct Slot {
    uint32_t reserved = 0;
    uint32_t begin = 0;
    uint32_t end = 0;
  };

  uint32_t blocks_;
  uint32_t blocksPerSequence_;
  uint32_t reserved_ = 0;
  std::vector<int32_t> free_; ///< A stack.
  std::vector<Slot> slots_;
  std::vector<int32_t> tables_; ///< [slot, blocksPerSequence]
};

} // namespace strata
