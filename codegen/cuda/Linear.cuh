// linear.<type>: y[row][o] (+)= dot(weight[o], x[row]) + bias[o], for few rows.
//
// A block computes four outputs of up to eight rows; its threads share out the columns. With few
// rows the bound is the weights' bytes, each read once: for plain types a thread loads its share, 16
// bytes at a time, into registers before it waits for its predecessor, which weights do not depend
// on. More than eight rows read the weights once for every eight; BF16 has tiles for them
// (LinearTile.cuh).
#pragma once

#include "codegen/cuda/Kernel.cuh"
#include "codegen/cuda/LinearTile.cuh"

namespace strata {

constexpr uint32_t linearOutputs = 4;

/// Weights of a plain type, 16 bytes at a time: `Elements` consecutive values.
template <class T> struct Pack {
  static constexpr uint32_t elements = sizeof(uint4) / T::blockBytes;
  /// The products with `x` added to `sum`.
  static float addProducts(const uint4 &bytes, const float *x, float sum) {
    auto *weights = reinterpret_cast<const uint8_t *>(&bytes);
#pragma unroll
    for (uint32_t i = 0; i < elements; ++i)
      sum = fmaf(loadPlain<T>(weights + i * T::blockBytes), x[i], sum);
    return sum;
  }
};

template <> struct Pack<BF16> {
  static constexpr uint32_t elements = 8;
  static float addProducts(const uint4 &bytes, const float *x, float sum) {
    const uint32_t words[] = {bytes.x, bytes.y, bytes.z, bytes.w};
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) {
      sum = fmaf(__uint_as_float(words[i] << 16), x[2 * i], sum);
      sum = fmaf(__uint_as_float(words[i] & 0xFFFF0000), x[2 * i + 1], sum);
    }
    return sum;
  }
};

/// Sums over the block; thread (output, row) stores one result.
template <class K, uint32_t Rows>
inline void finishLinear(const Slots<10> &slots, float (&sums)[linearOutputs][Rows], uint32_t output,
                         uint32_t row, uint32_t rows) {
  enum { Bias = 2, Y = 3 };
  constexpr uint32_t warps = K::threads / warpThreads;
  __shared__ float parts[warps][linearOutputs * Rows];
#pragma unroll
  for (uint32_t o = 0; o < linearOutputs; ++o)
#pragma unroll
    for (uint32_t r = 0; r < Rows; ++r) {
      float sum = warpSum(sums[o][r]);
      if (threadIdx.x % warpThreads == 0)
        parts[threadIdx.x / warpThreads][o * Rows + r] = sum;
    }
  __syncthreads();
  uint32_t o = threadIdx.x / Rows, r = threadIdx.x % Rows;
  if (o >= linearOutputs || r >= rows || output + o >= K::outputs)
    return;
  float value = 0;
#pragma unroll
  for (uint32_t w = 0; w < warps; ++w)
    value += parts[w][threadIdx.x];
  if (auto *bias = slots.pointer<const float>(Bias))
    value += bias[output + o];
  float *y = slots.pointer<float>(Y) + uint64_t(row + r) * K::outputs + output + o;
  *y = K::accumulate ? *y + value : value;
}

/// Columns in packs of 16 bytes that start at multiples of 16.
template <class T, class K> constexpr bool isPacked() {
  if constexpr (T::blockElements == 1)
    return K::columns * T::blockBytes % sizeof(uint4) == 0;
  return false;
}

