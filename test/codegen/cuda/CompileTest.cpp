// Every template compiles for every target: nothing here needs a GPU.
#include <gtest/gtest.h>

#include "codegen/cuda/compile/Nvrtc.h"
#include "codegen/cuda/compile/Program.h"
#include "test/codegen/cuda/Shapes.h"

namespace strata::cuda {
namespace {

class CudaCompile : public testing::TestWithParam<const CudaTarget *> {};

TEST_P(CudaCompile, EveryKernel) {
  const CudaTarget &target = *GetParam();
  std::vector<Specialisation> all = {sampleSpecialisation("linear.bf16", 20, target),
                                     sampleSpecialisation("linear.bf16", 200, target),
                                     sampleSpecialisation("attention.bf16.f16", 40, target),
                                     sampleSpecialisation("attention_prompt.f16", 40, target)};
  for (const char *kernel :
       {"linear.bf16", "norm_linear.bf16", "norm_gated.silu.bf16", "norm_qkv.bf16.bf16.bf16"})
    all.push_back(sampleSpecialisation(kernel, 8, target)); // on matrix units
  for (const std::string &kernel : kernelNames())
    if (!isOneOfMany(kernel) ||
        (GetParam() == &cudaSm90 && !hasTypesOfLinear(kernel) && !kernel.starts_with("attention")))
      all.push_back(sampleSpecialisation(kernel, 2, target));
  Result<std::vector<uint8_t>> cubin =
      compileModuleAnew(moduleSource(all, *GetParam()), *GetParam());
  ASSERT_TRUE(cubin.isOk()) << cubin.status().toString();
  ASSERT_GT(cubin->size(), 1000u);
  EXPECT_EQ(std::string(cubin->begin(), cubin->begin() + 4), "\x7f"
                                                             "ELF");
}

INSTANTIATE_TEST_SUITE_P(Targets, CudaCompile, testing::ValuesIn(cudaTargets()),
                         [](const auto &info) { return std::string(info.param->name); });

TEST(CudaCompile, AnErrorComesWithTheCompilersLog) {
  Result<std::vector<uint8_t>> cubin = compileModuleAnew("int f() { return missing; }", cudaSm90);
  ASSERT_FALSE(cubin.isOk());
  EXPECT_NE(cubin.status().message().find("missing"), std::string::npos)
      << cubin.status().toString();
}

} // namespace
} // namespace strata::cuda
