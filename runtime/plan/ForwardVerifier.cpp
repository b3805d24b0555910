// One forward: its buffers against each other, and every slot of every command against its object.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "codegen/kernels/Signatures.h"
#include "runtime/plan/Checks.h"
#include "runtime/plan/WeightPlaces.h"

namespace strata::checks {
namespace {

/// The buffers alive at one command, by offset: a sweep that knows nothing of how they were placed.
/// They share no byte, so the order of their offsets is also the order of their ends.
class LiveBuffers {
public:
  explicit LiveBuffers(const fb::Forward &forward) : forward_(forward) {
    for (uint32_t i = 0; i < count(forward.buffers()); ++i)
      byLower_.push_back(i);
    byUpper_ = byLower_;
    std::stable_sort(byLower_.begin(), byLower_.end(),
                     [&](uint32_t a, uint32_t b) { return buffer(a).lower() < buffer(b).lower(); });
    std::stable_sort(byUpper_.begin(), byUpper_.end(),
                     [&](uint32_t a, uint32_t b) { return buffer(a).upper() < buffer(b).upper(); });
  }

  /// Moves to `command`; commands come in order.
  Status advance(uint32_t command) {
    // What ends by now began before, so it is in the map.
    for (; ended_ < byUpper_.size() && buffer(byUpper_[ended_]).upper() <= command; ++ended_) {
      live_.erase(buffer(byUpper_[ended_]).offset());
      bytes_ -= buffer(byUpper_[ended_]).bytes();
    }
    for (; begun_ < byLower_.size() && buffer(byLower_[begun_]).lower() <= command; ++begun_)
      STRATA_RETURN_IF_ERROR(add(buffer(byLower_[begun_])));
    return {};
  }

  uint64_t bytes() const { return bytes_; } ///< Alive now.

  /// The live buffer that holds the byte at `offset`, or nullptr.
  const fb::Buffer *find(uint64_t offset) const {
    auto after = live_.upper_bound(offset);
    if (after == live_.begin())
      return nullptr;
    const fb::Buffer *found = std::prev(after)->second;
    return offset < end(*found) ? found : nullptr;
  }

private:
  const fb::Buffer &buffer(uint32_t index) const { return *forward_.buffers()->Get(index); }
  static uint64_t end(const fb::Buffer &buffer) { return buffer.offset() + buffer.bytes(); }

  Status add(const fb::Buffer &added) {
    auto after = live_.lower_bound(added.offset());
    const fb::Buffer *other = nullptr;
    if (after != live_.end() && after->second->offset() < end(added))
      other = after->second;
    else if (after != live_.begin() && end(*std::prev(after)->second) > added.offset())
      other = std::prev(after)->second;
    if (other)
      return invalid(
          "buffers '{}' (bytes {}..{}, commands {}..{}) and '{}' (bytes {}..{}, commands "
          "{}..{}) are alive at once and overlap",
          text(other->name()), other->offset(), end(*other), other->lower(), other->upper(),
          text(added.name()), added.offset(), end(added), added.lower(), added.upper());
    live_.emplace(added.offset(), &added);
    bytes_ += added.bytes();
    return {};
  }

  const fb::Forward &forward_;
  std::vector<uint32_t> byLower_, byUpper_;
  size_t begun_ = 0, ended_ = 0;
  std::map<uint64_t, const fb::Buffer *> live_;
  uint64_t bytes_ = 0;
};

class ForwardChecker {
public:
  ForwardChecker(const fb::Plan &plan, uint32_t stage, const fb::Forward &forward)
      : plan_(plan), stageIndex_(stage), stage_(*plan.stages()->Get(stage)), forward_(forward),
        bucket_(*plan.buckets()->Get(forward.bucket())), live_(forward) {}

  Status run();

private:
  Status checkBufferExtents();
  Status checkCommand(const fb::Command &command);
  Status checkItems(const fb::Command &command);
  Status checkSlot(const KernelSignature &signature, const fb::Command &command, uint32_t index);
  Status checkObject(const fb::Slot &slot, const fb::Command &command);
  Status checkType(std::string_view kernel, const SlotSpec &spec, const fb::Slot &slot);
  Status checkLayer(const fb::Weight &table, const fb::Slot &slot, const fb::Command &command);
  Status checkField(const fb::BlockLayout &layout, const fb::Slot &slot);
  Status checkHandoff(const fb::Slot &slot, bool isWritten);
  Status checkLogits();

