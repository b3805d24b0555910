// The CUDA kernels by name: which templates there are, and how each is launched.
//
// Kernels are templates, specialised to the model's shapes when a plan is compiled. What is here
// needs no CUDA: passes choose by it, and the loader checks by it that a plan launches its kernels
// as they were made to be launched.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/kernels/Signatures.h"
#include "codegen/targets/cuda/CudaTarget.h"

namespace strata::cuda {

/// How a command is launched. `rows` is what the code is specialised to; 0: to nothing. Blocks that
/// follow each other in y are a cluster of `clusterY`, of which the code is told when it is
/// compiled.
struct LaunchShape {
  uint64_t gridX = 1, gridY = 1;
  uint32_t clusterY = 1;
  uint32_t threads = 32;
  uint32_t residentBlocks = 1; ///< That a multiprocessor has room for, at least: bounds registers.
  uint32_t sharedBytes = 0;    ///< Dynamic.
  uint32_t rows = 0;
};

/// Value of a constant slot by its name.
using Constants = std::function<uint64_t(std::string_view)>;

bool hasKernel(std::string_view kernel);
std::vector<std::string> kernelNames(); ///< Every kernel, by family.
/// Whether `kernel` is a product that the vendor's library computes: it has no code in the module
/// and no launch of its own.
bool isGemm(std::string_view kernel);

/// The launch of `kernel` in a bucket that gives it at most `rows` rows. `kernel` must exist.
LaunchShape launchShape(std::string_view kernel, uint64_t rows, const Constants &constants,
                        const CudaTarget &target);

/// Bytes of scratch that one head row of `kernel` needs, a multiple of 64: for `sample`, whose
/// `width` is the vocabulary, an adjusted logit and a count for each token; 0 for the others.
uint64_t scratchBytes(std::string_view kernel, uint64_t width);

/// Code of one kernel for one set of constants.
struct Specialisation {
  std::string kernel;              ///< "linear.q4_1"
  std::vector<uint64_t> constants; ///< Those of the constant slots, in the signature's order.
  uint32_t threads = 0;
  uint32_t rows = 0;
  uint32_t clusterY = 1;
  uint32_t residentBlocks = 1;
  uint32_t sharedBytes = 0;

  bool operator==(const Specialisation &) const = default;
};

/// The constant slots that code is made for among `slots`, which are in the signature's order. A
/// null address of an optional slot is none of them.
template <class Slots, class ValueOf>
std::vector<uint64_t> constantValues(const KernelSignature &signature, const Slots &slots,
                                     ValueOf valueOf) {
  std::vector<uint64_t> values;
  for (size_t i = 0; i < signature.slots.size(); ++i)
    if (signature.slots[i].isSpecialised())
      values.push_back(valueOf(slots[i]));
  return values;
}

std::string functionName(uint32_t index);    ///< "k3"
std::string header(std::string_view kernel); ///< "Linear.cuh"
/// The types that the template takes before its constants: `strata::F16, strata::BF16, `.
std::string templateArguments(std::string_view kernel);

} // namespace strata::cuda
