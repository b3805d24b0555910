// The planned level, op by op, as the plan's FlatBuffer, and the segments that its weights lie in.
#include "codegen/write/Writer.h"

#include <map>
#include <optional>

#include <flatbuffers/flatbuffers.h>

#include "llvm/ADT/TypeSwitch.h"

#include "codegen/blocks/BlockLayouts.h"
#include "codegen/kernels/KernelLibrary.h"
#include "codegen/pack/Packer.h"
#include "codegen/select/Selection.h"
#include "codegen/targets/DriverMemory.h"
#include "codegen/write/StageKernels.h"
#include "passes/Buckets.h"
#include "runtime/base/CheckedMath.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/plan/PlanWriter.h"
#include "runtime/plan/VocabularyCodec.h"
#include "runtime/tokenizer/Tokenizer.h"

using namespace mlir;

namespace strata {
namespace {

using namespace ir;
template <class T> using Offset = flatbuffers::Offset<T>;
template <class T> using Offsets = std::vector<Offset<T>>;

constexpr uint64_t mostPlanBytes = uint64_t{1} << 30; // half of what its offsets reach

/// A weight's place, the same for all stages that hold it; of a table its first layer's.
struct Placement {
  uint32_t segment;
  uint64_t offset;
};

/// The weights of one unit, in one segment.
struct SegmentContent {
  std::string label;
  std::vector<WeightRecipe> recipes;
  std::vector<uint64_t> bytes;
  uint64_t total = 0;
};

/// Of a table, the recipe of one `layer`.
WeightRecipe recipeOf(WeightOp weight, std::optional<int64_t> layer = {}) {
  RankedTensorType type = weight.getLayerType();
  WeightRecipe recipe;
  recipe.name = weight.getSymName().str();
  recipe.type = weightTypeOf(type.getElementType());
  recipe.shape.assign(type.getShape().begin(), type.getShape().end());
  recipe.source = weight.getSource().value_or("").str();
  if (auto plus = weight.getPlus())
    recipe.plus = static_cast<float>(plus->convertToDouble());
  recipe.stack = static_cast<uint64_t>(weight.getStack().value_or(0));
  if (auto part = weight.getPart())
    recipe.part =
        SourcePart{static_cast<uint64_t>(part->getFirst()), static_cast<uint64_t>(part->getOf())};
  recipe.join = static_cast<uint64_t>(weight.getJoin().value_or(1));
  if (layer) {
    uint64_t rows = recipe.join;
    for (size_t i = 0; i + 1 < recipe.shape.size(); ++i)
      rows *= recipe.shape[i];
    recipe.part = SourcePart{static_cast<uint64_t>(*layer) * rows,
                             static_cast<uint64_t>(weight.getLayers()->getOf()) * rows};
  }
  recipe.isNegativeExponential = weight.getMap() == "neg_exp";
  Attribute computed = weight.getComputed().value_or(Attribute());
  recipe.isIdentity = isa_and_present<IdentityAttr>(computed);
  if (auto rope = dyn_cast_or_null<RopeFrequenciesAttr>(computed))
    recipe.computed = RopeFrequencies{rope.getTheta().getValueAsDouble(),
                                      static_cast<uint64_t>(rope.getWidth()),
                                      rope.getScaling().str(),
                                      rope.getFactor().getValueAsDouble(),
                                      rope.getLowFrequencyFactor().getValueAsDouble(),
                                      rope.getHighFrequencyFactor().getValueAsDouble(),
                                      rope.getOriginalContext().getValueAsDouble(),
                                      rope.getBetaFast().getValueAsDouble(),
                                      rope.getBetaSlow().getValueAsDouble()};
  return recipe;
}

/// Collects what is packed.
class MemorySink : public SegmentSink {
public:
  Status write(std::span<const std::byte> bytes) override {
    content.insert(content.end(), bytes.begin(), bytes.end());
    bytes_ += bytes.size();
    return Status::ok();
  }
  std::vector<std::byte> content;
};

/// Writes one plan. Members are filled in the order of the methods below.
class Writer {
public:
  Writer(ModelOp model, const Checkpoint *checkpoint, const WriteOptions &options)
      : model(model), checkpoint(checkpoint), options(options), shapes(bucketShapes(model)) {}

  Status run();
  Result<flatbuffers::DetachedBuffer> describe();

private:
  void collectSegments();
  Status packSegments(PlanWriter &writer);
  Status buildPlan();

