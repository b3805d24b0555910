// Weights without a checkpoint: valid blocks of any weight type, small and finite, from a seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/Status.h"
#include "runtime/plan/Plan_generated.h"

namespace strata {

/// Fills the bytes of `weight`. Vectors get values of 0.5 to 1.5 where the type can hold them
/// (gains of a norm), or of -1.5 to -0.5 where `isNegative`, matrices values up to about
/// 2 / sqrt(columns). The same seed, type and place in the plan give the same bytes on every
/// machine. `bytes` are the weight's or fewer, whole blocks. Errors: Unimplemented (random bytes
/// hold no such value of this type).
Status fillRandomWeight(const fb::Weight &weight, uint64_t seed, bool isNegative,
                        std::span<std::byte> bytes);

/// Which weights of the stage some kernel takes for negative (SlotSpec::negative).
std::vector<bool> negativeWeights(const fb::Stage &stage);

} // namespace strata
