#include "codegen/cpu/KernelTable.h"

#include "codegen/cpu/Sample.h"
#include "runtime/base/CheckedMath.h"
#include "runtime/sampling/Sampler.h"

namespace strata::cpu {

// One definition each, in Families.cpp as compiled for that instruction set.
namespace x86_64_v3 {
KernelList familyAt(uint32_t index);
}
namespace x86_64_v4 {
KernelList familyAt(uint32_t index);
}

namespace {

static_assert(linearTileOutputs == linearItemOutputs);

/// Calls `visit` for every kernel of `isa` until it returns true.
template <class Visit> void visitKernels(Isa isa, Visit visit) {
  auto visitList = [&](KernelList list) {
    for (uint32_t i = 0; i < list.count; ++i)
      if (visit(list.entries[i]))
        return true;
    return false;
  };
  auto *familyAt = isa == Isa::X86_64_v4 ? x86_64_v4::familyAt : x86_64_v3::familyAt;
  for (uint32_t family = 0;; ++family) {
    KernelList list = familyAt(family);
    if (list.count == 0)
      break;
    if (visitList(list))
      return;
  }
  visitList(sampleKernels());
}

} // namespace

KernelFunction findKernel(std::string_view kernel, Isa isa) {
  KernelFunction found = nullptr;
  visitKernels(isa, [&](const KernelEntry &entry) {
    if (entry.name == kernel)
      found = entry.function;
    return found != nullptr;
  });
  return found;
}

std::vector<std::string_view> kernelNames(Isa isa) {
  std::vector<std::string_view> names;
  visitKernels(isa, [&](const KernelEntry &entry) {
    names.push_back(entry.name);
    return false;
  });
  return names;
}

uint64_t scratchBytes(std::string_view kernel, uint64_t width) {
  std::string_view family = kernel.substr(0, kernel.find('.'));
  if (family == "router") // probabilities, scores and, of at most as many groups, scores
    return alignUp(3 * width * sizeof(float), 64);
  if (family == "linear" || family == "head_linear" || family == "expert_up" ||
      family == "expert_down")
    return alignUp(linearTileOutputs * width * sizeof(float), 64);
  if (family == "sample")
    return alignUp(width * sizeof(SamplingScratch), 64);
  return 0;
}

std::string_view isaName(Isa isa) { return isa == Isa::X86_64_v4 ? "x86-64-v4" : "x86-64-v3"; }

bool parseIsa(std::string_view name, Isa &isa) {
  for (Isa candidate : {Isa::X86_64_v3, Isa::X86_64_v4})
    if (isaName(candidate) == name) {
      isa = candidate;
      return true;
    }
  return false;
}

bool hostRuns(Isa isa) {
  return isa == Isa::X86_64_v4 ? __builtin_cpu_supports("x86-64-v4")
                               : __builtin_cpu_supports("x86-64-v3");
}

bool hostRunsAny() { return hostRuns(Isa::X86_64_v3); }

Isa hostIsa() { return hostRuns(Isa::X86_64_v4) ? Isa::X86_64_v4 : Isa::X86_64_v3; }

} // namespace strata::cpu
