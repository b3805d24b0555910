// Activations of few rows as the matrix units take them: the B operand of 32 columns.
//
// Each activation is two numbers, so that little of an F32 is lost: to BF16 weights, its rounding
// to BF16 and the rounding of what that leaves out; to quantised ones, the two bytes of a whole
// number of 16 bits, times a scale that the 32 columns of a row share. Up to four rows are packed:
// the operand's eight columns hold both numbers of each row, and one multiplication does. More rows
// take two.
//
// Lane l of a warp holds columns of row(l), and is given results of resultRow(l, i).
#pragma once

#include "codegen/cuda/Fragment.cuh"
#include "codegen/cuda/LinearTile.cuh"

namespace strata {

/// Two numbers rounded to BF16, the first in the low half; and what rounding left out, likewise.
inline void splitPair(float first, float second, uint32_t &high, uint32_t &low) {
  auto round = [](float a, float b) {
    uint32_t pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(b), "f"(a));
    return pair;
  };
  high = round(first, second);
  low = round(first - __uint_as_float(high << 16), second - __uint_as_float(high & 0xFFFF0000));
}

/// Of two, or NaN if one is NaN.
inline float maximumOrNan(float a, float b) {
  float most;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(most) : "f"(a), "f"(b));
  return most;
}

inline float largest(const float4 &values) {
  return maximumOrNan(maximumOrNan(fabsf(values.x), fabsf(values.y)),
                      maximumOrNan(fabsf(values.z), fabsf(values.w)));
}

/// Whole numbers of 16 bits, by the largest of those that share a scale. Values that are not finite
/// make a scale that is not.
struct WholeScale {
  static constexpr float most = 127 * 256;
  float scale, inverse;
  explicit WholeScale(float largest)
      : scale(largest * (1.0f / most)), inverse(largest > 0 ? __fdividef(most, largest) : 0) {}

  /// The high and the low bytes of four values, both signed: high * 256 + low.
  void split(const float4 &values, uint32_t &high, uint32_t &low) const {
    // Added to 1.5 * 2^23, a float's last bits are the whole number; 128 more makes the low byte
    // that of a signed number once its sign is changed.
    constexpr float base = 12582912 + 128;
    auto whole = [&](float value) { return __float_as_uint(fmaf(value, inverse, base)); };
    uint32_t first = __byte_perm(whole(values.x), whole(values.y), 0x5140);
    uint32_t second = __byte_perm(whole(values.z), whole(values.w), 0x5140);
    low = __byte_perm(first, second, 0x5410) ^ 0x80808080;
    high = __byte_perm(first, second, 0x7632);
  }
};

/// sum += a b: sixteen weight rows of `Columns` whole numbers, a byte each, with eight columns.
template <uint32_t Columns, bool IsSigned>
inline void multiplyBytes(int32_t (&sum)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                          uint32_t half) {
  if constexpr (Columns == 16) {
    static_assert(!IsSigned);
    asm("mma.sync.aligned.m16n8k16.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
        "{%0,%1,%2,%3};"
        : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
        : "r"(a[2 * half]), "r"(a[2 * half + 1]), "r"(b[half]));
  } else if constexpr (IsSigned) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  } else {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
}