  Result<Offset<fb::Stage>> buildStage(StageOp stage);
  Result<Offset<fb::Weight>> buildWeight(WeightOp weight);
  Offset<fb::Forward> buildForward(StageOp stage, ForwardOp forward);
  Offset<fb::Command> buildCommand(StageOp stage, DispatchOp dispatch, ArenaOp arena);
  fb::Slot buildSlot(StageOp stage, DispatchOp dispatch, ArenaOp arena, Attribute slot,
                     const SlotSpec &spec);
  Offset<fb::StateGroup> buildState(StateOp state);
  Offset<fb::BlockLayout> buildLayout(const BlockFields &layout);
  Offset<fb::Handoff> buildHandoff(HandoffOp handoff);
  Offset<flatbuffers::String> text(StringRef value) {
    return builder.CreateString(value.data(), value.size());
  }
  uint32_t stageIndex(StringRef name) const;
  uint32_t maxBodyRows() const;
  uint32_t maxHeadRows() const;
  /// A FlatBuffer has 32-bit offsets and does not say when they are exceeded.
  bool isTooLarge() const { return builder.GetSize() > mostPlanBytes; }

  ModelOp model;
  const Checkpoint *checkpoint;
  const WriteOptions &options;
  std::vector<BucketShape> shapes;
  std::vector<SegmentContent> contents;
  std::vector<WrittenSegment> segments;
  std::map<std::string, Placement> placements;
  flatbuffers::FlatBufferBuilder builder;

