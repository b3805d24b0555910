#include "test/codegen/cpu/KernelData.h"

namespace strata::cpu {
namespace {

class EmbedTest : public KernelTest {
protected:
  const WeightType &type() const { return *findWeightType(suffix()); }
};

TEST_P(EmbedTest, ReadsIdsAndTheLastSampledOnes) {
  constexpr uint32_t vocabulary = 11, rows = 4;
  uint32_t width = type().isPlain() ? 37 : 3 * type().blockElements;
  WeightMatrix table = randomWeights(type(), size_t(vocabulary) * width, 1);
  std::vector<int32_t> rowId = {10, -1, 0, -1}, rowSequence = {0, 0, 1, 1};
  std::vector<int32_t> sequenceSlot = {2, 0}, lastId = {7, 99, 3};
  std::vector<int32_t> expected = {10, 3, 0, 7};
  for (double scale : {1.0, 8.0, 25.298221281347036}) { // the last: the square root of 640
    GuardedRows y(rows + 1, width);
    KernelCall call(kernel(), isa(),
                    {{"table", table.bytes},
                     {"y", y.data()},
                     {"row_id", rowId},
                     {"row_sequence", rowSequence},
                     {"sequence_slot", sequenceSlot},
                     {"last_id", lastId},
                     {"width", width},
                     {"vocabulary", vocabulary},
                     {"scale", scale}});
    call.run(2, 4);
    call.run(0, 2);
    EXPECT_TRUE(y.touchedOnly(0, rows));
    for (uint32_t row = 0; row < rows; ++row)
      for (uint32_t i = 0; i < width; ++i)
        ASSERT_EQ(y.row(row)[i], table.values[expected[row] * width + i] * float(scale));
  }
}

TEST_P(EmbedTest, AnIdOutsideTheVocabularyIsNan) {
  constexpr uint32_t vocabulary = 3;
  uint32_t width = 2 * type().blockElements;
  WeightMatrix table = randomWeights(type(), size_t(vocabulary) * width, 1);
  std::vector<int32_t> rowId = {3, 2, -1}, zero(3), lastId = {-5};
  std::vector<float> y(3 * width);
  KernelCall(kernel(), isa(),
             {{"table", table.bytes},
              {"y", y},
              {"row_id", rowId},
              {"row_sequence", zero},
              {"sequence_slot", zero},
              {"last_id", lastId},
              {"width", width},
              {"vocabulary", vocabulary},
              {"scale", 1.0}})
      .run(0, 3);
  for (uint32_t i = 0; i < width; ++i) {
    EXPECT_TRUE(std::isnan(y[i]));
    EXPECT_EQ(y[width + i], table.values[2 * width + i]);
    EXPECT_TRUE(std::isnan(y[2 * width + i]));
  }
}

STRATA_TEST_KERNELS(EmbedTest, kernelsOf("embed."));

} // namespace
} // namespace strata::cpu
