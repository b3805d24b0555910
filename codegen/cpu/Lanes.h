// Sixteen F32 lanes: the unit of every vector loop of the kernels.
//
// One zmm register on x86-64-v4, two ymm registers on x86-64-v3. Each operation rounds alike on
// both, and sums over lanes follow one tree, so both instruction sets compute the same bits.
#pragma once

#include <cstdint>
#include <immintrin.h>

#define STRATA_INLINE [[gnu::always_inline]] inline

namespace strata::cpu::STRATA_ISA_NAMESPACE {

constexpr uint32_t laneCount = 16;

#ifdef __AVX512F__

struct Lanes {
  __m512 all;
};

STRATA_INLINE __mmask16 firstMask(uint32_t count) { return __mmask16((1u << count) - 1); }

STRATA_INLINE Lanes splat(float value) { return {_mm512_set1_ps(value)}; }
STRATA_INLINE Lanes load(const float *from) { return {_mm512_loadu_ps(from)}; }
STRATA_INLINE void store(float *to, Lanes a) { _mm512_storeu_ps(to, a.all); }
/// Lanes from `count` (< 16) on are 0.
STRATA_INLINE Lanes loadFirst(const float *from, uint32_t count) {
  return {_mm512_maskz_loadu_ps(firstMask(count), from)};
}
STRATA_INLINE void storeFirst(float *to, Lanes a, uint32_t count) {
  _mm512_mask_storeu_ps(to, firstMask(count), a.all);
}

STRATA_INLINE Lanes operator+(Lanes a, Lanes b) { return {_mm512_add_ps(a.all, b.all)}; }
STRATA_INLINE Lanes operator-(Lanes a, Lanes b) { return {_mm512_sub_ps(a.all, b.all)}; }
STRATA_INLINE Lanes operator*(Lanes a, Lanes b) { return {_mm512_mul_ps(a.all, b.all)}; }
STRATA_INLINE Lanes operator/(Lanes a, Lanes b) { return {_mm512_div_ps(a.all, b.all)}; }
/// a * b + c, rounded once.
STRATA_INLINE Lanes fma(Lanes a, Lanes b, Lanes c) {
  return {_mm512_fmadd_ps(a.all, b.all, c.all)};
}
/// Where either is NaN, these two give `b`.
STRATA_INLINE Lanes maximum(Lanes a, Lanes b) { return {_mm512_max_ps(a.all, b.all)}; }
STRATA_INLINE Lanes minimum(Lanes a, Lanes b) { return {_mm512_min_ps(a.all, b.all)}; }
STRATA_INLINE Lanes roundToEven(Lanes a) {
  return {_mm512_roundscale_ps(a.all, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}

/// a * 2^n for whole n in [-252, 254], in two factors so that subnormal results are reached.
STRATA_INLINE Lanes scaleByPower(Lanes a, Lanes n) {
  __m512i power = _mm512_cvtps_epi32(n.all), half = _mm512_srai_epi32(power, 1);
  auto factor = [](__m512i exponent) {
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_add_epi32(exponent, _mm512_set1_epi32(127)), 23));
  };
  __m512 scaled = _mm512_mul_ps(a.all, factor(half));
  return {_mm512_mul_ps(scaled, factor(_mm512_sub_epi32(power, half)))};
}

STRATA_INLINE Lanes fromSigned(__m128i bytes) {
  return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes))};
}
STRATA_INLINE Lanes fromHalf(__m256i half) { return {_mm512_cvtph_ps(half)}; }
STRATA_INLINE __m256i toHalf(Lanes a) {
  return _mm512_cvtps_ph(a.all, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
STRATA_INLINE Lanes fromBfloat(__m256i value) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(value), 16))};
}

STRATA_INLINE __m256 foldAdd(Lanes a) {
  return _mm256_add_ps(_mm512_castps512_ps256(a.all), _mm512_extractf32x8_ps(a.all, 1));
}
STRATA_INLINE __m256 foldMaximum(Lanes a) {
  return _mm256_max_ps(_mm512_castps512_ps256(a.all), _mm512_extractf32x8_ps(a.all, 1));
}

#else

struct Lanes {
  __m256 low, high;
};

