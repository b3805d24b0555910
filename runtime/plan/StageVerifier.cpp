// The objects of a stage: kernels, weights, state groups and block layouts.
#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "codegen/cuda/KernelTable.h"
#include "runtime/checkpoint/WeightTypeTable.h"
#include "runtime/plan/Checks.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/plan/WeightPlaces.h"

namespace strata::checks {

uint32_t fieldTypeBytes(std::string_view type) {
  if (type == "i32" || type == "u32" || type == "f32")
    return 4;
  return type == "u64" ? 8 : 0;
}

uint64_t typedBytes(std::string_view type, uint64_t elements) {
  if (type == "int8")
    return elements;
  const WeightType *weightType = findWeightType(type);
  return weightType ? weightType->bytesFor(elements).value_or(0) : 0;
}

namespace {

struct Extent {
  uint64_t begin;
  uint64_t end;
  std::string_view name;
};

// The first two extents that share a byte, or nullptrs.
std::pair<const Extent *, const Extent *> findOverlap(std::vector<Extent> &extents) {
  std::sort(extents.begin(), extents.end(),
            [](const Extent &a, const Extent &b) { return a.begin < b.begin; });
  for (size_t i = 1; i < extents.size(); ++i)
    if (extents[i].begin < extents[i - 1].end)
      return {&extents[i - 1], &extents[i]};
  return {nullptr, nullptr};
}

// A table is trimmed to layers of its stage.
Status checkLayers(const fb::Stage &stage, const fb::Weight &weight) {
  uint32_t first = weight.first_layer(), end = weight.end_layer();
  if (first == 0 && end == 0)
    return {};
  if (first < end && first >= stage.first_layer() && end <= stage.end_layer() &&
      weight.shape()->Get(0) == end - first)
    return {};
  return invalid("table '{}' holds {} layers, [{}, {}); the stage's are [{}, {})",
                 text(weight.name()), weight.shape()->Get(0), first, end, stage.first_layer(),
                 stage.end_layer());
}

Status checkWeight(const fb::Plan &plan, const fb::Stage &stage, const fb::Weight &weight) {
  std::string_view name = text(weight.name());
  STRATA_RETURN_IF_ERROR(
      checkName(fmt::format("the layout of weight '{}'", name), weight.layout()));
  STRATA_RETURN_IF_ERROR(checkName(fmt::format("the type of weight '{}'", name), weight.type()));
  if (text(weight.layout()) != "rows")
    return invalid("weight '{}' has the layout '{}'; this build reads 'rows'", name,
                   text(weight.layout()));
  if (count(weight.shape()) == 0 || count(weight.shape()) > 4)
    return invalid("weight '{}' has {} dimensions; 1 to 4 are allowed", name,
                   count(weight.shape()));
  if (!isAligned(weight.shape()))
    return invalid("the shape of weight '{}' does not lie at a multiple of 8 bytes", name);
  uint64_t elements = 1;
  for (uint32_t i = 0; i < weight.shape()->size(); ++i) {
    auto product = checkedMul(elements, weight.shape()->Get(i));
    if (!product || *product == 0 || *product > maxObjectBytes)
      return invalid("weight '{}' has a shape of no elements or of more than {}", name,
                     maxObjectBytes);
    elements = *product;
  }
  STRATA_RETURN_IF_ERROR(checkLayers(stage, weight));
  uint64_t layers = layerCount(weight);
  uint64_t each = typedBytes(text(weight.type()), elements / layers);
  uint64_t bytes = (layers - 1) * alignUp(each, weightAlignment) + each;
  if (each == 0 || bytes != weight.bytes())
    return invalid("weight '{}' has {} bytes; {} elements of type '{}' take {}", name,
                   weight.bytes(), elements, text(weight.type()), each == 0 ? 0 : bytes);
  if (weight.segment() >= count(plan.segments()))
    return invalid("weight '{}' lies in segment {} of {}", name, weight.segment(),
                   count(plan.segments()));
  const fb::Segment &segment = *plan.segments()->Get(weight.segment());
  if (!inside(weight.offset(), weight.bytes(), segment.bytes()))
    return invalid("weight '{}' has bytes {}..+{} of segment '{}', which ends at {}", name,
                   weight.offset(), weight.bytes(), text(segment.label()), segment.bytes());
  if (weight.offset() % weightAlignment != 0)
    return invalid("weight '{}' lies at byte {} of its segment, which is no multiple of {}", name,
                   weight.offset(), weightAlignment);
  if (weight.content() && plan.weights_place() != fb::WeightsPlace::None)
    return invalid("weight '{}' has a content of its own beside that of its segment", name);
  if (weight.content() && weight.content()->size() != weight.bytes())
    return invalid("weight '{}' has {} bytes but a content of {}", name, weight.bytes(),
                   weight.content()->size());
  return {};
}

Status checkComponents(const fb::Stage &stage, const fb::StateGroup &group) {
  std::string_view name = text(group.name());
  std::vector<Extent> extents;
  for (uint32_t i = 0; i < count(group.components()); ++i) {
    const fb::StateComponent &component = *group.components()->Get(i);
    STRATA_RETURN_IF_ERROR(
        checkName(fmt::format("component {} of state '{}'", i, name), component.name()));
    std::string_view what = text(component.name());
    STRATA_RETURN_IF_ERROR(checkName(fmt::format("the type of '{}'", what), component.type()));
    if (component.layer() < stage.first_layer() || component.layer() >= stage.end_layer())
      return invalid("component '{}' of state '{}' is of layer {}; the stage holds [{}, {})", what,
                     name, component.layer(), stage.first_layer(), stage.end_layer());
    uint64_t bytes = typedBytes(text(component.type()), component.width());
    if (bytes == 0 || component.row_bytes() < bytes)
      return invalid("component '{}' of state '{}' has rows of {} bytes; {} elements of type '{}' "
                     "take {}",
                     what, name, component.row_bytes(), component.width(), text(component.type()),
                     bytes);
    auto extent = checkedMul<uint64_t>(component.row_bytes(), group.block_tokens());
    if (!extent || !inside(component.offset(), *extent, group.block_bytes()))
      return invalid("component '{}' of state '{}' has {} rows of {} bytes at {}, but a block ends "
                     "at {}",
                     what, name, group.block_tokens(), component.row_bytes(), component.offset(),
                     group.block_bytes());
    if (component.offset() % 4 != 0)
      return invalid("component '{}' of state '{}' lies at byte {}, which is no multiple of 4",
                     what, name, component.offset());
    extents.push_back({component.offset(), component.offset() + *extent, what});
  }
  if (auto [first, second] = findOverlap(extents); first)
    return invalid("components '{}' ({}..{}) and '{}' ({}..{}) of state '{}' overlap", first->name,
                   first->begin, first->end, second->name, second->begin, second->end, name);
  return {};
}

Status checkState(const fb::Plan &plan, const fb::Stage &stage, const fb::StateGroup &group) {
  std::string_view name = text(group.name());
  if (group.kind() > fb::StateKind::MAX)
    return invalid("state '{}' is of kind {}; 0 to {} are known", name, int(group.kind()),
                   int(fb::StateKind::MAX));
  if (group.block_tokens() == 0 || group.block_tokens() > maxContext || group.block_bytes() == 0 ||
      group.block_bytes() % weightAlignment != 0)
    return invalid("state '{}' has blocks of {} tokens and {} bytes; at least one token and a "
                   "multiple of {} bytes are allowed",
                   name, group.block_tokens(), group.block_bytes(), weightAlignment);
  uint64_t needed = 1;
  if (group.kind() != fb::StateKind::SlotPerSequence)
    needed = ceilDiv(plan.max_context(), group.block_tokens());
  if (group.kind() == fb::StateKind::Window && group.window() == 0)
    return invalid("state '{}' has a window of 0 tokens", name);
  if (group.blocks_per_sequence() < needed || group.blocks_per_sequence() > maxContext)
    return invalid("state '{}' has {} blocks a sequence; a context of {} tokens needs {}", name,
                   group.blocks_per_sequence(), plan.max_context(), needed);
  // A window's blocks come back as it moves on, so its table is wider than what is held at once.
  // Block numbers are I32 in the step block.
  uint64_t least = group.kind() == fb::StateKind::Window ? 1 : group.blocks_per_sequence();
  if (group.promised_blocks() < least || group.promised_blocks() > uint32_t(INT32_MAX) ||
      group.block_bytes() > maxObjectBytes / group.promised_blocks() ||
      group.block_bytes() > maxObjectBytes / group.blocks_per_sequence())
    return invalid(
        "state '{}' promises {} blocks of {} bytes; at least {} are needed, and at most {} bytes",
        name, group.promised_blocks(), group.block_bytes(), least, maxObjectBytes);
  return checkComponents(stage, group);
}

Status checkLayout(std::string_view block, const fb::BlockLayout *layout) {
  if (!layout)
    return invalid("the {} block has no layout", block);
  if (layout->bytes() > maxObjectBytes)
    return invalid("the {} block has {} bytes", block, layout->bytes());
  if (count(layout->fields()) > maxFields)
    return invalid("the {} block has {} fields; at most {} are allowed", block,
                   count(layout->fields()), maxFields);
  std::set<std::string_view> names;
  std::vector<Extent> extents;
  for (uint32_t i = 0; i < count(layout->fields()); ++i) {
    const fb::Field &field = *layout->fields()->Get(i);
    STRATA_RETURN_IF_ERROR(
        checkName(fmt::format("field {} of the {} block", i, block), field.name()));
    std::string_view name = text(field.name());
    STRATA_RETURN_IF_ERROR(checkName(fmt::format("the type of field '{}'", name), field.type()));
    if (!names.insert(name).second)
      return invalid("two fields of the {} block are named '{}'", block, name);
    uint32_t elementBytes = fieldTypeBytes(text(field.type()));
    if (elementBytes == 0)
      return invalid(
          "field '{}' of the {} block has the type '{}'; i32, u32, f32 and u64 are known", name,
          block, text(field.type()));
    auto bytes = checkedMul<uint64_t>(field.count(), elementBytes);
    if (!bytes || *bytes == 0 || !inside(field.offset(), *bytes, layout->bytes()))
      return invalid("field '{}' of the {} block has {} elements of {} bytes at {}, but the block "
                     "ends at {}",
                     name, block, field.count(), elementBytes, field.offset(), layout->bytes());
    if (field.offset() % elementBytes != 0)
      return invalid("field '{}' of the {} block lies at byte {}, which is no multiple of {}", name,
                     block, field.offset(), elementBytes);
    extents.push_back({field.offset(), field.offset() + *bytes, name});
  }
  if (auto [first, second] = findOverlap(extents); first)
    return invalid("fields '{}' ({}..{}) and '{}' ({}..{}) of the {} block overlap", first->name,
                   first->begin, first->end, second->name, second->begin, second->end, block);
  return {};
}

/// A CPU's kernels are linked in and have a name alone; a GPU's are functions of the stage's
/// module.
Status checkCode(const KernelLibrary &library, const fb::Kernel &kernel) {
  std::string_view name = text(kernel.name());
  if (library.isCpu()) {
    if (kernel.function() || kernel.threads() != 0 || kernel.shared_bytes() != 0 ||
        kernel.rows() != 0 || count(kernel.constants()) != 0)
      return invalid("kernel '{}' of a CPU has code of its own", name);
    return {};
  }
  bool isGemm = cuda::isGemm(name); // the vendor's library has its code
  if (!isGemm)
    STRATA_RETURN_IF_ERROR(
        checkName(fmt::format("the function of kernel '{}'", name), kernel.function()));
  uint32_t constants = 0;
  for (const SlotSpec &slot : findSignature(name)->slots)
    constants += slot.isSpecialised();
  if (count(kernel.constants()) != constants || !isAligned(kernel.constants()))
    return invalid("kernel '{}' is made for {} constants; it takes {}", name,
                   count(kernel.constants()), constants);
  if (isGemm)
    return kernel.function() || kernel.threads() != 0 || kernel.shared_bytes() != 0
               ? invalid("kernel '{}' of a library has code of its own", name)
               : Status();
  if (kernel.threads() == 0 || kernel.threads() > 1024 ||
      kernel.shared_bytes() > library.gpu()->sharedBytesPerBlock)
    return invalid("kernel '{}' has blocks of {} threads and {} bytes of shared memory; up to 1024 "
                   "and {} are possible",
                   name, kernel.threads(), kernel.shared_bytes(),
                   library.gpu()->sharedBytesPerBlock);
  return {};
}

/// The beginning of an ELF file for NVIDIA's machines (EM_CUDA); the driver checks the rest.
Status checkModule(const KernelLibrary &library, const fb::Stage &stage) {
  uint32_t bytes = count(stage.module_());
  if (library.isCpu())
    return bytes == 0 ? Status() : invalid("a stage on a CPU has a module of {} bytes", bytes);
  constexpr uint32_t headerBytes = 64;
  constexpr uint8_t magic[] = {0x7F, 'E', 'L', 'F', 2};
  const uint8_t *code = bytes < headerBytes ? nullptr : stage.module_()->data();
  if (!code || !std::equal(std::begin(magic), std::end(magic), code) || code[18] != 190 ||
      code[19] != 0)
    return invalid("the module of {} bytes is no code for {}", bytes, text(stage.target()));
  return {};
}

} // namespace

Status checkStageObjects(const fb::Plan &plan, const fb::Stage &stage) {
  STRATA_ASSIGN_OR_RETURN(KernelLibrary library, parseTarget(text(stage.target())));
  for (uint32_t i = 0; i < count(stage.kernels()); ++i) {
    const fb::Kernel &kernel = *stage.kernels()->Get(i);
    STRATA_RETURN_IF_ERROR(checkName(fmt::format("kernel {}", i), kernel.name()));
    if (!findSignature(text(kernel.name())) || !library.has(text(kernel.name())))
      return invalid("this build has no kernel '{}' for {}", text(kernel.name()),
                     text(stage.target()));
    STRATA_RETURN_IF_ERROR(checkCode(library, kernel));
  }
  STRATA_RETURN_IF_ERROR(checkModule(library, stage));
  for (uint32_t i = 0; i < count(stage.weights()); ++i) {
    const fb::Weight &weight = *stage.weights()->Get(i);
    STRATA_RETURN_IF_ERROR(checkName(fmt::format("weight {}", i), weight.name()));
    STRATA_RETURN_IF_ERROR(checkWeight(plan, stage, weight));
  }
  std::set<std::string_view> groups;
  for (uint32_t i = 0; i < count(stage.states()); ++i) {
    const fb::StateGroup &group = *stage.states()->Get(i);
    STRATA_RETURN_IF_ERROR(checkName(fmt::format("state {}", i), group.name()));
    if (!groups.insert(text(group.name())).second)
      return invalid("two state groups are named '{}'", text(group.name()));
    STRATA_RETURN_IF_ERROR(checkState(plan, stage, group));
  }
  STRATA_RETURN_IF_ERROR(checkLayout("step", stage.step()));
  STRATA_RETURN_IF_ERROR(checkLayout("out", stage.out()));
  STRATA_RETURN_IF_ERROR(checkLayout("table", stage.table_()));
  if (stage.arena_bytes() > maxObjectBytes || stage.scratch_bytes_per_worker() > maxObjectBytes ||
      stage.scratch_bytes_per_worker() % weightAlignment != 0)
    return invalid("arena_bytes is {} and scratch_bytes_per_worker {}; at most {} are allowed, and "
                   "scratch is a multiple of {}",
                   stage.arena_bytes(), stage.scratch_bytes_per_worker(), maxObjectBytes,
                   weightAlignment);
  return {};
}

Status checkTableAgreement(const fb::Plan &plan) {
  struct Table {
    const fb::Weight *weight;
    uint64_t begin; // of layer 0, inside the segment; may wrap
    std::string_view stage;
  };
  std::map<std::string_view, Table> tables;
  for (uint32_t s = 0; s < count(plan.stages()); ++s) {
    const fb::Stage &stage = *plan.stages()->Get(s);
    for (uint32_t i = 0; i < count(stage.weights()); ++i) {
      const fb::Weight &weight = *stage.weights()->Get(i);
      if (weight.end_layer() == 0)
        continue;
      uint64_t begin = weight.offset() - weight.first_layer() * layerStride(weight);
      const Table &first =
          tables.emplace(text(weight.name()), Table{&weight, begin, text(stage.name())})
              .first->second;
      if (weight.segment() != first.weight->segment() || begin != first.begin ||
          text(weight.type()) != text(first.weight->type()) ||
          layerStride(weight) != layerStride(*first.weight))
        return invalid("table '{}' of stage '{}' has layer {} at byte {} of segment {}, where "
                       "stage '{}' has layers of another place or size",
                       text(weight.name()), text(stage.name()), weight.first_layer(),
                       weight.offset(), weight.segment(), first.stage);
    }
  }
  return {};
}

Status checkStateAgreement(const fb::Plan &plan) {
  std::map<std::string_view, const fb::StateGroup *> groups;
  for (uint32_t s = 0; s < count(plan.stages()); ++s) {
    const fb::Stage &stage = *plan.stages()->Get(s);
    for (uint32_t i = 0; i < count(stage.states()); ++i) {
      const fb::StateGroup &group = *stage.states()->Get(i);
      const fb::StateGroup &first = *groups.emplace(text(group.name()), &group).first->second;
      if (group.kind() != first.kind() || group.window() != first.window() ||
          group.block_tokens() != first.block_tokens() ||
          group.blocks_per_sequence() != first.blocks_per_sequence() ||
          group.promised_blocks() != first.promised_blocks())
        return invalid("state '{}' of stage '{}' ({} tokens a block, {} blocks a sequence, {} "
                       "promised) differs from an earlier stage's ({}, {}, {}); block numbers are "
                       "the same on all stages",
                       text(group.name()), text(stage.name()), group.block_tokens(),
                       group.blocks_per_sequence(), group.promised_blocks(), first.block_tokens(),
                       first.blocks_per_sequence(), first.promised_blocks());
    }
  }
  return {};
}

} // namespace strata::checks
