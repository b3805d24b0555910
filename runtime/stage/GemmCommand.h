// The product that a planned gemm command asks a device for.
#pragma once

#include <span>
#include <string_view>

#include "runtime/device/Device.h"

namespace strata {

/// `slots` are those of `kernel`, a gemm, with addresses resolved, in its signature's order; the
/// buffer in its workspace slot has `workspaceBytes`.
DeviceGemm gemmOf(std::string_view kernel, std::span<const uint64_t> slots,
                  uint64_t workspaceBytes);

} // namespace strata
