#include "test/runtime/plan/TinyPlan.h"

#include <algorithm>
#include <bit>
#include <filesystem>
#include <map>
#include <span>

#include <unistd.h>

#include "codegen/cpu/KernelTable.h"
#include "runtime/base/CheckedMath.h"
#include "runtime/plan/PlanWriter.h"
#include "runtime/sampling/Sampler.h"

namespace strata::test {
namespace {

using M = TinyModel;
using fb::Access;
using fb::SlotKind;
constexpr uint32_t maxRows = 4, maxHeadRows = 2;

uint64_t bits(double value) { return std::bit_cast<uint64_t>(value); }

std::unique_ptr<fb::BlockLayoutT>
layout(std::initializer_list<std::tuple<const char *, const char *, uint64_t>> fields) {
  auto block = std::make_unique<fb::BlockLayoutT>();
  for (auto [name, type, elements] : fields) {
    auto field = std::make_unique<fb::FieldT>();
    field->name = name;
    field->type = type;
    field->count = elements;
    field->offset = alignUp(block->bytes, 8);
    block->bytes = field->offset + elements * (field->type == "u64" ? 8 : 4);
    block->fields.push_back(std::move(field));
  }
  return block;
}

/// Builds one forward; buffers get their lifetimes from their uses and their places at the end.
class ForwardBuilder {
public:
  ForwardBuilder(fb::StageT &stage, uint32_t bucket) : stage_(stage) {
    forward_ = std::make_unique<fb::ForwardT>();
    forward_->bucket = bucket;
  }

  void buffer(const std::string &name, uint64_t bytes) {
    auto buffer = std::make_unique<fb::BufferT>();
    buffer->name = name;
    buffer->bytes = bytes;
    buffer->lower = UINT32_MAX;
    index_[name] = forward_->buffers.size();
    forward_->buffers.push_back(std::move(buffer));
  }

  /// `operands` in the signature's order: buffers and weights by name, constants as numbers.
  struct Operand {
    Operand(const char *name) : name(name) {}
    Operand(const std::string &name) : name(name) {}
    Operand(uint64_t value) : value(value) {}
    Operand(SlotKind kind, uint32_t object, uint64_t offset, uint64_t bytes)
        : kind(kind), object(object), offset(offset), bytes(bytes) {}
    std::string name;
    uint64_t value = 0;
    SlotKind kind = SlotKind::Constant;
    uint32_t object = 0;
    uint64_t offset = 0, bytes = 0;
  };

  void command(const std::string &kernel, fb::Items items, const std::string &op, int layer,
               std::vector<Operand> operands) {
    auto command = std::make_unique<fb::CommandT>();
    command->kernel = kernelIndex(kernel);
    command->items = std::make_unique<fb::Items>(items);
    command->op = op;
    command->layer = layer;
    std::span<const SlotSpec> specs = findSignature(kernel)->slots;
    for (size_t i = 0; i < operands.size(); ++i) {
      command->slots.push_back(slot(specs[i], operands[i]));
      if (command->slots.back().kind() == SlotKind::Buffer)
        bufferSlots_.push_back({forward_->commands.size(), i, index_.at(operands[i].name)});
    }
    forward_->commands.push_back(std::move(command));
  }

