#include "test/codegen/cpu/KernelData.h"

namespace strata::cpu {
namespace {

struct Case {
  uint32_t columns, outputs;
  bool bias, accumulate;
};

/// One matrix with its inputs; every run writes a fresh y.
class LinearFixture {
public:
  LinearFixture(const std::string &kernel, const WeightType &type, Case shape, uint32_t rows)
      : kernel_(kernel), shape_(shape), rows_(rows),
        weight_(randomWeights(type, size_t(shape.columns) * shape.outputs, 1)),
        x_(randomFloats(size_t(rows) * shape.columns, 2)), bias_(randomFloats(shape.outputs, 3)),
        old_(randomFloats(size_t(rows) * shape.outputs, 4)),
        scratch_(scratchBytes(kernel, shape.columns) * workers + 64, scratchCanary) {}

  uint32_t tiles() const { return (shape_.outputs + linearTileOutputs - 1) / linearTileOutputs; }

  /// y [rows + 1, outputs] of rows [first, first + count), each tile as an item range of its own in
  /// reverse order where `split`.
  GuardedRows run(Isa isa, uint32_t first, uint32_t count, bool split) {
    GuardedRows y(rows_ + 1, shape_.outputs);
    std::memcpy(y.data(), old_.data() + size_t(first) * shape_.outputs,
                size_t(count) * shape_.outputs * sizeof(float));
    KernelCall call(kernel_, isa,
                    {{"x", x_.data() + size_t(first) * shape_.columns},
                     {"weight", weight_.bytes},
                     {"bias", shape_.bias ? SlotValue(bias_) : SlotValue(nullptr)},
                     {"y", y.data()},
                     {"valid_rows", &count},
                     {"scratch", scratch_},
                     {"scratch_stride", scratchBytes(kernel_, shape_.columns)},
                     {"columns", shape_.columns},
                     {"outputs", shape_.outputs},
                     {"accumulate", shape_.accumulate}});
    if (split)
      for (uint32_t tile = tiles(); tile-- > 0;)
        call.run(tile, tile + 1, tile % workers);
    else
      call.run(0, tiles());
    EXPECT_TRUE(y.touchedOnly(0, count));
    for (size_t i = scratch_.size() - 64; i < scratch_.size(); ++i)
      EXPECT_EQ(scratch_[i], scratchCanary) << "past the scratch of the last worker";
    return y;
  }

  /// Within 2e-5 of the double sum, in units of the root of the sum of squares of its terms.
  void check(const GuardedRows &y, uint32_t rows) {
    for (uint32_t row = 0; row < rows; ++row)
      for (uint32_t o = 0; o < shape_.outputs; ++o) {
        double sum = 0, squares = 0;
        auto add = [&](double term) { sum += term, squares += term * term; };
        for (uint32_t c = 0; c < shape_.columns; ++c)
          add(double(weight_.values[size_t(o) * shape_.columns + c]) *
              double(x_[size_t(row) * shape_.columns + c]));
        if (shape_.bias)
          add(bias_[o]);
        if (shape_.accumulate)
          add(old_[size_t(row) * shape_.outputs + o]);
        ASSERT_NEAR(y.row(row)[o], sum, 2e-5 * std::sqrt(squares))
            << "row " << row << " output " << o << " columns " << shape_.columns;
      }
  }

private:
  static constexpr uint32_t workers = 2;
  static constexpr uint8_t scratchCanary = 0xA5;
  std::string kernel_;
  Case shape_;
  uint32_t rows_;
  WeightMatrix weight_;
  std::vector<float> x_, bias_, old_;
  std::vector<uint8_t> scratch_;
};

class LinearTest : public KernelTest {
protected:
  const WeightType &type() const { return *findWeightType(suffix()); }
  /// Widths of whole blocks, from one block to more than a panel.
  std::vector<Case> cases() const {
    std::vector<Case> cases;
    if (type().blockElements <= 32)
      cases = {{64, 16, false, false}, {96, 40, true, false}, {544, 19, true, true}};
    else
      cases = {{type().blockElements, 16, false, true},
               {type().blockElements * 3, 19, true, false}};
    if (type().isPlain()) // no whole number of lanes
      cases.insert(cases.end(), {{172, 33, false, true}, {5, 3, true, false}});
    return cases;
  }
};

TEST_P(LinearTest, AgreesWithDoubleForEveryRowCount) {
  for (Case shape : cases())
    for (uint32_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 127, 128, 129}) {
      LinearFixture fixture(kernel(), type(), shape, rows);
      fixture.check(fixture.run(isa(), 0, rows, false), rows);
    }
}

TEST_P(LinearTest, StaysAccurateAtWidth4096) {
  LinearFixture fixture(kernel(), type(), {4096, 16, false, false}, 8);
  fixture.check(fixture.run(isa(), 0, 8, false), 8);
}

TEST_P(LinearTest, ARowDoesNotDependOnItsBatchOrOnTheSplitOfItems) {
  for (Case shape : cases()) {
    constexpr uint32_t rows = 17;
    LinearFixture fixture(kernel(), type(), shape, rows);
    GuardedRows together = fixture.run(isa(), 0, rows, false);
    GuardedRows split = fixture.run(isa(), 0, rows, true);
    EXPECT_TRUE(sameBits(together.data(), split.data(), rows * shape.outputs));
    for (uint32_t count : {1, 2, 3, 5, 8})
      for (uint32_t first : {0u, 4u, rows - count}) {
        GuardedRows part = fixture.run(isa(), first, count, true);
        EXPECT_TRUE(sameBits(part.data(), together.row(first), count * shape.outputs))
            << count << " rows from " << first;
      }
  }
}

TEST_P(LinearTest, InstructionSetsGiveTheSameBits) {
  if (runnableIsas().size() < 2)
    GTEST_SKIP() << "this CPU runs one instruction set only";
  for (Case shape : cases())
    for (uint32_t rows : {1, 4, 17}) {
      LinearFixture fixture(kernel(), type(), shape, rows);
      GuardedRows v3 = fixture.run(Isa::X86_64_v3, 0, rows, false);
      GuardedRows v4 = fixture.run(Isa::X86_64_v4, 0, rows, false);
      EXPECT_TRUE(sameBits(v3.data(), v4.data(), size_t(rows) * shape.outputs));
    }
}

/// A weight row times a unit vector is the weight itself: decoding is exact, blocks by lanes too.
TEST_P(LinearTest, DecodesExactly) {
  uint32_t columns = std::max(64u, type().blockElements), outputs = 16;
  WeightMatrix weight = randomWeights(type(), size_t(columns) * outputs, 5);
  std::vector<float> x(size_t(columns) * columns);
  for (uint32_t i = 0; i < columns; ++i)
    x[size_t(i) * columns + i] = 1;
  std::vector<uint8_t> scratch(scratchBytes(kernel(), columns));
  std::vector<float> y(size_t(columns) * outputs);
  for (uint32_t rows : {1u, columns}) {
    KernelCall(kernel(), isa(),
               {{"x", x},
                {"weight", weight.bytes},
                {"y", y},
                {"valid_rows", &rows},
                {"scratch", scratch},
                {"scratch_stride", scratch.size()},
                {"columns", columns},
                {"outputs", outputs},
                {"accumulate", 0}})
        .run(0, 1);
    for (uint32_t row = 0; row < rows; ++row)
      for (uint32_t o = 0; o < outputs; ++o)
        ASSERT_EQ(y[row * outputs + o], weight.values[o * columns + row]);
  }
}

STRATA_TEST_KERNELS(LinearTest, kernelsOf("linear."));

} // namespace
} // namespace strata::cpu
