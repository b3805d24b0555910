// How attention is cut into blocks; read by the host, which launches it, and by the kernels.
#pragma once

#include <cstdint>

namespace strata::cuda {

/// Buckets of so many rows share out each row's tokens (AttentionSplit.cuh).
constexpr uint64_t attentionSplitRows = 32;

/// A tile of attention_prompt (AttentionPrompt.cuh): `rows` are `tokens` query rows of one
/// sequence, each with all query heads of one KV head, against `keys` tokens at a time. Four warps.
struct AttentionTile {
  uint32_t rows, tokens, keys, threads, sharedBytes;
};

constexpr uint32_t attentionPadding = 8; ///< Elements: eight rows then touch all banks once.

/// Shared memory holds the queries, one tile of keys and one of values, and where the tokens of two
/// tiles lie.
constexpr AttentionTile attentionTile(uint64_t headsPerKvHead, uint64_t keyWidth,
                                      uint64_t valueWidth) {
  bool isWide = keyWidth > 128 || valueWidth > 128;
  uint32_t rows = isWide ? 64 : 128, keys = isWide ? 32 : 64;
  uint64_t bytes =
      2 * ((rows + keys) * (keyWidth + attentionPadding) + keys * (valueWidth + attentionPadding)) +
      2 * keys * 2 * sizeof(uint64_t);
  return {rows, uint32_t(rows / headsPerKvHead), keys, 128, uint32_t(bytes)};
}

/// Whether attention_prompt takes such heads: whole steps of the matrix units, in registers.
constexpr bool hasAttentionPrompt(uint64_t headsPerKvHead, uint64_t keyWidth, uint64_t valueWidth) {
  return headsPerKvHead <= attentionTile(1, keyWidth, valueWidth).rows && keyWidth > 0 &&
         valueWidth > 0 && keyWidth % 16 == 0 && valueWidth % 16 == 0 && keyWidth <= 256 &&
         valueWidth <= 256;
}

} // namespace strata::cuda
