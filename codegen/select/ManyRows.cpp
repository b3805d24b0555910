#include "codegen/select/ManyRows.h"

#include "codegen/cuda/AttentionShape.h"
#include "codegen/cuda/MatvecShape.h"
#include "codegen/select/Filler.h"
#include "codegen/select/Lookup.h"
#include "runtime/plan/PlanFile.h"

using namespace mlir;

namespace strata {

using namespace ir;

namespace {

/// Rows that the library reads and writes at full speed: it wants 16 bytes at once.
bool isWhole(int64_t elements, Type type) {
  return elements * (type.getIntOrFloatBitWidth() / 8) % 16 == 0;
}

/// Whether the kernel that makes `op`'s result can store it in 16 bits.
bool canNarrow(Operation *op) {
  if (auto norm = dyn_cast<RmsNormOp>(op))
    return !norm.getHeads();
  if (auto attention = dyn_cast<AttentionOp>(op))
    return !attention.getLatent();
  return isa<GatedOp>(op);
}

} // namespace

Type gemmType(Operation *op, const KernelLibrary &library) {
  if (library.isCpu() || !isa<LinearOp, LogitsOp, LatentDownOp, LatentUpOp>(op))
    return {};
  RankedTensorType weight =
      lookupSymbol<WeightOp>(op, op->getAttrOfType<FlatSymbolRefAttr>("weight")).getLayerType();
  Type type = weight.getElementType();
  int64_t rows = cast<RankedTensorType>(op->getOperand(0).getType()).getDimSize(0);
  if (rows <= int64_t{cuda::matvecRows} || !isa<FloatType>(type) ||
      !isWhole(widthOf(op->getOperand(0)), type) || !isWhole(widthOf(op->getResult(0)), type))
    return {};
  return type;
}

Type storedType(Value value, const KernelLibrary &library) {
  Type f32 = Float32Type::get(value.getContext()), common;
  Operation *producer = value.getDefiningOp();
  if (!producer || library.isCpu() || !canNarrow(producer))
    return f32;
  for (Operation *user : value.getUsers()) {
    Type type = gemmType(user, library);
    if (!type || (common && common != type))
      return f32;
    common = type;
  }
  return common ? common : f32;
}

bool areAdjacent(ArrayRef<WeightOp> weights) {
  for (size_t i = 0; i + 1 < weights.size(); ++i) {
    WeightOp weight = weights[i], following = weights[i + 1];
    Operation *next = weight->getNextNode();
    while (next && !isa<WeightOp>(next))
      next = next->getNextNode();
    if (next != following || weight.isTable() || weight.getUnit() != following.getUnit() ||
        weight.getBytes() % int64_t{weightAlignment} != 0)
      return false;
  }
  return true;
}

bool runsAsPrompt(AttentionOp attention, const KernelLibrary &library) {
  auto forward = attention->getParentOfType<ForwardOp>();
  auto state = lookupSymbol<StateOp>(attention, attention.getStateAttr());
  StringRef type = state.findComponent("k").getType();
  if (library.isCpu() || attention.getLatent() || state.findComponent("v").getType() != type ||
      (type != "f16" && type != "bf16") || !forward.getRows() || !forward.getSequences())
    return false;
  int64_t rows = *forward.getRows(), heads = attention.getQueryHeads();
  return rows > int64_t{cuda::matvecRows} &&
         (rows > int64_t{cuda::attentionSplitRows} || *forward.getSequences() < rows) &&
         cuda::hasAttentionPrompt(static_cast<uint64_t>(heads / attention.getKvHeads()),
                                  static_cast<uint64_t>(attention.keyWidth()),
                                  static_cast<uint64_t>(widthOf(attention.getResult()) / heads));
}

Selections selectGemm(Value input, ArrayRef<FlatSymbolRefAttr> weights, Type type,
                      RankedTensorType resultType, const SelectionContext &where) {
  MLIRContext *context = input.getContext();
  auto rows = cast<RankedTensorType>(input.getType());
  Selections selections;
  if (storedType(input, where.library) != type) {
    Selection &convert = selections.emplace_back();
    convert.kernel = "convert." + typeName(type);
    convert.inputs = {input};
    convert.result = rows.clone(type);
    convert.label = "convert";
    convert.items =
        where.headRows ? ItemsAttr::get(context, 0, 0, 1, 0) : ItemsAttr::get(context, 1, 0, 0, 0);
    Filler(context, convert).buffer("x", 0).buffer("y", 1).integer("width", widthOf(input));
  }
  Selection &gemm = selections.emplace_back();
  gemm.kernel = "gemm." + typeName(type);
  if (!resultType.getElementType().isF32())
    gemm.kernel += "." + typeName(resultType.getElementType());
  gemm.inputs = {selections.size() > 1 ? Value() : input};
  gemm.result = resultType;
  gemm.workspace = RankedTensorType::get(
      static_cast<int64_t>(where.library.gpu()->gemmWorkspaceBytes), IntegerType::get(context, 8));
  gemm.items = ItemsAttr::get(context, 0, 0, 0, 1);
  Filler filler(context, gemm);
  filler.buffer("x", 0)
      .buffer("y", 1)
      .buffer("workspace", 2)
      .integer("bias", 0)
      .integer("rows", rows.getDimSize(0))
      .integer("columns", widthOf(input))
      .integer("outputs", resultType.getShape().back())
      .integer("accumulate", 0);
  constexpr StringLiteral slots[] = {"weight", "weight_2", "weight_3"};
  for (auto [index, slot] : llvm::enumerate(slots))
    if (index < weights.size())
      filler.weight(slot, weights[index]);
    else
      filler.integer(slot, 0);
  return selections;
}

} // namespace strata