STRATA_INLINE __m256i firstMask(int count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

STRATA_INLINE Lanes splat(float value) { return {_mm256_set1_ps(value), _mm256_set1_ps(value)}; }
STRATA_INLINE Lanes load(const float *from) {
  return {_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)};
}
STRATA_INLINE void store(float *to, Lanes a) {
  _mm256_storeu_ps(to, a.low);
  _mm256_storeu_ps(to + 8, a.high);
}
/// Lanes from `count` (< 16) on are 0.
STRATA_INLINE Lanes loadFirst(const float *from, uint32_t count) {
  return {_mm256_maskload_ps(from, firstMask(int(count))),
          _mm256_maskload_ps(from + 8, firstMask(int(count) - 8))};
}
STRATA_INLINE void storeFirst(float *to, Lanes a, uint32_t count) {
  _mm256_maskstore_ps(to, firstMask(int(count)), a.low);
  _mm256_maskstore_ps(to + 8, firstMask(int(count) - 8), a.high);
}

STRATA_INLINE Lanes operator+(Lanes a, Lanes b) {
  return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
}
STRATA_INLINE Lanes operator-(Lanes a, Lanes b) {
  return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
}
STRATA_INLINE Lanes operator*(Lanes a, Lanes b) {
  return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
}
STRATA_INLINE Lanes operator/(Lanes a, Lanes b) {
  return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
}
/// a * b + c, rounded once.
STRATA_INLINE Lanes fma(Lanes a, Lanes b, Lanes c) {
  return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}
/// Where either is NaN, these two give `b`.
STRATA_INLINE Lanes maximum(Lanes a, Lanes b) {
  return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
}
STRATA_INLINE Lanes minimum(Lanes a, Lanes b) {
  return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
}
STRATA_INLINE Lanes roundToEven(Lanes a) {
  constexpr int mode = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  return {_mm256_round_ps(a.low, mode), _mm256_round_ps(a.high, mode)};
}

/// a * 2^n for whole n in [-252, 254], in two factors so that subnormal results are reached.
STRATA_INLINE Lanes scaleByPower(Lanes a, Lanes n) {
  auto factor = [](__m256i exponent) {
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_add_epi32(exponent, _mm256_set1_epi32(127)), 23));
  };
  auto scale = [&](__m256 value, __m256 by) {
    __m256i power = _mm256_cvtps_epi32(by), half = _mm256_srai_epi32(power, 1);
    value = _mm256_mul_ps(value, factor(half));
    return _mm256_mul_ps(value, factor(_mm256_sub_epi32(power, half)));
  };
  return {scale(a.low, n.low), scale(a.high, n.high)};
}

STRATA_INLINE Lanes fromSigned(__m128i bytes) {
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)),
          _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8)))};
}
STRATA_INLINE Lanes fromHalf(__m256i half) {
  return {_mm256_cvtph_ps(_mm256_castsi256_si128(half)),
          _mm256_cvtph_ps(_mm256_extracti128_si256(half, 1))};
}
STRATA_INLINE __m256i toHalf(Lanes a) {
  constexpr int mode = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  return _mm256_set_m128i(_mm256_cvtps_ph(a.high, mode), _mm256_cvtps_ph(a.low, mode));
}
STRATA_INLINE Lanes fromBfloat(__m256i value) {
  auto widen = [](__m128i half) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
  };
  return {widen(_mm256_castsi256_si128(value)), widen(_mm256_extracti128_si256(value, 1))};
}

STRATA_INLINE __m256 foldAdd(Lanes a) { return _mm256_add_ps(a.low, a.high); }
STRATA_INLINE __m256 foldMaximum(Lanes a) { return _mm256_max_ps(a.low, a.high); }

#endif

STRATA_INLINE __m128 upperHalf(__m256 a) { return _mm256_extractf128_ps(a, 1); }

STRATA_INLINE float firstOf(Lanes a) {
#ifdef __AVX512F__
  return _mm512_cvtss_f32(a.all);
#else
  return _mm256_cvtss_f32(a.low);
#endif
}

/// Lane i + lane i + 8, then + 4, + 2, + 1.
STRATA_INLINE float sumOf(Lanes a) {
  __m256 eight = foldAdd(a);
  __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), upperHalf(eight));
  __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/// sumOf of each of four, by the same tree.
