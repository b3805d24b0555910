// What a kernel touches, worked out from its constants and held against the extents of its slots:
// the formulas of codegen/kernels/Signatures.cpp, in bytes. Kernels trust their constants, so a
// plan whose width or head count disagrees with its buffers must not reach one.
#include <algorithm>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "codegen/cuda/AttentionShape.h"
#include "codegen/cuda/KernelTable.h"
#include "runtime/plan/Checks.h"
#include "runtime/sampling/Sampler.h"

namespace strata::checks {
namespace {

constexpr uint64_t f32Bytes = 4;

const fb::Field *fieldAt(const fb::BlockLayout &layout, uint64_t offset) {
  for (uint32_t i = 0; i < count(layout.fields()); ++i)
    if (layout.fields()->Get(i)->offset() == offset)
      return layout.fields()->Get(i);
  return nullptr;
}

class OperandChecker {
public:
  OperandChecker(const fb::Plan &plan, const fb::Stage &stage, const fb::Bucket &bucket,
                 const fb::Command &command)
      : plan_(plan), stage_(stage), bucket_(bucket), command_(command),
        kernel_(text(stage.kernels()->Get(command.kernel())->name())),
        signature_(*findSignature(kernel_)) {}

  Status run();

private:
  /// `name` must be in the signature.
  const fb::Slot &slot(std::string_view name) const {
    auto spec = std::find_if(signature_.slots.begin(), signature_.slots.end(),
                             [&](const SlotSpec &each) { return each.name == name; });
    return *command_.slots()->Get(uint32_t(spec - signature_.slots.begin()));
  }
  bool hasSlot(std::string_view name) const {
    return std::any_of(signature_.slots.begin(), signature_.slots.end(),
                       [&](const SlotSpec &each) { return each.name == name; });
  }
  uint64_t constant(std::string_view name) const { return slot(name).offset(); }

  Status findRows();
  Status checkFields() const;
  Status checkFamily() const;
  Status checkElementwise() const;
  Status checkLinear() const;
  Status checkGemm() const;
  Status checkNormLinear() const;
  Status checkQkv() const;
  Status checkBias(std::string_view bias, std::initializer_list<uint64_t> outputs) const;
  Status checkAttention() const;
  Status checkPaging(std::string_view state) const;
  Status checkSlotState(std::initializer_list<uint64_t> factors) const;
  Status checkHeadLinear() const;
  Status checkRouter() const;
  Status checkExperts() const;
  Status checkRecurrence() const;
  Status checkItems(uint64_t perRow, uint64_t fixed) const;
  Status checkScratch(uint64_t width) const;
  /// Slot `name` holds the product of `factors` in bytes; none of them is 0.
  Status needs(std::string_view name, std::initializer_list<uint64_t> factors) const {
    return needs(name, std::span(factors.begin(), factors.size()));
  }
  Status needs(std::string_view name, std::span<const uint64_t> factors) const;
  /// Bytes of a row of `width` elements of a buffer slot.
  uint64_t rowBytes(std::string_view name, uint64_t width) const {
    return typedBytes(bufferType(kernel_, name), width);
  }

