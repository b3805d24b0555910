// What the host keeps of the launches that are out.
#pragma once

#include <cstdint>

namespace strata {

/// Launches that may be out at once: one for every stage, and one that is ready when the first
/// stage has ended its own.
constexpr uint32_t launchesInFlight(uint32_t stages) { return stages + 1; }

/// Slots of the ring in which sampled ids return from the last of several stages to the first.
/// Each launch in flight may return ids, and the newest that have returned stay to be read again.
constexpr uint32_t idSlots(uint32_t stages) {
  return stages == 1 ? 0 : launchesInFlight(stages) + 1;
}

/// Bytes of one stage of `stages`: for each launch a step and an out block to copy from and to, an
/// empty out block, and on the first stage the returned ids of `sequences` sequences.
constexpr uint64_t launchBytes(uint32_t stages, bool isFirst, uint64_t stepBytes, uint64_t outBytes,
                               uint64_t sequences) {
  uint64_t ids = isFirst ? idSlots(stages) * sequences * sizeof(int32_t) : 0;
  return launchesInFlight(stages) * (stepBytes + outBytes) + outBytes + ids;
}

} // namespace strata
