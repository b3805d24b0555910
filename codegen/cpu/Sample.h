// The sampling kernel, the same on every instruction set.
#pragma once

#include "codegen/cpu/Kernel.h"

namespace strata::cpu {

/// Entries a row of `top_id` and `top_log_probability`.
constexpr uint32_t reportedTokens = 20;

KernelList sampleKernels();

} // namespace strata::cpu
