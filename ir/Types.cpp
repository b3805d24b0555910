#include "ir/Strata.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include "runtime/base/CheckedMath.h"

using namespace mlir;

#define GET_TYPEDEF_CLASSES
#include "ir/StrataTypes.cpp.inc"

namespace strata::ir {

void StrataDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "ir/StrataTypes.cpp.inc"
      >();
}

Type QuantType::parse(AsmParser &parser) {
  StringRef name;
  if (parser.parseLess() || parser.parseKeyword(&name) || parser.parseGreater())
    return {};
  return parser.getChecked<QuantType>(parser.getContext(), name);
}

void QuantType::print(AsmPrinter &printer) const { printer << "<" << getName() << ">"; }

LogicalResult QuantType::verify(function_ref<InFlightDiagnostic()> emitError, StringRef name) {
  const WeightType *type = findWeightType({name.data(), name.size()});
  if (!type)
    return emitError() << "no weight type is called '" << name << "'";
  if (type->isPlain() && (name == "f32" || name == "f16" || name == "bf16"))
    return emitError() << "'" << name << "' is a builtin element type, not a quantised one";
  return success();
}

const WeightType *weightTypeOf(Type elementType) {
  if (auto quant = dyn_cast<QuantType>(elementType))
    return findWeightType({quant.getName().data(), quant.getName().size()});
  if (elementType.isF32())
    return findWeightType("f32");
  if (elementType.isF16())
    return findWeightType("f16");
  if (elementType.isBF16())
    return findWeightType("bf16");
  return nullptr;
}

Type elementTypeFor(MLIRContext *context, const WeightType &type) {
  if (type.name == "f32")
    return Float32Type::get(context);
  if (type.name == "f16")
    return Float16Type::get(context);
  if (type.name == "bf16")
    return BFloat16Type::get(context);
  return QuantType::get(context, StringRef(type.name.data(), type.name.size()));
}

std::optional<int64_t> weightBytes(RankedTensorType type) {
  const WeightType *weightType = weightTypeOf(type.getElementType());
  if (!weightType || !type.hasStaticShape())
    return std::nullopt;
  uint64_t elements = 1;
  for (int64_t dimension : type.getShape()) {
    auto product = checkedMul<uint64_t>(elements, static_cast<uint64_t>(dimension));
    if (!product)
      return std::nullopt;
    elements = *product;
  }
  uint64_t innermost = type.getRank() ? static_cast<uint64_t>(type.getShape().back()) : 1;
  if (innermost % weightType->blockElements != 0)
    return std::nullopt;
  auto bytes = weightType->bytesFor(elements);
  if (!bytes || *bytes > static_cast<uint64_t>(INT64_MAX))
    return std::nullopt;
  return static_cast<int64_t>(*bytes);
}

int64_t bufferBytes(RankedTensorType type) {
  return alignUp(type.getNumElements() * (type.getElementTypeBitWidth() / 8), int64_t{64});
}

RankedTensorType activationType(MLIRContext *context, int64_t rows, int64_t width,
                                StringRef space) {
  return RankedTensorType::get({rows, width}, Float32Type::get(context),
                               SpaceAttr::get(context, space));
}

} // namespace strata::ir
