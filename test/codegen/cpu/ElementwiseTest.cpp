#include "test/codegen/cpu/KernelData.h"

namespace strata::cpu {
namespace {

double expected(std::string_view function, double x) {
  if (function == "silu")
    return x / (1 + std::exp(-x));
  if (function == "gelu_tanh")
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  if (function == "relu2")
    return x > 0 ? x * x : 0;
  if (function == "sigmoid")
    return 1 / (1 + std::exp(-x));
  throw std::invalid_argument(std::string(function));
}

class ActivationTest : public KernelTest {};
class GatedTest : public KernelTest {};

TEST_P(ActivationTest, AgreesWithDouble) {
  // Steps of 1/64 over [-120, 120): past both ends of e^x in F32.
  std::vector<float> x;
  for (int i = -120 * 64; i < 120 * 64; ++i)
    x.push_back(float(i) / 64);
  auto width = uint32_t(x.size() / 3);
  for (Isa each : runnableIsas()) {
    GuardedRows y(4, width), split(4, width);
    KernelCall(kernel(), isa(), {{"x", x}, {"y", y.data()}, {"width", width}}).run(0, 3);
    KernelCall alone(kernel(), each, {{"x", x}, {"y", split.data()}, {"width", width}});
    for (uint32_t row : {2, 0, 1})
      alone.run(row, row + 1);
    EXPECT_TRUE(y.touchedOnly(0, 3));
    EXPECT_TRUE(sameBits(y.data(), split.data(), x.size()));
    for (size_t i = 0; i < x.size(); ++i) {
      double want = expected(suffix(), x[i]);
      // gelu's exponent is rounded before e^x magnifies it, which matters where the result is tiny;
      // below -88.73 e^-x is infinite in F32, so that silu gives 0 for what is less than 3e-37.
      double bound = 3e-7 * std::abs(want) + (suffix() == "gelu_tanh" ? 1e-7 : 3e-37);
      ASSERT_NEAR(y.data()[i], want, bound) << "at " << x[i];
    }
  }
}

TEST_P(ActivationTest, LimitsAndNan) {
  std::vector<float> x = {INFINITY, NAN, 1e30f, -1e30f, 0.0f}, y(5);
  KernelCall(kernel(), isa(), {{"x", x}, {"y", y}, {"width", 5}}).run(0, 1);
  EXPECT_EQ(y[0], suffix() == "sigmoid" ? 1.0f : INFINITY);
  EXPECT_TRUE(std::isnan(y[1]));
  EXPECT_EQ(y[2], suffix() == "sigmoid" ? 1.0f : suffix() == "relu2" ? INFINITY : 1e30f);
  EXPECT_EQ(y[3], 0.0f);
  EXPECT_EQ(y[4], suffix() == "sigmoid" ? 0.5f : 0.0f);
}

class RowGatedTest : public KernelTest {};

TEST_P(RowGatedTest, MultipliesARowByItsGate) {
  for (uint32_t width : {1, 16, 37}) {
    constexpr uint32_t rows = 3;
    std::vector<float> gate = randomFloats(rows, 1, 3), x = randomFloats(rows * width, 2);
    GuardedRows y(rows + 1, width);
    KernelCall call(kernel(), isa(), {{"gate", gate}, {"x", x}, {"y", y.data()}, {"width", width}});
    call.run(1, rows);
    call.run(0, 1);
    EXPECT_TRUE(y.touchedOnly(0, rows));
    for (size_t i = 0; i < x.size(); ++i) {
      double want = expected(suffix(), gate[i / width]) * x[i];
      EXPECT_NEAR(y.data()[i], want, 3e-7 * std::abs(want)) << i;
    }
  }
}

STRATA_TEST_KERNELS(RowGatedTest, kernelsOf("row_gated."));

TEST_P(GatedTest, MultipliesTheActivatedGate) {
  for (uint32_t width : {1, 16, 37, 1536}) {
    constexpr uint32_t rows = 3;
    std::vector<float> gate = randomFloats(rows * width, 1, 3), up = randomFloats(rows * width, 2);
    GuardedRows y(rows + 1, width);
    KernelCall call(kernel(), isa(),
                    {{"gate", gate}, {"up", up}, {"y", y.data()}, {"width", width}});
    call.run(1, rows);
    call.run(0, 1);
    EXPECT_TRUE(y.touchedOnly(0, rows));
    for (size_t i = 0; i < gate.size(); ++i) {
      double want = expected(suffix(), gate[i]) * double(up[i]);
      ASSERT_NEAR(y.data()[i], want, 1e-6 * std::abs(want) + 1e-7);
    }
  }
}

class RowsTest : public testing::TestWithParam<Isa> {};

TEST_P(RowsTest, AddMayOverwriteEitherSide) {
  constexpr uint32_t rows = 3, width = 37;
  std::vector<float> a = randomFloats(rows * width, 1), b = randomFloats(rows * width, 2);
  std::vector<float> sum(rows * width);
  for (size_t i = 0; i < sum.size(); ++i)
    sum[i] = a[i] + b[i];
  GuardedRows y(rows + 1, width);
  KernelCall("add", GetParam(), {{"a", a}, {"b", b}, {"y", y.data()}, {"width", width}})
      .run(0, rows);
  EXPECT_TRUE(y.touchedOnly(0, rows));
  EXPECT_TRUE(sameBits(y.data(), sum.data(), sum.size()));
  for (bool first : {true, false}) {
    std::vector<float> left = a, right = b, &to = first ? left : right;
    KernelCall("add", GetParam(), {{"a", left}, {"b", right}, {"y", to}, {"width", width}})
        .run(0, rows);
    EXPECT_EQ(to, sum);
  }
}

TEST_P(RowsTest, CopyAndGatherMoveWholeRows) {
  constexpr uint32_t rows = 5, width = 19;
  std::vector<float> x = randomFloats(rows * width, 1);
  GuardedRows copy(rows + 1, width), gathered(4, width);
  KernelCall copyCall("copy_rows", GetParam(), {{"x", x}, {"y", copy.data()}, {"width", width}});
  copyCall.run(1, 4);
  EXPECT_TRUE(copy.touchedOnly(1, 4));
  EXPECT_TRUE(sameBits(copy.row(1), x.data() + width, 3 * width));

  std::vector<int32_t> headRow = {4, 0, 4};
  KernelCall("gather_rows", GetParam(),
             {{"x", x}, {"y", gathered.data()}, {"head_row", headRow}, {"width", width}})
      .run(0, 3);
  EXPECT_TRUE(gathered.touchedOnly(0, 3));
  for (uint32_t i = 0; i < 3; ++i)
    EXPECT_TRUE(sameBits(gathered.row(i), x.data() + headRow[i] * width, width));
}

const Tested tested{"add", "copy_rows", "gather_rows"};
STRATA_TEST_KERNELS(ActivationTest, kernelsOf("activation."));
STRATA_TEST_KERNELS(GatedTest, kernelsOf("gated."));
INSTANTIATE_TEST_SUITE_P(Isas, RowsTest, testing::ValuesIn(runnableIsas()), [](const auto &info) {
  return info.param == Isa::X86_64_v4 ? "v4" : "v3";
});

} // namespace
} // namespace strata::cpu
