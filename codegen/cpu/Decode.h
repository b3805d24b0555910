// Blocks of a weight type become F32 in memory, for the loops that then read them by lanes.
//
// Any type of the table works through its own dequantise(); the types overloaded here are the ones
// that models are mostly made of, with the same bits by whole lanes: a scale times a small integer
// is exact in F32, so a fused step rounds where dequantise() does.
#pragma once

#include "codegen/cpu/Families.h"

namespace strata::cpu::STRATA_ISA_NAMESPACE {

STRATA_INLINE Lanes halfAt(const uint8_t *from) { return splat(_cvtsh_ss(loadU16(from))); }
STRATA_INLINE __m128i bytesAt(const uint8_t *from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i_u *>(from));
}

template <class T> STRATA_INLINE void decodeBlock(T, const uint8_t *block, float *to) {
  float values[T::blockElements]; // aliases nothing, so that the loops inside become vectors
  T::dequantise(block, values);
  std::memcpy(to, values, sizeof values);
}

STRATA_INLINE void decodeBlock(Q4_0, const uint8_t *block, float *to) {
  __m128i nibbles = bytesAt(block + 2), low = _mm_set1_epi8(15), eight = _mm_set1_epi8(8);
  Lanes scale = halfAt(block);
  store(to, scale * fromSigned(_mm_sub_epi8(_mm_and_si128(nibbles, low), eight)));
  store(to + 16,
        scale * fromSigned(_mm_sub_epi8(_mm_and_si128(_mm_srli_epi16(nibbles, 4), low), eight)));
}

STRATA_INLINE void decodeBlock(Q4_1, const uint8_t *block, float *to) {
  __m128i nibbles = bytesAt(block + 4), low = _mm_set1_epi8(15);
  Lanes scale = halfAt(block), least = halfAt(block + 2);
  store(to, fma(scale, fromSigned(_mm_and_si128(nibbles, low)), least));
  store(to + 16, fma(scale, fromSigned(_mm_and_si128(_mm_srli_epi16(nibbles, 4), low)), least));
}

STRATA_INLINE void decodeBlock(Q8_0, const uint8_t *block, float *to) {
  Lanes scale = halfAt(block);
  store(to, scale * fromSigned(bytesAt(block + 2)));
  store(to + 16, scale * fromSigned(bytesAt(block + 18)));
}

/// `elements`: a whole number of blocks.
template <class T>
STRATA_INLINE void decodeBlocks(const uint8_t *from, uint64_t elements, float *to) {
  for (uint64_t i = 0; i < elements / T::blockElements; ++i)
    decodeBlock(T{}, from + i * T::blockBytes, to + i * T::blockElements);
}

} // namespace strata::cpu::STRATA_ISA_NAMESPACE