  const fb::Plan &plan_;
  const fb::Stage &stage_;
  const fb::Bucket &bucket_;
  const fb::Command &command_;
  std::string_view kernel_;
  const KernelSignature &signature_;
  bool isHead_ = false; // runs over head rows
  uint64_t rows_ = 0;   // the most that a launch has
};

Status OperandChecker::needs(std::string_view name, std::span<const uint64_t> factors) const {
  uint64_t bytes = 1;
  for (uint64_t factor : factors) {
    auto product = checkedMul(bytes, factor);
    if (!product || *product == 0 || *product > maxObjectBytes)
      return invalid("kernel '{}' has constants that make slot '{}' empty or larger than {} bytes",
                     kernel_, name, maxObjectBytes);
    bytes = *product;
  }
  if (slot(name).bytes() < bytes)
    return invalid("kernel '{}' touches {} bytes of slot '{}', which has {}", kernel_, bytes, name,
                   slot(name).bytes());
  return {};
}

Status OperandChecker::findRows() {
  const fb::Items &items = *command_.items();
  std::string_view family = signature_.family;
  // These count their items themselves (checkItems), and run over all rows of a body.
  if (family == "expert_lists" || family == "expert_up" || family == "expert_down" ||
      family == "conv" || family == "ssm_scan" || family == "head_linear") {
    if (!bucket_.body())
      return invalid("kernel '{}' runs in a bucket without a body", kernel_);
    rows_ = bucket_.rows();
    return {};
  }
  if (family == "gemm") { // over all rows of either kind
    rows_ = bucket_.rows();
    return checkItems(0, 1);
  }
  uint64_t perRow = family.starts_with("attention") ? constant("query_heads") : 1;
  bool isFixed = false, mayBeHead = true;
  if (family == "linear") {
    const fb::Field *field = fieldAt(*stage_.step(), slot("valid_rows").offset());
    isHead_ = field && text(field->name()) == "valid_head_rows";
    isFixed = items.constant() != 0 && items.row() == 0 && items.head_row() == 0;
  } else {
    isHead_ = items.head_row() != 0;
    mayBeHead = family != "embed" && !family.starts_with("attention") && family != "kv_write" &&
                family != "norm_qkv" && family != "qkv_rope" && family != "norm_gated" &&
                family != "router";
  }
  uint64_t found = isHead_ ? items.head_row() : items.row();
  uint64_t other = isHead_ ? items.row() : items.head_row();
  bool isPerRow = found == perRow && other == 0 && items.constant() == 0;
  if (items.sequence() != 0 || !(family == "linear" ? isFixed : isPerRow) ||
      (isHead_ && !mayBeHead))
    return invalid("kernel '{}' has {} items a row, {} a sequence, {} a head row and {} more; one "
                   "is {}",
                   kernel_, items.row(), items.sequence(), items.head_row(), items.constant(),
                   signature_.items);
  if (isHead_ && !bucket_.head())
    return invalid("kernel '{}' runs over head rows of a bucket without a head", kernel_);
  // A head alone runs over rows that a larger bucket left behind.
  rows_ = isHead_ || bucket_.body() ? bucket_.rows() : plan_.max_rows();
  return {};
}

// Indices come from the step block, so a slot must be the very field that the signature names.
Status OperandChecker::checkFields() const {
  for (uint32_t i = 0; i < signature_.slots.size(); ++i) {
    const SlotSpec &spec = signature_.slots[i];
    const fb::BlockLayout *layout = nullptr;
    if (spec.kind == fb::SlotKind::Step)
      layout = stage_.step();
    else if (spec.kind == fb::SlotKind::Out)
      layout = stage_.out();
    else if (spec.kind == fb::SlotKind::Table)
      layout = stage_.table_();
    else
      continue;
    std::string expected(spec.name);
    if (isHead_ && spec.name == "row_sequence")
      expected = "head_sequence";
    else if (isHead_ && spec.name == "valid_rows")
      expected = "valid_head_rows";
    else if (spec.name == "block_table")
      expected += fmt::format(
          ".{}", text(stage_.states()->Get(slot(hasSlot("k") ? "k" : "state").object())->name()));
    const fb::Field *field = fieldAt(*layout, command_.slots()->Get(i)->offset());
    if (!field || text(field->name()) != expected)
      return invalid("kernel '{}' takes field '{}' as slot '{}' but is given '{}'", kernel_,
                     expected, spec.name, field ? text(field->name()) : "none");
  }
  return {};
}

Status OperandChecker::checkScratch(uint64_t width) const {
  std::optional<KernelLibrary> library = KernelLibrary::of(text(stage_.target()));
  uint64_t bytes = library->scratchBytes(kernel_, width);
  return bytes == 0 ? Status() : needs("scratch", {bytes});
}

Status OperandChecker::checkPaging(std::string_view state) const {
  const fb::StateGroup &group = *stage_.states()->Get(slot(state).object());
  if (group.kind() == fb::StateKind::SlotPerSequence)
    return invalid("kernel '{}' keeps every token, but state '{}' is one slot a sequence", kernel_,
                   text(group.name()));
  if (constant("block_tokens") != group.block_tokens() ||
      constant("block_stride") != group.block_bytes() ||
      constant("max_blocks") != group.blocks_per_sequence())
    return invalid("kernel '{}' walks blocks of {} tokens, {} bytes apart, {} a sequence; those of "
                   "state '{}' have {}, {} and {}",
                   kernel_, constant("block_tokens"), constant("block_stride"),
                   constant("max_blocks"), text(group.name()), group.block_tokens(),
                   group.block_bytes(), group.blocks_per_sequence());
  return {};
}

Status OperandChecker::checkLinear() const {
  uint64_t columns = constant("columns"), outputs = constant("outputs");
  STRATA_RETURN_IF_ERROR(needs("x", {rows_, columns, f32Bytes}));
  STRATA_RETURN_IF_ERROR(needs("y", {rows_, outputs, f32Bytes}));
  STRATA_RETURN_IF_ERROR(needs("weight", {outputs, typedBytes(namePart(kernel_, 1), columns)}));
  if (slot("bias").kind() != fb::SlotKind::Constant)
    STRATA_RETURN_IF_ERROR(needs("bias", {outputs, f32Bytes}));
  uint64_t tiles = ceilDiv(outputs, uint64_t(linearItemOutputs));
  if (command_.items()->constant() != tiles)
    return invalid("kernel '{}' has {} items; {} outputs are {}", kernel_,
                   command_.items()->constant(), outputs, tiles);
  return checkScratch(columns);
}

// The library reads the weights as one, and writes all rows of its bucket.
Status OperandChecker::checkGemm() const {
  uint64_t columns = constant("columns"), outputs = constant("outputs");
  uint64_t bytes = 0, joined = 0; // of the slots, and of the whole weights
  if (constant("rows") != rows_)
    return invalid("kernel '{}' multiplies {} rows of a bucket of {}", kernel_, constant("rows"),
                   rows_);
  const fb::Weight *previous = nullptr;
  for (std::string_view name : {"weight", "weight_2", "weight_3"}) {
    if (slot(name).kind() == fb::SlotKind::Constant)
      continue;
    const fb::Weight &weight = *stage_.weights()->Get(slot(name).object());
    bool isBehind =
        !previous || (weight.segment() == previous->segment() &&
                      weight.offset() == previous->offset() + previous->bytes() &&
                      weight.end_layer() == 0 && slot(name).offset() == 0 && bytes == joined);
    if (!isBehind)
      return invalid("kernel '{}' reads weights '{}' and '{}' as one, but the second does not lie "
                     "behind the first",
                     kernel_, text(previous->name()), text(weight.name()));
    bytes += slot(name).bytes(); // of weights that the stage holds
    joined += weight.bytes();
    previous = &weight;
  }
  STRATA_RETURN_IF_ERROR(needs("x", {rows_, rowBytes("x", columns)}));
  STRATA_RETURN_IF_ERROR(needs("y", {rows_, rowBytes("y", outputs)}));
  auto wanted = checkedMul(outputs, rowBytes("x", columns));
  if (!wanted || *wanted != bytes)
    return invalid("kernel '{}' has {} outputs of {} columns, but weights of {} bytes", kernel_,
                   outputs, columns, bytes);
  uint64_t workspace = KernelLibrary::of(text(stage_.target()))->gpu()->gemmWorkspaceBytes;
  if (slot("workspace").bytes() != workspace)
    return invalid("kernel '{}' is given a workspace of {} bytes; {} is right for {}", kernel_,
                   slot("workspace").bytes(), workspace, text(stage_.target()));
  return checkBias("bias", {outputs});
}

Status OperandChecker::checkBias(std::string_view bias,
                                 std::initializer_list<uint64_t> outputs) const {
  std::vector<uint64_t> factors(outputs);
  factors.push_back(f32Bytes);
  return slot(bias).kind() == fb::SlotKind::Constant ? Status() : needs(bias, factors);
}

// Those that normalise first: each output is one of `weights`, whose rows number `outputs`.
Status OperandChecker::checkNormLinear() const {
  uint64_t columns = constant("columns");
  STRATA_RETURN_IF_ERROR(needs("x", {rows_, columns, f32Bytes}));
  STRATA_RETURN_IF_ERROR(needs("norm", {columns, f32Bytes}));
  auto checkWeight = [&](std::string_view weight, std::string_view bias, std::string_view type,
                         std::initializer_list<uint64_t> outputs) -> Status {
    std::vector<uint64_t> factors(outputs);
    factors.push_back(typedBytes(type, columns));
    STRATA_RETURN_IF_ERROR(needs(weight, factors));
    return bias.empty() ? Status() : checkBias(bias, outputs);
  };
  if (signature_.family == "norm_linear") {
    STRATA_RETURN_IF_ERROR(needs("y", {rows_, constant("outputs"), f32Bytes}));
    return checkWeight("weight", "bias", namePart(kernel_, 1), {constant("outputs")});
  }
  if (signature_.family == "norm_gated") {
    STRATA_RETURN_IF_ERROR(needs("y", {rows_, constant("outputs"), f32Bytes}));
    for (std::string_view weight : {"gate", "up"})
      STRATA_RETURN_IF_ERROR(checkWeight(weight, "", namePart(kernel_, 2), {constant("outputs")}));
    return {};
  }
  STRATA_RETURN_IF_ERROR(checkQkv());
  uint64_t queryHeads = constant("query_heads"), kvHeads = constant("kv_heads");
  uint64_t width = constant("head_width");
  std::string_view type = namePart(kernel_, 1);
  STRATA_RETURN_IF_ERROR(checkWeight("q_weight", "q_bias", type, {queryHeads, width}));
  STRATA_RETURN_IF_ERROR(checkWeight("k_weight", "k_bias", type, {kvHeads, width}));
  return checkWeight("v_weight", "v_bias", type, {kvHeads, width});
}

// norm_qkv and qkv_rope, whose names end with the types of K and V.
Status OperandChecker::checkQkv() const {
  uint64_t queryHeads = constant("query_heads"), kvHeads = constant("kv_heads");
  uint64_t width = constant("head_width"), tokens = constant("block_tokens");
  uint32_t types = signature_.family == "norm_qkv" ? 2 : 1; // the part of K's
  if (width % 4 != 0 || constant("rotary_width") % 2 != 0 || constant("rotary_width") > width)
    return invalid("kernel '{}' rotates {} elements of heads of {}", kernel_,
                   constant("rotary_width"), width);
  STRATA_RETURN_IF_ERROR(checkPaging("k"));
  if (slot("k").object() != slot("v").object())
    return invalid("kernel '{}' writes keys and values into states {} and {}", kernel_,
                   slot("k").object(), slot("v").object());
  STRATA_RETURN_IF_ERROR(needs("y", {rows_, queryHeads, width, f32Bytes}));
  STRATA_RETURN_IF_ERROR(needs("frequencies", {constant("rotary_width") / 2, f32Bytes}));
  STRATA_RETURN_IF_ERROR(
      needs("k", {tokens, kvHeads, typedBytes(namePart(kernel_, types), width)}));
  STRATA_RETURN_IF_ERROR(
      needs("v", {tokens, kvHeads, typedBytes(namePart(kernel_, types + 1), width)}));
  if (signature_.family == "norm_qkv")
    return {};
  // No number of heads here exceeds what a slot was found to hold.
  STRATA_RETURN_IF_ERROR(needs("x", {rows_, queryHeads + 2 * kvHeads, width, f32Bytes}));
  STRATA_RETURN_IF_ERROR(checkBias("q_bias", {queryHeads, width}));
  STRATA_RETURN_IF_ERROR(checkBias("k_bias", {kvHeads, width}));
  return checkBias("v_bias", {kvHeads, width});
}

Status OperandChecker::checkAttention() const {
  uint64_t queryHeads = constant("query_heads"), kvHeads = constant("kv_heads");
  uint64_t keyWidth = constant("key_width"), valueWidth = constant("value_width");
  uint64_t tokens = constant("block_tokens");
  STRATA_RETURN_IF_ERROR(checkPaging("k"));
  if (kvHeads == 0 || queryHeads % kvHeads != 0 || slot("k").object() != slot("v").object())
    return invalid("kernel '{}' has {} query heads for {} of keys and values, in states {} and {}",
                   kernel_, queryHeads, kvHeads, slot("k").object(), slot("v").object());
  const fb::StateGroup &group = *stage_.states()->Get(slot("k").object());
  // Blocks that fell behind the window are another sequence's by now.
  if (group.kind() == fb::StateKind::Window &&
      (constant("window") == 0 || constant("window") > group.window()))
    return invalid("kernel '{}' looks {} tokens back but state '{}' keeps {}", kernel_,
                   constant("window"), text(group.name()), group.window());
  bool isPrompt = signature_.family == "attention_prompt"; // K and V of one type
  STRATA_RETURN_IF_ERROR(needs("y", {rows_, queryHeads, rowBytes("y", valueWidth)}));
  STRATA_RETURN_IF_ERROR(needs("k", {tokens, kvHeads, typedBytes(namePart(kernel_, 1), keyWidth)}));
  STRATA_RETURN_IF_ERROR(
      needs("v", {tokens, kvHeads, typedBytes(namePart(kernel_, isPrompt ? 1 : 2), valueWidth)}));
  if (isPrompt && (!cuda::hasAttentionPrompt(queryHeads / kvHeads, keyWidth, valueWidth) ||
                   constant("sequences") != bucket_.sequences()))
    return invalid("kernel '{}' is made for {} sequences and {} heads of widths {} and {} for each "
                   "of keys; the bucket has {} sequences",
                   kernel_, constant("sequences"), queryHeads / kvHeads, keyWidth, valueWidth,
                   bucket_.sequences());
  bool isLatent = signature_.family == "attention_latent";
  return needs("q", {rows_, queryHeads, keyWidth + (isLatent ? valueWidth : 0), f32Bytes});
}

Status OperandChecker::checkItems(uint64_t perRow, uint64_t fixed) const {
  const fb::Items &items = *command_.items();
  if (items.row() == perRow && items.constant() == fixed && items.sequence() == 0 &&
      items.head_row() == 0)
    return {};
  return invalid(
      "kernel '{}' has {} items a row, {} a sequence, {} a head row and {} more; it needs "
      "{} a row and {} more",
      kernel_, items.row(), items.sequence(), items.head_row(), items.constant(), perRow, fixed);
}

// One slot a sequence; the component has the product of `factors` in F32.
Status OperandChecker::checkSlotState(std::initializer_list<uint64_t> factors) const {
  const fb::StateGroup &group = *stage_.states()->Get(slot("state").object());
  if (group.kind() != fb::StateKind::SlotPerSequence || group.blocks_per_sequence() != 1 ||
      constant("block_stride") != group.block_bytes())
    return invalid(
        "kernel '{}' takes slots of {} bytes, one a sequence; state '{}' has {} blocks of "
        "{} bytes a sequence",
        kernel_, constant("block_stride"), text(group.name()), group.blocks_per_sequence(),
        group.block_bytes());
  return needs("state", factors);
}

Status OperandChecker::checkHeadLinear() const {
  uint64_t heads = constant("heads"), weightRows = constant("weight_rows");
  uint64_t columns = constant("columns"), tail = constant("tail");
  STRATA_RETURN_IF_ERROR(
      needs("weight", {heads, weightRows, typedBytes(namePart(kernel_, 1), columns)}));
  if (tail > maxObjectBytes || columns > maxObjectBytes)
    return invalid("kernel '{}' maps {} columns and a tail of {}", kernel_, columns, tail);
  bool isTransposed = constant("transposed") != 0;
  STRATA_RETURN_IF_ERROR(
      needs("x", {rows_, heads, (isTransposed ? weightRows : columns) + tail, f32Bytes}));
  STRATA_RETURN_IF_ERROR(
      needs("y", {rows_, heads, (isTransposed ? columns : weightRows) + tail, f32Bytes}));
  STRATA_RETURN_IF_ERROR(checkScratch(columns));
  return checkItems(0, heads);
}

Status OperandChecker::checkRouter() const {
  uint64_t experts = constant("experts"), used = constant("used"), groups = constant("groups");
  uint64_t groupsUsed = constant("groups_used"), top = constant("group_top");
  if (experts == 0 || groups == 0 || experts % groups != 0 || groupsUsed == 0 ||
      groupsUsed > groups || used == 0 || used > experts / groups * groupsUsed || top == 0 ||
      top > std::min<uint64_t>(experts / groups, cpu::maxGroupTop))
    return invalid("kernel '{}' chooses {} of {} experts in {} of {} groups by their {} best",
                   kernel_, used, experts, groupsUsed, groups, top);
  STRATA_RETURN_IF_ERROR(needs("logits", {rows_, experts, f32Bytes}));
  STRATA_RETURN_IF_ERROR(needs("y", {rows_, 2, used, f32Bytes}));
  if (slot("bias").kind() != fb::SlotKind::Constant)
    STRATA_RETURN_IF_ERROR(needs("bias", {experts, f32Bytes}));
  return checkScratch(experts);
}

// What the lists, slots and labels say is checked by the kernels.
Status OperandChecker::checkExperts() const {
  uint64_t experts = constant("experts"), used = constant("used");
  if (experts == 0 || used == 0 || experts > maxObjectBytes || used > experts)
    return invalid("kernel '{}' runs {} of {} experts a row", kernel_, used, experts);
  auto entries = checkedMul<uint64_t>(rows_, used);
  if (!entries || *entries > UINT32_MAX)
    return invalid("kernel '{}' sorts {} experts of {} rows; at most {} are counted", kernel_, used,
                   rows_, UINT32_MAX);
  STRATA_RETURN_IF_ERROR(needs("lists", {2 * experts + 2 + 2 * *entries, f32Bytes}));
  if (signature_.family == "expert_lists") {
    STRATA_RETURN_IF_ERROR(needs("routing", {rows_, 2, used, f32Bytes}));
    return checkItems(0, 1);
  }
  bool isUp = signature_.family == "expert_up";
  uint64_t columns = constant("columns"), outputs = constant("outputs");
  uint64_t first = constant("first"), expertCount = constant("count");
  uint64_t rowWidth = constant("row_width"), width = isUp ? columns : outputs;
  if (expertCount == 0 || first > experts || expertCount > experts - first || width == 0 ||
      rowWidth % width != 0 ||
      (slot("labels").kind() == fb::SlotKind::Constant && rowWidth != width))
    return invalid("kernel '{}' runs experts {}..+{} of {} on rows of {} for a width of {}",
                   kernel_, first, expertCount, experts, rowWidth, width);
  uint64_t places = std::min(used, expertCount);
  std::string_view rows = isUp ? "x" : "y", inner = isUp ? "y" : "x";
  STRATA_RETURN_IF_ERROR(needs(rows, {rows_, rowWidth, f32Bytes}));
  STRATA_RETURN_IF_ERROR(needs(inner, {rows_, places, isUp ? outputs : columns, f32Bytes}));
  STRATA_RETURN_IF_ERROR(
      needs("weight", {experts, outputs, typedBytes(namePart(kernel_, 1), columns)}));
  STRATA_RETURN_IF_ERROR(needs("expert_slot", {experts, f32Bytes}));
  if (slot("labels").kind() != fb::SlotKind::Constant)
    STRATA_RETURN_IF_ERROR(needs("labels", {experts, f32Bytes}));
  STRATA_RETURN_IF_ERROR(checkScratch(columns));
  uint64_t tiles = ceilDiv(outputs, uint64_t(linearItemOutputs));
  if (!isUp)
    return checkItems(0, tiles);
  if (constant("by_use") == 0)
    return checkItems(0, expertCount * tiles);
  if (first != 0 || expertCount != experts)
    return invalid("kernel '{}' runs the experts used, but only {}..+{} of {}", kernel_, first,
                   expertCount, experts);
  return checkItems(used * tiles, 0);
}

Status OperandChecker::checkRecurrence() const {
  if (signature_.family == "conv") {
    uint64_t width = constant("width"), taps = constant("taps");
    if (taps < 2 || taps > cpu::maxConvTaps)
      return invalid("kernel '{}' has {} taps; 2 to {} are allowed", kernel_, taps,
                     cpu::maxConvTaps);
    STRATA_RETURN_IF_ERROR(needs("x", {rows_, width, f32Bytes}));
    STRATA_RETURN_IF_ERROR(needs("weight", {width, taps, f32Bytes}));
    if (slot("bias").kind() != fb::SlotKind::Constant)
      STRATA_RETURN_IF_ERROR(needs("bias", {width, f32Bytes}));
    STRATA_RETURN_IF_ERROR(checkSlotState({taps - 1, width, f32Bytes}));
    return checkItems(0, ceilDiv(width, uint64_t(cpu::convChannels)));
  }
  uint64_t heads = constant("heads"), groups = constant("groups");
  uint64_t headWidth = constant("head_width"), states = constant("state_width");
  STRATA_RETURN_IF_ERROR(checkSlotState({heads, headWidth, states, f32Bytes}));
  if (groups == 0 || heads % groups != 0)
    return invalid("kernel '{}' has {} heads in {} groups", kernel_, heads, groups);
  // No product here exceeds what the state was found to hold.
  uint64_t rowWidth = heads * headWidth + 2 * groups * states;
  STRATA_RETURN_IF_ERROR(needs("x", {rows_, rowWidth, f32Bytes}));
  STRATA_RETURN_IF_ERROR(needs("dt", {rows_, heads, f32Bytes}));
  STRATA_RETURN_IF_ERROR(needs("y", {rows_, heads, headWidth, f32Bytes}));
  for (std::string_view name : {"a", "skip", "dt_bias"})
    STRATA_RETURN_IF_ERROR(needs(name, {heads, f32Bytes}));
  return checkItems(0, heads);
}

// Every buffer of the kernel has rows of `width`.
Status OperandChecker::checkElementwise() const {
  for (uint32_t i = 0; i < signature_.slots.size(); ++i)
    if (signature_.slots[i].kind == fb::SlotKind::Buffer)
      STRATA_RETURN_IF_ERROR(needs(signature_.slots[i].name,
                                   {rows_, rowBytes(signature_.slots[i].name, constant("width"))}));
  return {};
}

Status OperandChecker::checkFamily() const {
  std::string_view family = signature_.family;
  if (family == "linear")
    return checkLinear();
  if (family == "gemm")
    return checkGemm();
  if (family == "qkv_rope")
    return checkQkv();
  if (family.starts_with("norm_"))
    return checkNormLinear();
  if (family.starts_with("attention"))
    return checkAttention();
  if (family == "head_linear")
    return checkHeadLinear();
  if (family == "embed") {
    uint64_t width = constant("width");
    STRATA_RETURN_IF_ERROR(needs("y", {rows_, width, f32Bytes}));
    return needs("table", {constant("vocabulary"), typedBytes(namePart(kernel_, 1), width)});
  }
  if (family == "rms_norm") {
    STRATA_RETURN_IF_ERROR(checkElementwise());
    return needs("weight", {constant("width"), f32Bytes});
  }
  if (family == "rms_norm_heads") {
    STRATA_RETURN_IF_ERROR(
        needs("x", {rows_, constant("heads"), constant("head_width"), f32Bytes}));
    if (constant("weight_stride") == 0)
      return needs("weight", {constant("head_width"), f32Bytes});
    if (constant("weight_stride") != constant("head_width"))
      return invalid("kernel '{}' has weights {} elements apart for heads of {}", kernel_,
                     constant("weight_stride"), constant("head_width"));
    return needs("weight", {constant("heads"), constant("head_width"), f32Bytes});
  }
  if (family == "rope") {
    uint64_t rotary = constant("rotary_width"), width = constant("head_width");
    if (rotary % 2 != 0 || rotary > width || constant("first") > width - rotary)
      return invalid("kernel '{}' rotates elements {}..+{} of heads of {}", kernel_,
                     constant("first"), rotary, width);
    STRATA_RETURN_IF_ERROR(needs("x", {rows_, constant("heads"), width, f32Bytes}));
    return needs("frequencies", {rotary / 2, f32Bytes});
  }
  if (family == "kv_write") {
    STRATA_RETURN_IF_ERROR(checkPaging("state"));
    STRATA_RETURN_IF_ERROR(checkElementwise());
    return needs("state",
                 {constant("block_tokens"), typedBytes(namePart(kernel_, 1), constant("width"))});
  }
  if (family == "gather_rows") {
    uint64_t from = bucket_.body() ? bucket_.rows() : plan_.max_rows();
    STRATA_RETURN_IF_ERROR(needs("x", {from, constant("width"), f32Bytes}));
    return needs("y", {rows_, constant("width"), f32Bytes});
  }
  if (family == "sample") {
    uint64_t vocabulary = constant("vocabulary");
    if (vocabulary != plan_.vocabulary_size())
      return invalid("kernel '{}' draws from {} tokens of a vocabulary of {}", kernel_, vocabulary,
                     plan_.vocabulary_size());
    STRATA_RETURN_IF_ERROR(needs("logits", {rows_, vocabulary, f32Bytes}));
    if (constant("context") != plan_.max_context())
      return invalid("kernel '{}' keeps a history of {} tokens in a context of {}", kernel_,
                     constant("context"), plan_.max_context());
    uint64_t sequences = plan_.max_sequences();
    STRATA_RETURN_IF_ERROR(needs("history", {sequences, plan_.max_context(), sizeof(int32_t)}));
    for (std::string_view field : {"bias_count", "is_masked"})
      STRATA_RETURN_IF_ERROR(needs(field, {sequences, sizeof(int32_t)}));
    for (std::string_view field : {"bias_id", "bias_value"})
      STRATA_RETURN_IF_ERROR(needs(field, {sequences, maxLogitBiases, sizeof(float)}));
    STRATA_RETURN_IF_ERROR(needs("mask", {sequences, maskWords(vocabulary), sizeof(uint32_t)}));
    return checkScratch(vocabulary);
  }
  if (family == "row_gated") {
    STRATA_RETURN_IF_ERROR(needs("gate", {rows_, f32Bytes}));
    STRATA_RETURN_IF_ERROR(needs("x", {rows_, constant("width"), f32Bytes}));
    return needs("y", {rows_, constant("width"), f32Bytes});
  }
  if (family == "router")
    return checkRouter();
  if (family.starts_with("expert_"))
    return checkExperts();
  if (family == "conv" || family == "ssm_scan")
    return checkRecurrence();
  if (family == "convert" && constant("width") % 4 != 0)
    return invalid("kernel '{}' has rows of {} elements, which are taken by four", kernel_,
                   constant("width"));
  if (family == "gated_pair") {
    if (rowBytes("x", constant("width")) % 16 != 0)
      return invalid("kernel '{}' has rows of {} elements, which are taken by 16 bytes", kernel_,
                     constant("width"));
    STRATA_RETURN_IF_ERROR(needs("x", {rows_, 2, rowBytes("x", constant("width"))}));
    return needs("y", {rows_, rowBytes("y", constant("width"))});
  }
  if (family == "gated" || family == "convert" || family == "activation" || family == "add" ||
      family == "copy_rows")
    return checkElementwise();
  return makeError(StatusCode::Unimplemented, "nothing is known of what kernel '{}' touches",
                   kernel_);
}

Status OperandChecker::run() {
  STRATA_RETURN_IF_ERROR(findRows());
  STRATA_RETURN_IF_ERROR(checkFields());
  STRATA_RETURN_IF_ERROR(checkFamily()); // a launch's shape is worked out from sound constants
  return checkLaunch(stage_, command_, rows_);
}

} // namespace

Status checkOperands(const fb::Plan &plan, const fb::Stage &stage, const fb::Bucket &bucket,
                     const fb::Command &command) {
  return OperandChecker(plan, stage, bucket, command).run();
}

} // namespace strata::checks
