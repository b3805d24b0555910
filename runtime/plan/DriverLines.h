// The lines of the memory table that a GPU's driver fills: their names, and what a plan says of
// them.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/plan/PlanAccess.h"
#include "runtime/plan/Plan_generated.h"

namespace strata {
namespace driver_line {

// Reserved: capped.
inline constexpr char modules[] = "modules", libraries[] = "libraries", graphs[] = "graphs",
                      localMemory[] = "local memory";
inline constexpr char context[] = "context"; ///< Measured: expected.
inline constexpr char floor[] = "floor";     ///< Free: left to no one.

} // namespace driver_line

/// The line of this name that the plan has for a stage; nullptr where it has none.
inline const fb::MemoryLine *findDriverLine(const fb::Plan &plan, uint32_t stage,
                                            std::string_view name) {
  for (uint32_t i = 0; i < count(plan.memory()); ++i)
    if (const fb::MemoryLine *line = plan.memory()->Get(i);
        line->stage() == stage && text(line->name()) == name)
      return line;
  return nullptr;
}

} // namespace strata
