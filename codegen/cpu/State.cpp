// kv_write.<type>: one component of each row goes into its sequence's block.
#include "codegen/cpu/Families.h"

namespace strata::cpu::STRATA_ISA_NAMESPACE {
namespace {

STRATA_INLINE void storePlain(F32, uint8_t *to, const float *from, uint64_t width) {
  std::memcpy(to, from, width * sizeof(float));
}
STRATA_INLINE void storePlain(F16, uint8_t *to, const float *from, uint64_t width) {
  forEachPiece(width, [&](uint64_t first, uint32_t count) {
    __m256i half = toHalf(loadPiece(from + first, count));
    std::memcpy(to + 2 * first, &half, 2 * count);
  });
}
STRATA_INLINE void storePlain(BF16, uint8_t *to, const float *from, uint64_t width) {
  for (uint64_t i = 0; i < width; ++i) {
    uint16_t value = floatToBfloat(from[i]);
    std::memcpy(to + 2 * i, &value, 2);
  }
}

enum Slot {
  X,
  State,
  BlockTable,
  RowSequence,
  RowPosition,
  Width,
  BlockTokens,
  BlockStride,
  MaxBlocks
};

template <class T> void kvWrite(const uint64_t *slots, uint32_t begin, uint32_t end, uint32_t) {
  auto *table = pointerAt<const int32_t>(slots, BlockTable);
  uint64_t width = slots[Width], blockTokens = slots[BlockTokens];
  for (uint32_t row = begin; row < end; ++row) {
    auto sequence = uint64_t(pointerAt<const int32_t>(slots, RowSequence)[row]);
    auto position = uint64_t(pointerAt<const int32_t>(slots, RowPosition)[row]);
    auto block = uint64_t(table[sequence * slots[MaxBlocks] + position / blockTokens]);
    uint8_t *to = pointerAt<uint8_t>(slots, State) + block * slots[BlockStride] +
                  position % blockTokens * width * T::blockBytes;
    storePlain(T{}, to, pointerAt<const float>(slots, X) + row * width, width);
  }
}

constexpr KernelEntry entries[] = {
    {"kv_write.f32", kvWrite<F32>},
    {"kv_write.f16", kvWrite<F16>},
    {"kv_write.bf16", kvWrite<BF16>},
};

} // namespace

KernelList stateKernels() { return {entries, 3}; }

} // namespace strata::cpu::STRATA_ISA_NAMESPACE
