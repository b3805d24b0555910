// Watches what commands do to a stage's memory, from an executor's CommandObserver.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <utility>

#include "runtime/stage/PlanExecutor.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace strata::test {

#if defined(__SANITIZE_ADDRESS__)

/// Poisons the memory of all stages except what the command about to run is given; one launch is
/// out at a time. AddressSanitizer tells the parts of an 8-byte granule apart only at its end, so
/// what a poisoned granule holds of a neighbour stays readable; the planned places are multiples of
/// that.
class Poisoner {
public:
  void operator()(const PlanExecutor &executor, const CommandSite &site) {
    auto forEach = [&](auto apply) {
      for (uint32_t stage = 0; stage < executor.stages(); ++stage) {
        const StageMemory &memory = executor.stage(stage).memory();
        for (std::span<const std::byte> part :
             {std::span<const std::byte>(memory.arena), std::span<const std::byte>(memory.scratch),
              std::span<const std::byte>(memory.step), std::span<const std::byte>(memory.out),
              std::span<const std::byte>(memory.table)})
          apply(part.data(), part.size());
        for (auto &state : memory.states)
          apply(state.data(), state.size());
        for (const auto &run : memory.weights)
          apply(run.data(), run.size());
      }
    };
    if (site.operands.empty()) { // the forward is over
      forEach([](const void *data, size_t bytes) { __asan_unpoison_memory_region(data, bytes); });
      return;
    }
    forEach([](const void *data, size_t bytes) { __asan_poison_memory_region(data, bytes); });
    for (const Operand &operand : site.operands)
      for (uint32_t i = 0; i < operand.count; ++i)
        __asan_unpoison_memory_region(operand.begin + i * operand.stride, operand.bytes);
    ++commands;
  }
  uint32_t commands = 0;
};

#endif

/// Fills the arena with a pattern before each forward and finds the last byte that differs after
/// it. Under one pattern a byte may happen to be written with it: two runs with two patterns tell.
class HighWater {
public:
  std::byte pattern{0xA5};

  void operator()(const PlanExecutor &executor, const CommandSite &site) {
    std::span<std::byte> arena = executor.stage(site.stage).memory().arena;
    if (site.command == 0)
      std::ranges::fill(arena, pattern);
    if (!site.operands.empty())
      return;
    auto last =
        std::find_if(arena.rbegin(), arena.rend(), [&](std::byte b) { return b != pattern; });
    uint64_t &mark = marks_[{site.stage, site.bucket}];
    mark = std::max(mark, uint64_t(arena.rend() - last));
  }

  /// Bytes; 0 where the forward never ran.
  uint64_t mark(uint32_t stage, uint32_t bucket) const {
    auto found = marks_.find({stage, bucket});
    return found == marks_.end() ? 0 : found->second;
  }

private:
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> marks_;
};

} // namespace strata::test
