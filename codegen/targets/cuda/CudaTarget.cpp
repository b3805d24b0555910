#include "codegen/targets/cuda/CudaTarget.h"

namespace strata {

std::span<const CudaTarget *const> cudaTargets() {
  static constexpr const CudaTarget *all[] = {&cudaSm80, &cudaSm86, &cudaSm89, &cudaSm90,
                                              &cudaSm120};
  return all;
}

const CudaTarget *findCudaTarget(std::string_view target) {
  constexpr std::string_view prefix = "cuda:";
  if (!target.starts_with(prefix))
    return nullptr;
  for (const CudaTarget *candidate : cudaTargets())
    if (candidate->name == target.substr(prefix.size()))
      return candidate;
  return nullptr;
}

} // namespace strata
