// The slots of a selection in the order of its kernel's signature.
#include "codegen/kernels/Signatures.h"
#include "codegen/select/Selection.h"

using namespace mlir;

namespace strata {

using namespace ir;

FailureOr<ArrayAttr> orderedSlots(Operation *op, const Selection &selection) {
  const KernelSignature *signature = findSignature(selection.kernel);
  if (!signature && isDryRun(op)) {
    size_t buffers = selection.inputs.size() + (selection.result ? 1 : 0);
    SmallVector<Attribute> slots;
    for (size_t k = 0; k < buffers; ++k)
      slots.push_back(BufferSlotAttr::get(op->getContext(), static_cast<int64_t>(k)));
    return ArrayAttr::get(op->getContext(), slots);
  }
  if (!signature)
    return op->emitOpError() << "needs kernel '" << selection.kernel << "', which has no signature";
  SmallVector<Attribute> slots;
  for (const SlotSpec &spec : signature->slots) {
    Attribute slot = selection.slots.lookup(StringRef(spec.name));
    if (!slot)
      return op->emitOpError() << "leaves slot '" << StringRef(spec.name) << "' of kernel '"
                               << selection.kernel << "' empty";
    slots.push_back(slot);
  }
  return ArrayAttr::get(op->getContext(), slots);
}

} // namespace strata
