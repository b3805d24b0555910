// Products of few activation rows on the matrix units, weights streamed through shared memory.
//
// The bound is the weights' bytes, each read once, as they lie in memory. Each warp of a block has
// columns of its own of every weight row, and copies them, run after run, into a ring of stages
// that is its alone, so warps meet only when they add up their sums at the end of a panel. Copies
// begin before the wait for the predecessor, which weights do not depend on; there is room for two
// blocks on a multiprocessor, so the next kernel's first stages are there before this one has
// ended.
//
// Weight rows come in pairs, which one thread has at the end: gate and up, or the two sides of a
// rotation. A tile is sixteen weight rows by eight activation rows (StreamOperand.cuh).
#pragma once

#include "codegen/cuda/MatvecShape.h"
#include "codegen/cuda/StreamOperand.cuh"

namespace strata {

extern __shared__ __align__(128) uint8_t dynamicShared[];

/// 16 bytes that nothing writes, past L1.
inline void copyPiece(uint8_t *to, const uint8_t *from) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(
                   uint32_t(__cvta_generic_to_shared(to))),
               "l"(from)
               : "memory");
}

inline void endCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/// Until all but the last `Count` groups of the thread's copies are there.
template <uint32_t Count> inline void awaitCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Count) : "memory");
}

/// The product of kernel constants K with `Pairs` pairs of weight rows of type T. `RowOf(pair,
/// side)` is a weight row, or nullptr; `Finish(pair, row, first, second, meanSquare)` is given each
/// result by one thread.
template <class T, class K, uint64_t Pairs, bool IsNormed, class RowOf, class Finish>
class MatvecStream {
public:
  /// `x` is [rows][columns], of which `rows` are valid.
  MatvecStream(const float *x, uint32_t rows, const float *gain, RowOf rowOf)
      : x_(x), gain_(gain), rows_(rows), rowOf_(rowOf) {}

  void run(float epsilon, Finish finish) {
    ring_ = dynamicShared + warp() * shape.stages * shape.stageBytes;
    source_.panel = blockIdx.x;
    openPanel();
#pragma unroll 1
    for (uint32_t stage = 0; stage + 1 < shape.stages; ++stage)
      bring(stage);
    awaitPredecessor();
    Activations next[ahead];
    float square = 0;
    if constexpr (isResident)
      makeResident();
    else
#pragma unroll
      for (uint32_t i = 0; i < ahead; ++i)
        load(next[i], i);
    uint32_t stage = 0;
#pragma unroll 1
    for (uint32_t panel = blockIdx.x; panel < panels; panel += gridDim.x) {
      findBegins(panel);
      float sums[tiles][4] = {};
      if constexpr (!isResident)
        square = 0;
#pragma unroll 1
      for (uint32_t turn = 0; turn < turns; ++turn) {
        awaitCopies<shape.stages - 2>();
        __syncwarp(); // every lane's copies are there, and the stage before is done with
        bring(stage == 0 ? shape.stages - 1 : stage - 1);
        multiplyRun(ring_ + stage * shape.stageBytes, turn, next, sums, square);
        stage = stage + 1 == shape.stages ? 0 : stage + 1;
      }
      store(sums, square);
      __syncthreads();
      join(panel, epsilon, finish);
      __syncthreads();
    }
  }

private:
  static constexpr cuda::StreamShape shape =
      cuda::streamShape({T::blockElements, T::blockBytes}, K::columns, Pairs, K::rows,
                        STRATA_MULTIPROCESSORS, STRATA_SHARED_BYTES);
  static constexpr uint32_t warps = shape.warps, tiles = shape.tiles;
  static constexpr uint32_t outputs = tiles * shape.tileOutputs; ///< Weight rows of a panel.
  static constexpr uint32_t panelPairs = tiles * shape.tilePairs;
  static constexpr uint32_t panels = (Pairs + panelPairs - 1) / panelPairs;
  static constexpr uint32_t columns = K::columns;
  static constexpr uint32_t runBytes = shape.columns / T::blockElements * T::blockBytes;
  /// Runs of a warp: it has every eighth of a row.
  static constexpr uint32_t turns = (columns + warps * shape.columns - 1) / (warps * shape.columns);
  static constexpr bool isEven = columns % (warps * shape.columns) == 0;
  /// Whether every run begins at a piece.
  static constexpr bool isAligned =
      runBytes % 16 == 0 && columns / T::blockElements * T::blockBytes % 16 == 0;
  /// Eight lanes copy a weight row's run, a line of 128 bytes together, so that a lane has four
  /// rows of a tile; a single last piece is brought by one lane for each row.
  static constexpr bool hasTail = shape.pieces % 8 == 1;
  static constexpr uint32_t laneRows = 4 * tiles, tails = hasTail ? tiles : 0;
  static constexpr uint32_t perRow = hasTail ? shape.pieces / 8 : (shape.pieces + 7) / 8;
  static constexpr uint32_t groups = shape.columns / 32; ///< Of a run.
  static constexpr uint32_t atOnce = 2,
                            steps = groups / atOnce; ///< Groups of a step, steps of a run.
  /// Steps whose activations are on their way, as registers allow.
  static constexpr uint32_t ahead = IsNormed ? 1 : 2;
  static constexpr bool isWhole = Fragment<T>::scales > 0;
  static constexpr uint32_t scales = isWhole ? Fragment<T>::scales : 1; ///< Of 32 columns.
  static constexpr bool isPacked = K::rows <= 4, isResident = shape.residentBytes > 0;
  using Operand = StreamOperand<T, isPacked>;
  static_assert(columns % 32 == 0 && columns % T::blockElements == 0 && K::rows <= 8);
  static_assert(shape.stages >= 2 && warps * runBytes % 16 == 0);
  static_assert(T::blockElements > 1 || shape.pieces == 8); // what the swizzle is for

