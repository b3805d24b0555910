#include "test/codegen/cpu/KernelData.h"

namespace strata::cpu {
namespace {

struct Case {
  uint32_t heads, headWidth, rotaryWidth;
  bool interleaved;
  double magnitude;
  uint32_t first = 0;
};

class RopeTest : public KernelTest {
protected:
  static constexpr uint32_t rows = 5;

  std::vector<float> frequencies(uint32_t pairs) {
    std::vector<float> values(pairs);
    for (uint32_t j = 0; j < pairs; ++j)
      values[j] = float(std::pow(10000.0, -double(j) / pairs));
    return values;
  }
};

TEST_P(RopeTest, AgreesWithDoubleFarIntoTheContext) {
  std::vector<Case> cases = {
      {3, 64, 64, false, 1},   {9, 64, 64, true, 1},     {1, 8, 8, true, 1},
      {2, 100, 40, false, 1},  {2, 100, 40, true, 1.25}, {2, 128, 96, false, 0.8},
      {1, 640, 640, false, 1}, {1, 640, 640, true, 1},   // more pairs than one chunk of angles
      {2, 24, 8, true, 1, 16}, {2, 40, 16, false, 1, 7}, // elements before and behind stay
  };
  std::vector<int32_t> positions = {0, 1, 4095, 131071, 1048575};
  for (const Case &shape : cases) {
    uint32_t width = shape.heads * shape.headWidth, pairs = shape.rotaryWidth / 2;
    std::vector<float> x = randomFloats(rows * width, 1), frequency = frequencies(pairs);
    auto run = [&](Isa isa, bool together) {
      GuardedRows y(rows + 1, width);
      std::memcpy(y.data(), x.data(), x.size() * sizeof(float));
      KernelCall call(kernel(), isa,
                      {{"x", y.data()},
                       {"frequencies", frequency},
                       {"row_position", positions},
                       {"heads", shape.heads},
                       {"head_width", shape.headWidth},
                       {"rotary_width", shape.rotaryWidth},
                       {"interleaved", shape.interleaved},
                       {"magnitude", shape.magnitude},
                       {"first", shape.first}});
      if (together)
        call.run(0, rows);
      else
        for (uint32_t row = rows; row-- > 0;)
          call.run(row, row + 1);
      EXPECT_TRUE(y.touchedOnly(0, rows));
      return y;
    };
    GuardedRows y = run(isa(), true);
    for (Isa other : runnableIsas())
      EXPECT_TRUE(sameBits(y.data(), run(other, false).data(), rows * width));

    for (uint32_t row = 0; row < rows; ++row)
      for (uint32_t head = 0; head < shape.heads; ++head) {
        const float *from = x.data() + row * width + head * shape.headWidth;
        const float *to = y.row(row) + head * shape.headWidth;
        for (uint32_t j = 0; j < pairs; ++j) {
          uint32_t first = shape.first + (shape.interleaved ? 2 * j : j);
          uint32_t second = shape.first + (shape.interleaved ? 2 * j + 1 : j + pairs);
          double angle = double(positions[row]) * double(frequency[j]);
          double c = std::cos(angle) * shape.magnitude, s = std::sin(angle) * shape.magnitude;
          double a = from[first], b = from[second];
          // Two products and a sum, each rounded, of values up to |a| + |b|.
          double bound = 2e-7 * shape.magnitude * (std::abs(a) + std::abs(b)) + 1e-30;
          ASSERT_NEAR(to[first], a * c - b * s, bound) << "position " << positions[row];
          ASSERT_NEAR(to[second], a * s + b * c, bound) << "position " << positions[row];
        }
        for (uint32_t i = 0; i < shape.headWidth; ++i)
          if (i < shape.first || i >= shape.first + shape.rotaryWidth) {
            ASSERT_EQ(to[i], from[i]);
          }
      }
  }
}

STRATA_TEST_KERNELS(RopeTest, {"rope"});

} // namespace
} // namespace strata::cpu
