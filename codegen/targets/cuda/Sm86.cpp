// GeForce 30 series, A40 and A10: figures of the largest GeForce card.
#include "codegen/targets/cuda/CudaTarget.h"

namespace strata {

const CudaTarget cudaSm86 = {
    .name = "sm_86",
    .compilerName = "sm_86",
    .computeCapability = 86,
    .bytesPerSecond = 0.85e12,
    .flopsPerSecond = 70e12,
    .multiprocessors = 84,
    .sharedBytesPerBlock = 99 * 1024,
    .features = {},
    .caps = {},
};

} // namespace strata