  static uint32_t warp() { return threadIdx.x / warpThreads; }
  static uint32_t lane() { return threadIdx.x % warpThreads; }
  static uint32_t firstColumn(uint32_t turn) { return (turn * warps + warp()) * shape.columns; }
  /// Where piece `piece` of a stage's row lies: those of plain types so that eight rows' reads
  /// touch all banks once.
  static uint32_t place(uint32_t row, uint32_t piece) {
    if constexpr (T::blockElements == 1)
      piece ^= row % 8;
    return row * shape.pitch + piece * shape.pieceBytes;
  }

  /// The warp's first run of a pair of a panel's tile; nullptr past the last.
  const uint8_t *runOf(uint32_t panel, uint32_t tile, uint32_t pair, uint32_t side) const {
    pair += panel * panelPairs + tile * shape.tilePairs;
    const uint8_t *row = panel < panels && pair < Pairs ? rowOf_(pair, side) : nullptr;
    return row ? row + warp() * runBytes : nullptr;
  }
  static uint32_t misalignment(const uint8_t *place) { return uint32_t(uint64_t(place)) & 15; }

  void openPanel() {
#pragma unroll
    for (uint32_t i = 0; i < laneRows; ++i)
      source_.rows[i] = runOf(source_.panel, i / 4, i % 2 * 4 + lane() / 8, i / 2 % 2);
#pragma unroll
    for (uint32_t i = 0; i < tails; ++i)
      source_.tails[i] = lane() < 16 ? runOf(source_.panel, i, lane() % 8, lane() / 8) : nullptr;
  }

