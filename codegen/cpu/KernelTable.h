// The CPU kernels behind one ABI, by name and instruction set.
//
// A kernel is given its slots (addresses resolved at load, or constants) and a range of its items;
// the device cuts a command's items between workers.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "codegen/cpu/Kernel.h"
#include "codegen/kernels/Signatures.h"

namespace strata::cpu {

/// The instruction sets that kernels are compiled for, least first.
enum class Isa : uint8_t { X86_64_v3, X86_64_v4 };

/// nullptr where no such kernel exists for `isa`.
KernelFunction findKernel(std::string_view kernel, Isa isa);
std::vector<std::string_view> kernelNames(Isa isa); ///< Every kernel of `isa`, by family.

/// Bytes of scratch that one worker of `kernel` needs, a multiple of 64: the least value of its
/// `scratch_stride`. `width` is the columns of a `linear`, `head_linear`, `expert_up` or
/// `expert_down`, the experts of a `router`, the vocabulary of `sample`; 0 for kernels without
/// scratch, whatever `width`.
uint64_t scratchBytes(std::string_view kernel, uint64_t width);

std::string_view isaName(Isa isa); ///< `x86-64-v3`, `x86-64-v4`: the spelling of targets.
bool parseIsa(std::string_view name, Isa &isa);
Isa hostIsa();          ///< The best that this CPU runs.
bool hostRuns(Isa isa); ///< Whether this CPU has every instruction of `isa`.
bool hostRunsAny();     ///< False below x86-64-v3 (AVX2, FMA, F16C): such CPUs are refused.

} // namespace strata::cpu
