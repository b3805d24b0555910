#include <algorithm>
#include <numeric>

#include "test/codegen/cpu/KernelData.h"

namespace strata::cpu {
namespace {

struct Case {
  uint32_t experts, used, groups = 1, groupsUsed = 1, groupTop = 1;
  bool bias = false, normalise = false;
  double scale = 1;
};

/// Indices of the `count` largest of [begin, end), ties to the lower.
std::vector<uint32_t> best(const std::vector<double> &values, uint32_t begin, uint32_t end,
                           uint32_t count) {
  std::vector<uint32_t> order(end - begin);
  std::iota(order.begin(), order.end(), begin);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return values[a] > values[b]; });
  order.resize(count);
  return order;
}

/// One row of the result, from the description of strata.router.
std::vector<double> expected(const Case &shape, const float *logits, const float *bias,
                             bool isSoftmax) {
  std::vector<double> p(shape.experts), s(shape.experts);
  double most = *std::max_element(logits, logits + shape.experts), sum = 0;
  for (uint32_t e = 0; e < shape.experts; ++e)
    sum += std::exp(double(logits[e]) - most);
  for (uint32_t e = 0; e < shape.experts; ++e) {
    p[e] = isSoftmax ? std::exp(double(logits[e]) - most) / sum : 1 / (1 + std::exp(-logits[e]));
    s[e] = p[e] + (bias ? bias[e] : 0);
  }
  if (shape.groups > 1) {
    uint32_t size = shape.experts / shape.groups;
    std::vector<double> score(shape.groups, 0);
    for (uint32_t g = 0; g < shape.groups; ++g)
      for (uint32_t e : best(s, g * size, (g + 1) * size, shape.groupTop))
        score[g] += s[e];
    std::vector<double> kept(shape.experts, -INFINITY);
    for (uint32_t g : best(score, 0, shape.groups, shape.groupsUsed))
      std::copy_n(s.begin() + g * size, size, kept.begin() + g * size);
    s = kept;
  }
  std::vector<double> row;
  double chosen = 0;
  for (uint32_t e : best(s, 0, shape.experts, shape.used)) {
    row.push_back(e);
    chosen += p[e];
  }
  for (uint32_t i = 0; i < shape.used; ++i)
    row.push_back(p[uint32_t(row[i])] / (shape.normalise ? chosen : 1) * shape.scale);
  return row;
}

class RouterTest : public KernelTest {
protected:
  /// [rows + 1][2 * used]
  GuardedRows run(const Case &shape, const std::vector<float> &logits,
                  const std::vector<float> &bias, uint32_t rows, bool split) {
    GuardedRows y(rows + 1, 2 * shape.used);
    std::vector<uint8_t> scratch(2 * scratchBytes(kernel(), shape.experts));
    KernelCall call(kernel(), isa(),
                    {{"logits", logits},
                     {"bias", shape.bias ? SlotValue(bias) : SlotValue(nullptr)},
                     {"y", y.data()},
                     {"scratch", scratch},
                     {"scratch_stride", scratchBytes(kernel(), shape.experts)},
                     {"experts", shape.experts},
                     {"used", shape.used},
                     {"groups", shape.groups},
                     {"groups_used", shape.groupsUsed},
                     {"group_top", shape.groupTop},
                     {"normalise", shape.normalise},
                     {"least_sum", 1e-20},
                     {"scale", shape.scale}});
    if (split)
      for (uint32_t row = rows; row-- > 0;)
        call.run(row, row + 1, row % 2);
    else
      call.run(0, rows);
    EXPECT_TRUE(y.touchedOnly(0, rows));
    return y;
  }
};

TEST_P(RouterTest, ChoosesAsTheDescriptionSays) {
  constexpr uint32_t rows = 7;
  for (Case shape : {Case{1, 1}, Case{8, 2}, Case{37, 37}, Case{128, 6, 1, 1, 1, true, true, 2.5},
                     Case{16, 3, 4, 2, 2, true, true}, Case{12, 4, 3, 2, 1, false, false, 16},
                     Case{512, 22, 1, 1, 1, true, true, 5}, Case{8, 2, 8, 4, 1, true}}) {
    std::vector<float> logits = randomFloats(rows * shape.experts, shape.experts, 2);
    std::vector<float> bias = randomFloats(shape.experts, 3, 0.3f);
    GuardedRows y = run(shape, logits, bias, rows, false);
    GuardedRows split = run(shape, logits, bias, rows, true);
    EXPECT_TRUE(sameBits(y.data(), split.data(), rows * 2 * shape.used));
    for (uint32_t row = 0; row < rows; ++row) {
      std::vector<double> want =
          expected(shape, logits.data() + row * shape.experts, shape.bias ? bias.data() : nullptr,
                   suffix() == "softmax");
      for (uint32_t i = 0; i < 2 * shape.used; ++i)
        ASSERT_NEAR(y.row(row)[i], want[i], i < shape.used ? 0 : 2e-6 * want[i] + 1e-30)
            << shape.experts << " experts, row " << row << ", value " << i;
    }
  }
}

TEST_P(RouterTest, TiesGoToTheLowerNumber) {
  Case shape{8, 3};
  std::vector<float> logits = {1, 2, 2, 0, 2, 2, 1, 0}; // four best, of which 1, 2 and 4 are first
  GuardedRows y = run(shape, logits, {}, 1, false);
  EXPECT_THAT(std::vector<float>(y.data(), y.data() + 3), testing::ElementsAre(1, 2, 4));
  // Groups tie too: {0, 1} and {4, 5} score 3, {2, 3} less.
  Case grouped{6, 2, 3, 1, 2};
  std::vector<float> pairs = {1, 2, 0, 0, 2, 1};
  GuardedRows z = run(grouped, pairs, {}, 1, false);
  EXPECT_THAT(std::vector<float>(z.data(), z.data() + 2), testing::ElementsAre(1, 0));
}

TEST_P(RouterTest, BiasSteersTheChoiceAlone) {
  Case shape{4, 1};
  shape.bias = true;
  GuardedRows y = run(shape, {3, 0, 0, 0}, {0, 0, 5, 0}, 1, false);
  EXPECT_EQ(y.data()[0], 2);
  EXPECT_LT(y.data()[1], 0.6f); // p of expert 2, without the 5
}

TEST_P(RouterTest, NumbersStayValidWhateverTheLogits) {
  for (float value : {NAN, INFINITY, -INFINITY}) {
    GuardedRows y = run({5, 3}, std::vector<float>(5, value), {}, 1, false);
    std::set<float> numbers(y.data(), y.data() + 3);
    EXPECT_EQ(numbers.size(), 3u) << value;
    for (float number : numbers)
      EXPECT_TRUE(number >= 0 && number < 5) << number;
  }
}

STRATA_TEST_KERNELS(RouterTest, kernelsOf("router."));

} // namespace
} // namespace strata::cpu
