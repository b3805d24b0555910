// H100 and H200: figures measured on an H200.
#include "codegen/targets/cuda/CudaTarget.h"

namespace strata {

const CudaTarget cudaSm90 = {
    .name = "sm_90",
    .compilerName = "sm_90a",
    .computeCapability = 90,
    .bytesPerSecond = 4.66e12,
    .flopsPerSecond = 788e12,
    .multiprocessors = 132,
    .gemmWorkspaceBytes = 32 << 20,
    .sharedBytesPerBlock = 227 * 1024,
    .features = {.dependentLaunch = true,
                 .clusters = true,
                 .bulkCopy = true,
                 .warpgroupMatrix = true},
    .caps = {},
};

} // namespace strata
