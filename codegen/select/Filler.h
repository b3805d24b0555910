// The slots of one selection, each filled by its name in the signature.
#pragma once

#include "codegen/select/Selection.h"

namespace strata {

/// Fills the slots of one selection.
class Filler {
public:
  Filler(mlir::MLIRContext *context, Selection &selection)
      : context(context), selection(selection) {}

  Filler &buffer(llvm::StringRef name, int64_t index) {
    return set(name, ir::BufferSlotAttr::get(context, index));
  }
  Filler &weight(llvm::StringRef name, mlir::FlatSymbolRefAttr weight) {
    return set(name, ir::WeightSlotAttr::get(context, weight));
  }
  Filler &step(llvm::StringRef name, llvm::StringRef field) {
    return set(name, ir::StepSlotAttr::get(context, field));
  }
  Filler &step(llvm::StringRef field) { return step(field, field); }
  Filler &out(llvm::StringRef field) { return set(field, ir::OutSlotAttr::get(context, field)); }
  Filler &table(llvm::StringRef field) {
    return set(field, ir::TableSlotAttr::get(context, field));
  }
  Filler &integer(llvm::StringRef name, int64_t value) {
    return set(name,
               ir::ConstantSlotAttr::get(context, mlir::Builder(context).getI64IntegerAttr(value)));
  }
  Filler &number(llvm::StringRef name, double value) {
    return set(name,
               ir::ConstantSlotAttr::get(context, mlir::Builder(context).getF64FloatAttr(value)));
  }
  Filler &scratch(uint64_t bytes) {
    if (bytes == 0) // most kernels of a GPU have none
      return integer("scratch", 0).integer("scratch_stride", 0);
    set("scratch", ir::ScratchSlotAttr::get(context, static_cast<int64_t>(bytes)));
    return set("scratch_stride", ir::ScratchStrideSlotAttr::get(context));
  }
  /// One component of a paged state and the constants that walk its blocks.
  Filler &state(llvm::StringRef name, mlir::FlatSymbolRefAttr state, llvm::StringRef component,
                int64_t layer) {
    return set(name, ir::StateSlotAttr::get(context, state, component, layer));
  }
  Filler &paging(mlir::FlatSymbolRefAttr state) {
    step("block_table", ("block_table." + state.getValue()).str());
    for (llvm::StringRef constant : {"block_tokens", "block_stride", "max_blocks"})
      set(constant, ir::StateConstantSlotAttr::get(context, state, constant));
    return *this;
  }
  /// One component of a slot state and the step fields that find each sequence's rows and slot.
  Filler &slotState(mlir::FlatSymbolRefAttr state, llvm::StringRef component, int64_t layer) {
    this->state("state", state, component, layer);
    step("block_table", ("block_table." + state.getValue()).str());
    step("valid_sequences").step("query_start").step("row_position");
    return set("block_stride", ir::StateConstantSlotAttr::get(context, state, "block_stride"));
  }
  /// A weight, or 0 where the op has none.
  Filler &optionalWeight(llvm::StringRef name, mlir::FlatSymbolRefAttr symbol) {
    return symbol ? weight(name, symbol) : integer(name, 0);
  }
  Filler &set(llvm::StringRef name, mlir::Attribute value) {
    selection.slots[name] = value;
    return *this;
  }

private:
  mlir::MLIRContext *context;
  Selection &selection;
};

} // namespace strata
