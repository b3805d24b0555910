// Which GPUs this machine has.
#include <algorithm>
#include <charconv>

#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/device/cuda/Driver.h"

namespace strata::cuda {
namespace {

std::string uuidText(const CUuuid &uuid) {
  std::string text = "GPU";
  for (int i = 0; i < 16; ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10)
      text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

} // namespace

Result<std::vector<GpuInfo>> listGpus() {
  STRATA_ASSIGN_OR_RETURN(std::unique_ptr<const Driver> driver, openDriver());
  int count = 0;
  STRATA_RETURN_IF_ERROR(driver->check(driver->cuDeviceGetCount(&count), "cuDeviceGetCount"));
  std::vector<GpuInfo> gpus;
  for (int i = 0; i < count; ++i) {
    GpuInfo gpu;
    gpu.index = uint32_t(i);
    CUdevice device = 0;
    char name[256] = {};
    CUuuid uuid;
    size_t bytes = 0;
    int major = 0, minor = 0;
    STRATA_RETURN_IF_ERROR(driver->check(driver->cuDeviceGet(&device, i), "cuDeviceGet"));
    STRATA_RETURN_IF_ERROR(
        driver->check(driver->cuDeviceGetName(name, sizeof name, device), "cuDeviceGetName"));
    STRATA_RETURN_IF_ERROR(
        driver->check(driver->cuDeviceGetUuid(&uuid, device), "cuDeviceGetUuid"));
    STRATA_RETURN_IF_ERROR(
        driver->check(driver->cuDeviceTotalMem(&bytes, device), "cuDeviceTotalMem"));
    STRATA_RETURN_IF_ERROR(driver->check(
        driver->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device),
        "cuDeviceGetAttribute"));
    STRATA_RETURN_IF_ERROR(driver->check(
        driver->cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device),
        "cuDeviceGetAttribute"));
    gpu.name = name;
    gpu.uuid = uuidText(uuid);
    gpu.computeCapability = uint32_t(10 * major + minor);
    gpu.totalBytes = bytes;
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

Result<GpuInfo> findGpu(std::string_view device) {
  constexpr std::string_view prefix = "cuda:";
  std::string_view wanted = device.substr(std::min(prefix.size(), device.size()));
  if (!device.starts_with(prefix) || wanted.empty())
    return makeError(StatusCode::InvalidArgument,
                     "'{}' is no GPU; write cuda:INDEX or cuda:UUID (`strata-run devices` lists "
                     "them)",
                     device);
  STRATA_ASSIGN_OR_RETURN(std::vector<GpuInfo> gpus, listGpus());
  uint32_t index = UINT32_MAX;
  auto [end, error] = std::from_chars(wanted.data(), wanted.data() + wanted.size(), index);
  bool isIndex = error == std::errc() && end == wanted.data() + wanted.size();
  for (GpuInfo &gpu : gpus)
    if (isIndex ? gpu.index == index : gpu.uuid == wanted)
      return std::move(gpu);
  return makeError(StatusCode::InvalidArgument, "there is no GPU '{}'; this machine has {}", device,
                   gpus.size());
}

} // namespace strata::cuda
