// What a target can do: the device strings that people write and the rates that cost models use.
#pragma once

#include <cstdint>
#include <string>

#include "codegen/kernels/KernelLibrary.h"
#include "runtime/base/Status.h"

namespace strata {

struct Target {
  std::string name; ///< Canonical: `cpu:x86-64-v4`, `cuda:sm_90`.
  KernelLibrary library;
  double bytesPerSecond; ///< Sustained read bandwidth.
  double flopsPerSecond; ///< Sustained rate of the matrix kernels.
  int64_t launchRows;    ///< A launch costs as much as this many rows, beside its rows.
  int64_t paddedRowCost; ///< An empty row of a bucket costs as much as this many rows.
};

/// A device as `--devices` names it: a target and how much of its memory a plan may take.
struct DeviceRequest {
  Target target;
  uint64_t bytes = 0; ///< 0: not limited.
};

/// Parses `cpu[:ISA][:SIZE]` (`cpu`, `cpu:x86-64-v3`, `cpu:8GiB`, `cpu:x86-64-v4:512MiB`; without
/// an instruction set, this host's best) or `cuda:ARCH[:SIZE]` (`cuda:sm_90:139GiB`). Errors:
/// InvalidArgument.
Result<DeviceRequest> parseDevice(const std::string &text);

/// A target by its canonical name. Errors as parseDevice.
Result<Target> findTarget(const std::string &name);

/// Parses `123`, `64KiB`, `512MiB`, `1.5GiB`. Errors: InvalidArgument.
Result<uint64_t> parseSize(const std::string &text);

} // namespace strata
