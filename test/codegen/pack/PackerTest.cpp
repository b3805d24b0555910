// Packed bytes are what kernels read: a wrong frequency or a conversion that loses a piece makes
// fluent wrong text.
#include "codegen/pack/Packer.h"

#include <cmath>
#include <cstring>
#include <numbers>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/runtime/checkpoint/FileBuilders.h"

namespace strata {
namespace {

RopeFrequencies rope(std::string scaling, double theta = 10000, uint64_t width = 8) {
  return {theta, width, std::move(scaling), 4, 1, 4, 4096, 32, 1};
}

void expectNear(const std::vector<float> &found, const std::vector<double> &expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t j = 0; j < found.size(); ++j)
    EXPECT_FLOAT_EQ(found[j], static_cast<float>(expected[j])) << "pair " << j;
}

TEST(RopeFrequencies, Plain) {
  // 10000^(-2j / 8): 1, 10^-1, 10^-2, 10^-3.
  expectNear(ropeFrequencies(rope("none"), {}), {1, 0.1, 0.01, 0.001});
}

TEST(RopeFrequencies, Linear) {
  expectNear(ropeFrequencies(rope("linear"), {}), {0.25, 0.025, 0.0025, 0.00025});
}

TEST(RopeFrequencies, DivisorsReplaceTheScaling) {
  std::vector<float> divisors{1, 2, 4, 8};
  for (const char *scaling : {"none", "linear", "llama3", "yarn"})
    expectNear(ropeFrequencies(rope(scaling), divisors), {1, 0.05, 0.0025, 0.000125});
}

TEST(RopeFrequencies, Llama3) {
  RopeFrequencies parameters = rope("llama3");
  parameters.factor = 8;
  parameters.originalContext = 64;
  // Wavelengths 2 pi / f: 6.28 is below 64 / 4 = 16 and kept; 628 and 6283 are above 64 / 1 and
  // divided by 8; 62.8 is between: (64 / 62.83 - 1) / (4 - 1) = 0.0062 of the frequency kept, the
  // rest divided.
  double smooth = (64 / (2 * std::numbers::pi / 0.1) - 1) / 3;
  EXPECT_NEAR(smooth, 0.0062, 0.0001);
  expectNear(ropeFrequencies(parameters, {}),
             {1, 0.1 * ((1 - smooth) / 8 + smooth), 0.01 / 8, 0.001 / 8});
}

TEST(RopeFrequencies, Yarn) {
  // The pair that turns b times over 4096 positions: 8 ln(4096 / (2 pi b)) / (2 ln 10000); b =
  // 32: 1.31, down to 1; b = 1: 2.81, up to 3. The ramp over pairs 0 1 2 3 is 0 0 1/2 1; factor 4.
  expectNear(ropeFrequencies(rope("yarn"), {}), {1, 0.1, 0.5 * 0.01 / 4 + 0.5 * 0.01, 0.001 / 4});
}

TEST(RopeFrequencies, YarnWhoseRampIsAStep) {
  // Slow and fast at one: both bounds may fall on the same pair, and the ramp is a step, not a NaN.
  RopeFrequencies parameters = rope("yarn");
  parameters.originalContext =
      2 * std::numbers::pi * 10; // 8 ln(10 / b) / (2 ln 10000) = 1 at b = 1
  parameters.betaFast = parameters.betaSlow = 1;
  for (float value : ropeFrequencies(parameters, {}))
    EXPECT_TRUE(std::isfinite(value));
}

TEST(RopeFrequencies, AgainstTheEquationsInLongDouble) {
  for (double theta : {1e4, 5e5, 1e6, 12345.678})
    for (uint64_t width : {2u, 64u, 96u, 128u, 256u}) {
      std::vector<float> found = ropeFrequencies(rope("none", theta, width), {});
      ASSERT_EQ(found.size(), width / 2);
      for (uint64_t j = 0; j < found.size(); ++j) {
        long double exact =
            std::pow(static_cast<long double>(theta),
                     -static_cast<long double>(2 * j) / static_cast<long double>(width));
        EXPECT_FLOAT_EQ(found[j], static_cast<float>(exact)) << theta << " " << width << " " << j;
      }
    }
}

/// Keeps what is written.
class Collected final : public SegmentSink {
public:
  Status write(std::span<const std::byte> bytes) override {
    ++pieces;
    data.insert(data.end(), bytes.begin(), bytes.end());
    bytes_ += bytes.size();
    return Status::ok();
  }
  std::vector<float> floats() const {
    std::vector<float> values(data.size() / sizeof(float));
    std::memcpy(values.data(), data.data(), values.size() * sizeof(float));
    return values;
  }

