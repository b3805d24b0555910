// How attention of few rows is cut into blocks; read by the host, which launches it, and by the
// kernel (AttentionSplit.cuh).
#pragma once

#include <cstdint>

namespace strata::cuda {

/// Blocks that share the tokens of one row and KV head, as a cluster where the architecture has
/// clusters; else one block has them all.
constexpr uint32_t attentionSplits = 8;

/// Query heads of a block, of the `group` that read one KV head: a divisor, as registers allow.
constexpr uint32_t attentionHeads(uint64_t group) {
  uint32_t heads = group < 8 ? uint32_t(group) : 8;
  while (group % heads != 0)
    --heads;
  return heads;
}

/// Whether heads of these widths can be read eight elements at a time by the lanes of a warp.
constexpr bool hasAttentionSplit(uint64_t keyWidth, uint64_t valueWidth) {
  return keyWidth % 8 == 0 && valueWidth % 8 == 0 && keyWidth <= 256 && valueWidth <= 256;
}

} // namespace strata::cuda
