// The CPU kernels behind one ABI, by name and instruction set.
//
// A kernel is given its slots (addresses resolved at load, or constants) and a range of its items;
// the device cuts a command's items between workers. Signatures say what each slot is, so that the
// compiler fills them, the loader checks them and a reader knows them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "codegen/cpu/Kernel.h"
#include "runtime/plan/Plan_generated.h"

namespace strata::cpu {

/// One position of a kernel's slot list. A Buffer that is only read may be filled with HandoffIn,
/// one that is only written with HandoffOut. An optional slot may be Constant 0 (a null address).
struct SlotSpec {
  std::string_view name;
  fb::SlotKind kind;
  fb::Access access;
  bool optional = false;
};

/// What a family of kernels (`linear`) takes; members differ by the types after the first dot.
struct Signature {
  std::string_view family;
  std::string_view items; ///< What one item is, for documentation.
  std::span<const SlotSpec> slots;
};

/// The instruction sets that kernels are compiled for, least first.
enum class Isa : uint8_t { X86_64_v3, X86_64_v4 };

std::span<const Signature> signatures();
/// The signature for a kernel name such as `linear.q4_1`; nullptr where the family is unknown.
const Signature *findSignature(std::string_view kernel);
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
