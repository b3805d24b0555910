// Products of many rows, by NVIDIA's matrix library (cuBLASLt), found when a plan first has one: a
// program built with CUDA starts and runs on machines without it.
#pragma once

#include <memory>

#include "runtime/device/Device.h"
#include "runtime/device/cuda/Driver.h"

namespace strata::cuda {

/// A product whose algorithm is chosen: the same bits for the same numbers every time.
class GemmProduct {
public:
  virtual ~GemmProduct() = default;
  /// Puts it on `stream`, which may be captured. Takes no memory. Errors: those of the library.
  virtual Status run(CUstream stream) const = 0;
};

/// The library, used in the context that is current when it is opened; outlives its products.
class GemmLibrary {
public:
  /// Errors: FailedPrecondition (no such library on this machine), those of the library.
  static Result<std::unique_ptr<GemmLibrary>> open();
  virtual ~GemmLibrary() = default;

  /// Chooses the library's first algorithm that needs no more than the workspace; once for all
  /// products of one shape. Errors: Unimplemented (it has none), those of the library.
  virtual Result<std::unique_ptr<GemmProduct>> prepare(const DeviceGemm &gemm) = 0;
};

} // namespace strata::cuda
