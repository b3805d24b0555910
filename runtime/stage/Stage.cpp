#include "runtime/stage/Stage.h"

#include <algorithm>
#include <ranges>

#include "codegen/kernels/Signatures.h"
#include "runtime/base/CheckedMath.h"
#include "runtime/checkpoint/WeightTypeTable.h"
#include "runtime/plan/PlanAccess.h"
#include "runtime/plan/WeightPlaces.h"
#include "runtime/stage/GemmCommand.h"
#include "runtime/stage/RandomWeights.h"

namespace strata {

Stage::Stage(const PlanFile &file, uint32_t index, Device &device, StepBlock step, OutBlock out,
             SequenceTable table)
    : file_(file), plan_(file.plan().stages()->Get(index)), index_(index), device_(device),
      step_(std::move(step)), out_(out), table_(table), lines_(file.plan().buckets()->size()),
      logits_(file.plan().buckets()->size(), -1) {}

std::string_view Stage::name() const { return text(plan_->name()); }

std::string_view Stage::bucketName(uint32_t bucket) const {
  return text(file_.plan().buckets()->Get(bucket)->name());
}

Status Stage::check(const fb::Plan &plan, const fb::Stage &stage) {
  Status status = StepBlock::create(plan, *stage.step()).status();
  if (status.isOk())
    status = OutBlock::create(plan, *stage.out()).status();
  if (status.isOk())
    status = SequenceTable::create(plan, *stage.table_()).status();
  if (status.isOk())
    return status;
  return std::move(status).at("stage", text(stage.name()));
}

Result<std::unique_ptr<Stage>> Stage::load(const PlanFile &file, uint32_t index, Device &device,
                                           const Options &options) {
  const fb::Plan &plan = file.plan();
  const fb::Stage &planned = *plan.stages()->Get(index);
  STRATA_ASSIGN_OR_RETURN(StepBlock step, StepBlock::create(plan, *planned.step()));
  STRATA_ASSIGN_OR_RETURN(OutBlock out, OutBlock::create(plan, *planned.out()));
  STRATA_ASSIGN_OR_RETURN(SequenceTable table, SequenceTable::create(plan, *planned.table_()));
  std::unique_ptr<Stage> stage(new Stage(file, index, device, std::move(step), out, table));
  Status status;
  if (const auto *code = planned.module_())
    status = device.loadModule(std::as_bytes(std::span(code->data(), code->size())));
  if (status.isOk())
    status = stage->takeMemory(options);
  for (uint32_t i = 0; i < count(planned.forwards()) && status.isOk(); ++i)
    status = stage->prepareForward(*planned.forwards()->Get(i), options);
  if (!status.isOk())
    return std::move(status).at("stage", stage->name());
  return stage;
}

Status Stage::takeMemory(const Options &options) {
  auto take = [&](std::string_view what, uint64_t bytes, std::span<std::byte> &into) -> Status {
    if (bytes == 0)
      return {};
    STRATA_ASSIGN_OR_RETURN(std::byte * base, device_.allocate(what, bytes));
    into = {base, bytes};
    extents_.push_back({base, bytes, true});
    return {};
  };
  STRATA_RETURN_IF_ERROR(placeWeights(options.randomWeightsSeed));
  STRATA_RETURN_IF_ERROR(take("the arena", plan_->arena_bytes(), memory_.arena));
  auto scratch = checkedMul<uint64_t>(plan_->scratch_bytes_per_worker(), device_.workers());
  if (!scratch)
    return makeError(StatusCode::InvalidData, "scratch of {} workers of {} bytes each overflows",
                     device_.workers(), plan_->scratch_bytes_per_worker());
  STRATA_RETURN_IF_ERROR(take("scratch", *scratch, memory_.scratch));
  STRATA_RETURN_IF_ERROR(take("the step block", plan_->step()->bytes(), memory_.step));
  STRATA_RETURN_IF_ERROR(take("the out block", plan_->out()->bytes(), memory_.out));
  STRATA_RETURN_IF_ERROR(take("the sequence table", plan_->table_()->bytes(), memory_.table));
  std::vector<const fb::StateGroup *> groups = stateGroups(file_.plan());
  memory_.states.resize(count(plan_->states()));
  for (uint32_t i = 0; i < memory_.states.size(); ++i) {
    const fb::StateGroup &group = *plan_->states()->Get(i);
    size_t number = 0;
    while (text(groups[number]->name()) != text(group.name()))
      ++number;
    groups_.push_back(uint32_t(number));
    auto bytes = checkedMul<uint64_t>(group.block_bytes(), options.blockCounts[number]);
    if (!bytes)
      return makeError(StatusCode::InvalidArgument, "state '{}' of {} blocks of {} bytes overflows",
                       text(group.name()), options.blockCounts[number], group.block_bytes());
    STRATA_RETURN_IF_ERROR(
        take(fmt::format("state '{}'", text(group.name())), *bytes, memory_.states[i]));
  }
  for (uint32_t i = 0; i < count(file_.plan().handoffs()); ++i) {
    const fb::Handoff &handoff = *file_.plan().handoffs()->Get(i);
    if (handoff.producer() == index_ || handoff.consumer() == index_)
      extents_.push_back(
          {options.rings[i].data(), options.rings[i].size(), handoff.producer() == index_});
  }
  std::ranges::sort(extents_, {}, &Extent::begin);
  return {};
}

Status Stage::placeWeights(std::optional<uint64_t> seed) {
  const fb::Plan &plan = file_.plan();
  bool isStored = plan.weights_place() != fb::WeightsPlace::None;
  if (!isStored && !seed)
    return makeError(StatusCode::FailedPrecondition,
                     "the plan was compiled without weights; only a run with random weights can "
                     "use it");
  const WeightPlaces weights(*plan_);
  const std::vector<bool> isNegative = negativeWeights(*plan_);
  std::vector<std::byte *> toFill;
  for (const WeightRun &run : weights.runs) {
    const fb::Segment &segment = *plan.segments()->Get(run.segment);
    std::string what = fmt::format("weight segment '{}'", text(segment.label()));
    if (isStored) {
      auto bytes = file_.segment(run.segment).subspan(run.begin);
      bytes = bytes.first(std::min<uint64_t>(bytes.size(), run.bytes));
      STRATA_ASSIGN_OR_RETURN(const std::byte *base, device_.placeConstant(what, bytes));
      memory_.weights.emplace_back(base, bytes.size());
    } else {
      STRATA_ASSIGN_OR_RETURN(std::byte * base, device_.allocate(what, run.bytes));
      memory_.weights.emplace_back(base, run.bytes);
      toFill.push_back(base);
    }
  }
  for (uint32_t i = 0; i < weights.places.size(); ++i) {
    const fb::Weight &weight = *plan_->weights()->Get(i);
    auto [run, offset] = weights.places[i];
    if (!isStored)
      STRATA_RETURN_IF_ERROR(
          placeUnstoredWeight(weight, *seed, isNegative[i], toFill[run] + offset));
    // One extent a weight: a command may not read what this stage does not list.
    weights_.push_back(memory_.weights[run].data() + offset);
    extents_.push_back({weights_.back(), weight.bytes(), false});
  }
  return {};
}

// Filled with pieces of its beginning, on every kind of device: the host would take minutes to draw
// all of a large model.
Status Stage::placeUnstoredWeight(const fb::Weight &weight, uint64_t seed, bool isNegative,
                                  std::byte *to) {
  if (const auto *content = weight.content())
    return device_.write(to, std::as_bytes(std::span(content->data(), content->size())));
  constexpr uint64_t pieceBytes = 16 << 20;
  uint64_t block = findWeightType(text(weight.type()))->blockBytes;
  // A table's layers one by one, all alike.
  uint64_t stride = layerStride(weight);
  uint64_t layerBytes = weight.bytes() - (layerCount(weight) - 1) * stride;
  std::vector<std::byte> piece(std::min(layerBytes, pieceBytes / block * block));
  STRATA_RETURN_IF_ERROR(fillRandomWeight(weight, seed, isNegative, piece));
  for (uint32_t layer = 0; layer < layerCount(weight); ++layer)
    for (uint64_t at = 0; at < layerBytes; at += piece.size())
      STRATA_RETURN_IF_ERROR(
          device_.write(to + layer * stride + at,
                        std::span(piece).first(std::min<uint64_t>(piece.size(), layerBytes - at))));
  return {};
}

Result<uint64_t> Stage::resolve(const fb::Slot &slot, uint32_t handoffNumber,
                                const Options &options, Operand &operand) const {
  using enum fb::SlotKind;
  operand = {nullptr, slot.bytes(), 0, 1, slot.access()};
  switch (slot.kind()) {
  case Buffer:
    operand.begin = memory_.arena.data();
    break;
  case Weight:
    operand.begin = weights_[slot.object()];
    break;
  case State:
    operand.begin = memory_.states[slot.object()].data();
    operand.stride = plan_->states()->Get(slot.object())->block_bytes();
    operand.count = uint32_t(memory_.states[slot.object()].size() / operand.stride);
    break;
  case Table:
    operand.begin = memory_.table.data();
    break;
  case Step:
    operand.begin = memory_.step.data();
    break;
  case Out:
    operand.begin = memory_.out.data();
    break;
  case HandoffIn:
  case HandoffOut: {
    const fb::Handoff &handoff = *file_.plan().handoffs()->Get(slot.object());
    operand.begin = options.rings[slot.object()].data() +
                    handoffNumber % handoff.slots() * handoff.slot_bytes();
    break;
  }
  case Scratch:
    operand.begin = memory_.scratch.data();
    operand.stride = plan_->scratch_bytes_per_worker();
    operand.count = device_.workers();
    break;
  case Constant:
    operand.count = 0;
    return slot.offset();
  }
  operand.begin += slot.offset();
  STRATA_RETURN_IF_ERROR(checkOwned(operand));
  return reinterpret_cast<uint64_t>(operand.begin);
}

Status Stage::checkOwned(const Operand &operand) const {
  auto begin = reinterpret_cast<uintptr_t>(operand.begin);
  uintptr_t end = begin + operand.stride * (operand.count - 1) + operand.bytes;
  bool isWritten = (uint8_t(operand.access) & uint8_t(fb::Access::Write)) != 0;
  // As a rule the extent that begins last before it; only where extents overlap one before that.
  auto after = std::ranges::upper_bound(extents_, operand.begin, {}, &Extent::begin);
  for (const Extent &extent : std::views::reverse(std::ranges::subrange(extents_.begin(), after))) {
    auto lower = reinterpret_cast<uintptr_t>(extent.begin);
    if (end <= lower + extent.bytes && (extent.isWritable || !isWritten))
      return {};
  }
  return makeError(StatusCode::Internal,
                   "{} bytes to be {} lie in no memory of the stage and in no ring of its edges",
                   end - begin, isWritten ? "written" : "read");
}

Status Stage::prepareForward(const fb::Forward &forward, const Options &options) {
  uint32_t bucket = forward.bucket();
  uint32_t lines = file_.plan().buckets()->Get(bucket)->body() ? options.period : 1;
  for (uint32_t number = 0; number < lines; ++number)
    if (Status status = prepareLine(forward, number, options); !status.isOk())
      return std::move(status).at("forward", bucketName(bucket));
  if (forward.logits() >= 0)
    logits_[bucket] = int64_t(forward.buffers()->Get(uint32_t(forward.logits()))->offset());
  return {};
}

// A GPU's kernels run on a grid of the bucket's most rows, and look in the step for how many there
// are.
Result<uint64_t> Stage::validRows(const fb::Command &command) const {
  bool isHead = command.items()->head_row() != 0;
  if (command.items()->row() == 0 && !isHead) { // all rows, counted by a slot of the kernel's
    auto counts = [](std::string_view slot) {
      return slot == "valid_rows" || slot == "valid_sequences";
    };
    const KernelSignature &signature =
        *findSignature(text(plan_->kernels()->Get(command.kernel())->name()));
    for (uint32_t i = 0; i < signature.slots.size(); ++i)
      if (counts(signature.slots[i].name))
        return reinterpret_cast<uint64_t>(memory_.step.data()) + command.slots()->Get(i)->offset();
    return makeError(StatusCode::InvalidData, "command '{}' has no rows", text(command.op()));
  }
  const auto &fields = *plan_->step()->fields();
  for (const fb::Field *field : fields)
    if (text(field->name()) == (isHead ? "valid_head_rows" : "valid_rows"))
      return reinterpret_cast<uint64_t>(memory_.step.data()) + field->offset();
  return makeError(StatusCode::InvalidData, "the step block does not count its rows");
}

Status Stage::prepareLine(const fb::Forward &forward, uint32_t handoffNumber,
                          const Options &options) {
  std::vector<DeviceCommand> commands;
  std::vector<std::vector<Operand>> operands;
  commands.reserve(count(forward.commands()));
  for (uint32_t i = 0; i < count(forward.commands()); ++i) {
    const fb::Command &planned = *forward.commands()->Get(i);
    const fb::Kernel &kernel = *plan_->kernels()->Get(planned.kernel());
    DeviceCommand command;
    command.op = text(planned.op());
    command.kernel = text(kernel.name());
    command.items = *planned.items();
    command.bytes = 0;
    if (planned.grid()) {
      command.code = {std::string(text(kernel.function())), planned.grid()->x(),
                      planned.grid()->y(), kernel.threads(), kernel.shared_bytes()};
      STRATA_ASSIGN_OR_RETURN(command.validRows, validRows(planned));
    }
    uint64_t workspaceBytes = 0; // of a gemm: its last buffer
    std::vector<Operand> touched;
    for (uint32_t s = 0; s < planned.slots()->size(); ++s) {
      Operand operand;
      Result<uint64_t> address = resolve(*planned.slots()->Get(s), handoffNumber, options, operand);
      if (!address.isOk())
        return std::move(address).status().at("slot", std::to_string(s)).at("command", command.op);
      command.slots.push_back(*address);
      if (planned.slots()->Get(s)->kind() == fb::SlotKind::Buffer)
        workspaceBytes = planned.slots()->Get(s)->bytes();
      if (planned.slots()->Get(s)->kind() != fb::SlotKind::Scratch)
        command.bytes += operand.bytes * operand.count;
      if (operand.count > 0)
        touched.push_back(operand);
    }
    if (planned.kind() == fb::CommandKind::Gemm)
      command.gemm = gemmOf(command.kernel, command.slots, workspaceBytes);
    commands.push_back(std::move(command));
    if (options.keepOperands)
      operands.push_back(std::move(touched));
  }
  STRATA_ASSIGN_OR_RETURN(
      LineId line, device_.prepare(std::string(bucketName(forward.bucket())), std::move(commands)));
  lines_[forward.bucket()].push_back(line);
  if (options.keepOperands) {
    operands_.resize(line + 1);
    operands_[line] = std::move(operands);
  }
  return {};
}

void Stage::move(const StateMove &move, std::vector<DeviceCopy> &copies) const {
  for (uint32_t i = 0; i < groups_.size(); ++i) {
    if (groups_[i] != move.group)
      continue;
    uint64_t bytes = plan_->states()->Get(i)->block_bytes();
    std::byte *pool = memory_.states[i].data();
    std::byte *from = pool + uint64_t(move.from) * bytes, *to = pool + uint64_t(move.to) * bytes;
    copies.push_back({to, from, bytes});
    copies.push_back({from, nullptr, bytes});
  }
}

const float *Stage::logits(uint32_t bucket) const {
  if (logits_[bucket] < 0)
    return nullptr;
  return reinterpret_cast<const float *>(memory_.arena.data() + logits_[bucket]);
}

uint32_t Stage::bucketOf(LineId line) const {
  auto found = std::find_if(lines_.begin(), lines_.end(), [&](const std::vector<LineId> &lines) {
    return std::find(lines.begin(), lines.end(), line) != lines.end();
  });
  return uint32_t(found - lines_.begin());
}

std::span<const Operand> Stage::operands(LineId line, uint32_t command) const {
  if (line >= operands_.size() || command >= operands_[line].size())
    return {};
  return operands_[line][command];
}

} // namespace strata
