#include "runtime/stage/GemmCommand.h"

#include <algorithm>

#include "codegen/kernels/Signatures.h"

namespace strata {

DeviceGemm gemmOf(std::string_view kernel, std::span<const uint64_t> slots,
                  uint64_t workspaceBytes) {
  std::span<const SlotSpec> specs = findSignature(kernel)->slots;
  auto slot = [&](std::string_view name) {
    return slots[size_t(std::ranges::find(specs, name, &SlotSpec::name) - specs.begin())];
  };
  return {.type = std::string(bufferType(kernel, "x")),
          .yType = std::string(bufferType(kernel, "y")),
          .rows = slot("rows"),
          .columns = slot("columns"),
          .outputs = slot("outputs"),
          .accumulate = slot("accumulate") != 0,
          .x = slot("x"),
          .weight = slot("weight"),
          .bias = slot("bias"),
          .y = slot("y"),
          .workspace = slot("workspace"),
          .workspaceBytes = workspaceBytes};
}

} // namespace strata
