// The kernels of one stage as the plan lists them: on a CPU names, on a GPU code for each set of
// constants and rows that a command has, in one module.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <flatbuffers/flatbuffers.h>

#include "codegen/cuda/KernelTable.h"
#include "codegen/kernels/KernelLibrary.h"
#include "runtime/base/Status.h"
#include "runtime/plan/Plan_generated.h"

namespace strata {

class StageKernels {
public:
  explicit StageKernels(const KernelLibrary &library) : library_(library) {}

  /// The number of the kernel of a command in a forward of `rows` rows. `signature` is null in a
  /// dry run, for a kernel that no target has.
  uint32_t find(std::string kernel, const KernelSignature *signature,
                const std::vector<fb::Slot> &slots, uint64_t rows);

  struct Tables {
    flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::Kernel>>> kernels;
    flatbuffers::Offset<flatbuffers::Vector<uint8_t>> module; ///< Null on a CPU.
  };
  /// `hasCode`: a GPU's module is compiled. Errors: those of cuda::compileModule.
  Result<Tables> build(flatbuffers::FlatBufferBuilder &builder, bool hasCode) const;

private:
  KernelLibrary library_;
  std::vector<cuda::Specialisation> kernels_; ///< On a CPU with a name alone.
};

} // namespace strata
