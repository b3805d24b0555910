// Verifiers and assembly of the structure: model, weights, states, forwards, layers.
#include "ir/Strata.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

#include "runtime/base/CheckedMath.h"

using namespace mlir;

namespace strata::ir {

// Widths and tokens are i32 in the step; with these bounds bytes of rows fit 64 bits wherever they
// are multiplied.
constexpr int64_t maxWidth = INT32_MAX, maxTokens = int64_t(1) << 30;
constexpr int64_t maxBucketRows = int64_t(1) << 20, maxSequenceCount = 1 << 16;
constexpr int64_t maxLayers = 1 << 16;

LogicalResult ModelOp::verify() {
  auto within = [&](StringRef name, int64_t value, int64_t least, int64_t most) -> LogicalResult {
    if (value < least || value > most)
      return emitOpError() << name << " is " << value << ", must be " << least << " to " << most;
    return success();
  };
  if (failed(within("hidden", getHidden(), 1, maxWidth)) ||
      failed(within("layers", getLayers(), 0, maxLayers)) ||
      failed(within("vocabulary", getVocabulary(), 1, maxWidth)) ||
      failed(within("max_context", getMaxContext(), 1, maxTokens)) ||
      failed(within("max_sequences", getMaxSequences(), 1, maxSequenceCount)) ||
      failed(within("max_rows", getMaxRows(), 1, maxBucketRows)))
    return failure();
  if (getDevices().empty())
    return emitOpError() << "names no device";
  if (!getDeviceBytes().empty() && getDeviceBytes().size() != getDevices().size())
    return emitOpError() << getDeviceBytes().size() << " device sizes for " << getDevices().size()
                         << " devices";
  if (auto split = getSplit(); split && split->size() != getDevices().size())
    return emitOpError() << "split has " << split->size() << " entries for " << getDevices().size()
                         << " devices";
  if (auto buckets = getBuckets()) {
    if (buckets->size() % 2 != 0)
      return emitOpError() << "buckets are pairs of rows and sequences, found " << buckets->size()
                           << " numbers";
    int64_t largest = 0;
    for (size_t i = 0; i < buckets->size(); i += 2) {
      largest = std::max(largest, (*buckets)[i]);
      if ((*buckets)[i] < 1 || (*buckets)[i + 1] < 1 || (*buckets)[i + 1] > (*buckets)[i])
        return emitOpError() << "bucket of " << (*buckets)[i] << " rows and " << (*buckets)[i + 1]
                             << " sequences: at least one of each, and no more sequences than rows";
    }
    // Handoffs and carried rows are sized by max_rows.
    if (largest != getMaxRows())
      return emitOpError() << "max_rows is " << getMaxRows() << " but the largest bucket has "
                           << largest << " rows";
  }
  return success();
}

LogicalResult WeightOp::verify() {
  RankedTensorType type = getTensorType();
  if (!type.hasStaticShape())
    return emitOpError() << "has a dynamic shape " << type;
  const WeightType *weightType = weightTypeOf(type.getElementType());
  if (!weightType)
    return emitOpError() << "element type " << type.getElementType()
                         << " is not f32, f16, bf16 or !strata.quant";
  if (type.getRank() == 0 || type.getRank() > 4)
    return emitOpError() << "has rank " << type.getRank() << ", must be 1 to 4";
  for (int64_t dimension : type.getShape())
    if (dimension < 1 || dimension > maxWidth)
      return emitOpError() << "has a dimension of " << dimension << ", must be 1 to " << maxWidth;
  if (isTable() && failed(verifyTable()))
    return failure();
  // Of a table, with room for what aligns its layers.
  if (!weightBytes(type) || (isTable() && *weightBytes(type) > INT64_MAX / 2))
    return emitOpError() << "rows of " << type.getShape().back()
                         << " elements are no whole number of blocks of "
                         << weightType->blockElements << " ("
                         << StringRef(weightType->name.data(), weightType->name.size())
                         << "), or the size overflows";
  if ((getPlus() || getMap()) && (getComputed() || !type.getElementType().isF32()))
    return emitOpError() << (getPlus() ? "adds to" : "maps")
                         << " a weight that is not a stored f32 one";
  if (getMap() && *getMap() != "neg_exp")
    return emitOpError() << "maps by '" << *getMap() << "', must be neg_exp";
  if (failed(verifySource()))
    return failure();
  if (auto identity = dyn_cast_or_null<IdentityAttr>(getComputed().value_or(Attribute()))) {
    if (!type.getElementType().isF32() || type.getRank() != 1 || getSource() ||
        type.getDimSize(0) != identity.getWidth())
      return emitOpError() << "is an identity of width " << identity.getWidth()
                           << " without a source, not " << type;
  } else if (auto computed =
                 dyn_cast_or_null<RopeFrequenciesAttr>(getComputed().value_or(Attribute()))) {
    if (!type.getElementType().isF32() || type.getRank() != 1 ||
        type.getDimSize(0) * 2 != computed.getWidth())
      return emitOpError() << "rope frequencies of width " << computed.getWidth() << " are tensor<"
                           << computed.getWidth() / 2 << "xf32>, not " << type;
  } else if (!getSource()) {
    return emitOpError() << "needs a source tensor or a computation";
  }
  return success();
}

constexpr uint64_t layerAlignment = 64; // bytes, as of every weight of a plan

RankedTensorType WeightOp::getLayerType() {
  RankedTensorType type = getTensorType();
  return isTable() ? RankedTensorType::get(type.getShape().drop_front(), type.getElementType())
                   : type;
}

int64_t WeightOp::getLayerStride() {
  return static_cast<int64_t>(
      alignUp(static_cast<uint64_t>(*weightBytes(getLayerType())), layerAlignment));
}

int64_t WeightOp::getBytes() {
  int64_t bytes = *weightBytes(getLayerType());
  return isTable()
             ? getLayerStride() * (getLayers()->getEnd() - getLayers()->getFirst() - 1) + bytes
             : bytes;
}

void WeightOp::trimTo(int64_t first, int64_t end) {
  SmallVector<int64_t> shape(getTensorType().getShape());
  shape.front() = end - first;
  setType(RankedTensorType::get(shape, getTensorType().getElementType()));
  setLayersAttr(LayerRangeAttr::get(getContext(), first, end, getLayers()->getOf()));
}

/// What a table's layers are.
LogicalResult WeightOp::verifyTable() {
  LayerRangeAttr layers = *getLayers();
  int64_t held = layers.getEnd() - layers.getFirst();
  if (layers.getOf() > maxLayers || getTensorType().getRank() < 2 ||
      getTensorType().getDimSize(0) != held)
    return emitOpError() << "holds layers " << layers.getFirst() << " to " << layers.getEnd()
                         << " of at most " << maxLayers
                         << ", which the outermost dimension counts, not " << getTensorType();
  if (!getSource() || getStack() || getPart())
    return emitOpError() << "is a table of layers, which is read whole from one source";
  if (!getRanges() || !getStages())
    return success();
  if (getRanges()->size() != 2 * getStages()->size())
    return emitOpError() << "has " << getRanges()->size() << " ends of ranges for "
                         << getStages()->size() << " stages";
  for (size_t i = 0; i < getRanges()->size(); i += 2)
    if ((*getRanges())[i] < layers.getFirst() || (*getRanges())[i] >= (*getRanges())[i + 1] ||
        (*getRanges())[i + 1] > layers.getEnd())
      return emitOpError() << "gives stage " << (*getStages())[i / 2] << " layers "
                           << (*getRanges())[i] << " to " << (*getRanges())[i + 1] << " of "
                           << layers;
  return success();
}

/// How the source is cut and joined.
LogicalResult WeightOp::verifySource() {
  RankedTensorType type = getLayerType();
  if ((getStack() || getPart() || getJoin() || getMap()) && (!getSource() || getComputed()))
    return emitOpError() << "says how to read a source that it lacks";
  if (auto stack = getStack())
    if (*stack < 1 || type.getRank() < 2 || type.getDimSize(0) != *stack ||
        getSource()->count('*') != 1)
      return emitOpError()
             << "stacks " << *stack << " of '" << *getSource() << "' into " << type
             << "; the outermost dimension counts them and one * stands for the number";
  if (auto join = getJoin())
    if (*join < 1 || *join > maxWidth || type.getRank() != 2 || type.getDimSize(1) % *join != 0 ||
        getStack())
      return emitOpError() << "joins " << *join << " groups into " << type;
  if (auto part = getPart()) {
    // Both factors are at most 2^31.
    int64_t taken =
        type.getRank() < 2 ? 0 : type.getDimSize(type.getRank() - 2) * getJoin().value_or(1);
    if (taken == 0 || part->getOf() > maxWidth || part->getFirst() + taken > part->getOf())
      return emitOpError() << "takes rows " << part->getFirst() << "..+" << taken << " of every "
                           << part->getOf();
  }
  return success();
}

constexpr int64_t maxBlockTokens = 1 << 16;
constexpr uint64_t maxBlockBytes = uint64_t(1) << 40;

LogicalResult StateOp::verify() {
  if ((getKind() == StateKind::window) != getWindow().has_value())
    return emitOpError() << "a window group, and no other, has a window";
  if (getWindow() && *getWindow() < 1)
    return emitOpError() << "window " << *getWindow() << " must be at least 1";
  if (getKind() == StateKind::slot && getBlockTokens() != 1)
    return emitOpError() << "a slot group keeps everything once: block_tokens is "
                         << getBlockTokens() << ", must be 1";
  if (getBlockTokens() < 1 || getBlockTokens() > maxBlockTokens)
    return emitOpError() << "block_tokens is " << getBlockTokens() << ", must be 1 to "
                         << maxBlockTokens;
  if (getComponents().empty())
    return emitOpError() << "has no components";
  llvm::SmallDenseSet<int64_t> held;
  for (int64_t layer : getLayers())
    if (layer < 0 || layer >= maxLayers || !held.insert(layer).second)
      return emitOpError() << "lists layer " << layer << ", which is out of range or listed before";
  if (held.empty())
    return emitOpError() << "is of no layer";
  llvm::SmallDenseSet<StringRef> names;
  for (Attribute attribute : getComponents()) {
    auto component = cast<ComponentAttr>(attribute);
    const WeightType *type =
        findWeightType({component.getType().data(), component.getType().size()});
    if (!type || !type->isPlain())
      return emitOpError() << "component '" << component.getName() << "' has type '"
                           << component.getType() << "', must be f32, f16 or bf16";
    if (component.getWidth() < 1 || component.getWidth() > maxWidth)
      return emitOpError() << "component '" << component.getName() << "' has width "
                           << component.getWidth() << ", must be 1 to " << maxWidth;
    if (!names.insert(component.getName()).second)
      return emitOpError() << "has two components '" << component.getName() << "'";
  }
  // Layer by layer, so that nothing overflows before it is refused: one component of one layer is
  // at most 2^31 elements of 4 bytes times 2^16 tokens.
  uint64_t bytes = 0;
  for (size_t layer = 0; layer < held.size(); ++layer)
    for (Attribute attribute : getComponents()) {
      bytes +=
          static_cast<uint64_t>(getRowBytes(cast<ComponentAttr>(attribute)) * getBlockTokens());
      if (bytes > maxBlockBytes)
        return emitOpError() << "has blocks of more than " << maxBlockBytes << " bytes";
    }
  return success();
}

int64_t StateOp::getRowBytes(ComponentAttr component) {
  const WeightType *type = findWeightType({component.getType().data(), component.getType().size()});
  return component.getWidth() * type->blockBytes;
}

ComponentAttr StateOp::findComponent(StringRef name) {
  for (Attribute attribute : getComponents())
    if (auto component = cast<ComponentAttr>(attribute); component.getName() == name)
      return component;
  return {};
}

std::optional<int64_t> StateOp::getComponentOffset(int64_t layer, StringRef name) {
  int64_t offset = 0;
  for (int64_t held : getLayers())
    for (Attribute attribute : getComponents()) {
      auto component = cast<ComponentAttr>(attribute);
      if (held == layer && component.getName() == name)
        return offset;
      offset += static_cast<int64_t>(
          alignUp(static_cast<uint64_t>(getRowBytes(component) * getBlockTokens()), 64));
    }
  return std::nullopt;
}

int64_t StateOp::getBlockBytes() {
  int64_t bytes = 0;
  for (Attribute attribute : getComponents())
    bytes += static_cast<int64_t>(alignUp(
        static_cast<uint64_t>(getRowBytes(cast<ComponentAttr>(attribute)) * getBlockTokens()), 64));
  return bytes * static_cast<int64_t>(getLayers().size());
}

static int64_t blocksFor(int64_t tokens, int64_t blockTokens) {
  return static_cast<int64_t>(
      ceilDiv(static_cast<uint64_t>(tokens), static_cast<uint64_t>(blockTokens)));
}

int64_t StateOp::getTableBlocks(int64_t context) {
  return getKind() == StateKind::slot ? 1 : blocksFor(context, getBlockTokens());
}

int64_t StateOp::getBlocksPerSequence(int64_t context, int64_t rows) {
  if (getKind() != StateKind::window)
    return getTableBlocks(context);
  // The oldest row of a chunk still sees window - 1 tokens before it; one block more, since the
  // span may begin anywhere inside a block.
  return std::min(getTableBlocks(context),
                  blocksFor(*getWindow() - 1 + rows, getBlockTokens()) + 1);
}

ParseResult ForwardOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  StringAttr name;
  OpAsmParser::Argument step;
  step.type = StepType::get(builder.getContext());
  if (parser.parseSymbolName(name, SymbolTable::getSymbolAttrName(), result.attributes) ||
      parser.parseLParen() || parser.parseArgument(step) || parser.parseRParen())
    return failure();
  auto parseCount = [&](StringRef keyword) -> ParseResult {
    int64_t count;
    if (failed(parser.parseOptionalKeyword(keyword)))
      return success();
    if (parser.parseInteger(count))
      return failure();
    result.addAttribute(keyword, builder.getI64IntegerAttr(count));
    return success();
  };
  if (parseCount("rows") || parseCount("sequences"))
    return failure();
  for (StringRef flag : {"body", "head"})
    if (succeeded(parser.parseOptionalKeyword(flag)))
      result.addAttribute(flag, builder.getUnitAttr());
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  Region *region = result.addRegion();
  if (parser.parseRegion(*region, step))
    return failure();
  if (region->empty())
    region->emplaceBlock().addArgument(step.type, result.location);
  return success();
}

void ForwardOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  printer << '(' << getStep() << ')';
  if (getRows())
    printer << " rows " << *getRows();
  if (getSequences())
    printer << " sequences " << *getSequences();
  if (getBody())
    printer << " body";
  if (getHead())
    printer << " head";
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(), {getSymNameAttrName(), getRowsAttrName(), getSequencesAttrName(),
                            getBodyAttrName(), getHeadAttrName()});
  printer << ' ';
  printer.printRegion(getRegion(), /*printEntryBlockArgs=*/false);
}

LogicalResult ForwardOp::verify() {
  Block &block = getBlock();
  if (block.getNumArguments() != 1 || !isa<StepType>(block.getArgument(0).getType()))
    return emitOpError() << "takes exactly the step";
  if (getRows().has_value() != getSequences().has_value())
    return emitOpError() << "rows and sequences come together";
  if (getRows() && !getBody() && !getHead())
    return emitOpError() << "runs neither body nor head";
  return success();
}

std::string LayerOp::getUnitName() {
  switch (getKind()) {
  case LayerKind::embedding:
    return "embedding";
  case LayerKind::decoder:
    return "layer " + std::to_string(getIndex());
  case LayerKind::head:
    return "head";
  }
  llvm_unreachable("all kinds are named");
}

ParseResult LayerOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  StringRef kindName;
  int64_t index;
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseKeyword(&kindName) || parser.parseInteger(index) || parser.parseLParen())
    return failure();
  auto kind = symbolizeLayerKind(kindName);
  if (!kind)
    return parser.emitError(location) << "unknown layer kind '" << kindName << "'";
  result.addAttribute("kind", LayerKindAttr::get(builder.getContext(), *kind));
  result.addAttribute("index", builder.getI64IntegerAttr(index));
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  if (failed(parser.parseOptionalRParen())) {
    auto parseBinding = [&]() -> ParseResult {
      return failure(parser.parseArgument(arguments.emplace_back()) || parser.parseEqual() ||
                     parser.parseOperand(operands.emplace_back()));
    };
    if (parser.parseCommaSeparatedList(parseBinding) || parser.parseRParen())
      return failure();
  }
  FunctionType type;
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes) || parser.parseColonType(type))
    return failure();
  if (type.getNumInputs() != operands.size())
    return parser.emitError(location)
           << operands.size() << " values enter but " << type.getNumInputs() << " types are given";
  for (auto [argument, argumentType] : llvm::zip(arguments, type.getInputs()))
    argument.type = argumentType;
  if (parser.resolveOperands(operands, type.getInputs(), location, result.operands))
    return failure();
  result.addTypes(type.getResults());
  Region *region = result.addRegion();
  if (parser.parseRegion(*region, arguments))
    return failure();
  if (region->empty())
    return parser.emitError(location) << "a layer has a body";
  return success();
}

