#include "codegen/targets/DriverMemory.h"

#include "codegen/targets/cuda/CudaTarget.h"
#include "runtime/plan/DriverLines.h"
#include "runtime/plan/PlanAccess.h"

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

flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::MemoryLine>>>
buildDriverMemory(flatbuffers::FlatBufferBuilder &builder,
                  std::span<const flatbuffers::Offset<fb::Stage>> stages) {
  std::vector<flatbuffers::Offset<fb::MemoryLine>> lines;
  for (uint32_t stage = 0; stage < stages.size(); ++stage)
    for (const DriverMemoryLine &line :
         driverMemory(text(flatbuffers::GetTemporaryPointer(builder, stages[stage])->target()))) {
      auto name = builder.CreateString(line.name.data(), line.name.size());
      lines.push_back(fb::CreateMemoryLine(builder, line.memoryClass, stage, name, line.bytes));
    }
  return builder.CreateVector(lines);
}

} // namespace strata