  /// The next run's weights into a stage. A piece begins at a multiple of 16, so the first may
  /// begin with bytes of a neighbour.
  void bring(uint32_t stage) {
    uint32_t first = firstColumn(source_.turn);
    if (source_.panel < panels && (isEven || first < columns)) {
      uint32_t bytes = runBytes;
      if (!isEven && columns - first < shape.columns)
        bytes = (columns - first) / T::blockElements * T::blockBytes;
      uint8_t *to = ring_ + stage * shape.stageBytes;
      auto copy = [&](const uint8_t *run, uint32_t row, uint32_t piece, bool isPiece) {
        uint32_t extra = isAligned ? 0 : misalignment(run);
        run += uint64_t(source_.turn) * (warps * runBytes) - extra + piece * 16;
        if (isPiece && ((isAligned && isEven) || piece * 16 < extra + bytes))
          copyPiece(to + place(row, piece), run);
      };
#pragma unroll
      for (uint32_t i = 0; i < laneRows; ++i)
        if (const uint8_t *run = source_.rows[i])
#pragma unroll
          for (uint32_t j = 0; j < perRow; ++j)
            copy(run, i * 4 + lane() / 8, j * 8 + lane() % 8,
                 j * 8 + 7 < shape.pieces || j * 8 + lane() % 8 < shape.pieces);
#pragma unroll
      for (uint32_t i = 0; i < tails; ++i)
        if (const uint8_t *run = source_.tails[i])
          copy(run, i * 16 + lane(), shape.pieces - 1, true);
    }
    endCopies();
    if (++source_.turn == turns) {
      source_.turn = 0;
      source_.panel += gridDim.x;
      openPanel();
    }
  }

  /// The lane's part of some groups of activations, and of the norm's gain.
  struct Activations {
    float4 values[atOnce][2], gains[IsNormed ? atOnce : 1][2];
  };

  /// Those of step `step`, modulo their number.
  void load(Activations &to, uint32_t step) const {
    uint32_t turn = step / steps % turns, first = step % steps * atOnce;
#pragma unroll
    for (uint32_t i = 0; i < 2 * atOnce; ++i) {
      uint32_t column = firstColumn(turn) + (first + i / 2) * 32;
      bool isInside = isEven || column < columns;
      column += i % 2 ? Fragment<T>::secondRun(lane() % 4) : Fragment<T>::firstRun(lane() % 4);
      to.values[i / 2][i % 2] = isInside && Operand::row(lane()) < rows_
                                    ? *reinterpret_cast<const float4 *>(
                                          x_ + uint64_t(Operand::row(lane())) * columns + column)
                                    : float4{};
      if constexpr (IsNormed)
        to.gains[i / 2][i % 2] =
            isInside ? __ldg(reinterpret_cast<const float4 *>(gain_ + column)) : float4{};
    }
  }

  /// The operand of group `i` of `from`; adds the lane's squares.
  static Operand operandOf(const Activations &from, uint32_t i, float &square) {
    float4 values[2] = {from.values[i][0], from.values[i][1]};
    if constexpr (IsNormed)
#pragma unroll
      for (uint32_t run = 0; run < 2; ++run)
        normalise(values[run], from.gains[i][run], square);
    return {values[0], values[1]};
  }

  static void normalise(float4 &value, const float4 &by, float &square) {
    square = fmaf(value.x, value.x, square);
    square = fmaf(value.y, value.y, square);
    square = fmaf(value.z, value.z, square);
    square = fmaf(value.w, value.w, square);
    value = {value.x * by.x, value.y * by.y, value.z * by.z, value.w * by.w};
  }

  /// Where the operands of all rows lie that are kept: by groups of 32 columns, then by rows; and
  /// their scales likewise.
  static uint8_t *operandsOf(uint32_t group) {
    return dynamicShared + warps * shape.stages * shape.stageBytes +
           group * K::rows * Operand::rowBytes;
  }
  static float *scalesOf(uint32_t group) {
    return reinterpret_cast<float *>(operandsOf(columns / 32)) + group * K::rows * 2;
  }