void LayerOp::print(OpAsmPrinter &printer) {
  printer << ' ' << stringifyLayerKind(getKind()) << ' ' << getIndex() << " (";
  llvm::interleaveComma(llvm::zip(getBody().getArguments(), getInputs()), printer, [&](auto pair) {
    printer << std::get<0>(pair) << " = " << std::get<1>(pair);
  });
  printer << ')';
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(),
                                           {getKindAttrName(), getIndexAttrName()});
  printer << " : ";
  printer.printFunctionalType(getInputs().getTypes(), getOutputs().getTypes());
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

LogicalResult LayerOp::verify() {
  Block &block = getBody().front();
  if (block.getNumArguments() != getInputs().size())
    return emitOpError() << "binds " << block.getNumArguments() << " values to "
                         << getInputs().size() << " operands";
  for (auto [argument, input] : llvm::zip(block.getArguments(), getInputs()))
    if (argument.getType() != input.getType())
      return emitOpError() << "binds a " << input.getType() << " to a " << argument.getType();
  auto yield = dyn_cast_or_null<YieldOp>(block.empty() ? nullptr : &block.back());
  if (!yield)
    return emitOpError() << "must end with a strata.yield";
  if (yield.getValues().getTypes() != getOutputs().getTypes())
    return yield.emitOpError() << "yields other types than its layer's results";
  // Only declared values cross layers, so that a layer's memory is its own.
  WalkResult walk = getBody().walk([&](Operation *op) {
    for (Value operand : op->getOperands())
      if (!isa<StepType>(operand.getType()) && !getBody().isAncestor(operand.getParentRegion())) {
        InFlightDiagnostic diagnostic = op->emitOpError()
                                        << "uses a value of another layer that is not declared "
                                           "among this layer's inputs";
        diagnostic.attachNote(operand.getLoc()) << "the value is defined here";
        return WalkResult::interrupt();
      }
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

} // namespace strata::ir
