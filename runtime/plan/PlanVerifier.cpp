#include "runtime/plan/PlanVerifier.h"

#include <algorithm>
#include <set>
#include <vector>

#include "runtime/plan/Checks.h"
#include "runtime/plan/DriverLines.h"

namespace strata {
namespace checks {

Status checkName(std::string_view what, const flatbuffers::String *name) {
  std::string_view value = text(name);
  if (value.empty() || value.size() > 255)
    return invalid("{} has a name of {} bytes; 1 to 255 are allowed", what, value.size());
  for (unsigned char character : value)
    if (character < 0x20 || character == 0x7F)
      return invalid("{} has a name with the control character 0x{:02x}", what, character);
  return {};
}

Result<KernelLibrary> parseTarget(std::string_view target) {
  if (std::optional<KernelLibrary> library = KernelLibrary::of(target))
    return *library;
  return makeError(StatusCode::Unimplemented,
                   "target '{}' is not known to this build, which knows {}; compile the model for "
                   "one of these",
                   target, KernelLibrary::knownTargets());
}

namespace {

// Layers are dealt out in order without a gap; the first stage embeds and the last has the head.
Status checkStages(const fb::Plan &plan) {
  uint32_t stages = count(plan.stages());
  if (stages == 0 || stages > maxStages)
    return invalid("the plan has {} stages; 1 to {} are allowed", stages, maxStages);
  std::set<std::string_view> names;
  uint32_t layer = 0;
  for (uint32_t i = 0; i < stages; ++i) {
    const fb::Stage &stage = *plan.stages()->Get(i);
    STRATA_RETURN_IF_ERROR(checkName(fmt::format("stage {}", i), stage.name()));
    std::string_view name = text(stage.name());
    if (!names.insert(name).second)
      return invalid("two stages are named '{}'", name);
    STRATA_RETURN_IF_ERROR(
        checkName(fmt::format("the target of stage '{}'", name), stage.target()));
    if (stage.first_layer() != layer || stage.end_layer() < layer)
      return invalid("stage '{}' holds layers [{}, {}) where [{}, ...) comes next", name,
                     stage.first_layer(), stage.end_layer(), layer);
    layer = stage.end_layer();
    if (stage.has_embedding() != (i == 0) || stage.has_head() != (i + 1 == stages))
      return invalid("stage '{}' ({} of {}) says embedding {}, head {}; the first stage has the "
                     "embedding and the last the head",
                     name, i + 1, stages, stage.has_embedding(), stage.has_head());
  }
  if (layer != plan.layers())
    return invalid("the stages hold {} layers, the plan {}", layer, plan.layers());
  return {};
}

// Bodies run on every stage; a head alone only where the head is.
Status checkForwards(const fb::Plan &plan, uint32_t index) {
  const fb::Stage &stage = *plan.stages()->Get(index);
  std::vector<bool> seen(plan.buckets()->size());
  uint64_t largest = 0;
  for (uint32_t i = 0; i < count(stage.forwards()); ++i) {
    const fb::Forward &forward = *stage.forwards()->Get(i);
    if (forward.bucket() >= seen.size())
      return invalid("forward {} is for bucket {} of {}", i, forward.bucket(), seen.size());
    std::string_view name = text(plan.buckets()->Get(forward.bucket())->name());
    if (seen[forward.bucket()])
      return invalid("bucket '{}' has two forwards", name);
    seen[forward.bucket()] = true;
    if (Status status = checkForward(plan, index, forward); !status.isOk())
      return std::move(status).at("forward", name);
    largest = std::max(largest, forward.peak());
  }
  for (uint32_t i = 0; i < seen.size(); ++i) {
    const fb::Bucket &bucket = *plan.buckets()->Get(i);
    if (!seen[i] && (bucket.body() || stage.has_head()))
      return invalid("bucket '{}' has no forward", text(bucket.name()));
  }
  if (stage.arena_bytes() != largest)
    return invalid("arena_bytes is {} but the largest peak of its forwards is {}",
                   stage.arena_bytes(), largest);
  return {};
}

Status checkMemoryLines(const fb::Plan &plan) {
  for (uint32_t i = 0; i < count(plan.memory()); ++i) {
    const fb::MemoryLine &line = *plan.memory()->Get(i);
    STRATA_RETURN_IF_ERROR(checkName(fmt::format("memory line {}", i), line.name()));
    if (line.per() && line.per()->size())
      STRATA_RETURN_IF_ERROR(checkName(fmt::format("memory line {}", i), line.per()));
    if (line.class_() > fb::MemoryClass::MAX || line.stage() >= count(plan.stages()) ||
        line.bytes() > maxObjectBytes)
      return invalid("memory line '{}' has class {}, stage {} of {} and {} bytes",
                     text(line.name()), int(line.class_()), line.stage(), count(plan.stages()),
                     line.bytes());
  }
  for (uint32_t s = 0; s < count(plan.stages()); ++s) {
    std::string_view target = text(plan.stages()->Get(s)->target());
    using namespace driver_line;
    for (std::string_view name : std::initializer_list<std::string_view>{
             modules, libraries, graphs, localMemory, context, floor})
      if (!target.starts_with("cpu:") && !findDriverLine(plan, s, name))
        return invalid("stage {} is on {} but no memory line says what is allowed for '{}'", s,
                       target, name);
  }
  return {};
}

Status checkPlan(const fb::Plan &plan, SegmentRange range) {
  STRATA_RETURN_IF_ERROR(checkBuckets(plan));
  STRATA_RETURN_IF_ERROR(checkSegments(plan, range));
  STRATA_RETURN_IF_ERROR(checkStages(plan));
  STRATA_RETURN_IF_ERROR(checkHandoffs(plan));
  STRATA_RETURN_IF_ERROR(checkVocabulary(plan));
  for (uint32_t i = 0; i < plan.stages()->size(); ++i)
    if (Status status = checkStageObjects(plan, *plan.stages()->Get(i)); !status.isOk())
      return std::move(status).at("stage", text(plan.stages()->Get(i)->name()));
  STRATA_RETURN_IF_ERROR(checkTableAgreement(plan));
  STRATA_RETURN_IF_ERROR(checkStateAgreement(plan));
  for (uint32_t i = 0; i < plan.stages()->size(); ++i)
    if (Status status = checkForwards(plan, i); !status.isOk())
      return std::move(status).at("stage", text(plan.stages()->Get(i)->name()));
  return checkMemoryLines(plan);
}

} // namespace
} // namespace checks

Result<const fb::Plan *> verifyPlan(std::span<const uint8_t> flatBuffer, SegmentRange range) {
  if (flatBuffer.size() < 16 || flatBuffer.size() >= FLATBUFFERS_MAX_BUFFER_SIZE)
    return checks::invalid("the FlatBuffer has {} bytes; 16 to {} are possible", flatBuffer.size(),
                           FLATBUFFERS_MAX_BUFFER_SIZE - 1);
  flatbuffers::Verifier::Options options;
  options.max_depth = 16;
  options.max_tables = 8'000'000; // 88 layers in 23 buckets have some 100 thousand
  flatbuffers::Verifier verifier(flatBuffer.data(), flatBuffer.size(), options);
  if (!fb::VerifyPlanBuffer(verifier))
    return checks::invalid("the FlatBuffer of {} bytes is not a well-formed plan; it is damaged or "
                           "was written by another version",
                           flatBuffer.size());
  const fb::Plan *plan = fb::GetPlan(flatBuffer.data());
  STRATA_RETURN_IF_ERROR(checks::checkPlan(*plan, range));
  return plan;
}

} // namespace strata