  /// Of the warp's own columns; four columns a lane at a time, and their loads together.
  void makeResident() const {
    constexpr uint32_t perPass = 4 * warpThreads, mostTogether = 6;
    constexpr uint32_t all = (turns * shape.columns + perPass - 1) / perPass;
    constexpr uint32_t rounds = (all + mostTogether - 1) / mostTogether;
    constexpr uint32_t together = (all + rounds - 1) / rounds;
    auto columnOf = [](uint32_t pass) {
      uint32_t own = pass * perPass + 4 * lane(), turn = own / shape.columns;
      return turn < turns ? firstColumn(turn) + own % shape.columns : columns;
    };
#pragma unroll 1
    for (uint32_t row = 0; row < K::rows; ++row) {
      float square = 0;
#pragma unroll 1
      for (uint32_t first = 0; first < all; first += together) {
        float4 values[together], gains[IsNormed ? together : 1];
#pragma unroll
        for (uint32_t i = 0; i < together; ++i) {
          uint32_t column = columnOf(first + i);
          bool isInside = column < columns && row < rows_;
          values[i] = isInside
                          ? *reinterpret_cast<const float4 *>(x_ + uint64_t(row) * columns + column)
                          : float4{};
          if constexpr (IsNormed)
            gains[i] =
                isInside ? __ldg(reinterpret_cast<const float4 *>(gain_ + column)) : float4{};
        }
#pragma unroll
        for (uint32_t i = 0; i < together; ++i) {
          uint32_t column = columnOf(first + i);
          if constexpr (IsNormed)
            normalise(values[i], gains[i], square);
          // Groups end with the columns, so lanes of one are inside together.
          bool isInside = column < columns;
          uint32_t group = isInside ? column / 32 : columns / 32 - 1;
          Operand::store(values[i], column % 32 / 4, operandsOf(group) + row * Operand::rowBytes,
                         scalesOf(group) + 2 * row, isInside);
        }
      }
      if constexpr (IsNormed) {
        square = warpSum(square);
        if (lane() == 0)
          partSums()[warp() * parts + outputs * K::rows + row] = square;
      }
    }
    __syncwarp();
  }

  /// Of a run that is in `stage`; `next` has the activations of its first steps, and at the end of
  /// those that follow.
  void multiplyRun(const uint8_t *stage, uint32_t turn, Activations (&next)[ahead],
                   float (&sums)[tiles][4], float &square) const {
    Scales scales;
    if constexpr (isShared)
      findScales(stage, scales);
#pragma unroll(isResident ? steps : 1)
    for (uint32_t first = 0; first < groups; first += atOnce) {
      Activations now;
      if constexpr (!isResident) {
        now = next[0];
#pragma unroll
        for (uint32_t i = 1; i < ahead; ++i)
          next[i - 1] = next[i];
        load(next[ahead - 1], turn * steps + first / atOnce + ahead);
      }
#pragma unroll
      for (uint32_t i = 0; i < atOnce; ++i) {
        if (!isEven && firstColumn(turn) + (first + i) * 32 >= columns)
          continue;
        Operand x;
        if constexpr (!isResident) {
          x = operandOf(now, i, square);
        } else {
          uint32_t global = firstColumn(turn) / 32 + first + i;
          x = Operand(operandsOf(global), scalesOf(global), K::rows);
        }
        multiplyGroup(stage, first, i, x, scales, sums);
      }
    }
  }

  /// The lane's weight row of a tile's side, as Fragment wants it.
  const uint8_t *rowOfStage(const uint8_t *stage, uint32_t tile, uint32_t side,
                            uint32_t group) const {
    uint32_t row = tile * shape.tileOutputs + side * 8 + lane() / 4;
    if constexpr (T::blockElements == 1) // the lane's own piece
      return stage + place(row, group * 4 + lane() % 4) - lane() % 4 * 16;
    else
      return stage + place(row, 0) + begins_[tile][side] +
             group / (T::blockElements / 32) * T::blockBytes;
  }

  /// Of blocks with eight groups a lane finds the scales of two, for itself and the three lanes
  /// that have the same rows.
  static constexpr bool isShared = T::blockElements == 256;
  struct Scales {
    FragmentScale<scales> of[isShared ? tiles : 1][2][2];
  };
  void findScales(const uint8_t *stage, Scales &to) const {
#pragma unroll
    for (uint32_t i = 0; i < 2 * tiles; ++i)
      Fragment<T>::scales2(rowOfStage(stage, i / 2, i % 2, 0), lane() % 4, to.of[i / 2][i % 2]);
  }