STRATA_INLINE __m128 sumsOf(Lanes a, Lanes b, Lanes c, Lanes d) {
  auto four = [](Lanes lanes) {
    __m256 eight = foldAdd(lanes);
    return _mm_add_ps(_mm256_castps256_ps128(eight), upperHalf(eight));
  };
  __m128 a4 = four(a), b4 = four(b), c4 = four(c), d4 = four(d);
  __m128 ab = _mm_add_ps(_mm_movelh_ps(a4, b4), _mm_movehl_ps(b4, a4));
  __m128 cd = _mm_add_ps(_mm_movelh_ps(c4, d4), _mm_movehl_ps(d4, c4));
  return _mm_add_ps(_mm_shuffle_ps(ab, cd, 0x88), _mm_shuffle_ps(ab, cd, 0xDD));
}

STRATA_INLINE float maximumOf(Lanes a) {
  __m256 eight = foldMaximum(a);
  __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), upperHalf(eight));
  __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

/// e^x within 1.1 ulp; 0 below -104, infinity above 88.73, NaN stays NaN.
///
/// x = n ln 2 + r with |r| <= ln 2 / 2, and e^r by its Taylor series to r^7, whose remainder is
/// below 0.3466^8 / 8! = 5.2e-9 (0.09 ulp). ln 2 is taken off in two parts, as its F32 value alone
/// would leave n * 2e-9.
STRATA_INLINE Lanes exponential(Lanes x) {
  // The bounds come first so that NaN passes through.
  x = minimum(splat(89.0f), maximum(splat(-104.0f), x));
  Lanes n = roundToEven(x * splat(0x1.715476p+0f));
  Lanes r = fma(n, splat(-0x1.62e430p-1f), x);
  r = fma(n, splat(0x1.05c610p-29f), r);
  Lanes p = splat(1.0f / 5040);
  p = fma(p, r, splat(1.0f / 720));
  p = fma(p, r, splat(1.0f / 120));
  p = fma(p, r, splat(1.0f / 24));
  p = fma(p, r, splat(1.0f / 6));
  p = fma(p, r, splat(0.5f));
  p = fma(p, r, splat(1.0f));
  p = fma(p, r, splat(1.0f));
  return scaleByPower(p, n);
}

/// ln(1 + e^x) within 3 ulp: max(x, 0) + ln(1 + t) with t = e^-|x| in (0, 1].
///
/// ln(1 + t) = 2 atanh(s) with s = t / (2 + t) <= 1/3, by its odd series to s^19, whose remainder
/// is below 2 (1/3)^21 / 21 / (1 - 1/9) = 1.1e-11.
STRATA_INLINE Lanes softplus(Lanes x) {
  Lanes t = exponential(minimum(x, splat(0) - x));
  Lanes s = t / (splat(2.0f) + t), square = s * s;
  Lanes p = splat(1.0f / 19);
  p = fma(p, square, splat(1.0f / 17));
  p = fma(p, square, splat(1.0f / 15));
  p = fma(p, square, splat(1.0f / 13));
  p = fma(p, square, splat(1.0f / 11));
  p = fma(p, square, splat(1.0f / 9));
  p = fma(p, square, splat(1.0f / 7));
  p = fma(p, square, splat(1.0f / 5));
  p = fma(p, square, splat(1.0f / 3));
  Lanes twice = s + s;
  // The bound comes first so that NaN passes through.
  return maximum(splat(0), x) + fma(p * square, twice, twice);
}

/// Calls `body(first, count)` for consecutive pieces of [0, width): whole ones of 16 lanes, then at
/// most one shorter; `count` is a constant 16 in the whole ones once inlined.
template <class Body> STRATA_INLINE void forEachPiece(uint64_t width, Body body) {
  uint64_t first = 0;
  for (; first + laneCount <= width; first += laneCount)
    body(first, laneCount);
  if (first < width)
    body(first, uint32_t(width - first));
}

STRATA_INLINE Lanes loadPiece(const float *from, uint32_t count) {
  return count == laneCount ? load(from) : loadFirst(from, count);
}
STRATA_INLINE void storePiece(float *to, Lanes a, uint32_t count) {
  if (count == laneCount)
    store(to, a);
  else
    storeFirst(to, a, count);
}

} // namespace strata::cpu::STRATA_ISA_NAMESPACE
