#include "runtime/checkpoint/WeightTypes.h"
#include "test/codegen/cpu/KernelData.h"

namespace strata::cpu {
namespace {

class KvWriteTest : public KernelTest {};

TEST_P(KvWriteTest, WritesEachRowIntoItsBlockAndNothingElse) {
  const WeightType &type = *findWeightType(suffix());
  constexpr uint32_t blockTokens = 4, maxBlocks = 3, blocks = 7, rows = 5;
  for (uint32_t width : {5, 16, 72}) {
    uint64_t rowBytes = width * type.blockBytes;
    uint64_t blockStride = blockTokens * rowBytes + 32; // another component follows in each block
    std::vector<float> x = randomFloats(rows * width, 1);
    x[0] = 1e-6f;   // subnormal as F16
    x[1] = 70000;   // infinite as F16
    x[2] = 2049.0f; // half way between two F16: to the even one, 2048
    std::vector<int32_t> table = {6, 0, 3, 1, 5, 2}; // [2 sequences, maxBlocks]
    std::vector<int32_t> rowSequence = {0, 0, 1, 1, 0}, rowPosition = {3, 4, 0, 11, 8};
    std::vector<uint8_t> pool(blocks * blockStride, 0xEE), expected = pool;
    for (uint32_t row = 0; row < rows; ++row) {
      int32_t position = rowPosition[row];
      int32_t block = table[rowSequence[row] * maxBlocks + position / blockTokens];
      uint8_t *to = expected.data() + block * blockStride + position % blockTokens * rowBytes;
      for (uint32_t i = 0; i < width; ++i) {
        float value = x[row * width + i];
        uint16_t narrow = suffix() == "f16" ? floatToHalf(value) : floatToBfloat(value);
        if (suffix() == "f32")
          std::memcpy(to + i * 4, &value, 4);
        else
          std::memcpy(to + i * 2, &narrow, 2);
      }
    }
    KernelCall call(kernel(), isa(),
                    {{"x", x},
                     {"state", pool},
                     {"block_table", table},
                     {"row_sequence", rowSequence},
                     {"row_position", rowPosition},
                     {"width", width},
                     {"block_tokens", blockTokens},
                     {"block_stride", blockStride},
                     {"max_blocks", maxBlocks}});
    call.run(3, rows);
    call.run(0, 3);
    EXPECT_EQ(pool, expected);
  }
}

STRATA_TEST_KERNELS(KvWriteTest, kernelsOf("kv_write."));

} // namespace
} // namespace strata::cpu
