#include "codegen/write/StageKernels.h"

#include <algorithm>

#include "codegen/cuda/compile/Nvrtc.h"
#include "codegen/cuda/compile/Program.h"

namespace strata {

uint32_t StageKernels::find(std::string kernel, const KernelSignature *signature,
                            const std::vector<fb::Slot> &slots, uint64_t rows) {
  cuda::Specialisation wanted{std::move(kernel), {}};
  if (!library_.isCpu() && signature) {
    wanted.constants =
        cuda::constantValues(*signature, slots, [](const fb::Slot &slot) { return slot.offset(); });
    auto constant = [&](std::string_view name) {
      auto found = std::find_if(signature->slots.begin(), signature->slots.end(),
                                [&](const SlotSpec &slot) { return slot.name == name; });
      return slots[static_cast<size_t>(found - signature->slots.begin())].offset();
    };
    // Grids were fixed by the same function from the same rows.
    cuda::LaunchShape shape = cuda::launchShape(wanted.kernel, rows, constant, *library_.gpu());
    wanted.threads = shape.threads;
    wanted.rows = shape.rows;
    wanted.clusterY = shape.clusterY;
    wanted.residentBlocks = shape.residentBlocks;
    wanted.sharedBytes = shape.sharedBytes;
  }
  auto found = std::find(kernels_.begin(), kernels_.end(), wanted);
  if (found == kernels_.end()) {
    kernels_.push_back(std::move(wanted));
    found = std::prev(kernels_.end());
  }
  return static_cast<uint32_t>(found - kernels_.begin());
}

Result<StageKernels::Tables> StageKernels::build(flatbuffers::FlatBufferBuilder &builder,
                                                 bool hasCode) const {
  std::vector<flatbuffers::Offset<fb::Kernel>> tables;
  for (const cuda::Specialisation &kernel : kernels_) {
    auto name = builder.CreateString(kernel.kernel);
    if (library_.isCpu()) {
      tables.push_back(fb::CreateKernel(builder, name));
      continue;
    }
    flatbuffers::Offset<flatbuffers::String> function;
    if (!cuda::isGemm(kernel.kernel))
      function = builder.CreateString(cuda::functionName(static_cast<uint32_t>(tables.size())));
    auto constants = builder.CreateVector(kernel.constants);
    tables.push_back(fb::CreateKernel(builder, name, function, kernel.threads, kernel.sharedBytes,
                                      kernel.rows, constants));
  }
  Tables result;
  result.kernels = builder.CreateVector(tables);
  if (library_.isCpu() || !hasCode)
    return result;
  const CudaTarget &target = *library_.gpu();
  STRATA_ASSIGN_OR_RETURN(std::vector<uint8_t> module,
                          cuda::compileModule(cuda::moduleSource(kernels_, target), target));
  builder.ForceVectorAlignment(module.size(), 1, 32);
  result.module = builder.CreateVector(module);
  return result;
}

} // namespace strata