  /// Those of group `first` + `i`, `first` even.
  static FragmentScale<scales> scaleOf(const Scales &shared, const uint8_t *row, uint32_t tile,
                                       uint32_t side, uint32_t first, uint32_t i) {
    if constexpr (!isShared) {
      return Fragment<T>::scale(row);
    } else {
      FragmentScale<scales> result;
      uint32_t from = (lane() & ~3u) | first / 2;
#pragma unroll
      for (uint32_t half = 0; half < scales; ++half) {
        const auto &own = shared.of[tile][side][i];
        result.scale[half] = __shfl_sync(everyLane, own.scale[half], from);
        if constexpr (Fragment<T>::hasOffset)
          result.offset[half] = __shfl_sync(everyLane, own.offset[half], from);
      }
      return result;
    }
  }

  /// The 32 columns of group `first` + `i` of all tiles.
  void multiplyGroup(const uint8_t *stage, uint32_t first, uint32_t i, const Operand &x,
                     const Scales &shared, float (&sums)[tiles][4]) const {
    if constexpr (isWhole)
      multiplyWhole(stage, first, i, x, shared, sums);
    else
      multiplyPlain(stage, first + i, x, sums);
  }

  void multiplyPlain(const uint8_t *stage, uint32_t group, const Operand &x,
                     float (&sums)[tiles][4]) const {
#pragma unroll
    for (uint32_t tile = 0; tile < tiles; ++tile) {
      uint32_t weights[2][4];
#pragma unroll
      for (uint32_t side = 0; side < 2; ++side)
        Fragment<T>::load(rowOfStage(stage, tile, side, group), 0, lane() % 4, weights[side]);
#pragma unroll
      for (const auto &part : x.words)
#pragma unroll
        for (uint32_t half = 0; half < 2; ++half)
          multiplyAdd(sums[tile],
                      {weights[0][2 * half], weights[1][2 * half], weights[0][2 * half + 1],
                       weights[1][2 * half + 1]},
                      part[2 * half], part[2 * half + 1]);
    }
  }

  /// Adds the products of all parts of `x` with 16 weight rows of whole numbers.
  static void addWhole(WholeSums<isPacked> (&sums)[scales], const uint32_t (&weights)[4],
                       const Operand &x) {
#pragma unroll
    for (uint32_t half = 0; half < scales; ++half)
#pragma unroll
      for (uint32_t part = 0; part < Operand::parts; ++part)
        multiplyBytes<32 / scales, Fragment<T>::isSigned>(sums[half].of[part], weights,
                                                          x.words[part], half);
  }

  void multiplyWhole(const uint8_t *stage, uint32_t first, uint32_t i, const Operand &x,
                     const Scales &shared, float (&sums)[tiles][4]) const {
    using Of = Fragment<T>;
    constexpr uint32_t perBlock = T::blockElements / 32;
    WholeSums<isPacked> own[scales]; // the activations' own sums, times the bias
    if constexpr (Of::bias > 0) {
      constexpr uint32_t each = 0x01010101u * Of::bias;
      addWhole(own, {each, each, each, each}, x);
    }
#pragma unroll
    for (uint32_t tile = 0; tile < tiles; ++tile) {
      const uint8_t *rows[2];
      uint32_t runs[2][2];
#pragma unroll
      for (uint32_t side = 0; side < 2; ++side) {
        rows[side] = rowOfStage(stage, tile, side, first + i);
        Of::load(rows[side], (first + i) % perBlock, lane() % 4, runs[side]);
      }
      WholeSums<isPacked> products[scales];
      if constexpr (Of::bias > 0)
#pragma unroll
        for (uint32_t half = 0; half < scales; ++half)
          products[half].subtract(own[half]);
      addWhole(products, {runs[0][0], runs[1][0], runs[0][1], runs[1][1]}, x);
#pragma unroll
      for (uint32_t side = 0; side < 2; ++side) {
        FragmentScale<scales> by = scaleOf(shared, rows[side], tile, side, first, i);
#pragma unroll
        for (uint32_t r = 0; r < Operand::results; ++r) {
          float &sum = sums[tile][2 * side + r];
          float value = 0;
#pragma unroll
          for (uint32_t half = 0; half < scales; ++half)
            value = fmaf(by.scale[half], products[half].value(side, r), value);
          sum = fmaf(value, x.scales[r], sum);
          if constexpr (Of::hasOffset)
            sum = fmaf(by.offset[0], x.sums[r], sum);
        }
      }
    }
  }

