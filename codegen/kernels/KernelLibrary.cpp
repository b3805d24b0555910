#include "codegen/kernels/KernelLibrary.h"

#include <fmt/format.h>

#include "codegen/cuda/KernelTable.h"

namespace strata {

std::optional<KernelLibrary> KernelLibrary::of(std::string_view target) {
  constexpr std::string_view cpuPrefix = "cpu:";
  KernelLibrary library;
  if (target.starts_with(cpuPrefix) && cpu::parseIsa(target.substr(cpuPrefix.size()), library.isa_))
    return library;
  library.gpu_ = findCudaTarget(target);
  if (!library.gpu_)
    return std::nullopt;
  return library;
}

bool KernelLibrary::has(std::string_view kernel) const {
  return gpu_ ? cuda::hasKernel(kernel) : cpu::findKernel(kernel, isa_) != nullptr;
}

uint64_t KernelLibrary::scratchBytes(std::string_view kernel, uint64_t width) const {
  return gpu_ ? cuda::scratchBytes(kernel, width) : cpu::scratchBytes(kernel, width);
}

std::string KernelLibrary::knownTargets() {
  std::string names = fmt::format("cpu:{}, cpu:{}", cpu::isaName(cpu::Isa::X86_64_v3),
                                  cpu::isaName(cpu::Isa::X86_64_v4));
  for (const CudaTarget *target : cudaTargets())
    names += fmt::format(", cuda:{}", target->name);
  return names;
}

} // namespace strata
