// What a device's driver takes beside what a plan computes, as lines of the plan's memory table.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/plan/Plan_generated.h"

namespace strata {

struct DriverMemoryLine {
  fb::MemoryClass memoryClass; ///< Reserved, Measured or Free.
  std::string_view name;       ///< One of runtime/plan/DriverLines.h.
  uint64_t bytes;
};

/// Those of a stage on `target` ("cuda:sm_90"), from its target file; none on a CPU.
std::vector<DriverMemoryLine> driverMemory(std::string_view target);

/// The sum of their bytes: what a device that holds a stage lacks for anything else.
uint64_t driverMemoryBytes(std::string_view target);

/// The lines of a plan of these stages.
flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::MemoryLine>>>
buildDriverMemory(flatbuffers::FlatBufferBuilder &builder,
                  std::span<const flatbuffers::Offset<fb::Stage>> stages);

} // namespace strata
