// What every kernel takes, whatever the device: kernels of all targets are given a list of 8-byte
// slots (addresses resolved at load, or constants). Signatures say what each slot is, so that the
// compiler fills them, the loader checks them and a reader knows them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/plan/Plan_generated.h"

namespace strata {

/// One position of a kernel's slot list. A Buffer that is only read may be filled with HandoffIn,
/// one that is only written with HandoffOut. An optional slot may be Constant 0 (a null address).
struct SlotSpec {
  std::string_view name;
  fb::SlotKind kind;
  fb::Access access;
  bool optional = false;
  bool negative = false; ///< A weight whose values are below 0, else what is computed grows.
  bool varies = false;   ///< A constant of the command, not of the kernel, which reads its slot.

  /// Whether a GPU's code is made for the slot's value.
  bool isSpecialised() const { return kind == fb::SlotKind::Constant && !varies; }
};

/// What a family of kernels (`linear`) takes; members differ by the types after the first dot.
struct KernelSignature {
  std::string_view family;
  std::string_view items; ///< What one item is, for documentation.
  std::span<const SlotSpec> slots;
};

std::span<const KernelSignature> signatures();
/// The signature for a kernel name such as `linear.q4_1`; nullptr where the family is unknown.
const KernelSignature *findSignature(std::string_view kernel);

/// Part `index` of a name such as `attention.f16.f32`, whose part 0 is the family; empty past the
/// last.
std::string_view namePart(std::string_view kernel, uint32_t index);

/// The element type of a buffer slot: what a library's product reads is stored in the type of its
/// weights, which the kernel's name then says.
std::string_view bufferType(std::string_view kernel, std::string_view slot);

/// The element type of a weight slot or of a state slot's component.
std::string_view weightType(std::string_view kernel, std::string_view slot);
std::string_view stateType(std::string_view kernel, std::string_view slot);

/// Outputs in one item of `linear`, on every device.
constexpr uint32_t linearItemOutputs = 16;

} // namespace strata
