// A GPU as a device: memory, a stage's module, one graph a line, and a thread that runs the queue.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device/Device.h"

namespace strata::cuda {

struct GpuInfo {
  uint32_t index = 0;
  std::string name;
  std::string uuid;               ///< `GPU-` and 32 digits in groups, as nvidia-smi prints it.
  uint32_t computeCapability = 0; ///< 90
  uint64_t totalBytes = 0;
};

/// The GPUs of this machine. Errors: FailedPrecondition (no driver), Unimplemented (a build without
/// CUDA).
Result<std::vector<GpuInfo>> listGpus();

/// The GPU that `cuda:INDEX` or `cuda:UUID` names. Errors: InvalidArgument, and those of
/// listGpus().
Result<GpuInfo> findGpu(std::string_view device);

struct CudaOptions {
  uint32_t depth = 1;    ///< Launches that may be queued at once.
  uint32_t workers = 1;  ///< Head rows at once, each with scratch of its own.
  bool useGraphs = true; ///< Else kernels are launched one by one, with the same results.
};

/// `gpu` is an index of listGpus(), `target` a plan's ("cuda:sm_90"). Devices of one GPU are
/// virtual devices: they share its context and have memory, stream and thread of their own. Errors:
/// FailedPrecondition (no such GPU, or one that does not run the target's code), those of the
/// driver.
Result<std::unique_ptr<Device>> createCudaDevice(std::string name, uint32_t gpu,
                                                 std::string_view target,
                                                 const CudaOptions &options);

} // namespace strata::cuda
