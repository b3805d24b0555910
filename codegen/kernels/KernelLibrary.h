// The kernels of a target, by the target's name: what passes choose from, and what the loader
// checks a plan against.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "codegen/cpu/KernelTable.h"
#include "codegen/targets/cuda/CudaTarget.h"

namespace strata {

class KernelLibrary {
public:
  /// Of `cpu:x86-64-v4` or `cuda:sm_90`; nothing where there is no such target.
  static std::optional<KernelLibrary> of(std::string_view target);

  bool isCpu() const { return gpu_ == nullptr; }
  cpu::Isa isa() const { return isa_; }          ///< Of a CPU.
  const CudaTarget *gpu() const { return gpu_; } ///< Of a GPU, else nullptr.
  std::string_view kind() const { return gpu_ ? "cuda" : "cpu"; }

  bool has(std::string_view kernel) const;
  /// Scratch that one worker of `kernel` needs: cpu::scratchBytes, or on a GPU, where a head row is
  /// a worker, cuda::scratchBytes.
  uint64_t scratchBytes(std::string_view kernel, uint64_t width) const;

  static std::string knownTargets(); ///< For messages: "cpu:x86-64-v3, ...".

private:
  cpu::Isa isa_{};
  const CudaTarget *gpu_ = nullptr;
};

} // namespace strata