  const fb::Plan &plan_;
  uint32_t stageIndex_;
  const fb::Stage &stage_;
  const fb::Forward &forward_;
  const fb::Bucket &bucket_;
  LiveBuffers live_;
};

Status ForwardChecker::checkBufferExtents() {
  uint32_t commands = count(forward_.commands());
  uint64_t peak = 0;
  for (uint32_t i = 0; i < count(forward_.buffers()); ++i) {
    const fb::Buffer &buffer = *forward_.buffers()->Get(i);
    STRATA_RETURN_IF_ERROR(checkName(fmt::format("buffer {}", i), buffer.name()));
    if (buffer.bytes() == 0 || !inside(buffer.offset(), buffer.bytes(), maxObjectBytes) ||
        buffer.offset() % 4 != 0)
      return invalid(
          "buffer '{}' has {} bytes at {}; at least one byte at a multiple of 4 is allowed",
          text(buffer.name()), buffer.bytes(), buffer.offset());
    if (buffer.lower() >= buffer.upper() || buffer.upper() > commands)
      return invalid("buffer '{}' is alive during commands [{}, {}) of {}", text(buffer.name()),
                     buffer.lower(), buffer.upper(), commands);
    peak = std::max(peak, buffer.offset() + buffer.bytes());
  }
  if (peak != forward_.peak())
    return invalid("the peak is said to be {} but the buffers end at {}", forward_.peak(), peak);
  if (forward_.lower_bound() > forward_.peak())
    return invalid("the lower bound {} is above the peak {}", forward_.lower_bound(),
                   forward_.peak());
  return {};
}

Status ForwardChecker::checkItems(const fb::Command &command) {
  const fb::Items *items = command.items();
  if (!items)
    return invalid("the command has no items");
  // Four products of 32-bit numbers fit in 66 bits only in sum; limits on rows and sequences make
  // each at most 2^52.
  uint64_t most = uint64_t(items->row()) * (bucket_.body() ? bucket_.rows() : plan_.max_rows()) +
                  uint64_t(items->sequence()) * plan_.max_sequences() +
                  uint64_t(items->head_row()) * (bucket_.head() ? bucket_.rows() : 0) +
                  items->constant();
  if (most == 0 || most > UINT32_MAX)
    return invalid("the command has up to {} items; 1 to {} are allowed", most, UINT32_MAX);
  return {};
}

Status ForwardChecker::checkField(const fb::BlockLayout &layout, const fb::Slot &slot) {
  for (uint32_t i = 0; i < count(layout.fields()); ++i) {
    const fb::Field &field = *layout.fields()->Get(i);
    uint64_t bytes = field.count() * fieldTypeBytes(text(field.type()));
    if (slot.offset() >= field.offset() &&
        inside(slot.offset() - field.offset(), slot.bytes(), bytes))
      return {};
  }
  return invalid("bytes {}..+{} lie in no field of a block of {}", slot.offset(), slot.bytes(),
                 layout.bytes());
}

Status ForwardChecker::checkHandoff(const fb::Slot &slot, bool isWritten) {
  if (slot.object() >= count(plan_.handoffs()))
    return invalid("handoff {} of {}", slot.object(), count(plan_.handoffs()));
  const fb::Handoff &handoff = *plan_.handoffs()->Get(slot.object());
  uint32_t owner = isWritten ? handoff.producer() : handoff.consumer();
  if (owner != stageIndex_)
    return invalid("handoff '{}' is {} by stage '{}', not by this one", text(handoff.name()),
                   isWritten ? "written" : "read", text(plan_.stages()->Get(owner)->name()));
  if (!inside(slot.offset(), slot.bytes(), handoff.slot_bytes()))
    return invalid("bytes {}..+{} of handoff '{}', whose slots end at {}", slot.offset(),
                   slot.bytes(), text(handoff.name()), handoff.slot_bytes());
  return {};
}

// A command of a layer reads that layer's part of a table and no other's.
Status ForwardChecker::checkLayer(const fb::Weight &table, const fb::Slot &slot,
                                  const fb::Command &command) {
  uint64_t stride = layerStride(table);
  if (command.layer() < int64_t(table.first_layer()) ||
      command.layer() >= int64_t(table.end_layer()))
    return invalid("layer {} of table '{}', which holds [{}, {}) here", command.layer(),
                   text(table.name()), table.first_layer(), table.end_layer());
  uint64_t begin = (uint64_t(command.layer()) - table.first_layer()) * stride;
  if (slot.offset() < begin || !inside(slot.offset() - begin, slot.bytes(), stride))
    return invalid("bytes {}..+{} of table '{}', where layer {} has {}..+{}", slot.offset(),
                   slot.bytes(), text(table.name()), command.layer(), begin, stride);
  return {};
}

Status ForwardChecker::checkObject(const fb::Slot &slot, const fb::Command &command) {
  using enum fb::SlotKind;
  switch (slot.kind()) {
  case Buffer: {
    const fb::Buffer *buffer = live_.find(slot.offset());
    if (!buffer)
      return invalid("byte {} of the arena belongs to no buffer alive here", slot.offset());
    if (!inside(slot.offset() - buffer->offset(), slot.bytes(), buffer->bytes()))
      return invalid("bytes {}..+{} of the arena, but buffer '{}' ends at {}", slot.offset(),
                     slot.bytes(), text(buffer->name()), buffer->offset() + buffer->bytes());
    return {};
  }
  case Weight: {
    if (slot.object() >= count(stage_.weights()))
      return invalid("weight {} of {}", slot.object(), count(stage_.weights()));
    const fb::Weight &weight = *stage_.weights()->Get(slot.object());
    if (!inside(slot.offset(), slot.bytes(), weight.bytes()))
      return invalid("bytes {}..+{} of weight '{}', which has {}", slot.offset(), slot.bytes(),
                     text(weight.name()), weight.bytes());
    return weight.end_layer() == 0 ? Status() : checkLayer(weight, slot, command);
  }
  case State: {
    if (slot.object() >= count(stage_.states()))
      return invalid("state group {} of {}", slot.object(), count(stage_.states()));
    const fb::StateGroup &group = *stage_.states()->Get(slot.object());
    if (!inside(slot.offset(), slot.bytes(), group.block_bytes()))
      return invalid("bytes {}..+{} of a block of state '{}', which ends at {}", slot.offset(),
                     slot.bytes(), text(group.name()), group.block_bytes());
    return {};
  }
  case Table:
    return checkField(*stage_.table_(), slot);
  case Step:
    return checkField(*stage_.step(), slot);
  case Out:
    return checkField(*stage_.out(), slot);
  case HandoffIn:
    return checkHandoff(slot, false);
  case HandoffOut:
    return checkHandoff(slot, true);
  case Scratch:
    if (!inside(slot.offset(), slot.bytes(), stage_.scratch_bytes_per_worker()))
      return invalid("bytes {}..+{} of a worker's scratch, which ends at {}", slot.offset(),
                     slot.bytes(), stage_.scratch_bytes_per_worker());
    return {};
  case Constant:
    return {};
  }
  return invalid("a slot of kind {}", int(slot.kind()));
}

/// Kernels of a GPU read and write 16 bytes at once, those of a CPU whole numbers. Fields of a
/// block are aligned to their elements.
uint64_t slotAlignment(fb::SlotKind kind, const fb::Stage &stage) {
  using enum fb::SlotKind;
  if (kind == Step || kind == Out || kind == Table)
    return 1;
  return text(stage.target()).starts_with("cpu:") ? sizeof(float) : 16;
}

bool mayStandFor(const fb::Slot &slot, const SlotSpec &spec) {
  using enum fb::SlotKind;
  if (slot.kind() == spec.kind)
    return slot.access() == spec.access;
  if (spec.kind == Buffer && slot.access() == spec.access)
    return (spec.access == fb::Access::Read && slot.kind() == HandoffIn) ||
           (spec.access == fb::Access::Write && slot.kind() == HandoffOut);
  return spec.optional && slot.kind() == Constant && slot.access() == fb::Access::None &&
         slot.offset() == 0;
}

// A weight or a state's component of another type would fit by its bytes alone.
Status ForwardChecker::checkType(std::string_view kernel, const SlotSpec &spec,
                                 const fb::Slot &slot) {
  if (slot.kind() == fb::SlotKind::Weight) {
    const fb::Weight &weight = *stage_.weights()->Get(slot.object());
    std::string_view type = weightType(kernel, spec.name);
    return text(weight.type()) == type
               ? Status()
               : invalid("weight '{}' is of type '{}'; the kernel reads '{}'", text(weight.name()),
                         text(weight.type()), type);
  }
  if (slot.kind() != fb::SlotKind::State)
    return {};
  const fb::StateGroup &group = *stage_.states()->Get(slot.object());
  std::string_view type = stateType(kernel, spec.name);
  for (uint32_t i = 0; i < count(group.components()); ++i) {
    const fb::StateComponent &component = *group.components()->Get(i);
    if (slot.offset() == component.offset() && text(component.type()) == type &&
        slot.bytes() <= component.row_bytes() * group.block_tokens())
      return {};
  }
  return invalid("bytes {}..+{} of a block of state '{}' are no component of type '{}'",
                 slot.offset(), slot.bytes(), text(group.name()), type);
}

Status ForwardChecker::checkSlot(const KernelSignature &signature, const fb::Command &command,
                                 uint32_t index) {
  const fb::Slot &slot = *command.slots()->Get(index);
  const SlotSpec &spec = signature.slots[index];
  if (slot.kind() > fb::SlotKind::MAX || slot.access() > fb::Access::MAX)
    return invalid("the slot has kind {} and access {}; at most {} and {} are known",
                   int(slot.kind()), int(slot.access()), int(fb::SlotKind::MAX),
                   int(fb::Access::MAX));
  if (!mayStandFor(slot, spec))
    return invalid("the slot is a {} ({}) where the kernel takes a {} ({})",
                   fb::EnumNameSlotKind(slot.kind()), fb::EnumNameAccess(slot.access()),
                   fb::EnumNameSlotKind(spec.kind), fb::EnumNameAccess(spec.access));
  if (slot.kind() == fb::SlotKind::Constant) {
    if (slot.bytes() != 0)
      return invalid("the constant has an extent of {} bytes", slot.bytes());
    // Workers' scratch lies side by side: a smaller stride would let them share bytes, a larger one
    // would leave the allocation.
    if (spec.name == "scratch_stride" && index > 0) {
      const fb::Slot &scratch = *command.slots()->Get(index - 1);
      if (slot.offset() < scratch.bytes() || slot.offset() > stage_.scratch_bytes_per_worker())
        return invalid("the stride {} is outside {}..{}", slot.offset(), scratch.bytes(),
                       stage_.scratch_bytes_per_worker());
    }
    return {};
  }
  if (slot.bytes() == 0)
    return invalid("the slot has no extent");
  if (uint64_t alignment = slotAlignment(slot.kind(), stage_); slot.offset() % alignment != 0)
    return invalid("the slot begins at byte {}, which is no multiple of {}", slot.offset(),
                   alignment);
  STRATA_RETURN_IF_ERROR(checkObject(slot, command));
  return checkType(text(stage_.kernels()->Get(command.kernel())->name()), spec, slot);
}

Status ForwardChecker::checkCommand(const fb::Command &command) {
  if (command.kind() > fb::CommandKind::MAX)
    return invalid("the command is of kind {}; 0 to {} are known", int(command.kind()),
                   int(fb::CommandKind::MAX));
  if (command.kernel() >= count(stage_.kernels()))
    return invalid("the command runs kernel {} of {}", command.kernel(), count(stage_.kernels()));
  std::string_view kernel = text(stage_.kernels()->Get(command.kernel())->name());
  const KernelSignature &signature = *findSignature(kernel);
  if (count(command.slots()) != signature.slots.size())
    return invalid("kernel '{}' takes {} slots but the command has {}", kernel,
                   signature.slots.size(), count(command.slots()));
  if (!isAligned(command.slots()))
    return invalid("the slots do not lie at a multiple of 8 bytes");
  STRATA_RETURN_IF_ERROR(checkItems(command));
  for (uint32_t i = 0; i < command.slots()->size(); ++i)
    if (Status status = checkSlot(signature, command, i); !status.isOk())
      return std::move(status).at("slot", signature.slots[i].name).at("kernel", kernel);
  return checkOperands(plan_, stage_, bucket_, command);
}

Status ForwardChecker::checkLogits() {
  if (forward_.logits() == -1)
    return {};
  if (!bucket_.head() || !stage_.has_head())
    return invalid("the forward has logits but no head");
  if (uint32_t(forward_.logits()) >= count(forward_.buffers()))
    return invalid("the logits are buffer {} of {}", forward_.logits(), count(forward_.buffers()));
  const fb::Buffer &buffer = *forward_.buffers()->Get(uint32_t(forward_.logits()));
  uint64_t bytes = uint64_t(bucket_.rows()) * plan_.vocabulary_size() * 4;
  if (buffer.bytes() < bytes || buffer.upper() != count(forward_.commands()))
    return invalid("logits buffer '{}' has {} bytes until command {}; {} rows of {} F32 take {}, "
                   "until the end ({})",
                   text(buffer.name()), buffer.bytes(), buffer.upper(), bucket_.rows(),
                   plan_.vocabulary_size(), bytes, count(forward_.commands()));
  return {};
}

Status ForwardChecker::run() {
  STRATA_RETURN_IF_ERROR(checkBufferExtents());
  uint64_t most = 0;
  for (uint32_t i = 0; i < count(forward_.commands()); ++i) {
    const fb::Command &command = *forward_.commands()->Get(i);
    Status status = checkName("the command", command.op());
    if (!status.isOk())
      return std::move(status).at("command", std::to_string(i));
    status = live_.advance(i);
    if (status.isOk())
      status = checkCommand(command);
    if (!status.isOk())
      return std::move(status).at("command", fmt::format("{} ({})", i, text(command.op())));
    most = std::max(most, live_.bytes());
  }
  if (most > forward_.lower_bound())
    return invalid("{} bytes are alive at once but the lower bound says {}", most,
                   forward_.lower_bound());
  return checkLogits();
}

} // namespace

Status checkForward(const fb::Plan &plan, uint32_t stage, const fb::Forward &forward) {
  return ForwardChecker(plan, stage, forward).run();
}

} // namespace strata::checks
