// How a product of few activation rows is cut into blocks; read by the host, which launches it, and
// by the kernel (Matvec.cuh).
#pragma once

#include <cstdint>

namespace strata::cuda {

/// A kernel of few rows has at most this many; buckets with more take several in turn, or tiles.
constexpr uint64_t matvecRows = 8;

struct MatvecShape {
  uint32_t outputs; ///< Weight rows of a block: an even number.
  uint32_t threads;
};

/// Whether a product runs on the matrix units (MatvecTile.cuh): from three rows on.
constexpr bool usesMatrixUnits(bool isBf16, uint64_t columns, uint64_t rows) {
  return isBf16 && columns % 32 == 0 && rows > 2 && rows <= matvecRows;
}

/// For `outputs` weight rows of `rowBytes` each. Measured on an H200: four weight rows a block keep
/// most bytes in flight, as long as there are several blocks for each multiprocessor; a thread then
/// has 32 bytes or more of each row. Matrix units take eight weight rows at once, and twice as many
/// halve what is read of the activations.
constexpr MatvecShape matvecShape(uint64_t rowBytes, uint64_t outputs, bool onMatrixUnits) {
  if (onMatrixUnits)
    return {outputs / 16 >= 200 ? 16u : 8u, 256};
  MatvecShape shape{outputs / 4 >= 1024 ? 4u : 2u, 32};
  for (uint32_t most = shape.outputs * 64; shape.threads < most && shape.threads * 64 <= rowBytes;)
    shape.threads *= 2;
  return shape;
}

} // namespace strata::cuda
