#include "ir/Strata.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#define GET_ATTRDEF_CLASSES
#include "ir/StrataAttrs.cpp.inc"

namespace strata::ir {

void StrataDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ir/StrataAttrs.cpp.inc"
      >();
}

Attribute SpaceAttr::parse(AsmParser &parser, Type) {
  StringRef name;
  if (parser.parseLess() || parser.parseKeyword(&name) || parser.parseGreater())
    return {};
  return get(parser.getContext(), name);
}

void SpaceAttr::print(AsmPrinter &printer) const { printer << "<" << getName() << ">"; }

LogicalResult SourcePartAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t first,
                                     int64_t of) {
  if (first >= 0 && first < of)
    return success();
  return emitError() << "row " << first << " of every " << of << " cannot be the first taken";
}

LogicalResult LayerRangeAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t first,
                                     int64_t end, int64_t of) {
  if (first >= 0 && first < end && end <= of)
    return success();
  return emitError() << "layers " << first << " to " << end << " of " << of << " are no range";
}

LogicalResult IdentityAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t width) {
  // F32 counts no further.
  if (width >= 1 && width <= int64_t(1) << 24)
    return success();
  return emitError() << "an identity has 1 to " << (int64_t(1) << 24) << " elements, not " << width;
}

// Numbers print as F64 attributes do, so that every bit survives the text.
Attribute RopeFrequenciesAttr::parse(AsmParser &parser, Type) {
  Type f64 = Float64Type::get(parser.getContext());
  FloatAttr theta, factor = FloatAttr::get(f64, 1), low = factor, high = factor;
  FloatAttr original = FloatAttr::get(f64, 0), betaFast = FloatAttr::get(f64, 32),
            betaSlow = factor;
  int64_t width = 0;
  std::string scaling = "none";
  auto parseField = [&]() -> ParseResult {
    StringRef key;
    SMLoc location = parser.getCurrentLocation();
    if (parser.parseKeyword(&key) || parser.parseEqual())
      return failure();
    if (key == "width")
      return parser.parseInteger(width);
    if (key == "scaling")
      return parser.parseString(&scaling);
    FloatAttr *number = llvm::StringSwitch<FloatAttr *>(key)
                            .Case("theta", &theta)
                            .Case("factor", &factor)
                            .Case("low_frequency_factor", &low)
                            .Case("high_frequency_factor", &high)
                            .Case("original_context", &original)
                            .Case("beta_fast", &betaFast)
                            .Case("beta_slow", &betaSlow)
                            .Default(nullptr);
    if (!number)
      return parser.emitError(location) << "unknown rope parameter '" << key << "'";
    return parser.parseAttribute(*number, f64);
  };
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, parseField))
    return {};
  if (!theta) {
    parser.emitError(location) << "rope frequencies need theta";
    return {};
  }
  return parser.getChecked<RopeFrequenciesAttr>(parser.getContext(), theta, width, scaling, factor,
                                                low, high, original, betaFast, betaSlow);
}

void RopeFrequenciesAttr::print(AsmPrinter &printer) const {
  auto number = [&](StringRef key, FloatAttr value) {
    printer << ", " << key << " = ";
    printer.printAttributeWithoutType(value);
  };
  printer << "<width = " << getWidth();
  number("theta", getTheta());
  printer << ", scaling = \"" << getScaling() << "\"";
  if (getScaling() != "none") {
    number("factor", getFactor());
    number("low_frequency_factor", getLowFrequencyFactor());
    number("high_frequency_factor", getHighFrequencyFactor());
    number("original_context", getOriginalContext());
    number("beta_fast", getBetaFast());
    number("beta_slow", getBetaSlow());
  }
  printer << ">";
}

LogicalResult RopeFrequenciesAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                          FloatAttr theta, int64_t width, StringRef scaling,
                                          FloatAttr factor, FloatAttr low, FloatAttr high,
                                          FloatAttr originalContext, FloatAttr betaFast,
                                          FloatAttr betaSlow) {
  for (FloatAttr number : {theta, factor, low, high, originalContext, betaFast, betaSlow})
    if (!number.getValue().isFinite())
      return emitError() << "rope parameters must be finite";
  if (!(theta.getValueAsDouble() > 0))
    return emitError() << "rope theta must be above 0";
  if (width <= 0 || width % 2 != 0)
    return emitError() << "rope width " << width << " is not a positive even number";
  if (scaling != "none" && scaling != "linear" && scaling != "llama3" && scaling != "yarn")
    return emitError() << "unknown rope scaling '" << scaling << "'";
  if (!(factor.getValueAsDouble() > 0))
    return emitError() << "rope factor must be above 0";
  if ((scaling == "llama3" || scaling == "yarn") && !(originalContext.getValueAsDouble() > 0))
    return emitError() << "rope scaling '" << scaling << "' needs its original context";
  // The ramp of llama3 divides by the factors' distance; that of yarn takes logarithms.
  if (scaling == "llama3" &&
      !(low.getValueAsDouble() > 0 && low.getValueAsDouble() < high.getValueAsDouble()))
    return emitError() << "rope scaling 'llama3' needs 0 < low_frequency_factor < "
                          "high_frequency_factor";
  if (scaling == "yarn" && !(theta.getValueAsDouble() > 1 && betaSlow.getValueAsDouble() > 0 &&
                             betaFast.getValueAsDouble() >= betaSlow.getValueAsDouble()))
    return emitError() << "rope scaling 'yarn' needs theta above 1 and beta_fast >= beta_slow > 0";
  return success();
}

LogicalResult ConstantSlotAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                       Attribute value) {
  if (auto integer = dyn_cast<IntegerAttr>(value))
    if (integer.getType().isInteger(64))
      return success();
  if (auto number = dyn_cast<FloatAttr>(value))
    if (number.getType().isF64())
      return success();
  return emitError() << "a constant slot holds an i64 or an f64, not " << value;
}

} // namespace strata::ir
