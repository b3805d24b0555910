// Stands for the CUDA device in a build without it.
#include "runtime/device/cuda/CudaDevice.h"

namespace strata::cuda {
namespace {

Status absent() {
  return makeError(StatusCode::Unimplemented,
                   "this build has no GPU devices; build it where CUDA is installed");
}

} // namespace

Result<std::vector<GpuInfo>> listGpus() { return absent(); }

Result<GpuInfo> findGpu(std::string_view) { return absent(); }

Result<std::unique_ptr<Device>> createCudaDevice(std::string, uint32_t, std::string_view,
                                                 const CudaOptions &) {
  return absent();
}

} // namespace strata::cuda
