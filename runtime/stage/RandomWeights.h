// Weights without a checkpoint: valid blocks of any weight type, small and finite, from a seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/Status.h"
#include "runtime/plan/Plan_generated.h"

namespace strata {

/// Fills the bytes of `weight`. Vectors get values of 0.5 to 1.5 where the type can hold them
/// (gains of a norm), matrices values up to about 2 / sqrt(columns). The same seed, type and place
/// in the plan give the same bytes on every machine. `bytes` has the weight's size. Errors:
/// Unimplemented (random bytes hold no such value of this type).
Status fillRandomWeight(const fb::Weight &weight, uint64_t seed, std::span<std::byte> bytes);

} // namespace strata
