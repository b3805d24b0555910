// How many weight bytes a generation step reads.
#pragma once

#include <cstdint>

#include "runtime/plan/Plan_generated.h"

namespace strata::run {

/// Bytes of weights that one step of `sequences` decoding sequences reads, each weight once: those
/// that the commands of the least bucket for it name, without embedding tables, of which a step
/// reads a row a sequence.
uint64_t weightBytesPerStep(const fb::Plan &plan, uint32_t sequences);

} // namespace strata::run
