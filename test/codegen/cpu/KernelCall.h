// Calls a kernel with its slots given by name, as the signature lists them.
#pragma once

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "codegen/cpu/KernelTable.h"

namespace strata::cpu {

/// What a slot holds: an address, a whole number, or the bits of an F64.
class SlotValue {
public:
  template <class T> SlotValue(T *address) : bits(reinterpret_cast<uint64_t>(address)) {}
  template <class T> SlotValue(const std::vector<T> &values) : SlotValue(values.data()) {}
  template <class T>
    requires std::is_integral_v<T>
  SlotValue(T value) : bits(uint64_t(value)) {}
  SlotValue(double value) : bits(std::bit_cast<uint64_t>(value)) {}
  SlotValue(std::nullptr_t) : bits(0) {}

  uint64_t bits;
};

/// A kernel of one instruction set with its slots filled. Throws where a name is not in the
/// signature, a slot is left out or the kernel does not exist: a test that asks for it fails.
class KernelCall {
public:
  KernelCall(std::string_view kernel, Isa isa,
             const std::vector<std::pair<std::string_view, SlotValue>> &values)
      : function_(findKernel(kernel, isa)) {
    const KernelSignature *signature = findSignature(kernel);
    if (!function_ || !signature)
      throw std::invalid_argument(fmt::format("no kernel '{}'", kernel));
    slots_.resize(signature->slots.size());
    std::vector<bool> filled(slots_.size());
    for (auto [name, value] : values) {
      size_t index = 0;
      while (index < slots_.size() && signature->slots[index].name != name)
        ++index;
      if (index == slots_.size())
        throw std::invalid_argument(fmt::format("kernel '{}' has no slot '{}'", kernel, name));
      slots_[index] = value.bits;
      filled[index] = true;
    }
    for (size_t i = 0; i < slots_.size(); ++i)
      if (!filled[i] && !signature->slots[i].optional)
        throw std::invalid_argument(
            fmt::format("kernel '{}': slot '{}' is not filled", kernel, signature->slots[i].name));
  }

  void run(uint32_t begin, uint32_t end, uint32_t worker = 0) const {
    function_(slots_.data(), begin, end, worker);
  }

private:
  KernelFunction function_;
  std::vector<uint64_t> slots_;
};

/// The instruction sets that this machine can run.
inline std::vector<Isa> runnableIsas() {
  std::vector<Isa> isas;
  for (Isa isa : {Isa::X86_64_v3, Isa::X86_64_v4})
    if (hostRuns(isa))
      isas.push_back(isa);
  return isas;
}

/// Normally distributed values, the same for the same seed.
inline std::vector<float> randomFloats(size_t count, uint32_t seed, float deviation = 1.0f) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> distribution(0.0f, deviation);
  std::vector<float> values(count);
  for (float &value : values)
    value = distribution(generator);
  return values;
}

} // namespace strata::cpu