/// The operand for weights of type T.
template <class T, bool IsPacked> class StreamOperand {
public:
  static constexpr bool isWhole = Fragment<T>::scales > 0, hasSums = Fragment<T>::hasOffset;
  static constexpr uint32_t parts = IsPacked ? 1 : 2;   ///< That the lane holds.
  static constexpr uint32_t results = IsPacked ? 1 : 2; ///< Of a weight row, in a lane.
  static constexpr uint32_t runWords = isWhole ? 1 : 2; ///< A part of four columns.
  static constexpr uint32_t partWords = 2 * runWords;
  /// Of a row's 32 columns in shared memory: by lanes, and a lane's by parts.
  static constexpr uint32_t rowBytes = 4 * 2 * partWords * sizeof(uint32_t);

  static uint32_t row(uint32_t lane) { return IsPacked ? lane / 8 : lane / 4; }
  static uint32_t resultRow(uint32_t lane, uint32_t i) { return lane % 4 * results + i; }

  StreamOperand() = default;

  /// Of the lane's two runs of four columns. Every lane calls it.
  StreamOperand(const float4 &first, const float4 &second) {
    uint32_t lane = threadIdx.x % warpThreads;
    uint32_t both[2][2][runWords];
    if constexpr (isWhole) {
      float most = maximumOrNan(largest(first), largest(second));
      most = maximumOrNan(most, __shfl_xor_sync(everyLane, most, 1));
      WholeScale whole(maximumOrNan(most, __shfl_xor_sync(everyLane, most, 2)));
      whole.split(first, both[0][0][0], both[1][0][0]);
      whole.split(second, both[0][1][0], both[1][1][0]);
#pragma unroll
      for (uint32_t i = 0; i < results; ++i) // from a lane that holds columns of the row
        scales[i] = __shfl_sync(everyLane, whole.scale, resultRow(lane, i) * (IsPacked ? 8 : 4));
      if constexpr (hasSums) {
        float sum = sumOf(first) + sumOf(second);
        sum += __shfl_xor_sync(everyLane, sum, 1);
        sum += __shfl_xor_sync(everyLane, sum, 2);
#pragma unroll
        for (uint32_t i = 0; i < results; ++i)
          sums[i] = __shfl_sync(everyLane, sum, resultRow(lane, i) * (IsPacked ? 8 : 4));
      }
    } else {
      splitRun(first, both[0][0], both[1][0]);
      splitRun(second, both[0][1], both[1][1]);
    }
#pragma unroll
    for (uint32_t i = 0; i < partWords; ++i) {
      uint32_t run = i / runWords, word = i % runWords;
      if constexpr (IsPacked) {
        words[0][i] = lane / 4 % 2 == 0 ? both[0][run][word] : both[1][run][word];
      } else {
        words[0][i] = both[0][run][word];
        words[1][i] = both[1][run][word];
      }
    }
  }

  /// Reads what `store` left of 32 columns of rows 0 to `rows`; `rowScales` has two numbers a row.
  StreamOperand(const uint8_t *operands, const float *rowScales, uint32_t rows) {
    uint32_t lane = threadIdx.x % warpThreads;
    if (row(lane) < rows) {
      auto *from = reinterpret_cast<const uint32_t *>(operands + row(lane) * rowBytes) +
                   lane % 4 * 2 * partWords + (IsPacked ? lane / 4 % 2 * partWords : 0);
#pragma unroll
      for (uint32_t i = 0; i < parts * partWords; i += 2) {
        uint2 pair = *reinterpret_cast<const uint2 *>(from + i);
        words[i / partWords][i % partWords] = pair.x;
        words[i / partWords][i % partWords + 1] = pair.y;
      }
    }
    if constexpr (isWhole)
#pragma unroll
      for (uint32_t i = 0; i < results; ++i)
        if (uint32_t result = resultRow(lane, i); result < rows) {
          scales[i] = rowScales[2 * result];
          if constexpr (hasSums)
            sums[i] = rowScales[2 * result + 1];
        }
  }

  /// Leaves run `j` of eight of a row's 32 columns, unless it is outside; eight lanes hold one
  /// group. Every lane calls it.
  static void store(const float4 &values, uint32_t j, uint8_t *operands, float *rowScale,
                    bool isInside) {
    auto *to = reinterpret_cast<uint32_t *>(operands);
    uint32_t high[runWords], low[runWords];
    uint32_t t = isWhole ? j % 4 : j / 2, run = isWhole ? j / 4 : j % 2;
    if constexpr (isWhole) {
      float most = largest(values);
#pragma unroll
      for (uint32_t offset = 1; offset < 8; offset *= 2)
        most = maximumOrNan(most, __shfl_xor_sync(everyLane, most, offset));
      WholeScale whole(most);
      whole.split(values, high[0], low[0]);
      if (isInside && j == 0)
        rowScale[0] = whole.scale;
      if constexpr (hasSums) {
        float sum = sumOf(values);
#pragma unroll
        for (uint32_t offset = 1; offset < 8; offset *= 2)
          sum += __shfl_xor_sync(everyLane, sum, offset);
        if (isInside && j == 0)
          rowScale[1] = sum;
      }
    } else {
      splitRun(values, high, low);
    }
    if (!isInside)
      return;
    to += t * 2 * partWords + run * runWords;
#pragma unroll
    for (uint32_t i = 0; i < runWords; ++i) {
      to[i] = high[i];
      to[partWords + i] = low[i];
    }
  }

  uint32_t words[parts][partWords] = {};
  float scales[results] = {}; ///< Of the result rows.
  float sums[results] = {};   ///< Of their 32 activations, for weights that have offsets.

private:
  static float sumOf(const float4 &values) { return (values.x + values.y) + (values.z + values.w); }

  static void splitRun(const float4 &values, uint32_t (&high)[runWords],
                       uint32_t (&low)[runWords]) {
    if constexpr (!isWhole) {
      splitPair(values.x, values.y, high[0], low[0]);
      splitPair(values.z, values.w, high[1], low[1]);
    }
  }
};

/// Sums of products of whole numbers: of 32 columns, or of a half.
template <bool IsPacked> struct WholeSums {
  int32_t of[IsPacked ? 1 : 2][4] = {};

  void subtract(const WholeSums &other) {
#pragma unroll
    for (uint32_t part = 0; part < (IsPacked ? 1 : 2); ++part)
#pragma unroll
      for (uint32_t i = 0; i < 4; ++i)
        of[part][i] -= other.of[part][i];
  }

  /// Of the lane's weight row `side` with its result row `i`.
  float value(uint32_t side, uint32_t i) const {
    return float(IsPacked ? of[0][2 * side] * 256 + of[0][2 * side + 1]
                          : of[0][2 * side + i] * 256 + of[IsPacked ? 0 : 1][2 * side + i]);
  }
};

} // namespace strata
