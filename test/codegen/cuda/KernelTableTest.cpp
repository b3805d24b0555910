#include <fmt/format.h>
#include <gtest/gtest.h>

#include "codegen/cuda/AttentionShape.h"
#include "codegen/cuda/ClusterShape.h"
#include "runtime/base/CheckedMath.h"
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

LaunchShape shapeOf(std::string_view kernel, uint64_t rows) {
  return launchShape(kernel, rows, sampleConstant, cudaSm90);
}

TEST(CudaKernelTable, GridsCoverTheBucket) {
  LaunchShape one = shapeOf("linear.f16", 1);
  EXPECT_EQ(one.gridX, 257u); // 514 outputs, two a block
  EXPECT_EQ(one.gridY, 1u);
  EXPECT_EQ(one.rows, 1u);
  EXPECT_EQ(one.threads, 32u); // 1536 bytes a weight row
  EXPECT_EQ(shapeOf("linear.f16", 3).rows, 4u);
  LaunchShape tiles = shapeOf("linear.bf16", 200);
  EXPECT_EQ(tiles.gridX, 5u); // 514 outputs, 128 a tile
  EXPECT_EQ(tiles.gridY, 2u);
  EXPECT_EQ(tiles.rows, 128u);
  LaunchShape many = shapeOf("linear.q8_0", 21);
  EXPECT_EQ(many.gridY, 3u); // eight rows a block
  EXPECT_EQ(many.rows, 8u);
  EXPECT_EQ(shapeOf("norm_gated.silu.f32", 5).gridX, 514u);           // one gate and one up a block
  EXPECT_EQ(shapeOf("norm_qkv.f16.f16.f16", 8).gridX, 20 * 128u / 2); // 12 + 2 * 4 heads
}

TEST(CudaKernelTable, StreamsShareOutWeightRows) {
  // Eight pairs a tile, one tile a block where that gives few blocks.
  EXPECT_EQ(shapeOf("norm_gated.silu.q4_k", 5).gridX, 65u);
  EXPECT_EQ(shapeOf("norm_qkv.bf16.f16.f16", 8).gridX, 20 * 128u / 16);
  LaunchShape stream = shapeOf("linear.bf16", 3);
  EXPECT_EQ(stream.gridX, 33u); // 257 pairs
  EXPECT_EQ(stream.threads, 256u);
  EXPECT_EQ(stream.rows, 4u);
}

// The loader asks for the launch before it knows that a plan's constants are a model's: 2^36
// outputs are 2^32 tiles, which 32 bits count as none.
TEST(CudaKernelTable, OutputsOfAnAddressSpaceHaveALaunch) {
  for (const std::string &name : kernelNames())
    for (uint32_t bits : {32, 35, 36, 37, 47})
      for (uint64_t rows : {uint64_t(1), uint64_t(8), uint64_t(1) << 20}) {
        auto constant = [=](std::string_view of) {
          return of == "outputs" ? uint64_t(1) << bits : sampleConstant(of);
        };
        LaunchShape shape = launchShape(name, rows, constant, cudaSm90);
        EXPECT_EQ(shape.gridX == 0 || shape.gridY == 0, isGemm(name)) << name << ", 2^" << bits;
      }
}

TEST(CudaKernelTable, StreamsFitTheirMultiprocessor) {
  constexpr StreamedType types[] = {{1, 2}, {32, 18}, {32, 34}, {256, 144}, {256, 210}};
  for (const CudaTarget *target : cudaTargets())
    for (StreamedType type : types)
      for (uint64_t columns : {256, 768, 4096, 14336, 28672})
        for (uint64_t pairs : {1, 257, 2048, 14336, 64128})
          for (uint64_t rows : {1, 2, 4, 8}) {
            SCOPED_TRACE(fmt::format("{}, blocks of {} bytes, {} columns, {} pairs, {} rows",
                                     target->name, type.blockBytes, columns, pairs, rows));
            StreamShape shape = streamShape(type, columns, pairs, rows, target->multiprocessors,
                                            target->sharedBytesPerBlock);
            EXPECT_GE(shape.stages, 2u);
            uint32_t most = target->sharedBytesPerBlock;
            EXPECT_LE(shape.sharedBytes, target == &cudaSm90 ? (most + 1024) / 2 - 1024 : most);
            // No block is without a panel, and all panels have one.
            uint64_t panels = ceilDiv(pairs, uint64_t(shape.tiles) * StreamShape::tilePairs);
            EXPECT_LE(shape.blocks, std::min<uint64_t>(panels, 2 * target->multiprocessors));
            EXPECT_GE(shape.blocks, 1u);
            EXPECT_GE(shape.pitch, shape.pieces * StreamShape::pieceBytes);
          }
}

TEST(CudaKernelTable, FewRowsShareOutTheirTokens) {
  LaunchShape one = shapeOf("attention.f16.f16", 1);
  EXPECT_EQ(one.gridY, 32u); // 4 KV heads, 8 blocks each
  EXPECT_EQ(one.clusterY, 8u);
  LaunchShape few = shapeOf("attention.f16.f16", 5);
  EXPECT_EQ(few.gridX, 5u);
  EXPECT_EQ(few.gridY, 16u); // 8 rows of 4 heads fill 132 multiprocessors with 4 blocks each
  EXPECT_EQ(few.clusterY, 4u);
  EXPECT_EQ(few.rows, 8u);
  LaunchShape alone = launchShape("attention.f16.f16", 5, sampleConstant, cudaSm80);
  EXPECT_EQ(alone.gridY, 4u); // no clusters
  EXPECT_EQ(alone.clusterY, 1u);
  EXPECT_EQ(shapeOf("attention.f16.f16", 32).rows, 32u);
  LaunchShape many = shapeOf("attention.f16.f16", 33);
  EXPECT_EQ(many.gridX, 33u);
  EXPECT_EQ(many.gridY, 12u);
  EXPECT_EQ(many.rows, 0u);
}