template <class T, class K> inline void linearPacked(const Slots<10> &slots) {
  enum { X, Weight };
  constexpr uint32_t perRow = K::columns / Pack<T>::elements;
  constexpr uint32_t perThread = (perRow + K::threads - 1) / K::threads;
  // As many as registers allow are loaded ahead; the rest follow turn by turn.
  constexpr uint32_t turn = perThread < 7 || K::rows > 2 ? perThread < 4 ? perThread : 4 : 7;
  uint32_t output = blockIdx.x * linearOutputs, row = blockIdx.y * K::rows;
  auto *weight = slots.pointer<const uint4>(Weight);

  uint4 loaded[linearOutputs][turn];
  auto load = [&](uint32_t first) {
#pragma unroll
    for (uint32_t o = 0; o < linearOutputs; ++o)
#pragma unroll
      for (uint32_t i = 0; i < turn; ++i) {
        uint32_t pack = (first + i) * K::threads + threadIdx.x;
        bool isInside = pack < perRow && output + o < K::outputs;
        loaded[o][i] =
            isInside ? __ldg(weight + uint64_t(output + o) * perRow + pack) : uint4{};
      }
  };
  load(0);
  awaitPredecessor();
  uint32_t valid = *slots.valid;
  if (row >= valid)
    return;
  uint32_t rows = valid - row < K::rows ? valid - row : K::rows;
  const float *x = slots.pointer<const float>(X) + uint64_t(row) * K::columns;

  float sums[linearOutputs][K::rows] = {};
#pragma unroll 1
  for (uint32_t first = 0; first < perThread; first += turn) {
    if (first > 0)
      load(first);
#pragma unroll
    for (uint32_t i = 0; i < turn; ++i) {
      uint32_t pack = (first + i) * K::threads + threadIdx.x;
      if (pack >= perRow)
        continue;
#pragma unroll
      for (uint32_t r = 0; r < K::rows; ++r) {
        if (r >= rows)
          continue;
        float values[Pack<T>::elements];
        auto *from = reinterpret_cast<const float4 *>(x + uint64_t(r) * K::columns) +
                     pack * (Pack<T>::elements / 4);
#pragma unroll
        for (uint32_t j = 0; j < Pack<T>::elements / 4; ++j)
          *reinterpret_cast<float4 *>(values + 4 * j) = from[j];
#pragma unroll
        for (uint32_t o = 0; o < linearOutputs; ++o)
          sums[o][r] = Pack<T>::addProducts(loaded[o][i], values, sums[o][r]);
      }
    }
  }
  finishLinear<K>(slots, sums, output, row, rows);
}

/// Any type, through its dequantise(): a thread takes whole blocks of the type.
template <class T, class K> inline void linearBlocks(const Slots<10> &slots) {
  enum { X, Weight };
  constexpr uint32_t blocks = K::columns / T::blockElements;
  uint32_t output = blockIdx.x * linearOutputs, row = blockIdx.y * K::rows;
  awaitPredecessor();
  uint32_t valid = *slots.valid;
  if (row >= valid)
    return;
  uint32_t rows = valid - row < K::rows ? valid - row : K::rows;
  const float *x = slots.pointer<const float>(X) + uint64_t(row) * K::columns;
  float sums[linearOutputs][K::rows] = {};
  for (uint32_t item = threadIdx.x; item < linearOutputs * blocks; item += K::threads) {
    uint32_t o = item / blocks, block = item % blocks;
    if (output + o >= K::outputs)
      break;
    float values[T::blockElements];
    T::dequantise(slots.pointer<const uint8_t>(Weight) +
                      (uint64_t(output + o) * blocks + block) * T::blockBytes,
                  values);
    const float *from = x + uint64_t(block) * T::blockElements;
#pragma unroll
    for (uint32_t r = 0; r < K::rows; ++r) {
      if (r >= rows)
        continue;
      float sum = 0;
#pragma unroll 32
      for (uint32_t i = 0; i < T::blockElements; ++i)
        sum = fmaf(values[i], from[uint64_t(r) * K::columns + i], sum);
#pragma unroll
      for (uint32_t each = 0; each < linearOutputs; ++each)
        if (each == o)
          sums[each][r] += sum;
    }
  }
  finishLinear<K>(slots, sums, output, row, rows);
}

template <class T, class K> inline void linear(const Slots<10> &slots) {
  if constexpr (K::rows > 8) // the launch shape's choice: BF16 alone
    linearTile<K>(slots);
  else if constexpr (isPacked<T, K>())
    linearPacked<T, K>(slots);
  else
    linearBlocks<T, K>(slots);
}

} // namespace strata
