// How a product of few activation rows is cut into blocks; read by the host, which launches it, and
// by the kernels (Matvec.cuh, MatvecStream.cuh).
#pragma once

#include <cstdint>

namespace strata::cuda {

/// A kernel of few rows has at most this many; buckets with more take several in turn, or tiles.
constexpr uint64_t matvecRows = 8;

struct MatvecShape {
  uint32_t outputs; ///< Weight rows of a block: an even number.
  uint32_t threads;
};

/// For `outputs` weight rows of `rowBytes` each. Measured on an H200: four weight rows a block keep
/// most bytes in flight, as long as there are several blocks for each multiprocessor; a thread then
/// has 32 bytes or more of each row.
constexpr MatvecShape matvecShape(uint64_t rowBytes, uint64_t outputs) {
  MatvecShape shape{outputs / 4 >= 1024 ? 4u : 2u, 32};
  for (uint32_t most = shape.outputs * 64; shape.threads < most && shape.threads * 64 <= rowBytes;)
    shape.threads *= 2;
  return shape;
}

/// Whether a product is streamed (MatvecStream.cuh): types that Fragment.cuh has.
constexpr bool isStreamed(uint32_t ggufId, uint64_t columns, uint64_t rows) {
  constexpr uint32_t types[] = {2, 3, 6, 7, 8, 12, 13, 14, 30}; // Q4_0 to Q6_K, and BF16
  bool isType = false;
  for (uint32_t type : types)
    isType = isType || type == ggufId;
  return isType && columns % 32 == 0 && rows <= matvecRows;
}

/// Block of a weight type.
struct StreamedType {
  uint32_t blockElements, blockBytes;
};

/// How a streamed product is cut. Few blocks take panels of weight rows in turn; each of a block's
/// warps has runs of columns of its own, and brings them through a ring of stages in shared memory.
struct StreamShape {
  static constexpr uint32_t warps = 8, threads = 32 * warps;
  static constexpr uint32_t tileOutputs = 16, tilePairs = tileOutputs / 2;
  static constexpr uint32_t pieceBytes = 16;

  uint32_t tiles;   ///< Of 16 weight rows, in a panel.
  uint32_t columns; ///< Of a run.
  uint32_t pieces;  ///< Of a run of one weight row, at most.
  uint32_t pitch;   ///< Bytes from row to row of a stage.
  uint32_t stages;
  uint32_t blocks;
  uint32_t stageBytes;    ///< Of a warp.
  uint32_t residentBytes; ///< Of a block: its rows' activations as operands, or 0.
  uint32_t sharedBytes;   ///< Of a block: all stages, activations, and the warps' sums.
};

/// For `pairs` pairs of weight rows of `columns` columns and at most `rows` activation rows, on a
/// card that gives a block `mostShared` bytes. Two blocks share a multiprocessor: those of one
/// kernel, and while it ends its successor's, whose weights come meanwhile.
constexpr StreamShape streamShape(StreamedType type, uint64_t columns, uint64_t pairs,
                                  uint64_t rows, uint32_t multiprocessors, uint32_t mostShared) {
  constexpr auto divide = [](uint64_t a, uint64_t b) { return (a + b - 1) / b; };
  StreamShape shape{};
  // Whole lines of a plain type. Of others, 256 columns of all but Q6_K are whole pieces.
  shape.columns = type.blockElements == 1 ? 64 : 256;
  uint32_t bytes = shape.columns / type.blockElements * type.blockBytes;
  uint64_t rowBytes = columns / type.blockElements * type.blockBytes;
  bool isAligned = bytes % StreamShape::pieceBytes == 0 && rowBytes % StreamShape::pieceBytes == 0;
  shape.pieces = uint32_t(divide(bytes + (isAligned ? 0 : 14), StreamShape::pieceBytes));
  // Plain types are swizzled; of others eight rows begin in different banks.
  shape.pitch =
      (type.blockElements == 1 ? shape.pieces : shape.pieces | 1) * StreamShape::pieceBytes;
  // A reserved KiB is lost for each block.
  uint32_t room = (mostShared + 1024) / 2 - 1024;
  // In 64 bits: the loader asks before it knows that a plan's constants are a model's.
  uint64_t tiles = divide(pairs, StreamShape::tilePairs);
  auto cost = [&](uint32_t panel) { // tiles of the busiest block
    return divide(divide(tiles, panel), 2 * multiprocessors) * panel;
  };
  // Activations are kept, as the matrix units take them, where half the room holds them.
  uint64_t operand = rows * (type.blockElements == 1 ? columns * 4 : columns * 2 + columns / 4);
  shape.residentBytes = operand <= room / 2 ? uint32_t(operand) : 0;
  // A wider panel reads activations less often.
  for (uint32_t panel = 1; panel <= 3; ++panel) {
    uint32_t stage = panel * StreamShape::tileOutputs * shape.pitch;
    uint32_t fixed = shape.residentBytes + uint32_t(rows) * StreamShape::warps *
                                               (panel * StreamShape::tileOutputs + 1) *
                                               uint32_t(sizeof(float));
    uint32_t stages = (room - fixed) / (StreamShape::warps * stage);
    if (panel > 1 &&
        (stages < 2 || cost(panel) * 5 > cost(1) * (rows > 4 ? 6 : 5) || shape.residentBytes > 0))
      continue;
    stages = stages < 2 ? 2 : stages; // one block alone, where memory is scarce
    shape.tiles = panel;
    shape.stages = stages < 8 ? stages : 8;
    shape.stageBytes = stage;
    shape.sharedBytes = StreamShape::warps * shape.stages * stage + fixed;
  }
  uint64_t panels = divide(tiles, shape.tiles);
  shape.blocks = uint32_t(divide(panels, divide(panels, 2 * multiprocessors)));
  return shape;
}

} // namespace strata::cuda
