// Stands for Nvrtc.cpp in a build without CUDA.
#include "codegen/cuda/compile/Nvrtc.h"

namespace strata::cuda {

bool canCompile() { return false; }

Result<std::vector<uint8_t>> compileModule(const std::string &, const CudaTarget &target) {
  return makeError(StatusCode::Unimplemented,
                   "this build compiles no code for cuda:{}; build it where CUDA is installed",
                   target.name);
}

Result<std::vector<uint8_t>> compileModuleAnew(const std::string &source,
                                               const CudaTarget &target) {
  return compileModule(source, target);
}

} // namespace strata::cuda
