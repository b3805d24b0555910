// The list of families of one instruction set.
#include "codegen/cpu/Families.h"

namespace strata::cpu::STRATA_ISA_NAMESPACE {

/// The `index`-th family's kernels; no entries past the last.
KernelList familyAt(uint32_t index) {
  static constexpr KernelList (*families[])() = {
      embedKernels,      normKernels,      linearKernels,      ropeKernels,
      stateKernels,      attentionKernels, elementwiseKernels, routerKernels,
      headLinearKernels, expertKernels,    recurrentKernels,
  };
  return index < sizeof families / sizeof families[0] ? families[index]() : KernelList{};
}

} // namespace strata::cpu::STRATA_ISA_NAMESPACE
