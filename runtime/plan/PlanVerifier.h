// The meaning of a plan, checked independently of whoever wrote it.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/base/Status.h"
#include "runtime/plan/Plan_generated.h"

namespace strata {

/// Where segments may lie inside the plan's file: [begin, end).
struct SegmentRange {
  uint64_t begin = 0;
  uint64_t end = 0;
};

/// Checks the structure of `flatBuffer` and then its meaning. What holds afterwards:
/// - every index is in range and every enumeration one of its values; names are short and
/// printable;
/// - weights lie in their segments, aligned, with the size of their shape and type; segments lie in
///   `range` or are named by a hash alone;
/// - fields lie in their blocks and components in their state blocks, none over another;
/// - buffers alive at once share no byte; peak is their largest end and arena_bytes the largest
/// peak;
/// - every slot of every command lies in the object it names, in a buffer that is alive, and is of
///   the kind and access that the kernel's signature asks for;
/// - a stage touches only its own objects and the rings of handoffs that it consumes (reading) or
///   produces (writing); handoffs lead to later stages;
/// - buckets, tails, stages, state groups and the vocabulary agree with each other and with the
///   plan's maxima; no sum of sizes overflows.
/// Never allocates in proportion to a number that is not checked against the buffer's size.
/// `flatBuffer` is aligned to 8 bytes. Errors: InvalidData; Unimplemented (an unknown target).
Result<const fb::Plan *> verifyPlan(std::span<const uint8_t> flatBuffer, SegmentRange range);

} // namespace strata
