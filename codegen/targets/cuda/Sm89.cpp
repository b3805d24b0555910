// GeForce 40 series and L40: figures of the L40.
#include "codegen/targets/cuda/CudaTarget.h"

namespace strata {

const CudaTarget cudaSm89 = {
    .name = "sm_89",
    .compilerName = "sm_89",
    .computeCapability = 89,
    .bytesPerSecond = 0.9e12,
    .flopsPerSecond = 160e12,
    .multiprocessors = 142,
    .sharedBytesPerBlock = 99 * 1024,
    .features = {},
    .caps = {},
};

} // namespace strata
