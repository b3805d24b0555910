// exp and log from additions, multiplications and bit operations alone: the C library picks other
// code on other processors, and a sampled token must not depend on that.
#pragma once

#include <bit>
#include <cstdint>

namespace strata {

/// e^x for x <= 0, within two units in the last place; 0 for x < -87 (about 1.6e-38, where floats
/// begin to lose bits) and for NaN. exponential(0) is exactly 1. Without branches, so that loops
/// over it vectorise.
inline float exponential(float x) {
  float clamped = x > -87.0f ? x : -87.0f;
  // x = n ln 2 + r with |r| <= ln(2)/2; adding 1.5 * 2^23 rounds to an integer in the low bits.
  constexpr float roundToInteger = 12582912.0f;
  float shifted = clamped * 1.44269504f + roundToInteger;
  float n = shifted - roundToInteger;
  // ln 2 in two parts; n has 7 bits and the first part 9, so n times it is exact.
  float r = clamped - n * 0.693359375f;
  r = r - n * -2.12194440e-4f;
  // Taylor: the first term left out is r^8/8! < 6e-9.
  float p = 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  // The low bits of `shifted` hold n; move it into the exponent of 1.
  auto power = std::bit_cast<float>((std::bit_cast<uint32_t>(shifted) << 23) + 0x3F800000u);
  return x >= -87.0f ? p * power : 0.0f;
}

/// Natural logarithm of a finite x >= 1, within 1e-15 of it (relative, absolute near 1).
inline double logarithm(double x) {
  auto bits = std::bit_cast<uint64_t>(x);
  auto exponent = int(bits >> 52) - 1023;
  auto mantissa = std::bit_cast<double>((bits & 0x000FFFFFFFFFFFFFu) | 0x3FF0000000000000u);
  if (mantissa > 1.4142135623730951) {
    mantissa *= 0.5;
    ++exponent;
  }
  // log m = 2 atanh(s), |s| <= 0.1716: the first term left out is s^25/25 < 4e-21.
  double s = (mantissa - 1.0) / (mantissa + 1.0), square = s * s, sum = 0.0;
  for (int k = 23; k >= 1; k -= 2)
    sum = sum * square + 1.0 / k;
  return exponent * 0.6931471805599453 + 2.0 * s * sum;
}

} // namespace strata
