#include "runtime/schedule/BlockAllocator.h"

#include <algorithm>
#include <cassert>

namespace strata {

BlockAllocator::BlockAllocator(uint32_t blocks, uint32_t slots, uint32_t blocksPerSequence,
                               std::span<const uint32_t> order)
    : blocks_(blocks), blocksPerSequence_(blocksPerSequence), slots_(slots),
      tables_(size_t{slots} * blocksPerSequence, -1) {
  assert(order.empty() || order.size() == blocks);
  free_.reserve(blocks);
  for (uint32_t i = blocks; i-- > 0;)
    free_.push_back(static_cast<int32_t>(order.empty() ? i : order[i]));
}

bool BlockAllocator::reserve(uint32_t slot, uint32_t count) {
  assert(slots_[slot].reserved == 0);
  if (count > blocks_ - reserved_)
    return false;
  reserved_ += count;
  slots_[slot].reserved = count;
  return true;
}

void BlockAllocator::hold(uint32_t slot, uint32_t begin, uint32_t end) {
  Slot &held = slots_[slot];
  assert(held.begin <= begin && begin <= end && held.end <= end);
  assert(end <= blocksPerSequence_ && end - begin <= held.reserved);
  int32_t *table = tables_.data() + size_t{slot} * blocksPerSequence_;
  for (; held.begin < std::min(begin, held.end); ++held.begin) {
    free_.push_back(table[held.begin]);
    table[held.begin] = -1;
  }
  held.begin = begin;
  for (held.end = std::max(held.end, begin); held.end < end; ++held.end) {
    table[held.end] = free_.back();
    free_.pop_back();
  }
}

void BlockAllocator::release(uint32_t slot) {
  Slot &held = slots_[slot];
  hold(slot, held.end, held.end);
  reserved_ -= held.reserved;
  held = {};
}

bool BlockAllocator::compact(int32_t &from, int32_t &to) {
  auto lowest = std::min_element(free_.begin(), free_.end());
  auto highest = std::max_element(tables_.begin(), tables_.end()); // -1: none is held
  if (lowest == free_.end() || *lowest > *highest)
    return false;
  from = *highest;
  to = *lowest;
  std::swap(*highest, *lowest);
  return true;
}

std::span<const int32_t> BlockAllocator::table(uint32_t slot) const {
  return {tables_.data() + size_t{slot} * blocksPerSequence_, blocksPerSequence_};
}

} // namespace strata
