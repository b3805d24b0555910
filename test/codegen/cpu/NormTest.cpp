#include "test/codegen/cpu/KernelData.h"

namespace strata::cpu {
namespace {

const Tested tested{"rms_norm", "rms_norm_heads"};
constexpr double epsilon = 1e-5;

/// y of `width` values by the equation, in double.
std::vector<double> normalised(const float *x, const std::vector<float> &weight) {
  double squares = 0;
  for (size_t i = 0; i < weight.size(); ++i)
    squares += double(x[i]) * double(x[i]);
  double factor = 1 / std::sqrt(squares / double(weight.size()) + epsilon);
  std::vector<double> y(weight.size());
  for (size_t i = 0; i < weight.size(); ++i)
    y[i] = double(x[i]) * factor * double(weight[i]);
  return y;
}

class NormTest : public testing::TestWithParam<Isa> {};

TEST_P(NormTest, RowsAgreeWithDoubleAndStandAlone) {
  for (uint32_t width : {1, 15, 16, 64, 172, 576, 4096})
    for (uint32_t rows : {1, 3, 7, 8, 9}) {
      std::vector<float> x = randomFloats(rows * width, width, 3), weight = randomFloats(width, 2);
      std::vector<int32_t> rowSequence(rows);
      int32_t nonfinite = -1;
      GuardedRows y(rows + 1, width), alone(rows + 1, width);
      auto call = [&](Isa isa, GuardedRows &to) {
        return KernelCall("rms_norm", isa,
                          {{"x", x},
                           {"weight", weight},
                           {"y", to.data()},
                           {"row_sequence", rowSequence},
                           {"nonfinite_layer", &nonfinite},
                           {"width", width},
                           {"epsilon", epsilon},
                           {"layer", 0}});
      };
      call(GetParam(), y).run(0, rows);
      EXPECT_TRUE(y.touchedOnly(0, rows));
      for (uint32_t row = 0; row < rows; ++row) {
        std::vector<double> expected = normalised(x.data() + row * width, weight);
        for (uint32_t i = 0; i < width; ++i)
          ASSERT_NEAR(y.row(row)[i], expected[i], 1e-6 * std::abs(expected[i]));
      }
      for (Isa isa : runnableIsas()) {
        for (uint32_t row = rows; row-- > 0;)
          call(isa, alone).run(row, row + 1);
        EXPECT_TRUE(sameBits(y.data(), alone.data(), rows * width));
      }
      EXPECT_EQ(nonfinite, -1);
    }
}

TEST_P(NormTest, TheFirstLayerWithANonfiniteRowIsKept) {
  constexpr uint32_t width = 40;
  std::vector<float> x = randomFloats(4 * width, 1), weight(width, 1.0f), y(4 * width);
  x[1 * width + 39] = INFINITY;
  x[3 * width + 5] = NAN;
  std::vector<int32_t> rowSequence = {0, 2, 1, 2}, nonfinite = {-1, -1, -1};
  auto run = [&](uint32_t layer) {
    KernelCall("rms_norm", GetParam(),
               {{"x", x},
                {"weight", weight},
                {"y", y},
                {"row_sequence", rowSequence},
                {"nonfinite_layer", nonfinite},
                {"width", width},
                {"epsilon", epsilon},
                {"layer", layer}})
        .run(0, 4);
  };
  run(5);
  EXPECT_THAT(nonfinite, testing::ElementsAre(-1, -1, 5));
  run(7);
  EXPECT_THAT(nonfinite, testing::ElementsAre(-1, -1, 5));
  run(0);
  EXPECT_THAT(nonfinite, testing::ElementsAre(-1, -1, 0));
}

TEST_P(NormTest, HeadsAgreeWithDoubleInPlace) {
  for (uint32_t headWidth : {8, 64, 100})
    for (auto [heads, isGrouped] : {std::pair(1u, false), {3u, false}, {3u, true}}) {
      constexpr uint32_t rows = 3;
      uint32_t width = heads * headWidth;
      std::vector<float> x = randomFloats(rows * width, 7),
                         weight = randomFloats(isGrouped ? width : headWidth, 8);
      std::vector<std::vector<float>> results;
      for (Isa isa : runnableIsas()) {
        GuardedRows y(rows + 1, width);
        std::memcpy(y.data(), x.data(), x.size() * sizeof(float));
        KernelCall call("rms_norm_heads", isa,
                        {{"x", y.data()},
                         {"weight", weight},
                         {"heads", heads},
                         {"head_width", headWidth},
                         {"epsilon", epsilon},
                         {"weight_stride", isGrouped ? headWidth : 0}});
        call.run(1, rows);
        call.run(0, 1);
        EXPECT_TRUE(y.touchedOnly(0, rows));
        for (uint32_t head = 0; head < rows * heads; ++head) {
          size_t first = isGrouped ? head % heads * headWidth : 0;
          std::vector<float> own(&weight[first], &weight[first] + headWidth);
          std::vector<double> expected = normalised(x.data() + head * headWidth, own);
          for (uint32_t i = 0; i < headWidth; ++i)
            ASSERT_NEAR(y.data()[head * headWidth + i], expected[i], 1e-6 * std::abs(expected[i]));
        }
        results.emplace_back(y.data(), y.data() + rows * width);
      }
      EXPECT_TRUE(sameBits(results.front().data(), results.back().data(), rows * width));
    }
}

INSTANTIATE_TEST_SUITE_P(Isas, NormTest, testing::ValuesIn(runnableIsas()), [](const auto &info) {
  return info.param == Isa::X86_64_v4 ? "v4" : "v3";
});

} // namespace
} // namespace strata::cpu
