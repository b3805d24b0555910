#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/checkpoint/WeightTypeTable.h"
#include "test/codegen/cuda/Shapes.h"

namespace strata::cuda {
namespace {

TEST(CudaKernelTable, EveryKernelHasASignatureAndEverySignatureAKernel) {
  std::vector<std::string> names = kernelNames();
  for (const std::string &name : names) {
    EXPECT_NE(findSignature(name), nullptr) << name;
    EXPECT_TRUE(hasKernel(name)) << name;
  }
  for (std::string_view name : {"", "linear", "linear.", "linear.q9_9", "rms_norm.f32", "unknown"})
    EXPECT_FALSE(hasKernel(name)) << name;
}

TEST(CudaKernelTable, EveryWeightTypeMultipliesAndEmbeds) {
  for (const WeightType &type : weightTypes()) {
    EXPECT_TRUE(hasKernel(fmt::format("linear.{}", type.name)));
    EXPECT_TRUE(hasKernel(fmt::format("embed.{}", type.name)));
  }
}

TEST(CudaKernelTable, GridsCoverTheBucket) {
  LaunchShape one = launchShape("linear.bf16", 1, sampleConstant);
  EXPECT_EQ(one.gridX, 129u); // 514 outputs, four a block
  EXPECT_EQ(one.gridY, 1u);
  EXPECT_EQ(one.rows, 1u);
  LaunchShape tiles = launchShape("linear.bf16", 200, sampleConstant);
  EXPECT_EQ(tiles.gridX, 5u); // 514 outputs, 128 a tile
  EXPECT_EQ(tiles.gridY, 2u);
  EXPECT_EQ(tiles.rows, 128u);
  LaunchShape many = launchShape("linear.q8_0", 21, sampleConstant);
  EXPECT_EQ(many.gridY, 3u); // eight rows a block
  EXPECT_EQ(many.rows, 8u);
  EXPECT_EQ(launchShape("linear.bf16", 3, sampleConstant).rows, 4u);
  LaunchShape attention = launchShape("attention.f16.f16", 5, sampleConstant);
  EXPECT_EQ(attention.gridX, 5u);
  EXPECT_EQ(attention.gridY, 12u);
}

TEST(CudaKernelTable, TypesAndFunctionsAreSpeltForCpp) {
  EXPECT_EQ(templateArguments("linear.q4_k"), "strata::Q4_K, ");
  EXPECT_EQ(templateArguments("attention.f16.bf16"), "strata::F16, strata::BF16, ");
  EXPECT_EQ(templateArguments("gated.gelu_tanh"), "strata::GeluTanh, ");
  EXPECT_EQ(templateArguments("rms_norm"), "");
}

} // namespace
} // namespace strata::cuda
