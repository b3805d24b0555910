// rope: rotates pairs of each head by position * frequency.
#include "codegen/cpu/Families.h"

namespace strata::cpu::STRATA_ISA_NAMESPACE {
namespace {

struct Rotation {
  double cosine, sine;
};

/// Cosine and sine of an angle below 2^30, within 1e-14: far below the F32 ulp that they are
/// rounded to, where an F32 product position * frequency would be off by 2e-4 at position 4000.
///
/// angle = quarter * pi/2 + r with |r| <= pi/4, the product taken off in two fused steps; then the
/// Taylor series to r^15 and r^14 (remainders below 1e-15). Straight-line, so that a loop
/// vectorises.
STRATA_INLINE Rotation rotationBy(double angle) {
  constexpr double whole =
      0x1.8p52; // adding it rounds to an integer and leaves that in the low bits
  double shifted = __builtin_fma(angle, 0x1.45f306dc9c883p-1, whole);
  auto quarter = __builtin_bit_cast(uint64_t, shifted);
  double n = shifted - whole;
  double r = __builtin_fma(-n, 0x1.921fb54442d18p+0, angle);
  r = __builtin_fma(-n, 0x1.1a62633145c07p-54, r);
  double square = r * r;
  double s = -1.0 / 1307674368000, c = -1.0 / 87178291200;
  s = __builtin_fma(s, square, 1.0 / 6227020800);
  c = __builtin_fma(c, square, 1.0 / 479001600);
  s = __builtin_fma(s, square, -1.0 / 39916800);
  c = __builtin_fma(c, square, -1.0 / 3628800);
  s = __builtin_fma(s, square, 1.0 / 362880);
  c = __builtin_fma(c, square, 1.0 / 40320);
  s = __builtin_fma(s, square, -1.0 / 5040);
  c = __builtin_fma(c, square, -1.0 / 720);
  s = __builtin_fma(s, square, 1.0 / 120);
  c = __builtin_fma(c, square, 1.0 / 24);
  s = __builtin_fma(s, square, -1.0 / 6);
  c = __builtin_fma(c, square, -0.5);
  s = __builtin_fma(s * square, r, r);
  c = __builtin_fma(c, square, 1.0);
  bool swapped = quarter & 1;
  double cosine = swapped ? s : c, sine = swapped ? c : s;
  // Quarters 1 and 2 negate the cosine, 2 and 3 the sine.
  uint64_t cosineSign = ((quarter + 1) & 2) << 62, sineSign = (quarter & 2) << 62;
  return {__builtin_bit_cast(double, __builtin_bit_cast(uint64_t, cosine) ^ cosineSign),
          __builtin_bit_cast(double, __builtin_bit_cast(uint64_t, sine) ^ sineSign)};
}

enum Slot {
  X,
  Frequencies,
  RowPosition,
  Heads,
  HeadWidth,
  RotaryWidth,
  Interleaved,
  Magnitude,
  First
};

/// The angles of a row are computed once, 256 pairs at a time (2 KiB of stack), for all its heads.
void rope(const uint64_t *slots, uint32_t begin, uint32_t end, uint32_t) {
  constexpr uint64_t chunk = 256;
  alignas(64) float cosine[chunk], sine[chunk];
  auto *frequencies = pointerAt<const float>(slots, Frequencies);
  uint64_t heads = slots[Heads], headWidth = slots[HeadWidth], pairs = slots[RotaryWidth] / 2;
  double magnitude = __builtin_bit_cast(double, slots[Magnitude]);

  for (uint32_t row = begin; row < end; ++row) {
    double position = pointerAt<const int32_t>(slots, RowPosition)[row];
    for (uint64_t start = 0; start < pairs; start += chunk) {
      uint64_t count = pairs - start < chunk ? pairs - start : chunk;
      for (uint64_t j = 0; j < count; ++j) {
        Rotation rotation = rotationBy(position * double(frequencies[start + j]));
        cosine[j] = float(rotation.cosine * magnitude);
        sine[j] = float(rotation.sine * magnitude);
      }
      for (uint64_t head = 0; head < heads; ++head) {
        float *x = pointerAt<float>(slots, X) + (row * heads + head) * headWidth + slots[First];
        if (slots[Interleaved]) {
          float *pair = x + 2 * start;
          for (uint64_t j = 0; j < count; ++j) {
            float a = pair[2 * j], b = pair[2 * j + 1];
            pair[2 * j] = a * cosine[j] - b * sine[j];
            pair[2 * j + 1] = a * sine[j] + b * cosine[j];
          }
        } else {
          float *first = x + start, *second = x + pairs + start;
          forEachPiece(count, [&](uint64_t j, uint32_t lanes) {
            Lanes a = loadPiece(first + j, lanes), b = loadPiece(second + j, lanes);
            Lanes c = loadPiece(cosine + j, lanes), s = loadPiece(sine + j, lanes);
            storePiece(first + j, a * c - b * s, lanes);
            storePiece(second + j, a * s + b * c, lanes);
          });
        }
      }
    }
  }
}

constexpr KernelEntry entries[] = {{"rope", rope}};

} // namespace

KernelList ropeKernels() { return {entries, 1}; }

} // namespace strata::cpu::STRATA_ISA_NAMESPACE
