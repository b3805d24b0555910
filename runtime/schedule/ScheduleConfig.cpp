#include "runtime/schedule/ScheduleConfig.h"

#include <algorithm>

#include "runtime/base/CheckedMath.h"
#include "runtime/plan/PlanFile.h"

namespace strata {
namespace {

Status verifyBuckets(const ScheduleConfig &config) {
  bool body = false, bodyAlone = false, headAlone = false;
  for (const ScheduleConfig::Bucket &bucket : config.buckets) {
    if (bucket.rows == 0 || bucket.sequences == 0)
      return makeError(StatusCode::InvalidArgument,
                       "bucket '{}' has {} rows and {} sequences; both must be at least 1",
                       bucket.name, bucket.rows, bucket.sequences);
    if (!bucket.body && !bucket.head)
      return makeError(StatusCode::InvalidArgument, "bucket '{}' runs neither body nor head",
                       bucket.name);
    body |= bucket.body;
    bodyAlone |= bucket.body && !bucket.head;
    headAlone |= !bucket.body;
  }
  if (!body)
    return makeError(StatusCode::InvalidArgument,
                     "none of the {} buckets runs the body; no prompt could be read",
                     config.buckets.size());
  if (bodyAlone && !headAlone)
    return makeError(
        StatusCode::InvalidArgument,
        "a bucket runs the body without the head, but none runs the head alone; its rows "
        "could never be sampled");
  return Status::ok();
}

Status verifyTail(const ScheduleConfig &config, uint32_t remainder) {
  uint64_t covered = 0;
  for (uint32_t index : config.tails[remainder - 1]) {
    if (index >= config.buckets.size() || !config.buckets[index].body)
      return makeError(
          StatusCode::InvalidArgument,
          "the tail of {} rows names bucket {}, which is not one of the {} buckets or has "
          "no body",
          remainder, index, config.buckets.size());
    if (covered >= remainder)
      return makeError(
          StatusCode::InvalidArgument,
          "the tail of {} rows goes on after {} rows; only its last bucket may be padded",
          remainder, covered);
    covered += config.buckets[index].rows;
  }
  if (covered < remainder)
    return makeError(StatusCode::InvalidArgument, "the tail of {} rows covers only {}", remainder,
                     covered);
  return Status::ok();
}

Status verifyGroup(const ScheduleConfig &config, const ScheduleConfig::Group &group) {
  if (uint64_t{group.blocksPerSequence} * group.blockTokens < config.maxContext)
    return makeError(
        StatusCode::InvalidArgument,
        "state group '{}' has {} blocks of {} tokens a sequence; a context of {} needs more",
        group.name, group.blocksPerSequence, group.blockTokens, config.maxContext);
  if (group.blocks == 0)
    return makeError(StatusCode::InvalidArgument, "state group '{}' has no block", group.name);
  if (group.blockOrder.empty())
    return Status::ok();
  std::vector<uint32_t> sorted = group.blockOrder;
  std::sort(sorted.begin(), sorted.end());
  bool permutation = sorted.size() == group.blocks;
  for (uint32_t i = 0; permutation && i < group.blocks; ++i)
    permutation = sorted[i] == i;
  if (!permutation)
    return makeError(
        StatusCode::InvalidArgument,
        "the block order of state group '{}' has {} entries and is no permutation of its {} "
        "blocks",
        group.name, group.blockOrder.size(), group.blocks);
  return Status::ok();
}

} // namespace

Status ScheduleConfig::verify() const {
  if (vocabularySize == 0 || maxSequences == 0)
    return makeError(StatusCode::InvalidArgument,
                     "a vocabulary of {} and {} sequences; both must be at least 1", vocabularySize,
                     maxSequences);
  if (stages == 0 || stages > 4096)
    return makeError(StatusCode::InvalidArgument, "{} stages; 1 to 4096 can be scheduled", stages);
  // Positions and lengths are signed 32-bit numbers in the step block.
  if (maxContext < 2 || maxContext > 0x7FFFFFFF)
    return makeError(StatusCode::InvalidArgument,
                     "a context of {} tokens; allowed are 2 (a prompt and an answer) to 2147483647",
                     maxContext);
  STRATA_RETURN_IF_ERROR(verifyBuckets(*this));
  for (uint32_t remainder = 1; remainder <= tails.size(); ++remainder)
    STRATA_RETURN_IF_ERROR(verifyTail(*this, remainder));
  for (const Group &group : groups)
    STRATA_RETURN_IF_ERROR(verifyGroup(*this, group));
  return Status::ok();
}

uint32_t ScheduleConfig::blocksNeeded(const Group &group, uint32_t tokens, uint32_t rows) const {
  uint64_t all = ceilDiv(tokens, group.blockTokens);
  if (group.window == 0)
    return static_cast<uint32_t>(all);
  // The first row sees window - 1 tokens before it. A run of n tokens that begins at the last token
  // of a block touches ceil((n - 1) / blockTokens) + 1 blocks.
  uint64_t run = uint64_t{group.window} - 1 + rows;
  return static_cast<uint32_t>(std::min(all, ceilDiv(run - 1, group.blockTokens) + 1));
}

Result<ScheduleConfig> scheduleConfig(const fb::Plan &plan, std::span<const uint32_t> blockCounts,
                                      uint32_t sequences) {
  ScheduleConfig config;
  config.vocabularySize = plan.vocabulary_size();
  config.maxContext = plan.max_context();
  config.stages = plan.stages()->size();
  config.maxSequences = sequences ? sequences : plan.max_sequences();
  if (sequences > plan.max_sequences())
    return makeError(
        StatusCode::InvalidArgument,
        "{} sequences were asked for, but the plan holds {}; compile it with --max-seqs {}",
        sequences, plan.max_sequences(), sequences);
  for (const fb::Bucket *bucket : *plan.buckets())
    config.buckets.push_back({bucket->name()->str(), bucket->rows(), bucket->sequences(),
                              bucket->body(), bucket->head()});
  if (plan.tails())
    for (const fb::Tail *tail : *plan.tails())
      config.tails.emplace_back(tail->buckets()->begin(), tail->buckets()->end());
  if (plan.end_of_generation())
    config.endOfGeneration.assign(plan.end_of_generation()->begin(),
                                  plan.end_of_generation()->end());

  std::vector<const fb::StateGroup *> groups = stateGroups(plan);
  if (groups.size() != blockCounts.size())
    return makeError(StatusCode::InvalidArgument,
                     "block counts for {} state groups; the plan has {}", blockCounts.size(),
                     groups.size());
  for (size_t i = 0; i < groups.size(); ++i) {
    const fb::StateGroup &group = *groups[i];
    bool window = group.kind() == fb::StateKind::Window;
    // A slot is a block that holds a sequence of any length.
    bool slot = group.kind() == fb::StateKind::SlotPerSequence;
    config.groups.push_back({group.name()->str(),
                             window ? group.window() : 0,
                             slot ? plan.max_context() : group.block_tokens(),
                             group.blocks_per_sequence(),
                             blockCounts[i],
                             {}});
  }
  STRATA_RETURN_IF_ERROR(config.verify());
  return config;
}

} // namespace strata
