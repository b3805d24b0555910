// Compiling a module's source with NVRTC, NVIDIA's run-time compiler, while a plan is made.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/targets/cuda/CudaTarget.h"
#include "runtime/base/Status.h"

namespace strata::cuda {

/// Whether this build can compile for GPUs: CUDA was found when it was built.
bool canCompile();

/// The cubin of `source` (Program.h) for `target`. What was compiled before is taken from
/// $XDG_CACHE_HOME/strata (else ~/.cache/strata), by a hash of the sources, the target and the
/// compiler's version; a cache that cannot be used is passed over. Errors: Unimplemented (a build
/// without CUDA), Internal (the source does not compile, with the compiler's log).
Result<std::vector<uint8_t>> compileModule(const std::string &source, const CudaTarget &target);

/// As compileModule, without the cache.
Result<std::vector<uint8_t>> compileModuleAnew(const std::string &source, const CudaTarget &target);

} // namespace strata::cuda