  /// Where in its first piece the lane's row of each tile begins.
  void findBegins(uint32_t panel) {
    if constexpr (T::blockElements > 1)
#pragma unroll
      for (uint32_t i = 0; i < 2 * tiles; ++i)
        begins_[i / 2][i % 2] =
            isAligned ? 0 : misalignment(runOf(panel, i / 2, lane() / 4, i % 2));
  }

  static constexpr uint32_t parts = (outputs + 1) * K::rows; ///< Of a warp; the last are squares.
  static float *partSums() {
    return reinterpret_cast<float *>(dynamicShared + warps * shape.stages * shape.stageBytes +
                                     shape.residentBytes);
  }

  void store(float (&sums)[tiles][4], float square) const {
    float *to = partSums() + warp() * parts;
    uint32_t own = lane() / 4, t = lane() % 4;
#pragma unroll
    for (uint32_t tile = 0; tile < tiles; ++tile)
#pragma unroll
      for (uint32_t side = 0; side < 2; ++side)
#pragma unroll
        for (uint32_t i = 0; i < Operand::results; ++i) {
          float sum = sums[tile][2 * side + i];
          if constexpr (isPacked) // both parts of a row, where they are apart
            sum += sums[tile][2 * side + 1];
          if (uint32_t row = Operand::resultRow(lane(), i); row < K::rows)
            to[(tile * shape.tileOutputs + side * 8 + own) * K::rows + row] = sum;
        }
    if constexpr (IsNormed && !isResident) {
      square += __shfl_xor_sync(everyLane, square, 1);
      square += __shfl_xor_sync(everyLane, square, 2);
      uint32_t row = Operand::row(lane());
      if (t == 0 && row < K::rows && (!isPacked || own % 2 == 0))
        to[outputs * K::rows + row] = square;
    }
  }

  void join(uint32_t panel, float epsilon, Finish &finish) const {
    uint32_t pair = threadIdx.x / K::rows, row = threadIdx.x % K::rows;
    static_assert(panelPairs * K::rows <= warps * warpThreads);
    uint32_t global = panel * panelPairs + pair;
    if (pair >= panelPairs || global >= Pairs || row >= rows_)
      return;
    uint32_t output = pair / shape.tilePairs * shape.tileOutputs + pair % shape.tilePairs;
    float first = 0, second = 0, meanSquare = 0;
#pragma unroll
    for (uint32_t each = 0; each < warps; ++each) {
      const float *from = partSums() + each * parts;
      first += from[output * K::rows + row];
      second += from[(output + 8) * K::rows + row];
      if constexpr (IsNormed)
        meanSquare += from[outputs * K::rows + row];
    }
    if constexpr (IsNormed) {
      meanSquare /= float(columns);
      float scale = 1.0f / sqrtf(meanSquare + epsilon);
      first *= scale, second *= scale;
    }
    finish(global, row, first, second, meanSquare);
  }

  /// Of what is copied next: its panel, the run's number, and the first runs of the lane's rows.
  struct Source {
    uint32_t panel, turn = 0;
    const uint8_t *rows[laneRows], *tails[tails > 0 ? tails : 1];
  } source_;
  uint8_t *ring_;
  const float *x_, *gain_;
  uint32_t rows_, begins_[tiles][2] = {};
  RowOf rowOf_;
};

} // namespace strata
