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

/// Memory of the host that a stage's launches are copied from and to; of its device where that is a
/// CPU. The plan has passed verifyPlan().
uint64_t hostBytes(const fb::Plan &plan, uint32_t stage);

/// Computed memory, derived from the plan's objects alone, in the order in which it is taken, then
/// the reserved and measured lines that the compiler noted (fb::Plan.memory). A handoff's ring
/// belongs to the consumer. The plan has passed verifyPlan().
std::vector<MemoryEntry> memoryEntries(const fb::Plan &plan);

/// What one step up would add to a stage.
struct GrowthCost {
  std::string what; ///< "context", "sequences" or "chunk".
  uint64_t to;      ///< Tokens, sequences or rows.
  uint64_t bytes;   ///< More than now.
  bool exact;       ///< Else the arena was continued along a straight line through its last two
                    ///< buckets; only a compilation knows it to the byte.
};

/// A context longer by one block of tokens and one more sequence, in bytes of state; and a chunk
/// twice as long, in bytes of arena and handoffs.
std::vector<GrowthCost> growthCosts(const fb::Plan &plan, uint32_t stage);

/// For a terminal: entries and totals per stage, state per token and sequence, what growing
/// would cost, and one line a forward with rows, commands, peak, lower bound, whether that is
/// proven, and the most rows that padding can waste.
std::string memoryTableText(const fb::Plan &plan);

/// The same as one JSON object; text that is not UTF-8 is replaced.
std::string memoryTableJson(const fb::Plan &plan);

} // namespace strata
