// A100: figures of the 80 GB card.
#include "codegen/targets/cuda/CudaTarget.h"

namespace strata {

const CudaTarget cudaSm80 = {
    .name = "sm_80",
    .compilerName = "sm_80",
    .computeCapability = 80,
    .bytesPerSecond = 1.8e12,
    .flopsPerSecond = 250e12,
    .multiprocessors = 108,
    .sharedBytesPerBlock = 163 * 1024,
    .features = {},
    .caps = {},
};

} // namespace strata
