// One command of a kernel on random memory, the same for a GPU and the CPU.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codegen/kernels/Signatures.h"

namespace strata::cuda {

using Bytes = std::vector<std::byte>;

/// One invocation: what lies in each slot, the same for both devices.
struct Invocation {
  const KernelSignature *signature;
  std::string kernel;
  uint64_t rows, valid;
  std::vector<Bytes> memory; ///< Empty for constants.
  Bytes counts;              ///< The step's valid rows.

  std::string part(uint32_t index) const { return std::string(namePart(kernel, index)); }
  /// Whether activations become whole numbers of 16 bits (codegen/cuda/StreamOperand.cuh).
  bool roundsActivations() const;
  bool slotState() const { return signature->family == "conv" || signature->family == "ssm_scan"; }
  bool keepsFloats(const SlotSpec &slot) const {
    return slot.kind == fb::SlotKind::State && slotState();
  }
  uint64_t constant(std::string_view name) const;
  std::string_view typeOf(const SlotSpec &slot) const { return bufferType(kernel, slot.name); }
  std::string stateType(const SlotSpec &slot) const;
  Bytes content(const SlotSpec &slot) const;
  Bytes buffer(std::string_view name) const;
  Bytes routingOrLists(std::string_view name) const;
  Bytes expertLists() const;
  Bytes weight(std::string_view name) const;
  Bytes field(std::string_view name) const;
};

/// F32 numbers in a type of 16 bits, or as they are.
Bytes narrowed(Bytes wide, std::string_view type);
std::vector<float> numbersOf(const Bytes &bytes, std::string_view type);

template <class T> Bytes bytesOf(const std::vector<T> &values) {
  auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

/// Runs in place what the CPU has for the kernel; buffers of 16 bits are widened for it, and what
/// it has made of them is rounded.
void runOnCpu(Invocation &invocation);

} // namespace strata::cuda
