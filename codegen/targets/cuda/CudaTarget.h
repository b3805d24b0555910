// NVIDIA GPUs as targets: one file an architecture, with what cost models, kernels and the loader
// need to know of it. Rates are those of the architecture's largest card; only ratios between
// layers matter to the partition.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace strata {

struct CudaFeatures {
  bool dependentLaunch = false; ///< Programmatic dependent launch: griddepcontrol.
  bool clusters = false;        ///< Blocks that read each other's shared memory.
  bool bulkCopy = false;        ///< The tensor memory accelerator: cp.async.bulk.
  bool warpgroupMatrix = false; ///< wgmma.
};

/// What the driver takes that no plan can compute: of code, graphs and stacks the most that a boot
/// accepts, together at most 256 MiB a stage.
struct CudaCaps {
  uint64_t moduleBytes = 32ull << 20;      ///< Code and constants of the plan's kernels.
  uint64_t libraryBytes = 32ull << 20;     ///< Kernels and handles of cuBLASLt.
  uint64_t graphBytes = 96ull << 20;       ///< Instantiated graphs.
  uint64_t localMemoryBytes = 96ull << 20; ///< Stacks of the kernels' threads.
  uint64_t contextBytes = 640ull << 20; ///< Expected of the driver's context; no boot fails by it.
  uint64_t floorBytes = 64ull << 20;    ///< Left free, so that a boot is never a near miss.
};

struct CudaTarget {
  std::string_view name;         ///< `sm_90`: what follows `cuda:`.
  std::string_view compilerName; ///< What the code is compiled for: `sm_90a`.
  uint32_t computeCapability;    ///< 90
  double bytesPerSecond;         ///< Sustained read bandwidth.
  double flopsPerSecond;         ///< Sustained rate of the matrix units on 16-bit inputs.
  uint32_t multiprocessors;
  uint64_t gemmWorkspaceBytes = 4ull << 20; ///< What the vendor's library is given for a product.
  uint32_t sharedBytesPerBlock;             ///< Most dynamic shared memory of a block.
  CudaFeatures features;
  CudaCaps caps;
};

extern const CudaTarget cudaSm80, cudaSm86, cudaSm89, cudaSm90, cudaSm120;

std::span<const CudaTarget *const> cudaTargets();
/// By the name of a target, `cuda:sm_90`; nullptr where it is none.
const CudaTarget *findCudaTarget(std::string_view target);

} // namespace strata
