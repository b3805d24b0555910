// NVIDIA's driver, found when it is first asked for: a program built with CUDA starts and runs on
// machines without it.
#pragma once

#include <memory>
#include <string_view>

#include <cuda.h>

#include "runtime/base/Status.h"

namespace strata::cuda {

// Every function that is called. The names are macros of cuda.h where a version is part of the
// symbol.
#define STRATA_DRIVER_FUNCTIONS(f)                                                                 \
  f(cuCtxSetCurrent) f(cuDeviceGet) f(cuDeviceGetAttribute) f(cuDeviceGetCount) f(cuDeviceGetName) \
      f(cuDeviceGetUuid) f(cuDevicePrimaryCtxRelease) f(cuDevicePrimaryCtxRetain)                  \
          f(cuDeviceTotalMem) f(cuDriverGetVersion) f(cuEventCreate) f(cuEventDestroy)             \
              f(cuEventQuery) f(cuEventRecord) f(cuFuncGetParamInfo) f(cuFuncLoad)                 \
                  f(cuFuncSetAttribute) f(cuGetErrorName) f(cuGetErrorString)                      \
                      f(cuGraphAddChildGraphNode) f(cuGraphAddDependencies)                        \
                          f(cuGraphAddKernelNode) f(cuGraphCreate) f(cuGraphDestroy)               \
                              f(cuGraphExecDestroy) f(cuGraphInstantiateWithFlags)                 \
                                  f(cuGraphLaunch) f(cuGraphUpload) f(cuInit) f(cuLaunchKernel)    \
                                      f(cuMemAlloc) f(cuMemFree) f(cuMemFreeHost) f(cuMemGetInfo)  \
                                          f(cuMemHostAlloc) f(cuMemcpyAsync) f(cuMemcpyDtoH)       \
                                              f(cuMemcpyHtoD) f(cuMemsetD8) f(cuMemsetD8Async)     \
                                                  f(cuModuleGetFunction) f(cuModuleLoadData)       \
                                                      f(cuModuleUnload) f(cuStreamBeginCapture)    \
                                                          f(cuStreamCreate) f(cuStreamDestroy)     \
                                                              f(cuStreamEndCapture)                \
                                                                  f(cuStreamSynchronize)

struct Driver {
#define STRATA_DECLARE(name) decltype(&::name) name = nullptr;
  STRATA_DRIVER_FUNCTIONS(STRATA_DECLARE)
#undef STRATA_DECLARE

  /// Success, or Internal with the call, the error's name and its text; ResourceExhausted for want
  /// of memory.
  Status check(CUresult result, std::string_view call) const;
};

/// The driver, initialised. Errors: FailedPrecondition (no driver on this machine, an older one, or
/// one that finds no GPU).
Result<std::unique_ptr<const Driver>> openDriver();

} // namespace strata::cuda
