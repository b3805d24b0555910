// What one CPU kernel is. Kept free of everything else: files compiled for one instruction set
// include it, and whatever they include must not be shared with code that runs on every CPU.
#pragma once

#include <cstdint>
#include <string_view>

namespace strata::cpu {

/// Computes items [begin, end). `worker` numbers the calling thread, for per-worker scratch. Never
/// allocates, locks or throws; its stack frame stays under 32 KiB.
using KernelFunction = void (*)(const uint64_t *slots, uint32_t begin, uint32_t end,
                                uint32_t worker);

struct KernelEntry {
  std::string_view name;
  KernelFunction function;
};

/// A family's kernels, in static storage.
struct KernelList {
  const KernelEntry *entries;
  uint32_t count;
};

/// Outputs in one item of `linear`, `expert_up` and `expert_down`.
constexpr uint32_t linearTileOutputs = 16;

/// Channels in one item of `conv`.
constexpr uint32_t convChannels = 16;

/// Best experts that a router may add up to a group's score.
constexpr uint32_t maxGroupTop = 16;

/// Taps of `conv`.
constexpr uint32_t maxConvTaps = 64;

} // namespace strata::cpu