  /// `first` is given offset 0 from the first command to the last; the others the lowest that fits.
  void finish(const std::string &first) {
    auto &buffers = forward_->buffers;
    auto &residual = *buffers[index_.at(first)];
    residual.lower = 0;
    residual.upper = uint32_t(forward_->commands.size());
    std::vector<fb::BufferT *> placed;
    for (auto &buffer : buffers) {
      for (bool moved = true; moved;) {
        moved = false;
        for (fb::BufferT *other : placed)
          if (buffer->lower < other->upper && other->lower < buffer->upper &&
              buffer->offset < other->offset + other->bytes &&
              other->offset < buffer->offset + buffer->bytes) {
            buffer->offset = other->offset + other->bytes;
            moved = true;
          }
      }
      placed.push_back(buffer.get());
      forward_->peak = std::max(forward_->peak, buffer->offset + buffer->bytes);
    }
    for (uint32_t t = 0; t < forward_->commands.size(); ++t) {
      uint64_t live = 0;
      for (auto &buffer : buffers)
        live += buffer->lower <= t && t < buffer->upper ? buffer->bytes : 0;
      forward_->lower_bound = std::max(forward_->lower_bound, live);
    }
    forward_->proven = forward_->peak == forward_->lower_bound;
    for (auto [command, slot, buffer] : bufferSlots_) {
      fb::Slot &at = forward_->commands[command]->slots[slot];
      at = fb::Slot(at.kind(), at.access(), 0, buffers[buffer]->offset, buffers[buffer]->bytes);
    }
    stage_.arena_bytes = std::max(stage_.arena_bytes, forward_->peak);
    stage_.forwards.push_back(std::move(forward_));
  }

  void logits(const std::string &name) {
    forward_->logits = int32_t(index_.at(name));
    forward_->buffers[index_.at(name)]->upper = uint32_t(forward_->commands.size());
  }

private:
  uint32_t kernelIndex(const std::string &name) {
    auto &kernels = stage_.kernels;
    auto found = std::find_if(kernels.begin(), kernels.end(),
                              [&](const auto &kernel) { return kernel->name == name; });
    if (found == kernels.end()) {
      kernels.push_back(std::make_unique<fb::KernelT>());
      kernels.back()->name = name;
      return uint32_t(kernels.size() - 1);
    }
    return uint32_t(found - kernels.begin());
  }

  fb::Slot slot(const SlotSpec &spec, const Operand &operand) {
    if (operand.kind != SlotKind::Constant)
      return {operand.kind, spec.access, operand.object, operand.offset, operand.bytes};
    if (operand.name.empty())
      return {SlotKind::Constant, Access::None, 0, operand.value, 0};
    auto field = [&](const fb::BlockLayoutT &block) -> fb::Slot {
      for (auto &each : block.fields)
        if (each->name == operand.name)
          return {spec.kind, spec.access, 0, each->offset,
                  each->count * (each->type == "u64" ? 8 : 4)};
      std::abort();
    };
    switch (spec.kind) {
    case SlotKind::Buffer: {
      auto &buffer = *forward_->buffers[index_.at(operand.name)];
      auto now = uint32_t(forward_->commands.size());
      buffer.lower = std::min(buffer.lower, now);
      buffer.upper = std::max(buffer.upper, now + 1);
      return {SlotKind::Buffer, spec.access, 0, 0, buffer.bytes};
    }
    case SlotKind::Weight:
      for (uint32_t i = 0; i < stage_.weights.size(); ++i)
        if (stage_.weights[i]->name == operand.name)
          return {SlotKind::Weight, spec.access, i, 0, stage_.weights[i]->bytes};
      std::abort();
    case SlotKind::Table:
      return field(*stage_.table_);
    case SlotKind::Step:
      return field(*stage_.step);
    case SlotKind::Out:
      return field(*stage_.out);
    default:
      return {SlotKind::Scratch, spec.access, 0, 0, stage_.scratch_bytes_per_worker};
    }
  }

