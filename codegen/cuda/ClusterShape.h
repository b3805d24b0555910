// How work on one row is cut into the blocks of a cluster; read by the host, which launches it, and
// by the kernels (AttentionSplit.cuh, SampleRow.cuh).
#pragma once

#include <cstdint>

namespace strata::cuda {

/// Blocks of a cluster, as many as every architecture with clusters has; without, a block is alone.
constexpr uint32_t clusterBlocks = 8;

/// Query heads of a block of attention, of the `group` that read one KV head: a divisor, as
/// registers allow.
constexpr uint32_t attentionHeads(uint64_t group) {
  uint32_t heads = group < 8 ? uint32_t(group) : 8;
  while (group % heads != 0)
    --heads;
  return heads;
}

/// Blocks that share out the tokens of each of `items` (a row's heads of one block): as few as fill
/// the card, since each holds a multiprocessor's registers.
constexpr uint32_t attentionSplits(uint64_t items, uint32_t multiprocessors, bool hasClusters) {
  uint32_t splits = hasClusters ? clusterBlocks : 1;
  while (splits > 1 && items * splits > multiprocessors)
    splits /= 2;
  return splits;
}

/// Whether heads of these widths can be read eight elements at a time by the lanes of a warp.
constexpr bool hasAttentionSplit(uint64_t keyWidth, uint64_t valueWidth) {
  return keyWidth % 8 == 0 && valueWidth % 8 == 0 && keyWidth <= 256 && valueWidth <= 256;
}

} // namespace strata::cuda