  // Of the stage being built.
  std::optional<StageKernels> kernels;
  llvm::StringMap<uint32_t> weightIndex, stateIndex, portHandoff;
  BlockFields step, out, table;
};

uint32_t Writer::maxBodyRows() const { return static_cast<uint32_t>(mostBodyRows(shapes)); }
uint32_t Writer::maxHeadRows() const { return static_cast<uint32_t>(mostHeadRows(shapes)); }

uint32_t Writer::stageIndex(StringRef name) const {
  uint32_t index = 0;
  for (StageOp stage : ModelOp(model).getOps<StageOp>()) {
    if (stage.getSymName() == name)
      return index;
    ++index;
  }
  llvm_unreachable("handoffs were verified");
}

/// One segment a unit, in order of the units' first weights, whatever the stages.
void Writer::collectSegments() {
  std::map<std::string, uint32_t> byUnit;
  for (StageOp stage : model.getOps<StageOp>())
    for (WeightOp weight : stage.getOps<WeightOp>()) {
      std::string name = weight.getSymName().str();
      if (placements.contains(name))
        continue;
      auto [entry, isNew] =
          byUnit.try_emplace(weight.getUnit().str(), static_cast<uint32_t>(contents.size()));
      if (isNew)
        contents.push_back({weight.getUnit().str(), {}, {}, 0});
      SegmentContent &content = contents[entry->second];
      placements[name] = {entry->second, alignUp(content.total, weightAlignment)};
      auto append = [&](WeightRecipe recipe) {
        uint64_t bytes = static_cast<uint64_t>(*weightBytes(weight.getLayerType()));
        content.recipes.push_back(std::move(recipe));
        content.bytes.push_back(bytes);
        content.total = alignUp(content.total, weightAlignment) + bytes;
      };
      if (!weight.isTable())
        append(recipeOf(weight));
      // Whole, whatever its stages hold: another split rewrites nothing.
      for (int64_t layer = 0; weight.isTable() && layer < weight.getLayers()->getOf(); ++layer)
        append(recipeOf(weight, layer));
    }
}

Status Writer::packSegments(PlanWriter &writer) {
  uint64_t total = 0, done = 0;
  for (const SegmentContent &content : contents)
    total += content.total;
  for (const SegmentContent &content : contents) {
    if (options.weights == "none") {
      segments.push_back({"", content.total, 0});
      continue;
    }
    auto produce = [&](SegmentSink &sink) -> Status {
      for (auto [recipe, bytes] : llvm::zip(content.recipes, content.bytes)) {
        STRATA_RETURN_IF_ERROR(sink.alignTo(weightAlignment));
        uint64_t before = sink.bytes();
        STRATA_RETURN_IF_ERROR(packWeight(recipe, checkpoint, sink));
        if (sink.bytes() - before != bytes)
          return makeError(StatusCode::Internal, "weight '{}' was packed to {} bytes, not {}",
                           recipe.name, sink.bytes() - before, bytes);
        done += bytes;
        options.progress(done, total);
      }
      return Status::ok();
    };
    Result<WrittenSegment> segment = writer.addSegment(produce);
    if (!segment.isOk())
      return std::move(segment).status().at("segment", content.label);
    segments.push_back(*std::move(segment));
  }
  return Status::ok();
}

fb::Slot Writer::buildSlot(StageOp stage, DispatchOp dispatch, ArenaOp arena, Attribute slot,
                           const SlotSpec &spec) {
  using enum fb::SlotKind;
  auto field = [&](fb::SlotKind kind, const BlockFields &block, StringRef name) {
    const BlockField *found = block.find(name);
    return found ? fb::Slot(kind, spec.access, 0, found->offset, found->bytes())
                 : fb::Slot(kind, spec.access, 0, 0, 0); // refused by the loader's checks
  };
  auto constant = [&](uint64_t value) { return fb::Slot(Constant, fb::Access::None, 0, value, 0); };
  auto stateOf = [&](FlatSymbolRefAttr name) {
    return cast<StateOp>(stage.lookupSymbol(name.getAttr()));
  };
  return llvm::TypeSwitch<Attribute, fb::Slot>(slot)
      .Case([&](BufferSlotAttr buffer) {
        auto result = cast<OpResult>(dispatch.getBuffers()[buffer.getIndex()]);
        unsigned index = result.getResultNumber();
        auto interval = cast<IntervalAttr>(arena.getIntervals()[index]);
        return fb::Slot(Buffer, spec.access, index,
                        static_cast<uint64_t>(arena.getOffsets()[index]),
                        static_cast<uint64_t>(interval.getBytes()));
      })
      .Case([&](WeightSlotAttr weight) {
        auto op = cast<WeightOp>(stage.lookupSymbol(weight.getWeight().getAttr()));
        auto layer = weight.getLayer();
        int64_t offset =
            layer ? (*layer - op.getLayers()->getFirst()) * op.getLayerStride() : int64_t{0};
        return fb::Slot(Weight, spec.access, weightIndex.lookup(op.getSymName()),
                        static_cast<uint64_t>(offset),
                        static_cast<uint64_t>(*weightBytes(op.getLayerType())));
      })
      .Case([&](StateSlotAttr state) {
        StateOp op = stateOf(state.getState());
        int64_t bytes =
            op.getRowBytes(op.findComponent(state.getComponent())) * op.getBlockTokens();
        int64_t offset = *op.getComponentOffset(state.getLayer(), state.getComponent());
        return fb::Slot(State, spec.access, stateIndex.lookup(op.getSymName()),
                        static_cast<uint64_t>(offset), static_cast<uint64_t>(bytes));
      })
      .Case([&](StepSlotAttr s) { return field(Step, step, s.getField()); })
      .Case([&](OutSlotAttr s) { return field(Out, out, s.getField()); })
      .Case([&](TableSlotAttr s) { return field(Table, table, s.getField()); })
      .Case([&](PortSlotAttr port) {
        auto op = cast<PortOp>(stage.lookupSymbol(port.getPort().getAttr()));
        bool writes = op.getDirection() == PortDirection::output;
        return fb::Slot(writes ? HandoffOut : HandoffIn, spec.access,
                        portHandoff.lookup(op.getSymName()), 0,
                        static_cast<uint64_t>(op.getWidth()) * sizeof(float) * maxBodyRows());
      })
      .Case([&](ScratchSlotAttr scratch) {
        return fb::Slot(Scratch, spec.access, 0, 0, static_cast<uint64_t>(scratch.getBytes()));
      })
      .Case([&](ScratchStrideSlotAttr) {
        return constant(static_cast<uint64_t>(stage.getScratch().value_or(0)));
      })
      .Case([&](StateConstantSlotAttr c) {
        StateOp op = stateOf(c.getState());
        int64_t value = c.getConstant() == "block_tokens" ? op.getBlockTokens()
                        : c.getConstant() == "block_stride"
                            ? op.getBlockBytes()
                            : op.getTableBlocks(model.getMaxContext());
        return constant(static_cast<uint64_t>(value));
      })
      .Case([&](ConstantSlotAttr c) {
        if (auto number = dyn_cast<FloatAttr>(c.getValue()))
          return constant(std::bit_cast<uint64_t>(number.getValueAsDouble()));
        return constant(static_cast<uint64_t>(cast<IntegerAttr>(c.getValue()).getInt()));
      })
      .DefaultUnreachable("all slots are known");
}

Offset<fb::Command> Writer::buildCommand(StageOp stage, DispatchOp dispatch, ArenaOp arena) {
  StringRef kernel = kernelName(dispatch.getKernel());
  const KernelSignature *signature = findSignature(kernel);
  std::vector<fb::Slot> slots;
  if (signature) // else a dry run's, which nothing will run
    for (auto [spec, slot] : llvm::zip(signature->slots, dispatch.getSlots()))
      slots.push_back(buildSlot(stage, dispatch, arena, slot, spec));
  auto slotVector = builder.CreateVectorOfStructs(slots);
  auto op = text(dispatch.getLabel());
  ItemsAttr items = dispatch.getItems();
  fb::Items count(static_cast<uint32_t>(items.getRow()), static_cast<uint32_t>(items.getSequence()),
                  static_cast<uint32_t>(items.getHeadRow()),
                  static_cast<uint32_t>(items.getConstant()));
  fb::Grid grid;
  if (auto blocks = dispatch.getGrid())
    grid = fb::Grid(static_cast<uint32_t>((*blocks)[0]), static_cast<uint32_t>((*blocks)[1]));
  auto rows = static_cast<uint64_t>(*cast<ForwardOp>(dispatch->getParentOp()).getRows());
  auto kind = cuda::isGemm(kernel) ? fb::CommandKind::Gemm : fb::CommandKind::Dispatch;
  return fb::CreateCommand(builder, kind, kernels->find(kernel.str(), signature, slots, rows),
                           slotVector, &count, op, static_cast<int32_t>(dispatch.getLayer()),
                           dispatch.getGrid() ? &grid : nullptr);
}

Offset<fb::Forward> Writer::buildForward(StageOp stage, ForwardOp forward) {
  uint32_t bucket = 0;
  while (shapes[bucket].name() != forward.getSymName())
    ++bucket;
  ArenaOp arena = *forward.getBlock().getOps<ArenaOp>().begin();
  if (isTooLarge())
    return {};
  Offsets<fb::Buffer> buffers;
  for (auto [attribute, offset] : llvm::zip(arena.getIntervals(), arena.getOffsets())) {
    auto interval = cast<IntervalAttr>(attribute);
    buffers.push_back(fb::CreateBuffer(
        builder, text(interval.getName()), static_cast<uint64_t>(offset),
        static_cast<uint64_t>(interval.getBytes()), static_cast<uint32_t>(interval.getLower()),
        static_cast<uint32_t>(interval.getUpper())));
  }
  Offsets<fb::Command> commands;
  int32_t logits = -1;
  for (DispatchOp dispatch : forward.getBlock().getOps<DispatchOp>()) {
    commands.push_back(buildCommand(stage, dispatch, arena));
    auto own = dispatch.getBuffers().drop_back(cuda::isGemm(kernelName(dispatch.getKernel())));
    if (dispatch.getLogits()) // behind them, a product's workspace
      logits = static_cast<int32_t>(cast<OpResult>(own.back()).getResultNumber());
  }
  auto bufferVector = builder.CreateVector(buffers);
  auto commandVector = builder.CreateVector(commands);
  return fb::CreateForward(builder, bucket, bufferVector, commandVector,
                           static_cast<uint64_t>(arena.getPeak()),
                           static_cast<uint64_t>(arena.getLowerBound()), arena.getProven(), logits);
}

Offset<fb::StateGroup> Writer::buildState(StateOp state) {
  Offsets<fb::StateComponent> components;
  for (int64_t layer : state.getLayers())
    for (Attribute attribute : state.getComponents()) {
      auto component = cast<ComponentAttr>(attribute);
      auto name = text(component.getName()), type = text(component.getType());
      components.push_back(fb::CreateStateComponent(
          builder, name, static_cast<uint32_t>(layer), type,
          static_cast<uint32_t>(component.getWidth()),
          static_cast<uint64_t>(*state.getComponentOffset(layer, component.getName())),
          static_cast<uint64_t>(state.getRowBytes(component))));
    }
  auto componentVector = builder.CreateVector(components);
  auto name = text(state.getSymName());
  int64_t promised =
      state.getBlocksPerSequence(model.getMaxContext(), maxBodyRows()) * model.getMaxSequences();
  return fb::CreateStateGroup(builder, name,
                              state.getKind() == StateKind::window ? fb::StateKind::Window
                              : state.getKind() == StateKind::slot ? fb::StateKind::SlotPerSequence
                                                                   : fb::StateKind::Paged,
                              static_cast<uint32_t>(state.getWindow().value_or(0)),
                              static_cast<uint32_t>(state.getBlockTokens()),
                              static_cast<uint64_t>(state.getBlockBytes()),
                              static_cast<uint32_t>(state.getTableBlocks(model.getMaxContext())),
                              static_cast<uint32_t>(promised), componentVector);
}

Offset<fb::BlockLayout> Writer::buildLayout(const BlockFields &layout) {
  Offsets<fb::Field> fields;
  for (const BlockField &field : layout.fields) {
    auto name = text(field.name), type = text(field.type);
    fields.push_back(fb::CreateField(builder, name, type, field.offset, field.count));
  }
  auto vector = builder.CreateVector(fields);
  return fb::CreateBlockLayout(builder, layout.bytes, vector);
}

Result<Offset<fb::Weight>> Writer::buildWeight(WeightOp weight) {
  RankedTensorType type = weight.getTensorType();
  const WeightType &weightType = *weightTypeOf(type.getElementType());
  std::vector<uint64_t> shape(type.getShape().begin(), type.getShape().end());
  auto name = text(weight.getSymName());
  auto typeName = text({weightType.name.data(), weightType.name.size()});
  auto layout = text(*weight.getLayout());
  auto shapeVector = builder.CreateVector(shape);
  Offset<flatbuffers::Vector<uint8_t>> content;
  // Random numbers may stand for what a checkpoint would say, but not for a table.
  if (WeightRecipe recipe = recipeOf(weight); options.weights == "none" && recipe.isKnown()) {
    MemorySink sink;
    STRATA_RETURN_IF_ERROR(packWeight(recipe, nullptr, sink));
    content = builder.CreateVector(reinterpret_cast<const uint8_t *>(sink.content.data()),
                                   sink.content.size());
  }
  const Placement &place = placements.at(weight.getSymName().str());
  auto layers = weight.getLayers();
  uint64_t first = layers ? static_cast<uint64_t>(layers->getFirst()) : 0;
  uint64_t end = layers ? static_cast<uint64_t>(layers->getEnd()) : 0;
  uint64_t offset = place.offset + first * static_cast<uint64_t>(weight.getLayerStride());
  return fb::CreateWeight(builder, name, typeName, layout, shapeVector, place.segment, offset,
                          static_cast<uint64_t>(weight.getBytes()), content,
                          static_cast<uint32_t>(first), static_cast<uint32_t>(end));
}

Result<Offset<fb::Stage>> Writer::buildStage(StageOp stage) {
  kernels.emplace(*KernelLibrary::of(stage.getDevice().str()));
  weightIndex.clear(), stateIndex.clear(), portHandoff.clear();
  BlockBounds bounds{maxBodyRows(), static_cast<uint64_t>(model.getMaxSequences()), maxHeadRows(),
                     static_cast<uint64_t>(model.getMaxContext()),
                     static_cast<uint64_t>(model.getVocabulary())};
  step = stepFields(llvm::to_vector(stage.getOps<StateOp>()), bounds);
  out = outFields(bounds);
  table = tableFields(stage.getHead(), bounds);
  uint32_t handoffIndex = 0;
  for (HandoffOp handoff : model.getOps<HandoffOp>()) {
    for (SymbolRefAttr port : {handoff.getProducer(), handoff.getConsumer()})
      if (port.getRootReference() == stage.getSymNameAttr())
        portHandoff[port.getLeafReference().getValue()] = handoffIndex;
    ++handoffIndex;
  }

  Offsets<fb::Weight> weights;
  for (WeightOp weight : stage.getOps<WeightOp>()) {
    weightIndex[weight.getSymName()] = static_cast<uint32_t>(weights.size());
    STRATA_ASSIGN_OR_RETURN(Offset<fb::Weight> built, buildWeight(weight));
    weights.push_back(built);
  }
  Offsets<fb::StateGroup> states;
  for (StateOp state : stage.getOps<StateOp>()) {
    stateIndex[state.getSymName()] = static_cast<uint32_t>(states.size());
    states.push_back(buildState(state));
  }
  Offsets<fb::Forward> forwards;
  uint64_t arena = 0;
  for (ForwardOp forward : stage.getOps<ForwardOp>()) {
    forwards.push_back(buildForward(stage, forward));
    ArenaOp placed = *forward.getBlock().getOps<ArenaOp>().begin();
    arena = std::max(arena, static_cast<uint64_t>(placed.getPeak()));
  }
  STRATA_ASSIGN_OR_RETURN(StageKernels::Tables code, kernels->build(builder, !isDryRun(model)));
  auto name = text(stage.getSymName()), target = text(stage.getDevice());
  auto weightVector = builder.CreateVector(weights);
  auto stateVector = builder.CreateVector(states);
  auto forwardVector = builder.CreateVector(forwards);
  auto stepLayout = buildLayout(step), outLayout = buildLayout(out),
       tableLayout = buildLayout(table);
  return fb::CreateStage(builder, name, target, static_cast<uint32_t>(stage.getFirstLayer()),
                         static_cast<uint32_t>(stage.getEndLayer()), stage.getEmbedding(),
                         stage.getHead(), code.kernels, weightVector, stateVector, forwardVector,
                         arena, static_cast<uint64_t>(stage.getScratch().value_or(0)), stepLayout,
                         outLayout, tableLayout, code.module);
}

Offset<fb::Handoff> Writer::buildHandoff(HandoffOp handoff) {
  auto port = cast<PortOp>(SymbolTable::lookupSymbolIn(model, handoff.getProducer()));
  uint64_t rowBytes = static_cast<uint64_t>(port.getWidth()) * sizeof(float);
  return fb::CreateHandoff(builder, text(handoff.getSymName()),
                           stageIndex(handoff.getProducer().getRootReference().getValue()),
                           stageIndex(handoff.getConsumer().getRootReference().getValue()),
                           static_cast<uint32_t>(handoff.getSlots()),
                           handoffSlotBytes(port.getWidth(), handoff.getRows()), rowBytes);
}

Status Writer::buildPlan() {
  Offsets<fb::Stage> stages;
  for (StageOp stage : model.getOps<StageOp>()) {
    STRATA_ASSIGN_OR_RETURN(Offset<fb::Stage> built, buildStage(stage));
    stages.push_back(built);
  }
  if (isTooLarge())
    return makeError(StatusCode::ResourceExhausted,
                     "the commands of {} buckets take more than {} bytes of plan; serve fewer "
                     "(--buckets)",
                     shapes.size(), mostPlanBytes);
  Offsets<fb::Handoff> handoffs;
  for (HandoffOp handoff : model.getOps<HandoffOp>())
    handoffs.push_back(buildHandoff(handoff));
  Offsets<fb::Bucket> buckets;
  for (const BucketShape &shape : shapes) {
    buckets.push_back(
        fb::CreateBucket(builder, text(shape.name()), static_cast<uint32_t>(shape.rows),
                         static_cast<uint32_t>(shape.sequences), shape.body, shape.head));
  }
  Offsets<fb::Tail> tails;
  for (Attribute attribute : model.getTailsAttr()) {
    auto tail = cast<TailAttr>(attribute);
    std::vector<uint32_t> indices(tail.getBuckets().begin(), tail.getBuckets().end());
    auto vector = builder.CreateVector(indices);
    tails.push_back(fb::CreateTail(builder, static_cast<uint32_t>(tail.getRows()), vector));
  }
  Offsets<fb::Segment> segmentTables;
  for (auto [content, segment] : llvm::zip(contents, segments)) {
    auto name = text(segment.name), label = text(content.label);
    segmentTables.push_back(
        fb::CreateSegment(builder, name, label, segment.bytes, segment.fileOffset));
  }
  Offset<fb::Vocabulary> vocabulary;
  if (checkpoint) {
    STRATA_ASSIGN_OR_RETURN(std::optional<Vocabulary> found, checkpoint->vocabulary());
    if (found) {
      // What the runtime would refuse is refused now.
      if (Result<std::unique_ptr<Tokenizer>> tokenizer = Tokenizer::create(*found);
          !tokenizer.isOk())
        return std::move(tokenizer).status().at("tokenizer of", checkpoint->path());
      vocabulary = encodeVocabulary(builder, *found);
    }
  }
  bool isStore = options.weights != "inside" && options.weights != "none";
  auto producer = text("strata " STRATA_VERSION), name = text(model.getSymName());
  auto family = text(model.getFamily()), store = text(isStore ? options.weights : "");
  auto stageVector = builder.CreateVector(stages);
  auto handoffVector = builder.CreateVector(handoffs);
  auto bucketVector = builder.CreateVector(buckets);
  auto tailVector = builder.CreateVector(tails);
  auto segmentVector = builder.CreateVector(segmentTables);
  std::vector<int32_t> ends(model.getEndOfGeneration().begin(), model.getEndOfGeneration().end());
  auto endVector = builder.CreateVector(ends);
  auto memoryVector = buildDriverMemory(builder, stages);
  fb::PlanBuilder plan(builder);
  plan.add_producer(producer);
  plan.add_model(name);
  plan.add_family(family);
  plan.add_vocabulary_size(static_cast<uint32_t>(model.getVocabulary()));
  plan.add_hidden(static_cast<uint32_t>(model.getHidden()));
  plan.add_layers(static_cast<uint32_t>(model.getLayers()));
  plan.add_max_context(static_cast<uint32_t>(model.getMaxContext()));
  plan.add_max_sequences(static_cast<uint32_t>(model.getMaxSequences()));
  plan.add_max_rows(maxBodyRows());
  plan.add_max_head_rows(maxHeadRows());
  plan.add_stages(stageVector);
  plan.add_handoffs(handoffVector);
  plan.add_buckets(bucketVector);
  plan.add_tails(tailVector);
  plan.add_weights_place(options.weights == "none" ? fb::WeightsPlace::None
                         : isStore                 ? fb::WeightsPlace::Store
                                                   : fb::WeightsPlace::Inside);
  plan.add_store(store);
  plan.add_segments(segmentVector);
  if (!vocabulary.IsNull())
    plan.add_vocabulary(vocabulary);
  plan.add_end_of_generation(endVector);
  plan.add_memory(memoryVector);
  fb::FinishPlanBuffer(builder, plan.Finish());
  return Status::ok();
}

Status Writer::run() {
  bool isStore = options.weights != "inside" && options.weights != "none";
  if (options.weights != "none" && !checkpoint)
    return makeError(StatusCode::InvalidArgument, "weights need a checkpoint");
  collectSegments();
  // Everything that can be refused is refused before the first byte is written.
  if (options.weights != "none")
    for (const SegmentContent &content : contents)
      for (const WeightRecipe &recipe : content.recipes)
        STRATA_RETURN_IF_ERROR(checkRecipe(recipe, *checkpoint));
  STRATA_ASSIGN_OR_RETURN(std::unique_ptr<PlanWriter> writer,
                          PlanWriter::create(options.path,
                                             options.weights == "none" ? fb::WeightsPlace::None
                                             : isStore                 ? fb::WeightsPlace::Store
                                                                       : fb::WeightsPlace::Inside,
                                             isStore ? options.weights : ""));
  STRATA_RETURN_IF_ERROR(packSegments(*writer));
  STRATA_RETURN_IF_ERROR(buildPlan());
  return writer->finish({builder.GetBufferPointer(), builder.GetSize()});
}

Result<flatbuffers::DetachedBuffer> Writer::describe() {
  collectSegments();
  for (const SegmentContent &content : contents)
    segments.push_back({"", content.total, 0});
  STRATA_RETURN_IF_ERROR(buildPlan());
  return builder.Release();
}

Status checkPlanned(ModelOp model) {
  StringRef after = model.getAfter().value_or("");
  if (after == "verify-plan")
    return Status::ok();
  return makeError(StatusCode::InvalidArgument,
                   "the model stands after pass '{}'; a plan is written after 'verify-plan'",
                   after.str());
}

} // namespace

Status writePlan(ModelOp model, const Checkpoint *checkpoint, const WriteOptions &options) {
  STRATA_RETURN_IF_ERROR(checkPlanned(model));
  if (isDryRun(model))
    return makeError(StatusCode::InvalidArgument,
                     "the model was planned for its memory table alone ('{}')",
                     dryRunAttribute.str());
  return Writer(model, checkpoint, options).run();
}

Result<flatbuffers::DetachedBuffer> describePlan(ModelOp model) {
  STRATA_RETURN_IF_ERROR(checkPlanned(model));
  WriteOptions options;
  options.weights = "none";
  return Writer(model, nullptr, options).describe();
}

} // namespace strata
