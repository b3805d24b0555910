// What partition-stages foresees and insert-handoffs makes.
#pragma once

#include <cstdint>

namespace strata {

/// Slots of every handoff: one is written while the other is read.
inline constexpr int64_t ringSlots = 2;

} // namespace strata
