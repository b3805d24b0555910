// What a plan takes, in the three classes of memory, and what its forwards look like: the table
// that `explain` prints.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/plan/Plan_generated.h"

namespace strata {

struct MemoryEntry {
  fb::MemoryClass memoryClass;
  uint32_t stage;   ///< Index into the plan's stages.
  std::string name; ///< "weights", "arena", "state kv", "scratch", ...
  uint64_t bytes;
  std::string per; ///< What it multiplies with at boot ("worker"), or empty.
};

/// Computed memory, derived from the plan's objects alone, in the order in which it is taken, then
/// the reserved and measured lines that the compiler noted (fb::Plan.memory). A handoff's ring
/// belongs to the consumer. The plan has passed verifyPlan().
std::vector<MemoryEntry> memoryEntries(const fb::Plan &plan);

/// For a terminal: entries and totals per stage, state per token and sequence, and one line a
/// forward with rows, commands, peak, lower bound, whether that is proven, and the most rows that
/// padding can waste.
std::string memoryTableText(const fb::Plan &plan);

/// The same as one JSON object; text that is not UTF-8 is replaced.
std::string memoryTableJson(const fb::Plan &plan);

} // namespace strata