  fb::StageT &stage_;
  std::unique_ptr<fb::ForwardT> forward_;
  std::map<std::string, size_t> index_;
  struct BufferSlot {
    size_t command, slot, buffer;
  };
  std::vector<BufferSlot> bufferSlots_;
};

using Operand = ForwardBuilder::Operand;

void addWeight(fb::StageT &stage, const std::string &name, std::vector<uint64_t> shape,
               uint32_t segment, uint64_t &offset) {
  auto weight = std::make_unique<fb::WeightT>();
  weight->name = name;
  weight->type = "f32";
  weight->layout = "rows";
  weight->shape = shape;
  weight->segment = segment;
  weight->offset = offset;
  weight->bytes = 4;
  for (uint64_t size : shape)
    weight->bytes *= size;
  offset = alignUp(offset + weight->bytes, 64);
  stage.weights.push_back(std::move(weight));
}

std::string of(uint32_t layer, const char *name) { return std::to_string(layer) + "." + name; }

/// Segment 0 holds the embedding, segment 1 + i layer i, the last one the final norm.
void addWeights(fb::StageT &stage) {
  uint64_t offset = 0;
  if (stage.has_embedding || stage.has_head)
    addWeight(stage, "embedding", {M::vocabulary, M::hidden}, 0, offset);
  for (uint32_t i = stage.first_layer; i < stage.end_layer; ++i) {
    offset = 0;
    addWeight(stage, of(i, "norm"), {M::hidden}, 1 + i, offset);
    for (const char *name : {"q", "k", "v", "o"})
      addWeight(stage, of(i, name), {M::hidden, M::hidden}, 1 + i, offset);
  }
  offset = 0;
  if (stage.has_head)
    addWeight(stage, "final_norm", {M::hidden}, 1 + M::layers, offset);
}

void addState(fb::StageT &stage) {
  auto group = std::make_unique<fb::StateGroupT>();
  group->name = "kv";
  group->kind = fb::StateKind::Paged;
  group->block_tokens = M::blockTokens;
  group->blocks_per_sequence = M::blocksPerSequence;
  group->promised_blocks = M::blocksPerSequence * M::sequences;
  for (uint32_t i = stage.first_layer; i < stage.end_layer; ++i)
    for (const char *name : {"k", "v"}) {
      auto component = std::make_unique<fb::StateComponentT>();
      component->name = name;
      component->layer = i;
      component->type = "f32";
      component->width = M::hidden;
      component->row_bytes = M::hidden * 4;
      component->offset = group->block_bytes;
      group->block_bytes += component->row_bytes * M::blockTokens;
      group->components.push_back(std::move(component));
    }
  stage.states.push_back(std::move(group));
}

void addLinear(ForwardBuilder &build, fb::StageT &stage, fb::Items items, int layer,
               const std::string &x, const std::string &weight, const std::string &y,
               const std::string &rows, uint64_t outputs, bool accumulate) {
  build.command("linear.f32", items, "linear " + weight, layer,
                {x, weight, uint64_t(0), y, rows, "scratch", stage.scratch_bytes_per_worker,
                 uint64_t(M::hidden), outputs, uint64_t(accumulate)});
}

void addLayer(ForwardBuilder &build, fb::StageT &stage, uint32_t layer) {
  const fb::Items perRow(1, 0, 0, 0), tiles(0, 0, 0, M::hidden / 16);
  const uint64_t stride = stage.states[0]->block_bytes;
  auto state = [&](uint32_t component) {
    auto &of = *stage.states[0]->components[2 * (layer - stage.first_layer) + component];
    return Operand(SlotKind::State, 0, of.offset, of.row_bytes * M::blockTokens);
  };
  int number = int(layer);
  build.command("rms_norm", perRow, "norm", number,
                {"residual", of(layer, "norm"), of(layer, "n"), "row_sequence", "nonfinite_layer",
                 uint64_t(M::hidden), bits(M::epsilon), uint64_t(layer)});
  for (const char *name : {"q", "k", "v"})
    addLinear(build, stage, tiles, number, of(layer, "n"), of(layer, name),
              of(layer, name) + " rows", "valid_rows", M::hidden, false);
  for (uint32_t component : {0, 1})
    build.command("kv_write.f32", perRow, "kv_write", number,
                  {of(layer, component ? "v rows" : "k rows"), state(component), "block_table.kv",
                   "row_sequence", "row_position", uint64_t(M::hidden), uint64_t(M::blockTokens),
                   stride, uint64_t(M::blocksPerSequence)});
  build.command("attention.f32.f32", fb::Items(M::heads, 0, 0, 0), "attention", number,
                {of(layer, "q rows"), state(0), state(1), of(layer, "a"), "block_table.kv",
                 "row_sequence", "row_position", uint64_t(M::heads), uint64_t(M::heads),
                 uint64_t(M::headWidth), uint64_t(M::headWidth), bits(0.25), uint64_t(0),
                 uint64_t(M::blockTokens), stride, uint64_t(M::blocksPerSequence)});
  addLinear(build, stage, tiles, number, of(layer, "a"), of(layer, "o"), "residual", "valid_rows",
            M::hidden, true);
}

void addHead(ForwardBuilder &build, fb::StageT &stage) {
  const fb::Items perHeadRow(0, 0, 1, 0);
  build.command("gather_rows", perHeadRow, "gather", -1,
                {"residual", "h", "head_row", uint64_t(M::hidden)});
  build.command("rms_norm", perHeadRow, "final norm", -1,
                {"h", "final_norm", "hn", "head_sequence", "nonfinite_layer", uint64_t(M::hidden),
                 bits(M::epsilon), uint64_t(M::layers)});
  addLinear(build, stage, fb::Items(0, 0, 0, (M::vocabulary + 15) / 16), -1, "hn", "embedding",
            "logits", "valid_head_rows", M::vocabulary, false);
  build.command("sample", perHeadRow, "sample", -1,
                {"logits",
                 "valid_head_rows",
                 "head_sequence",
                 "sequence_slot",
                 "sequence_length",
                 "temperature",
                 "top_k",
                 "top_p",
                 "min_p",
                 "seed",
                 "repetition_penalty",
                 "presence_penalty",
                 "frequency_penalty",
                 "penalty_window",
                 "last_id",
                 "history",
                 "bias_count",
                 "bias_id",
                 "bias_value",
                 "is_masked",
                 "mask",
                 "id",
                 "log_probability",
                 "top_id",
                 "top_log_probability",
                 "scratch",
                 stage.scratch_bytes_per_worker,
                 uint64_t(M::vocabulary),
                 uint64_t(M::context)});
  build.logits("logits");
}

/// Stage `number`'s forward of bucket `index`.
void addForward(fb::StageT &stage, uint32_t number, const fb::BucketT &bucket, uint32_t index) {
  if (!bucket.body && !stage.has_head)
    return;
  ForwardBuilder build(stage, index);
  const uint64_t rowBytes = M::hidden * 4;
  const uint64_t rows = bucket.body ? bucket.rows : maxRows;
  build.buffer("residual", rows * rowBytes);
  const fb::Items perRow(1, 0, 0, 0);
  if (bucket.body) {
    for (uint32_t i = stage.first_layer; i < stage.end_layer; ++i)
      for (const char *name : {"n", "q rows", "k rows", "v rows", "a"})
        build.buffer(of(i, name), rows * rowBytes);
    if (stage.has_embedding)
      build.command("embed.f32", perRow, "embed", -1,
                    {"embedding", "residual", "row_id", "row_sequence", "sequence_slot", "last_id",
                     uint64_t(M::hidden), uint64_t(M::vocabulary), bits(1)});
    else
      build.command("copy_rows", perRow, "receive", -1,
                    {Operand(SlotKind::HandoffIn, number - 1, 0, rows * rowBytes), "residual",
                     uint64_t(M::hidden)});
    for (uint32_t i = stage.first_layer; i < stage.end_layer; ++i)
      addLayer(build, stage, i);
    if (!stage.has_head)
      build.command("copy_rows", perRow, "send", -1,
                    {"residual", Operand(SlotKind::HandoffOut, number, 0, rows * rowBytes),
                     uint64_t(M::hidden)});
  }
  if (bucket.head && stage.has_head) {
    for (const char *name : {"h", "hn"})
      build.buffer(name, bucket.rows * rowBytes);
    build.buffer("logits", uint64_t(bucket.rows) * M::vocabulary * 4);
    addHead(build, stage);
  }
  build.finish("residual");
}

std::span<const std::byte> bytesOf(const std::vector<float> &values) {
  return std::as_bytes(std::span(values));
}

} // namespace

fb::PlanT tinyPlan(const TinyOptions &options) {
  fb::PlanT plan;
  plan.producer = "test";
  plan.model = "tiny";
  plan.vocabulary_size = M::vocabulary;
  plan.hidden = M::hidden;
  plan.layers = M::layers;
  plan.max_context = M::context;
  plan.max_sequences = M::sequences;
  plan.max_rows = maxRows;
  plan.max_head_rows = maxHeadRows;
  const struct {
    const char *name;
    uint32_t rows, sequences;
    bool body, head;
  } buckets[] = {{"r1s1", 1, 1, true, true},
                 {"r2s2", 2, 2, true, true},
                 {"r4s1", 4, 1, true, false},
                 {"h1", 1, 1, false, true},
                 {"h2", 2, 2, false, true}};
  for (auto &from : buckets) {
    auto bucket = std::make_unique<fb::BucketT>();
    bucket->name = from.name;
    bucket->rows = from.rows;
    bucket->sequences = from.sequences;
    bucket->body = from.body;
    bucket->head = from.head;
    plan.buckets.push_back(std::move(bucket));
  }
  for (uint32_t rows = 1; rows < maxRows; ++rows) {
    plan.tails.push_back(std::make_unique<fb::TailT>());
    plan.tails.back()->rows = rows;
    plan.tails.back()->buckets = {rows == 1 ? R1S1 : rows == 2 ? R2S2 : R4S1};
  }
  for (const char *label : {"embedding", "layer 0", "layer 1", "head"}) {
    plan.segments.push_back(std::make_unique<fb::SegmentT>());
    plan.segments.back()->label = label;
  }
  for (uint32_t s = 0; s < options.stages; ++s) {
    auto stage = std::make_unique<fb::StageT>();
    stage->name = "s" + std::to_string(s);
    stage->target = options.target.empty() ? "cpu:" + std::string(cpu::isaName(cpu::hostIsa()))
                                           : options.target;
    // From three stages on the head has one to itself, from four on the embedding too.
    uint32_t before = options.stages > 3 ? 1 : 0;
    stage->first_layer = s > before ? s - before : 0;
    stage->end_layer = s + 1 == options.stages ? M::layers : s + 1 - before;
    stage->has_embedding = s == 0;
    stage->has_head = s + 1 == options.stages;
    stage->scratch_bytes_per_worker = std::max(cpu::scratchBytes("linear.f32", M::hidden),
                                               cpu::scratchBytes("sample", M::vocabulary));
    stage->step = layout({{"valid_rows", "u32", 1},
                          {"valid_sequences", "u32", 1},
                          {"valid_head_rows", "u32", 1},
                          {"handoff_slot", "u32", 1},
                          {"row_id", "i32", maxRows},
                          {"row_position", "i32", maxRows},
                          {"row_sequence", "i32", maxRows},
                          {"query_start", "i32", M::sequences + 1},
                          {"sequence_length", "i32", M::sequences},
                          {"sequence_slot", "i32", M::sequences},
                          {"block_table.kv", "i32", M::sequences * M::blocksPerSequence},
                          {"head_row", "i32", maxHeadRows},
                          {"head_sequence", "i32", maxHeadRows},
                          {"temperature", "f32", M::sequences},
                          {"top_k", "i32", M::sequences},
                          {"top_p", "f32", M::sequences},
                          {"min_p", "f32", M::sequences},
                          {"seed", "u64", M::sequences},
                          {"repetition_penalty", "f32", M::sequences},
                          {"presence_penalty", "f32", M::sequences},
                          {"frequency_penalty", "f32", M::sequences},
                          {"penalty_window", "i32", M::sequences}});
    stage->out = layout({{"id", "i32", maxHeadRows},
                         {"log_probability", "f32", maxHeadRows},
                         {"top_id", "i32", maxHeadRows * 20},
                         {"top_log_probability", "f32", maxHeadRows * 20},
                         {"nonfinite_layer", "i32", M::sequences}});
    stage->table_ = layout({{"last_id", "i32", M::sequences},
                            {"history", "i32", M::sequences * M::context},
                            {"bias_count", "i32", M::sequences},
                            {"bias_id", "i32", M::sequences * maxLogitBiases},
                            {"bias_value", "f32", M::sequences * maxLogitBiases},
                            {"is_masked", "i32", M::sequences},
                            {"mask", "u32", M::sequences * maskWords(M::vocabulary)}});
    addWeights(*stage);
    if (stage->first_layer < stage->end_layer)
      addState(*stage);
    for (uint32_t b = 0; b < plan.buckets.size(); ++b)
      addForward(*stage, s, *plan.buckets[b], b);
    for (auto &weight : stage->weights) {
      uint64_t &bytes = plan.segments[weight->segment]->bytes;
      bytes = std::max(bytes, weight->offset + weight->bytes);
    }
    plan.stages.push_back(std::move(stage));
  }
  for (uint32_t s = 0; s + 1 < options.stages; ++s) {
    plan.handoffs.push_back(std::make_unique<fb::HandoffT>());
    auto &handoff = *plan.handoffs.back();
    handoff.name = "s" + std::to_string(s) + " to s" + std::to_string(s + 1);
    handoff.producer = s;
    handoff.consumer = s + 1;
    handoff.slots = options.slots;
    handoff.row_bytes = M::hidden * 4;
    handoff.slot_bytes = maxRows * handoff.row_bytes;
  }
  plan.weights_place = fb::WeightsPlace::None;
  return plan;
}

std::vector<uint8_t> packPlan(const fb::PlanT &plan) {
  flatbuffers::FlatBufferBuilder builder;
  fb::FinishPlanBuffer(builder, fb::Plan::Pack(builder, &plan));
  return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
}

Status writeTinyPlan(const std::string &path, fb::PlanT &plan, const TinyModel &model,
                     fb::WeightsPlace place, const std::string &store) {
  plan.weights_place = place;
  plan.store = store;
  STRATA_ASSIGN_OR_RETURN(auto writer, PlanWriter::create(path, place, store));
  for (uint32_t i = 0; i < plan.segments.size() && place != fb::WeightsPlace::None; ++i) {
    auto produce = [&](SegmentSink &sink) -> Status {
      if (i == 0)
        return sink.write(bytesOf(model.embedding));
      if (i == 1 + M::layers)
        return sink.write(bytesOf(model.finalNorm));
      const TinyModel::Layer &layer = model.layer[i - 1];
      for (auto *matrix : {&layer.norm, &layer.q, &layer.k, &layer.v, &layer.o}) {
        STRATA_RETURN_IF_ERROR(sink.alignTo(64));
        STRATA_RETURN_IF_ERROR(sink.write(bytesOf(*matrix)));
      }
      return {};
    };
    STRATA_ASSIGN_OR_RETURN(WrittenSegment written, writer->addSegment(produce));
    plan.segments[i]->name = written.name;
    plan.segments[i]->bytes = written.bytes;
    plan.segments[i]->file_offset = written.fileOffset;
  }
  return writer->finish(packPlan(plan));
}

TemporaryFolder::TemporaryFolder() {
  path_ = (std::filesystem::temp_directory_path() / "strata-test-XXXXXX").string();
  if (!::mkdtemp(path_.data()))
    std::abort();
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

} // namespace strata::test
