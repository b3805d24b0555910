#include "test/codegen/cpu/KernelData.h"

namespace strata::cpu {
namespace {

TEST(KernelTable, EveryKernelHasASignatureAndATest) {
  for (Isa isa : {Isa::X86_64_v3, Isa::X86_64_v4})
    for (std::string_view name : kernelNames(isa)) {
      EXPECT_NE(findSignature(name), nullptr) << name;
      EXPECT_TRUE(Tested::names().contains(name)) << name << " has no test";
    }
}

TEST(KernelTable, EverySignatureHasAKernel) {
  const std::set<std::string_view> ofGpusAlone = {"attention_prompt", "convert", "gated_pair",
                                                  "gemm", "qkv_rope"};
  for (const KernelSignature &signature : signatures()) {
    bool found = signature.family.starts_with("norm_") || ofGpusAlone.contains(signature.family);
    for (std::string_view name : kernelNames(Isa::X86_64_v3))
      found |= findSignature(name) == &signature;
    EXPECT_TRUE(found) << signature.family;
  }
}

TEST(KernelTable, InstructionSetsOfferTheSameKernels) {
  EXPECT_EQ(kernelNames(Isa::X86_64_v3), kernelNames(Isa::X86_64_v4));
  std::set<KernelFunction> functions;
  for (std::string_view name : kernelNames(Isa::X86_64_v3))
    EXPECT_TRUE(functions.insert(findKernel(name, Isa::X86_64_v3)).second) << name;
}

TEST(KernelTable, EveryWeightTypeMultipliesAndEmbeds) {
  for (const WeightType &type : weightTypes()) {
    EXPECT_NE(findKernel(fmt::format("linear.{}", type.name), Isa::X86_64_v4), nullptr);
    EXPECT_NE(findKernel(fmt::format("embed.{}", type.name), Isa::X86_64_v4), nullptr);
    EXPECT_NE(findKernel(fmt::format("expert_up.{}", type.name), Isa::X86_64_v4), nullptr);
    EXPECT_NE(findKernel(fmt::format("expert_down.{}", type.name), Isa::X86_64_v4), nullptr);
  }
}

TEST(KernelTable, UnknownNamesAreNotFound) {
  for (std::string_view name : {"", "linear", "linear.", "linear.q9_9", "rms_norm.f32", "unknown"})
    EXPECT_EQ(findKernel(name, Isa::X86_64_v3), nullptr) << name;
  EXPECT_EQ(findSignature("unknown.f32"), nullptr);
}

TEST(KernelTable, InstructionSetsAreSpeltAsInTargets) {
  for (Isa isa : {Isa::X86_64_v3, Isa::X86_64_v4}) {
    Isa parsed = isa == Isa::X86_64_v3 ? Isa::X86_64_v4 : Isa::X86_64_v3;
    EXPECT_TRUE(parseIsa(isaName(isa), parsed));
    EXPECT_EQ(parsed, isa);
  }
  Isa isa = Isa::X86_64_v4;
  EXPECT_FALSE(parseIsa("x86-64-v5", isa));
  EXPECT_EQ(isa, Isa::X86_64_v4);
}

TEST(KernelTable, TheHostRunsWhatItSaysIsBest) {
  EXPECT_EQ(hostRunsAny(), hostRuns(Isa::X86_64_v3));
  if (hostRunsAny()) {
    EXPECT_TRUE(hostRuns(hostIsa()));
  }
  if (hostRuns(Isa::X86_64_v4)) {
    EXPECT_TRUE(hostRuns(Isa::X86_64_v3));
  }
}

TEST(KernelTable, ScratchHoldsATileOfLinearAndARowOfCandidates) {
  EXPECT_EQ(scratchBytes("linear.q4_1", 576), 16u * 576 * 4); // 36864, a multiple of 64
  EXPECT_EQ(scratchBytes("sample", 49152), 49152u * 12);
  EXPECT_EQ(scratchBytes("sample", 3), 64u); // 36 rounded up
  EXPECT_EQ(scratchBytes("attention.f16.f16", 64), 0u);
}

} // namespace
} // namespace strata::cpu
