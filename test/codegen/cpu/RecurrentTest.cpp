#include "test/codegen/cpu/KernelData.h"

namespace strata::cpu {
namespace {

/// A step over sequences of given row counts, whose slots stand in any order of the pool.
struct StepRows {
  std::vector<int32_t> start, position, table;
  uint32_t sequences;

  StepRows(std::vector<uint32_t> counts, std::vector<uint32_t> begins, std::vector<int32_t> slots)
      : start{0}, table(std::move(slots)), sequences(uint32_t(counts.size())) {
    for (size_t s = 0; s < counts.size(); ++s) {
      start.push_back(start.back() + int32_t(counts[s]));
      for (uint32_t i = 0; i < counts[s]; ++i)
        position.push_back(int32_t(begins[s] + i));
    }
    position.push_back(0); // a step without rows has the field all the same
  }
  uint32_t rows() const { return uint32_t(start.back()); }
};

constexpr uint32_t poolSlots = 5;

class RecurrentTest : public testing::TestWithParam<Isa> {};

/// Causal convolution of a whole sequence in double.
std::vector<double> convolved(const std::vector<float> &x, const std::vector<float> &weight,
                              const float *bias, uint32_t width, uint32_t taps) {
  std::vector<double> y(x.size());
  for (size_t t = 0; t < x.size() / width; ++t)
    for (uint32_t c = 0; c < width; ++c) {
      double sum = bias ? bias[c] : 0;
      for (uint32_t j = 0; j < taps; ++j)
        if (t + j >= taps - 1)
          sum += double(weight[c * taps + j]) * x[(t + j - (taps - 1)) * width + c];
      y[t * width + c] = sum;
    }
  return y;
}

TEST_P(RecurrentTest, ConvolvesHoweverTheSequenceIsCut) {
  constexpr uint32_t length = 11;
  for (auto [width, taps, hasBias] :
       {std::tuple(7u, 4u, true), {16u, 2u, false}, {40u, 5u, true}}) {
    std::vector<float> weight = randomFloats(width * taps, 1), bias = randomFloats(width, 2);
    std::vector<float> x = randomFloats(length * width, 3);
    std::vector<double> want = convolved(x, weight, hasBias ? bias.data() : nullptr, width, taps);
    uint64_t stride = (taps - 1) * width * 4 + 64; // another component follows
    for (std::vector<uint32_t> cuts :
         {std::vector<uint32_t>{11}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {2, 9}, {5, 1, 5}}) {
      std::vector<uint8_t> pool(poolSlots * stride, 0xEE);
      uint32_t done = 0;
      for (uint32_t count : cuts) {
        // A sequence of two rows, one without rows, then ours; padding follows.
        StepRows step({2, 0, count}, {9, 4, done}, {1, 0, 3});
        GuardedRows rows(step.rows() + 1, width);
        std::vector<float> other = randomFloats(2 * width, 9);
        std::memcpy(rows.data(), other.data(), other.size() * 4);
        std::memcpy(rows.data() + 2 * width, &x[done * width], count * width * 4);
        KernelCall call("conv", GetParam(),
                        {{"x", rows.data()},
                         {"weight", weight},
                         {"bias", hasBias ? SlotValue(bias) : SlotValue(nullptr)},
                         {"state", pool},
                         {"block_table", step.table},
                         {"valid_sequences", &step.sequences},
                         {"query_start", step.start},
                         {"row_position", step.position},
                         {"block_stride", stride},
                         {"width", width},
                         {"taps", taps}});
        uint32_t items = (width + convChannels - 1) / convChannels;
        for (uint32_t item = items; item-- > 0;)
          call.run(item, item + 1);
        EXPECT_TRUE(rows.touchedOnly(0, step.rows()));
        for (uint32_t i = 0; i < count * width; ++i)
          ASSERT_NEAR(rows.row(2)[i], want[done * width + i], 1e-5)
              << "row " << done << " value " << i;
        done += count;
      }
      // The last taps - 1 rows as they came, and nobody else's slot or component touched.
      auto *kept = reinterpret_cast<const float *>(pool.data() + 3 * stride);
      EXPECT_TRUE(sameBits(kept, &x[(length - (taps - 1)) * width], (taps - 1) * width));
      for (uint32_t slot : {0u, 2u, 4u})
        for (uint64_t i = 0; i < stride; ++i)
          ASSERT_EQ(pool[slot * stride + i], 0xEE) << "slot " << slot;
      for (uint64_t i = stride - 64; i < stride; ++i)
        ASSERT_EQ(pool[3 * stride + i], 0xEE);
    }
  }
}

struct ScanShape {
  uint32_t heads, headWidth, groups, states;
  double least = 0, most = INFINITY;