  std::vector<std::byte> data;
  int pieces = 0;
};

constexpr int64_t manyRows = 2200, columns = 32; // 70400 elements: more than one piece of 65536

class Packing : public ::testing::Test {
protected:
  void SetUp() override {
    test::Bytes halves, blocks, divisors, wrongDivisors, plain;
    for (uint16_t half : {0x3c00, 0xc000, 0x3555, 0x0001}) // 1, -2, 0.33325, 2^-24
      halves.put(half);
    for (int64_t row = 0; row < manyRows; ++row) {
      blocks.put(uint16_t(0x3800)); // a scale of 0.5
      for (int64_t i = 0; i < columns; ++i)
        blocks.put(int8_t((row + i) % 255 - 127));
    }
    for (float value : {1.f, 2.f, 4.f, 8.f})
      divisors.put(value);
    for (float value : {1.f, 2.f, 0.f, 8.f})
      wrongDivisors.put(value);
    for (float value : {1.5f, -2.5f, 0.f, 3e-39f})
      plain.put(value);
    std::string file = test::GgufBuilder()
                           .string("general.architecture", "llama")
                           .tensor("halves", {2, 2}, 1, halves.str())
                           .tensor("blocks", {columns, manyRows}, 8, blocks.str())
                           .tensor("divisors", {4}, 0, divisors.str())
                           .tensor("wrong_divisors", {4}, 0, wrongDivisors.str())
                           .tensor("plain", {4}, 0, plain.str())
                           .tensor("expert.0.up", {2, 3}, 0, counting(0).str())
                           .tensor("expert.1.up", {2, 3}, 0, counting(6).str())
                           .build();
    auto opened = Checkpoint::open(folder.write("model.gguf", file));
    ASSERT_TRUE(opened.isOk()) << opened.status().toString();
    checkpoint = *std::move(opened);
  }

  /// Six values from `first` on.
  static test::Bytes counting(int first) {
    test::Bytes bytes;
    for (int i = first; i < first + 6; ++i)
      bytes.put(float(i));
    return bytes;
  }

  /// What `recipe` packs to, as floats.
  std::vector<float> pack(const WeightRecipe &recipe) {
    Collected sink;
    Status status = packWeight(recipe, checkpoint.get(), sink);
    EXPECT_TRUE(status.isOk()) << status.toString();
    return sink.floats();
  }

  WeightRecipe recipe(const char *type, std::vector<uint64_t> shape, std::string source) {
    WeightRecipe recipe;
    recipe.name = "w";
    recipe.type = findWeightType(type);
    recipe.shape = std::move(shape);
    recipe.source = std::move(source);
    return recipe;
  }

