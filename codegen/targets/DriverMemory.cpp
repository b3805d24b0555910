#include "codegen/targets/DriverMemory.h"

#include "codegen/targets/cuda/CudaTarget.h"
#include "runtime/plan/DriverLines.h"

namespace strata {

std::vector<DriverMemoryLine> driverMemory(std::string_view target) {
  const CudaTarget *gpu = findCudaTarget(target);
  if (!gpu)
    return {};
  const CudaCaps &caps = gpu->caps;
  using enum fb::MemoryClass;
  return {{Reserved, driver_line::modules, caps.moduleBytes},
          {Reserved, driver_line::libraries, caps.libraryBytes},
          {Reserved, driver_line::graphs, caps.graphBytes},
          {Reserved, driver_line::localMemory, caps.localMemoryBytes},
          {Measured, driver_line::context, caps.contextBytes},
          {Free, driver_line::floor, caps.floorBytes}};
}

uint64_t driverMemoryBytes(std::string_view target) {
  uint64_t bytes = 0;
  for (const DriverMemoryLine &line : driverMemory(target))
    bytes += line.bytes;
  return bytes;
}

} // namespace strata