  uint32_t inner() const { return heads * headWidth; }
  uint32_t width() const { return inner() + 2 * groups * states; }
};

std::vector<double> scanned(const ScanShape &shape, const std::vector<float> &x,
                            const std::vector<float> &dt, const std::vector<float> &a,
                            const std::vector<float> &skip, const std::vector<float> &dtBias) {
  std::vector<double> state(shape.inner() * shape.states, 0), y;
  for (size_t row = 0; row < dt.size() / shape.heads; ++row)
    for (uint32_t h = 0; h < shape.heads; ++h) {
      const float *at = &x[row * shape.width()];
      const float *b = at + shape.inner() + h / (shape.heads / shape.groups) * shape.states;
      const float *c = b + shape.groups * shape.states;
      double raw = double(dt[row * shape.heads + h]) + dtBias[h];
      double d =
          std::min(shape.most, std::max(shape.least, raw > 30 ? raw : std::log1p(std::exp(raw))));
      for (uint32_t p = 0; p < shape.headWidth; ++p) {
        double v = at[h * shape.headWidth + p], sum = 0;
        for (uint32_t n = 0; n < shape.states; ++n) {
          double &s = state[(h * shape.headWidth + p) * shape.states + n];
          s = std::exp(d * a[h]) * s + d * v * b[n];
          sum += s * c[n];
        }
        y.push_back(sum + skip[h] * v);
      }
    }
  return y;
}

TEST_P(RecurrentTest, ScansHoweverTheSequenceIsCut) {
  constexpr uint32_t length = 9;
  for (ScanShape shape : {ScanShape{4, 3, 2, 16}, ScanShape{1, 8, 1, 5}, ScanShape{6, 4, 3, 37},
                          ScanShape{2, 2, 1, 8, 0.05, 0.5}}) {
    std::vector<float> x = randomFloats(length * shape.width(), 1);
    std::vector<float> dt = randomFloats(length * shape.heads, 2, 3);
    std::vector<float> a = randomFloats(shape.heads, 3), skip = randomFloats(shape.heads, 4);
    std::vector<float> dtBias = randomFloats(shape.heads, 5);
    for (float &value : a)
      value = -std::abs(value) - 0.1f;
    std::vector<double> want = scanned(shape, x, dt, a, skip, dtBias);
    uint64_t stride = shape.inner() * shape.states * 4 + 64;
    std::vector<float> first;
    for (std::vector<uint32_t> cuts :
         {std::vector<uint32_t>{9}, {1, 1, 1, 1, 1, 1, 1, 1, 1}, {4, 5}}) {
      std::vector<uint8_t> pool(poolSlots * stride, 0xEE);
      std::vector<float> found;
      uint32_t done = 0;
      for (uint32_t count : cuts) {
        StepRows step({0, count, 1}, {3, done, 0}, {0, 2, 4});
        std::vector<float> rows(&x[done * shape.width()], &x[(done + count) * shape.width()]);
        std::vector<float> steps(&dt[done * shape.heads], &dt[(done + count) * shape.heads]);
        rows.resize((count + 1) * shape.width(), 1);
        steps.resize((count + 1) * shape.heads, 1);
        GuardedRows y(count + 2, shape.inner());
        KernelCall call("ssm_scan", GetParam(),
                        {{"x", rows},
                         {"dt", steps},
                         {"a", a},
                         {"skip", skip},
                         {"dt_bias", dtBias},
                         {"y", y.data()},
                         {"state", pool},
                         {"block_table", step.table},
                         {"valid_sequences", &step.sequences},
                         {"query_start", step.start},
                         {"row_position", step.position},
                         {"block_stride", stride},
                         {"heads", shape.heads},
                         {"head_width", shape.headWidth},
                         {"groups", shape.groups},
                         {"state_width", shape.states},
                         {"least_dt", shape.least},
                         {"most_dt", shape.most}});
        for (uint32_t head = shape.heads; head-- > 0;)
          call.run(head, head + 1);
        EXPECT_TRUE(y.touchedOnly(0, count + 1));
        found.insert(found.end(), y.row(0), y.row(0) + count * shape.inner());
        done += count;
      }
      for (size_t i = 0; i < want.size(); ++i)
        ASSERT_NEAR(found[i], want[i], 2e-5 * (1 + std::abs(want[i]))) << "value " << i;
      if (first.empty())
        first = found;
      EXPECT_TRUE(sameBits(found.data(), first.data(), found.size()));
      for (uint32_t slot : {0u, 1u, 3u})
        for (uint64_t i = 0; i < stride; ++i)
          ASSERT_EQ(pool[slot * stride + i], 0xEE) << "slot " << slot;
      for (uint64_t i = stride - 64; i < stride; ++i)
        ASSERT_EQ(pool[2 * stride + i], 0xEE);
    }
  }
}

/// softplus over its whole range: a scan of one state that begins at zero gives d x B C.
TEST_P(RecurrentTest, SoftplusAgreesWithDouble) {
  std::vector<float> x = {1, 1, 1}, one = {-1}, none = {0};
  uint32_t sequences = 1;
  std::vector<int32_t> start = {0, 1}, position = {0}, table = {0};
  std::vector<float> state(16);
  for (float raw = -100; raw < 100; raw += 0.37f) {
    std::vector<float> dt = {raw}, y(1);
    KernelCall("ssm_scan", GetParam(),
               {{"x", x},
                {"dt", dt},
                {"a", one},
                {"skip", none},
                {"dt_bias", none},
                {"y", y},
                {"state", state},
                {"block_table", table},
                {"valid_sequences", &sequences},
                {"query_start", start},
                {"row_position", position},
                {"block_stride", 64},
                {"heads", 1},
                {"head_width", 1},
                {"groups", 1},
                {"state_width", 1},
                {"least_dt", 0.0},
                {"most_dt", double(INFINITY)}})
        .run(0, 1);
    double want =
        raw > 0 ? raw + std::log1p(std::exp(-double(raw))) : std::log1p(std::exp(double(raw)));
    ASSERT_NEAR(y[0], want, 4e-7 * want + 1e-37) << "at " << raw;
  }
}

const Tested tested({"conv", "ssm_scan"});

INSTANTIATE_TEST_SUITE_P(Isas, RecurrentTest, testing::ValuesIn(runnableIsas()),
                         [](const auto &info) {
                           return info.param == Isa::X86_64_v4 ? "v4" : "v3";
                         });

} // namespace
} // namespace strata::cpu
