// Every type of the table can be filled, with values that a model can be run on.
#include "runtime/stage/RandomWeights.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/checkpoint/WeightTypeTable.h"

using namespace strata;

namespace {

std::vector<uint8_t> packWeight(const WeightType &type, std::vector<uint64_t> shape) {
  uint64_t elements = 1;
  for (uint64_t size : shape)
    elements *= size;
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(fb::CreateWeight(
      builder, builder.CreateString("w"), builder.CreateString(std::string(type.name)),
      builder.CreateString("rows"), builder.CreateVector(shape), 3, 64, *type.bytesFor(elements)));
  return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
}

std::vector<float> fill(const WeightType &type, const std::vector<uint64_t> &shape, uint64_t seed,
                        bool isNegative = false) {
  std::vector<uint8_t> packed = packWeight(type, shape);
  const fb::Weight &weight = *flatbuffers::GetRoot<fb::Weight>(packed.data());
  std::vector<std::byte> bytes(weight.bytes());
  Status status = fillRandomWeight(weight, seed, isNegative, bytes);
  EXPECT_TRUE(status.isOk()) << status.toString();
  std::vector<float> values(bytes.size() / type.blockBytes * type.blockElements);
  dequantiseRow(type, reinterpret_cast<const uint8_t *>(bytes.data()), values.size(),
                values.data());
  return values;
}

TEST(RandomWeights, EveryTypeIsFiniteAndSmall) {
  for (const WeightType &type : weightTypes()) {
    SCOPED_TRACE(type.name);
    double sum = 0;
    std::vector<float> values = fill(type, {64, 1024}, 1);
    for (float value : values) {
      ASSERT_TRUE(std::isfinite(value));
      ASSERT_LE(std::fabs(value), 2.0f / 32); // 2 / sqrt(1024)
      sum += std::fabs(value);
    }
    EXPECT_GT(sum / double(values.size()), 1e-4) << "all but zero";
  }
}

TEST(RandomWeights, GainsStandAroundOne) {
  for (const char *name : {"f32", "f16", "bf16"})
    for (float value : fill(*findWeightType(name), {512}, 1)) {
      ASSERT_GE(value, 0.5f);
      ASSERT_LE(value, 1.5f);
    }
}

TEST(RandomWeights, RatesOfDecayStandAroundMinusOne) {
  for (float value : fill(*findWeightType("f32"), {512}, 1, true)) {
    ASSERT_GE(value, -1.5f);
    ASSERT_LE(value, -0.5f);
  }
}

TEST(RandomWeights, FollowTheSeed) {
  const WeightType &type = *findWeightType("q4_1");
  EXPECT_EQ(fill(type, {8, 64}, 1), fill(type, {8, 64}, 1));
  EXPECT_NE(fill(type, {8, 64}, 1), fill(type, {8, 64}, 2));
}

} // namespace
