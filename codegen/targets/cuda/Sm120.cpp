// GeForce 50 series and RTX PRO: figures of the largest GeForce card.
#include "codegen/targets/cuda/CudaTarget.h"

namespace strata {

const CudaTarget cudaSm120 = {
    .name = "sm_120",
    .compilerName = "sm_120",
    .computeCapability = 120,
    .bytesPerSecond = 1.6e12,
    .flopsPerSecond = 200e12,
    .multiprocessors = 170,
    .gemmWorkspaceBytes = 12 << 20,
    .sharedBytesPerBlock = 99 * 1024,
    .features = {.dependentLaunch = true, .clusters = true, .bulkCopy = true},
    .caps = {},
};

} // namespace strata
