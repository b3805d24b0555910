#include "test/codegen/cpu/KernelData.h"

namespace strata::cpu {
namespace {

class HeadLinearTest : public KernelTest {};

TEST_P(HeadLinearTest, MapsEachHeadByItsOwnMatrix) {
  const WeightType &type = *findWeightType(suffix());
  constexpr uint32_t rows = 5;
  for (auto [heads, weightRows, blocks, tail, transposed] : {std::tuple(3u, 17u, 1u, 0u, false),
                                                             {2u, 16u, 2u, 5u, false},
                                                             {3u, 9u, 1u, 4u, true},
                                                             {1u, 1u, 3u, 0u, true}}) {
    uint32_t columns = blocks * std::max(8u, type.blockElements);
    uint32_t from = transposed ? weightRows : columns, to = transposed ? columns : weightRows;
    WeightMatrix weight = randomWeights(type, size_t(heads) * weightRows * columns, 1);
    uint32_t xWidth = heads * (from + tail), yWidth = heads * (to + tail);
    std::vector<float> x = randomFloats(rows * xWidth, 2);
    std::vector<uint8_t> scratch(2 * scratchBytes(kernel(), columns));
    auto run = [&](uint32_t first, uint32_t count) {
      GuardedRows y(rows, yWidth);
      KernelCall call(kernel(), isa(),
                      {{"x", x.data() + first * xWidth},
                       {"weight", weight.bytes},
                       {"y", y.data()},
                       {"valid_rows", &count},
                       {"scratch", scratch},
                       {"scratch_stride", scratchBytes(kernel(), columns)},
                       {"heads", heads},
                       {"weight_rows", weightRows},
                       {"columns", columns},
                       {"tail", tail},
                       {"transposed", transposed}});
      for (uint32_t head = heads; head-- > 0;)
        call.run(head, head + 1, head % 2);
      EXPECT_TRUE(y.touchedOnly(0, count));
      return y;
    };
    GuardedRows y = run(0, rows);
    EXPECT_TRUE(sameBits(y.row(3), run(3, 1).data(), yWidth)) << "a row alone";
    for (uint32_t row = 0; row < rows; ++row)
      for (uint32_t head = 0; head < heads; ++head) {
        const float *in = &x[row * xWidth + head * (from + tail)];
        const float *out = y.row(row) + head * (to + tail);
        for (uint32_t o = 0; o < to; ++o) {
          double sum = 0, squares = 0;
          for (uint32_t i = 0; i < from; ++i) {
            size_t at = transposed ? size_t(i) * columns + o : size_t(o) * columns + i;
            double term = double(weight.values[head * weightRows * columns + at]) * in[i];
            sum += term, squares += term * term;
          }
          ASSERT_NEAR(out[o], sum, 2e-5 * std::sqrt(squares)) << "head " << head << " output " << o;
        }
        EXPECT_TRUE(sameBits(out + to, in + from, tail));
      }
  }
}

STRATA_TEST_KERNELS(HeadLinearTest, kernelsOf("head_linear."));

} // namespace
} // namespace strata::cpu
