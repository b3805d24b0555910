// Plan-wide numbers: buckets, tails, segments and handoffs.
#include <algorithm>
#include <set>
#include <vector>

#include "runtime/plan/Checks.h"
#include "runtime/plan/PlanFile.h"

namespace strata::checks {
namespace {

Status checkMaximum(std::string_view name, uint32_t value, uint32_t limit) {
  if (value == 0 || value > limit)
    return invalid("{} is {}; 1 to {} are allowed", name, value, limit);
  return {};
}

// The cut of `tail.rows` rows: full buckets and one that takes the rest.
Status checkTail(const fb::Plan &plan, const fb::Tail &tail) {
  uint64_t rows = 0;
  for (uint32_t i = 0; i < count(tail.buckets()); ++i) {
    uint32_t index = tail.buckets()->Get(i);
    if (index >= plan.buckets()->size())
      return invalid("the tail of {} rows uses bucket {} of {}", tail.rows(), index,
                     plan.buckets()->size());
    const fb::Bucket &bucket = *plan.buckets()->Get(index);
    if (!bucket.body())
      return invalid("the tail of {} rows uses bucket '{}', which has no body", tail.rows(),
                     text(bucket.name()));
    if (rows >= tail.rows())
      return invalid("the tail of {} rows goes on after {} rows are covered", tail.rows(), rows);
    rows += bucket.rows();
  }
  if (rows < tail.rows())
    return invalid("the tail of {} rows covers only {}", tail.rows(), rows);
  return {};
}

bool isContentName(std::string_view name) {
  return name.size() == 32 && std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

} // namespace

Status checkBuckets(const fb::Plan &plan) {
  STRATA_RETURN_IF_ERROR(checkMaximum("vocabulary_size", plan.vocabulary_size(), maxVocabulary));
  STRATA_RETURN_IF_ERROR(checkMaximum("hidden", plan.hidden(), 1u << 24));
  STRATA_RETURN_IF_ERROR(checkMaximum("max_context", plan.max_context(), maxContext));
  STRATA_RETURN_IF_ERROR(checkMaximum("max_sequences", plan.max_sequences(), maxSequences));
  STRATA_RETURN_IF_ERROR(checkMaximum("max_rows", plan.max_rows(), maxRows));
  STRATA_RETURN_IF_ERROR(checkMaximum("max_head_rows", plan.max_head_rows(), maxRows));

  uint32_t bodyRows = 0, headRows = 0;
  std::set<std::string_view> names;
  for (uint32_t i = 0; i < count(plan.buckets()); ++i) {
    const fb::Bucket &bucket = *plan.buckets()->Get(i);
    STRATA_RETURN_IF_ERROR(checkName(fmt::format("bucket {}", i), bucket.name()));
    std::string_view name = text(bucket.name());
    if (!names.insert(name).second)
      return invalid("two buckets are named '{}'", name);
    if (!bucket.body() && !bucket.head())
      return invalid("bucket '{}' has neither body nor head", name);
    if (bucket.rows() == 0 || bucket.rows() > maxRows)
      return invalid("bucket '{}' has {} rows; 1 to {} are allowed", name, bucket.rows(), maxRows);
    if (bucket.sequences() > plan.max_sequences() || (bucket.body() && bucket.sequences() == 0))
      return invalid("bucket '{}' has {} sequences; the plan allows 1 to {}", name,
                     bucket.sequences(), plan.max_sequences());
    if (bucket.body())
      bodyRows = std::max(bodyRows, bucket.rows());
    if (bucket.head())
      headRows = std::max(headRows, bucket.rows());
  }
  if (bodyRows != plan.max_rows() || headRows != plan.max_head_rows())
    return invalid(
        "max_rows is {} and max_head_rows {}, but the largest body bucket has {} rows and "
        "the largest head bucket {}",
        plan.max_rows(), plan.max_head_rows(), bodyRows, headRows);

  if (count(plan.tails()) != plan.max_rows() - 1)
    return invalid("the plan has {} tails; chunks of {} rows need {}", count(plan.tails()),
                   plan.max_rows(), plan.max_rows() - 1);
  for (uint32_t i = 0; i < count(plan.tails()); ++i) {
    if (plan.tails()->Get(i)->rows() != i + 1)
      return invalid("tail {} is for {} rows; {} are expected", i, plan.tails()->Get(i)->rows(),
                     i + 1);
    STRATA_RETURN_IF_ERROR(checkTail(plan, *plan.tails()->Get(i)));
  }
  for (uint32_t i = 0; i < count(plan.end_of_generation()); ++i)
    if (uint32_t(plan.end_of_generation()->Get(i)) >= plan.vocabulary_size())
      return invalid("end_of_generation names id {} of a vocabulary of {}",
                     plan.end_of_generation()->Get(i), plan.vocabulary_size());
  return {};
}

Status checkSegments(const fb::Plan &plan, SegmentRange range) {
  if (plan.weights_place() > fb::WeightsPlace::MAX)
    return invalid("weights_place is {}; 0 to {} are known", int(plan.weights_place()),
                   int(fb::WeightsPlace::MAX));
  bool isInside = plan.weights_place() == fb::WeightsPlace::Inside;
  if (plan.weights_place() == fb::WeightsPlace::Store)
    STRATA_RETURN_IF_ERROR(checkName("the weight store", plan.store()));
  uint64_t total = 0;
  for (uint32_t i = 0; i < count(plan.segments()); ++i) {
    const fb::Segment &segment = *plan.segments()->Get(i);
    STRATA_RETURN_IF_ERROR(checkName(fmt::format("the label of segment {}", i), segment.label()));
    std::string_view label = text(segment.label());
    if (segment.bytes() == 0 || segment.bytes() > maxObjectBytes - total)
      return invalid("segment '{}' has {} bytes", label, segment.bytes());
    total += segment.bytes();
    if (plan.weights_place() == fb::WeightsPlace::None) {
      if (segment.name() && segment.name()->size())
        return invalid("segment '{}' has the content '{}' in a plan without weights", label,
                       text(segment.name()).substr(0, 32));
    } else if (!isContentName(text(segment.name()))) {
      return invalid("segment '{}' is not named by 32 lower-case hexadecimal digits", label);
    }
    if (!isInside && segment.file_offset() != 0)
      return invalid("segment '{}' lies at {} of a plan that holds no weights itself", label,
                     segment.file_offset());
    if (isInside &&
        (segment.file_offset() % segmentAlignment != 0 || segment.file_offset() < range.begin ||
         !inside(segment.file_offset(), segment.bytes(), range.end)))
      return invalid(
          "segment '{}' has bytes {}..+{} but segments lie in {}..{}, at multiples of {}", label,
          segment.file_offset(), segment.bytes(), range.begin, range.end, segmentAlignment);
  }
  return {};
}

Status checkHandoffs(const fb::Plan &plan) {
  std::set<std::string_view> names;
  uint32_t stages = count(plan.stages());
  for (uint32_t i = 0; i < count(plan.handoffs()); ++i) {
    const fb::Handoff &handoff = *plan.handoffs()->Get(i);
    STRATA_RETURN_IF_ERROR(checkName(fmt::format("handoff {}", i), handoff.name()));
    std::string_view name = text(handoff.name());
    if (!names.insert(name).second)
      return invalid("two handoffs are named '{}'", name);
    if (handoff.producer() >= stages || handoff.consumer() >= stages)
      return invalid("handoff '{}' leads from stage {} to stage {} of {}", name, handoff.producer(),
                     handoff.consumer(), stages);
    // Stages run in order within a step, so leading forward is being acyclic.
    if (handoff.producer() >= handoff.consumer())
      return invalid(
          "handoff '{}' leads from stage {} back to stage {}; within a step rows only go "
          "to later stages",
          name, handoff.producer(), handoff.consumer());
    auto rowBytes = checkedMul<uint64_t>(handoff.row_bytes(), plan.max_rows());
    if (handoff.slots() == 0 || handoff.slots() > 1024 || handoff.row_bytes() == 0 || !rowBytes ||
        *rowBytes > handoff.slot_bytes() || handoff.slot_bytes() % weightAlignment != 0 ||
        handoff.slot_bytes() > maxObjectBytes / handoff.slots())
      return invalid(
          "handoff '{}' has {} slots of {} bytes for {} rows of {} bytes; slots hold all "
          "rows and are multiples of {} bytes",
          name, handoff.slots(), handoff.slot_bytes(), plan.max_rows(), handoff.row_bytes(),
          weightAlignment);
  }
  return {};
}

} // namespace strata::checks