TEST(CudaKernelTable, PromptsAreCutIntoTilesOfASequence) {
  LaunchShape tiles = shapeOf("attention_prompt.bf16", 200);
  EXPECT_EQ(tiles.gridX, 4u);     // KV heads
  EXPECT_EQ(tiles.gridY, 4u + 3); // 128 / 3 rows a tile, and one that is not full for each sequence
  EXPECT_EQ(tiles.threads, 128u);
  // 128 queries and 64 keys of 64 + 8, 64 values of 96 + 8; 2 * 64 places of a key and a value
  EXPECT_EQ(tiles.sharedBytes, 2 * (192 * 72 + 64 * 104) + 2048u);
  EXPECT_TRUE(hasAttentionPrompt(8, 256, 256));
  EXPECT_FALSE(hasAttentionPrompt(128, 256, 256)); // a tile has 64 rows
  EXPECT_FALSE(hasAttentionPrompt(1, 72, 64));
  EXPECT_FALSE(hasAttentionPrompt(1, 64, 272));
  for (uint64_t width = 16; width <= 256; width += 16) // what every target has
    EXPECT_LE(attentionTile(1, width, width).sharedBytes, cudaSm86.sharedBytesPerBlock);
}

TEST(CudaKernelTable, ProductsOfALibraryHaveNoCode) {
  EXPECT_TRUE(isGemm("gemm.bf16.bf16"));
  EXPECT_FALSE(isGemm("linear.bf16"));
  EXPECT_FALSE(hasKernel("gemm.q8_0"));
  EXPECT_EQ(bufferType("gemm.bf16", "x"), "bf16");
  EXPECT_EQ(bufferType("gemm.bf16", "y"), "f32");
  EXPECT_EQ(bufferType("gemm.f16.f16", "y"), "f16");
}

TEST(CudaKernelTable, HeadsOfABlockDivideTheirGroup) {
  EXPECT_EQ(attentionHeads(1), 1u);
  EXPECT_EQ(attentionHeads(4), 4u);
  EXPECT_EQ(attentionHeads(7), 7u);
  EXPECT_EQ(attentionHeads(12), 6u);
  EXPECT_EQ(attentionHeads(11), 1u);
  EXPECT_EQ(attentionHeads(32), 8u);
}

TEST(CudaKernelTable, ABlockHasMostThreadsWhereRowsAreLong) {
  for (uint64_t rowBytes : {16, 1000, 4096, 8192, 28672, 1 << 20})
    for (uint64_t outputs : {1, 2048, 4095, 4096, 128256}) {
      MatvecShape shape = matvecShape(rowBytes, outputs);
      EXPECT_EQ(shape.outputs, outputs < 4096 ? 2u : 4u);
      EXPECT_LE(shape.threads, 64 * shape.outputs);
      EXPECT_GE(shape.threads, 32u);
      EXPECT_TRUE(shape.threads == 32 || shape.threads * 32 <= rowBytes) << rowBytes;
    }
}

TEST(CudaKernelTable, GridsOfExpertsAndRecurrences) {
  const CudaTarget &target = cudaSm90;
  LaunchShape up = launchShape("expert_up.q4_k", 7, sampleConstant, target);
  EXPECT_EQ(up.gridX, 14u); // 7 rows of 2 experts each
  EXPECT_EQ(up.gridY, 65u); // 514 outputs, eight a block
  EXPECT_EQ(launchShape("expert_down.q4_k", 7, sampleConstant, target).gridX, 7u);
  LaunchShape lists = launchShape("expert_lists", 7, sampleConstant, target);
  EXPECT_EQ(lists.gridX * lists.gridY, 1u);
  LaunchShape scan = launchShape("ssm_scan", 7, sampleConstant, target);
  EXPECT_EQ(scan.gridX, 6u); // heads
  EXPECT_EQ(scan.gridY, 128u);
  EXPECT_EQ(launchShape("conv", 7, sampleConstant, target).gridX, 6u); // 768 channels
}

TEST(CudaKernelTable, TypesAndFunctionsAreSpeltForCpp) {
  EXPECT_EQ(templateArguments("linear.q4_k"), "strata::Q4_K, ");
  EXPECT_EQ(templateArguments("attention.f16.bf16"), "strata::F16, strata::BF16, ");
  EXPECT_EQ(templateArguments("gated.gelu_tanh"), "strata::GeluTanh, ");
  EXPECT_EQ(templateArguments("router.softmax"), "strata::Softmax, ");
  EXPECT_EQ(templateArguments("rms_norm"), "");
  EXPECT_EQ(templateArguments("norm_gated.gelu_tanh.q4_k"), "strata::GeluTanh, strata::Q4_K, ");
}

} // namespace
} // namespace strata::cuda
