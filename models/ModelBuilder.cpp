#include "models/ModelBuilder.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include <fmt/ranges.h>

#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringExtras.h"

#include "runtime/base/CheckedMath.h"
#include "runtime/checkpoint/Text.h"

using namespace mlir;

namespace strata {
namespace {

std::string shapeText(ArrayRef<int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

/// At most `limit` names of a list that a hostile file may have made long.
std::string someOf(const std::vector<std::string> &names, size_t limit = 8) {
  size_t shown = std::min(names.size(), limit);
  std::string text = fmt::format("{}", fmt::join(names.begin(), names.begin() + shown, ", "));
  return shown == names.size() ? text : fmt::format("{} and {} more", text, names.size() - shown);
}

/// The type that most bytes of the matrices have decides the type of the state.
std::string majorityType(const Checkpoint &checkpoint, const std::string &weightType) {
  if (checkpoint.tensors().empty())
    return weightType;
  std::map<std::string_view, uint64_t> bytes;
  for (const Tensor &tensor : checkpoint.tensors())
    bytes[tensor.type->name] += tensor.bytes.size();
  auto most = std::max_element(bytes.begin(), bytes.end(),
                               [](auto &a, auto &b) { return a.second < b.second; });
  return std::string(most->first);
}

} // namespace

std::string layerUnit(int64_t index) { return fmt::format("layer {}", index); }

ModelBuilder::ModelBuilder(MLIRContext &context, const Checkpoint &checkpoint,
                           const ImportOptions &options)
    : context_(context), checkpoint_(checkpoint), options_(options),
      hasWeights_(checkpoint.format() != CheckpointFormat::ConfigOnly), weights_(&context),
      states_(&context), layers_(&context) {}

std::string ModelBuilder::modelName() const {
  std::string name = options_.name;
  if (name.empty() && checkpoint_.config().contains("general.name") &&
      checkpoint_.config()["general.name"].is_string())
    name = checkpoint_.config()["general.name"].get<std::string>();
  if (name.empty()) {
    std::filesystem::path path = std::filesystem::path(checkpoint_.path()).lexically_normal();
    if (!path.has_filename()) // `folder/`
      path = path.parent_path();
    name = std::filesystem::is_directory(path) ? path.filename().string() : path.stem().string();
  }
  // A name that MLIR prints without quotes.
  for (char &c : name)
    if (!llvm::isAlnum(c) && c != '_' && c != '.')
      c = '_';
  if (name.empty() || !(llvm::isAlpha(name.front()) || name.front() == '_'))
    name = "model_" + name;
  return name.substr(0, 64);
}

Status ModelBuilder::begin(const ModelShape &shape) {
  shape_ = shape;
  int64_t context =
      options_.maxContext ? options_.maxContext : std::min(defaultMaxContext, shape.context);
  if (context > shape.context)
    return makeError(StatusCode::InvalidArgument,
                     "a context of {} tokens is asked for, but the model was made for {}", context,
                     shape.context);
  int64_t splitLayers = 0;
  for (int64_t layers : options_.split)
    splitLayers += layers;
  if (!options_.split.empty() &&
      (options_.split.size() != options_.devices.size() || splitLayers != shape.layers))
    return makeError(StatusCode::InvalidArgument,
                     "the split gives {} stages {} layers, but there are {} devices and {} layers",
                     options_.split.size(), splitLayers, options_.devices.size(), shape.layers);
  if (hasWeights_ && !options_.weightType.empty())
    return makeError(
        StatusCode::InvalidArgument,
        "a weight type is given ({}), but the checkpoint has weights of its own types; "
        "weights are not converted",
        options_.weightType);
  if (!hasWeights_ && options_.weightType.empty())
    return makeError(StatusCode::InvalidArgument,
                     "the checkpoint has no weights, so their type must be given: --weight-type");
  Location location = NameLoc::get(StringAttr::get(&context_, "model"));
  module_ = ModuleOp::create(location);
  OpBuilder builder = OpBuilder::atBlockBegin(module_->getBody());
  SmallVector<StringRef> devices;
  SmallVector<int64_t> deviceBytes;
  for (const ImportDevice &device : options_.devices) {
    devices.push_back(device.target);
    deviceBytes.push_back(device.bytes);
  }
  if (llvm::all_of(deviceBytes, [](int64_t bytes) { return bytes == 0; }))
    deviceBytes.clear();
  auto listOrNone = [&](ArrayRef<int64_t> list) {
    return list.empty() ? DenseI64ArrayAttr() : builder.getDenseI64ArrayAttr(list);
  };
  model_ = ir::ModelOp::create(builder, location, modelName(), shape.family, shape.hidden,
                               shape.layers, shape.vocabulary, context, options_.maxSequences,
                               options_.maxRows, builder.getStrArrayAttr(devices), deviceBytes,
                               listOrNone(options_.split), listOrNone(options_.buckets),
                               /*after=*/StringAttr(), /*tails=*/ArrayAttr(),
                               /*end_of_generation=*/ArrayRef<int64_t>());
  builder.setInsertionPointToStart(&model_.getBody().emplaceBlock());
  forward_ = ir::ForwardOp::create(builder, location, "body", IntegerAttr(), IntegerAttr());
  Block &block = forward_.getRegion().emplaceBlock();
  block.addArgument(ir::StepType::get(&context_), location);
  weights_.setInsertionPoint(forward_);
  states_.setInsertionPoint(forward_);
  layers_.setInsertionPointToEnd(&block);
  return Status::ok();
}

const Tensor *ModelBuilder::take(const std::string &name, ArrayRef<int64_t> shape) {
  bool isFirst = used_.insert(name).second;
  const Tensor *tensor = checkpoint_.find(name);
  if (!tensor) {
    if (hasWeights_ && isFirst)
      missing_.push_back(fmt::format("'{}'", name));
    return nullptr;
  }
  if (isFirst &&
      !llvm::equal(tensor->shape, shape, [](uint64_t a, int64_t b) { return a == uint64_t(b); })) {
    SmallVector<int64_t> found(tensor->shape.begin(), tensor->shape.end());
    misshapen_.push_back(
        fmt::format("'{}' has {}, must have {}", name, shapeText(found), shapeText(shape)));
  }
  return tensor;
}

Weight ModelBuilder::declare(const std::string &symbol, RankedTensorType type,
                             const std::string &tensor, Attribute computed, std::string_view unit,
                             double plus) {
  Location location = NameLoc::get(StringAttr::get(&context_, tensor.empty() ? symbol : tensor));
  ir::WeightOp::create(
      weights_, location, symbol, type,
      tensor.empty() ? StringAttr() : StringAttr::get(&context_, tensor),
      /*stack=*/IntegerAttr(), /*part=*/ir::SourcePartAttr(),
      /*join=*/IntegerAttr(), /*layers=*/ir::LayerRangeAttr(),
      /*map=*/StringAttr(), computed, plus == 0 ? FloatAttr() : weights_.getF64FloatAttr(plus),
      StringRef(unit.data(), unit.size()), DenseI64ArrayAttr(), DenseI64ArrayAttr(), StringAttr());
  return {FlatSymbolRefAttr::get(&context_, symbol), type.getDimSize(0),
          type.getRank() > 1 ? type.getDimSize(1) : 0, std::nullopt};
}

const WeightType *ModelBuilder::matrixType(const std::string &name, const Tensor *stored,
                                           int64_t columns) {
  const WeightType *type = stored ? stored->type : findWeightType(options_.weightType);
  if (type && columns % type->blockElements == 0)
    return type;
  // A stored tensor of this kind is misshapen or missing, which `finish` reports.
  if (!hasWeights_ && status_.isOk())
    status_ = makeError(StatusCode::InvalidArgument,
                        "weight '{}' has rows of {} elements, which are no whole number of {}'s "
                        "blocks of {}; choose another weight type",
                        name, columns, options_.weightType, type ? type->blockElements : 0);
  return findWeightType("f32");
}

Weight ModelBuilder::matrix(const std::string &symbol, const std::string &tensor, int64_t rows,
                            int64_t columns, std::string_view unit) {
  const WeightType *type = matrixType(tensor, take(tensor, {rows, columns}), columns);
  auto tensorType = RankedTensorType::get({rows, columns}, ir::elementTypeFor(&context_, *type));
  return declare(symbol, tensorType, tensor, nullptr, unit);
}

Weight ModelBuilder::vector(const std::string &symbol, const std::string &tensor, int64_t width,
                            std::string_view unit, double plus) {
  const Tensor *stored = take(tensor, {width});
  if (stored && !stored->type->isPlain() && status_.isOk())
    status_ =
        makeError(StatusCode::Unimplemented,
                  "tensor '{}' is stored as {}; a norm's weight or a bias must be f32, f16 or "
                  "bf16",
                  tensor, stored->type->name);
  return declare(symbol, RankedTensorType::get({width}, weights_.getF32Type()), tensor, nullptr,
                 unit, plus);
}

Weight ModelBuilder::declareFrom(const std::string &symbol, const WeightSource &source,
                                 ArrayRef<int64_t> shape, const WeightType *type,
                                 std::string_view unit) {
  auto integer = [&](int64_t value, int64_t absent) {
    return value == absent ? IntegerAttr() : weights_.getI64IntegerAttr(value);
  };
  auto part = source.part
                  ? ir::SourcePartAttr::get(&context_, source.part->first, source.part->second)
                  : ir::SourcePartAttr();
  ir::WeightOp::create(
      weights_, NameLoc::get(StringAttr::get(&context_, source.tensor)), symbol,
      RankedTensorType::get(shape, ir::elementTypeFor(&context_, *type)),
      StringAttr::get(&context_, source.tensor), integer(source.stack, 0), part,
      integer(source.join, 1),
      source.layers ? ir::LayerRangeAttr::get(&context_, 0, source.layers, source.layers)
                    : ir::LayerRangeAttr(),
      source.isNegativeExponential ? StringAttr::get(&context_, "neg_exp") : StringAttr(),
      Attribute(), FloatAttr(), StringRef(unit.data(), unit.size()), DenseI64ArrayAttr(),
      DenseI64ArrayAttr(), StringAttr());
  return {FlatSymbolRefAttr::get(&context_, symbol), shape[0], shape.size() > 1 ? shape[1] : 0,
          std::nullopt};
}

Weight ModelBuilder::table(const std::string &symbol, WeightSource source, int64_t rows,
                           int64_t columns) {
  source.layers = shape_.layers;
  Weight declared = weight(symbol, source, {source.layers, rows, columns}, symbol);
  return {declared.symbol, rows, columns, std::nullopt};
}

Weight ModelBuilder::weight(const std::string &symbol, const WeightSource &source,
                            ArrayRef<int64_t> shape, std::string_view unit) {
  const Tensor *first = nullptr;
  for (int64_t i = 0; i < std::max<int64_t>(1, source.stack); ++i) {
    std::string name = source.tensor;
    if (source.stack)
      name.replace(name.find('*'), 1, std::to_string(i));
    const Tensor *tensor = take(name, source.shape);
    if (!first)
      first = tensor;
    if (tensor && tensor->type != first->type && status_.isOk())
      status_ =
          makeError(StatusCode::Unimplemented,
                    "tensor '{}' is stored as {}, but '{}' as {}; what is stacked has one type",
                    name, tensor->type->name, first->name, first->type->name);
  }
  return declareFrom(symbol, source, shape,
                     matrixType(source.tensor, first, shape.back() / source.join), unit);
}

Weight ModelBuilder::floatWeight(const std::string &symbol, const WeightSource &source,
                                 ArrayRef<int64_t> shape, std::string_view unit) {
  const Tensor *stored = take(source.tensor, source.shape);
  if (stored && !stored->type->isPlain() && status_.isOk())
    status_ = makeError(StatusCode::Unimplemented,
                        "tensor '{}' is stored as {}; here it must be f32, f16 or bf16",
                        source.tensor, stored->type->name);
  return declareFrom(symbol, source, shape, findWeightType("f32"), unit);
}

Weight ModelBuilder::identity(const std::string &symbol, int64_t width) {
  return declare(symbol, RankedTensorType::get({width}, weights_.getF32Type()), "",
                 ir::IdentityAttr::get(&context_, width), sharedUnit);
}

Weight ModelBuilder::ropeFrequencies(const std::string &symbol, const RopeParameters &rope,
                                     int64_t width, const std::string &divisors) {
  if (!divisors.empty())
    (void)take(divisors, {width / 2});
  auto number = [&](double value) { return weights_.getF64FloatAttr(value); };
  auto computed = ir::RopeFrequenciesAttr::get(
      &context_, number(rope.theta), width, rope.scaling, number(rope.factor),
      number(rope.lowFrequencyFactor), number(rope.highFrequencyFactor),
      number(rope.originalContext), number(rope.betaFast), number(rope.betaSlow));
  return declare(symbol, RankedTensorType::get({width / 2}, weights_.getF32Type()), divisors,
                 computed, sharedUnit);
}

std::string ModelBuilder::stateType(const std::string &wanted) const {
  if (!wanted.empty())
    return wanted;
  std::string weights = majorityType(checkpoint_, options_.weightType);
  return weights == "f32" || weights == "bf16" ? weights : "f16";
}

AttentionState ModelBuilder::attentionState(const std::string &symbol, int64_t window,
                                            int64_t kWidth, int64_t vWidth,
                                            ArrayRef<int64_t> layers) {
  Attribute components[] = {
      ir::ComponentAttr::get(&context_, "k", stateType(options_.keyType), kWidth),
      ir::ComponentAttr::get(&context_, "v", stateType(options_.valueType), vWidth)};
  auto state =
      ir::StateOp::create(states_, NameLoc::get(StringAttr::get(&context_, "state " + symbol)),
                          symbol, window ? ir::StateKind::window : ir::StateKind::paged,
                          window ? states_.getI64IntegerAttr(window) : IntegerAttr(),
                          options_.blockTokens, states_.getArrayAttr(components), layers);
  if (weights_.getInsertionPoint() == Block::iterator(forward_))
    weights_.setInsertionPoint(state);
  return {FlatSymbolRefAttr::get(&context_, symbol), window};
}

SlotState ModelBuilder::slotState(const std::string &symbol,
                                  ArrayRef<std::pair<StringRef, int64_t>> components,
                                  ArrayRef<int64_t> layers) {
  SmallVector<Attribute> attributes;
  for (auto [name, width] : components)
    attributes.push_back(ir::ComponentAttr::get(&context_, name, "f32", width));
  auto state =
      ir::StateOp::create(states_, NameLoc::get(StringAttr::get(&context_, "state " + symbol)),
                          symbol, ir::StateKind::slot, IntegerAttr(), /*block_tokens=*/1,
                          states_.getArrayAttr(attributes), layers);
  if (weights_.getInsertionPoint() == Block::iterator(forward_))
    weights_.setInsertionPoint(state);
  return {FlatSymbolRefAttr::get(&context_, symbol)};
}

void ModelBuilder::skipTensors(const std::string &prefix, std::string_view what) {
  size_t skipped = 0;
  for (const Tensor &tensor : checkpoint_.tensors())
    if (tensor.name.starts_with(prefix))
      skipped += used_.insert(tensor.name).second;
  if (skipped > 0)
    notes_.push_back(fmt::format("{} tensors '{}*' are left out: {}", skipped, prefix, what));
}

Value ModelBuilder::layer(ir::LayerKind kind, int64_t index, std::string_view unit, Value input,
                          LayerBody body) {
  Location location = NameLoc::get(StringAttr::get(&context_, StringRef(unit.data(), unit.size())));
  SmallVector<Value> inputs;
  if (input)
    inputs.push_back(input);
  SmallVector<Type> outputs;
  if (kind != ir::LayerKind::head)
    outputs.push_back(ir::activationType(&context_, ShapedType::kDynamic, shape_.hidden, "hidden"));
  auto op = ir::LayerOp::create(layers_, location, outputs, kind, index, inputs, IntegerAttr(),
                                ir::UnitCostAttr());
  Block &block = op.getBody().emplaceBlock();
  for (Value value : inputs)
    block.addArgument(value.getType(), location);
  LayerBuilder ops(OpBuilder::atBlockEnd(&block), location, forward_.getStep());
  Value result = body(ops, input ? block.getArgument(0) : Value());
  ops.yield(result ? ValueRange(result) : ValueRange());
  return result ? op.getOutputs()[0] : Value();
}

void ModelBuilder::embedding(llvm::function_ref<Value(LayerBuilder &)> body) {
  residual_ = layer(ir::LayerKind::embedding, 0, embeddingUnit, Value(),
                    [&](LayerBuilder &ops, Value) { return body(ops); });
}

void ModelBuilder::decoder(int64_t index, LayerBody body) {
  residual_ = layer(ir::LayerKind::decoder, index, layerUnit(index), residual_, body);
}

void ModelBuilder::head(const std::string &norm, double epsilon, Weight tied, double plus) {
  bool isGguf = checkpoint_.format() == CheckpointFormat::Gguf;
  Weight weight =
      vector("output_norm", isGguf ? "output_norm.weight" : norm, shape_.hidden, headUnit, plus);
  std::string own = isGguf ? "output.weight" : "lm_head.weight";
  Weight head = tied ? tied : matrix("head", own, shape_.vocabulary, shape_.hidden, headUnit);
  if (tied && !isGguf)
    ignoreTensor(own);
  layer(ir::LayerKind::head, 0, headUnit, residual_, [&](LayerBuilder &ops, Value residual) {
    Value n = ops.rmsNorm(ops.gatherRows(residual), weight, epsilon);
    ops.sample(ops.logits(n, head, "vocabulary"));
    return Value();
  });
}

void ModelBuilder::setEndOfGeneration(ArrayRef<int32_t> ids) {
  SmallVector<int64_t> kept;
  for (int32_t id : ids)
    if (id >= 0 && id < shape_.vocabulary)
      kept.push_back(id);
  llvm::sort(kept);
  kept.erase(llvm::unique(kept), kept.end());
  model_.setEndOfGeneration(kept);
}

Status ModelBuilder::checkTensors() const {
  std::vector<std::string> problems;
  if (!missing_.empty())
    problems.push_back("it lacks " + someOf(missing_));
  if (!misshapen_.empty())
    problems.push_back(someOf(misshapen_));
  std::vector<std::string> surplus;
  for (const Tensor &tensor : checkpoint_.tensors())
    if (!used_.contains(tensor.name))
      surplus.push_back(fmt::format("'{}'", printable(tensor.name)));
  if (!surplus.empty())
    problems.push_back("the model does not use " + someOf(surplus));
  if (problems.empty())
    return Status::ok();
  return makeError(StatusCode::InvalidData,
                   "the tensors of '{}' are not those of a {} model of {} layers: {}",
                   checkpoint_.path(), shape_.family, shape_.layers, fmt::join(problems, "; "));
}

Result<OwningOpRef<ModuleOp>> ModelBuilder::finish() {
  STRATA_RETURN_IF_ERROR(status_);
  STRATA_RETURN_IF_ERROR(checkTensors());
  if (failed(verify(*module_)))
    return makeError(StatusCode::Internal,
                     "the definition of '{}' built a model that does not verify", shape_.family);
  return std::move(module_);
}

} // namespace strata