  test::TemporaryFolder folder;
  std::unique_ptr<Checkpoint> checkpoint;
};

TEST_F(Packing, TensorsAreStacked) {
  WeightRecipe stacked = recipe("f32", {2, 3, 2}, "expert.*.up");
  stacked.stack = 2;
  EXPECT_THAT(pack(stacked), testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
  stacked.shape = {3, 3, 2};
  stacked.stack = 3;
  EXPECT_THAT(checkRecipe(stacked, *checkpoint).toString(), testing::HasSubstr("'expert.2.up'"));
}

TEST_F(Packing, PartsTakeRowsOfEveryGroup) {
  // [3, 2] of each tensor: rows 1 and 2 of every three.
  WeightRecipe part = recipe("f32", {2, 2, 2}, "expert.*.up");
  part.stack = 2;
  part.part = SourcePart{1, 3};
  EXPECT_THAT(pack(part), testing::ElementsAre(2, 3, 4, 5, 8, 9, 10, 11));
  // Blocks are copied, not decoded: row 7 of every 1100.
  WeightRecipe blocks = recipe("q8_0", {2, 1, columns}, "blocks");
  blocks.part = SourcePart{7, manyRows / 2};
  Collected sink;
  ASSERT_TRUE(packWeight(blocks, checkpoint.get(), sink).isOk());
  std::span<const std::byte> stored = checkpoint->find("blocks")->bytes;
  EXPECT_TRUE(std::ranges::equal(std::span(sink.data).first(34), stored.subspan(7 * 34, 34)));
  EXPECT_TRUE(std::ranges::equal(std::span(sink.data).last(34), stored.subspan(1107 * 34, 34)));
  blocks.part = SourcePart{7, manyRows};
  EXPECT_THAT(checkRecipe(blocks, *checkpoint).toString(),
              testing::HasSubstr("where 4400 rows of 32 are needed"));
}

TEST_F(Packing, GroupsAreJoined) {
  // [3, 1, 2] becomes [1, 6]; [1, 3, 2] of the same tensor stays as it is.
  WeightRecipe joined = recipe("f32", {1, 6}, "expert.0.up");
  joined.join = 3;
  EXPECT_THAT(pack(joined), testing::ElementsAre(0, 1, 2, 3, 4, 5));
  // Two groups of eleven rows of 3200 elements: row 0 of the first, row 0 of the second.
  WeightRecipe wide = recipe("q8_0", {manyRows / 2, 2 * columns}, "blocks");
  wide.join = 2;
  Collected sink;
  ASSERT_TRUE(packWeight(wide, checkpoint.get(), sink).isOk());
  std::span<const std::byte> stored = checkpoint->find("blocks")->bytes;
  EXPECT_TRUE(std::ranges::equal(std::span(sink.data).first(34), stored.first(34)));
  EXPECT_TRUE(std::ranges::equal(std::span(sink.data).subspan(34, 34),
                                 stored.subspan(manyRows / 2 * 34, 34)));
}

TEST_F(Packing, ValuesAreMappedAndCounted) {
  WeightRecipe a = recipe("f32", {4}, "divisors"); // 1, 2, 4, 8
  a.isNegativeExponential = true;
  EXPECT_THAT(pack(a), testing::ElementsAre(-std::exp(1.f), -std::exp(2.f), -std::exp(4.f),
                                            testing::FloatEq(-std::exp(8.f))));
  WeightRecipe identity = recipe("f32", {3}, "");
  identity.isIdentity = true;
  EXPECT_THAT(pack(identity), testing::ElementsAre(0, 1, 2));
}

TEST_F(Packing, TheSameTypeIsCopied) {
  Collected sink;
  ASSERT_TRUE(
      packWeight(recipe("q8_0", {manyRows, columns}, "blocks"), checkpoint.get(), sink).isOk());
  const Tensor *tensor = checkpoint->find("blocks");
  ASSERT_EQ(sink.data.size(), static_cast<size_t>(manyRows) * (2 + 32));
  EXPECT_EQ(std::memcmp(sink.data.data(), tensor->bytes.data(), sink.data.size()), 0);
}

TEST_F(Packing, HalvesBecomeF32) {
  Collected sink;
  ASSERT_TRUE(packWeight(recipe("f32", {2, 2}, "halves"), checkpoint.get(), sink).isOk());
  // 0x3555 = 1.3330078125 / 4.
  EXPECT_EQ(sink.floats(), (std::vector<float>{1, -2, 0.333251953125f, 0x1p-24f}));
}

TEST_F(Packing, EveryPieceIsConverted) {
  Collected sink;
  ASSERT_TRUE(
      packWeight(recipe("f32", {manyRows, columns}, "blocks"), checkpoint.get(), sink).isOk());
  EXPECT_GT(sink.pieces, 1) << "the tensor is larger than a piece";
  std::vector<float> values = sink.floats();
  ASSERT_EQ(values.size(), static_cast<size_t>(manyRows * columns));
  for (int64_t i = 0; i < manyRows * columns; ++i)
    ASSERT_EQ(values[i], 0.5f * static_cast<float>((i / columns + i % columns) % 255 - 127)) << i;
}

TEST_F(Packing, PlusIsAddedToEveryElement) {
  WeightRecipe shifted = recipe("f32", {4}, "plain");
  shifted.plus = 1;
  Collected sink;
  ASSERT_TRUE(packWeight(shifted, checkpoint.get(), sink).isOk());
  EXPECT_EQ(sink.floats(), (std::vector<float>{2.5f, -1.5f, 1.f, 1.f}));
}

TEST_F(Packing, FrequenciesWithDivisorsOfTheCheckpoint) {
  WeightRecipe computed = recipe("f32", {4}, "divisors");
  computed.computed = rope("llama3");
  Collected sink;
  ASSERT_TRUE(packWeight(computed, checkpoint.get(), sink).isOk());
  expectNear(sink.floats(), {1, 0.05, 0.0025, 0.000125});

  computed.source = "wrong_divisors";
  Status status = packWeight(computed, checkpoint.get(), sink);
  ASSERT_FALSE(status.isOk());
  EXPECT_TRUE(test::contains(status, {"wrong_divisors", "frequency 2 by 0"}));
}

TEST_F(Packing, AVectorMayBeStoredInAnyShape) {
  EXPECT_EQ(pack(recipe("f32", {4}, "halves")),
            (std::vector<float>{1, -2, 0.333251953125f, 0x1p-24f}));
}

TEST_F(Packing, Refusals) {
  auto refusal = [&](const WeightRecipe &recipe, const Checkpoint *from) {
    Collected sink;
    Status status = packWeight(recipe, from, sink);
    EXPECT_FALSE(status.isOk());
    EXPECT_TRUE(sink.data.empty()) << "nothing of a weight that is refused is written";
    return status;
  };
  EXPECT_TRUE(test::contains(refusal(recipe("f32", {4}, "absent"), checkpoint.get()),
                             {"'w'", "'absent'", "lacks"}));
  EXPECT_TRUE(test::contains(refusal(recipe("f32", {2, 3}, "halves"), checkpoint.get()),
                             {"'w'", "[2, 3]", "'halves'", "[2, 2]"}));
  EXPECT_TRUE(test::contains(refusal(recipe("f32", {1, 4}, "halves"), checkpoint.get()),
                             {"[1, 4]", "[2, 2]"}))
      << "as many elements are not the same rows";
  EXPECT_TRUE(test::contains(refusal(recipe("f32", {3}, "halves"), checkpoint.get()), {"[3]"}));
  EXPECT_TRUE(test::contains(refusal(recipe("bf16", {2, 2}, "halves"), checkpoint.get()),
                             {"'w'", "bf16", "f16", "only f32"}));
  EXPECT_TRUE(test::contains(refusal(recipe("f32", {2, 2}, "halves"), nullptr), {"no checkpoint"}));
}

} // namespace
} // namespace strata
