// A GPU's driver over the host's memory, to fail where a test wants it. It is linked as
// libcuda.so.1, so it is the one that openDriver() finds, on machines with a real one too.
#pragma once

#include <cstdint>
#include <string>

#include <cuda.h>

namespace strata::test {

struct DriverFault {
  std::string call;    ///< "cuMemAlloc"
  uint32_t number = 0; ///< Which call of it fails, counted from 0; it alone.
  CUresult result = CUDA_ERROR_UNKNOWN;
};

/// One GPU of architecture 90, as it is after a restart, with so much memory. Its modules have the
/// functions `twice` (doubles the valid ones of up to 32 floats) and `faulty`, which reads what is
/// not its own: that comes up in a later call, as from a GPU, and in every call from then on.
void resetDriver(uint64_t memoryBytes);

void injectFault(DriverFault fault);
/// Whether the fault has struck; none strikes after it.
bool removeFault();

/// Contexts, streams, events, modules, graphs and memory of both kinds that are held.
int64_t driverObjects();

} // namespace strata::test
