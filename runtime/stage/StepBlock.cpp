#include "runtime/stage/StepBlock.h"

#include <algorithm>
#include <cstring>

#include "runtime/plan/PlanAccess.h"
#include "runtime/plan/PlanFile.h"

namespace strata {
namespace {

constexpr std::string_view blockTablePrefix = "block_table.";

template <class T> void put(std::byte *to, const T *from, size_t elements) {
  std::memcpy(to, from, elements * sizeof(T));
}

} // namespace

enum class StepBlock::Source : uint8_t {
  ValidRows,
  ValidSequences,
  ValidHeadRows,
  HandoffSlot,
  RowId,
  RowPosition,
  RowSequence,
  QueryStart,
  SequenceLength,
  SequenceSlot,
  HeadRow,
  HeadSequence,
  Temperature,
  TopP,
  MinP,
  TopK,
  Seed,
  RepetitionPenalty,
  PresencePenalty,
  FrequencyPenalty,
  PenaltyWindow,
  BlockTable
};

struct StepBlock::Known {
  enum Count : uint8_t { One, Rows, Sequences, SequencesAndOne, HeadRows };
  std::string_view name;
  std::string_view type;
  Source source;
  Count elements;
};

constexpr StepBlock::Known StepBlock::known[] = {
    {"valid_rows", "u32", Source::ValidRows, Known::One},
    {"valid_sequences", "u32", Source::ValidSequences, Known::One},
    {"valid_head_rows", "u32", Source::ValidHeadRows, Known::One},
    {"handoff_slot", "u32", Source::HandoffSlot, Known::One},
    {"row_id", "i32", Source::RowId, Known::Rows},
    {"row_position", "i32", Source::RowPosition, Known::Rows},
    {"row_sequence", "i32", Source::RowSequence, Known::Rows},
    {"query_start", "i32", Source::QueryStart, Known::SequencesAndOne},
    {"sequence_length", "i32", Source::SequenceLength, Known::Sequences},
    {"sequence_slot", "i32", Source::SequenceSlot, Known::Sequences},
    {"head_row", "i32", Source::HeadRow, Known::HeadRows},
    {"head_sequence", "i32", Source::HeadSequence, Known::HeadRows},
    {"temperature", "f32", Source::Temperature, Known::Sequences},
    {"top_p", "f32", Source::TopP, Known::Sequences},
    {"min_p", "f32", Source::MinP, Known::Sequences},
    {"top_k", "i32", Source::TopK, Known::Sequences},
    {"seed", "u64", Source::Seed, Known::Sequences},
    {"repetition_penalty", "f32", Source::RepetitionPenalty, Known::Sequences},
    {"presence_penalty", "f32", Source::PresencePenalty, Known::Sequences},
    {"frequency_penalty", "f32", Source::FrequencyPenalty, Known::Sequences},
    {"penalty_window", "i32", Source::PenaltyWindow, Known::Sequences},
};

Status checkField(const fb::Field &field, std::string_view type, uint64_t least) {
  if (text(field.type()) == type && field.count() >= least)
    return {};
  return makeError(StatusCode::InvalidData, "field '{}' has {} elements of {}; {} of {} are needed",
                   text(field.name()), field.count(), text(field.type()), least, type);
}

Result<StepBlock> StepBlock::create(const fb::Plan &plan, const fb::BlockLayout &layout) {
  StepBlock block;
  std::vector<const fb::StateGroup *> groups = stateGroups(plan);
  for (uint32_t i = 0; i < count(layout.fields()); ++i) {
    const fb::Field &field = *layout.fields()->Get(i);
    std::string_view name = text(field.name());
    if (name.starts_with(blockTablePrefix)) {
      std::string_view group = name.substr(blockTablePrefix.size());
      auto found = std::find_if(groups.begin(), groups.end(),
                                [&](const auto *each) { return text(each->name()) == group; });
      if (found == groups.end())
        return makeError(StatusCode::InvalidData,
                         "field '{}' of the step block is of no state group", name);
      uint32_t perSequence = (*found)->blocks_per_sequence();
      STRATA_RETURN_IF_ERROR(
          checkField(field, "i32", uint64_t(plan.max_sequences()) * perSequence));
      block.copies_.push_back(
          {Source::BlockTable, field.offset(), uint32_t(found - groups.begin()), perSequence});
      continue;
    }
    auto found = std::find_if(std::begin(known), std::end(known),
                              [&](const Known &each) { return each.name == name; });
    if (found == std::end(known))
      return makeError(
          StatusCode::InvalidData,
          "field '{}' of the step block is unknown to this build, which could not fill it", name);
    const uint64_t counts[] = {1, plan.max_rows(), plan.max_sequences(),
                               uint64_t(plan.max_sequences()) + 1, plan.max_head_rows()};
    STRATA_RETURN_IF_ERROR(checkField(field, found->type, counts[found->elements]));
    block.copies_.push_back({found->source, field.offset(), 0, 0});
  }
  return block;
}

void StepBlock::write(const Step &step, uint32_t handoffNumber, std::byte *block) const {
  const uint32_t rows = step.validRows, sequences = step.validSequences, heads = step.validHeadRows;
  auto putSampling = [&](std::byte *to, auto SamplingParameters::*member) {
    using T = std::remove_reference_t<decltype(step.sampling[0].*member)>;
    for (uint32_t s = 0; s < sequences; ++s)
      put(to + s * sizeof(T), &(step.sampling[s].*member), 1);
  };
  for (const Copy &copy : copies_) {
    std::byte *to = block + copy.offset;
    switch (copy.source) {
    case Source::ValidRows:
      put(to, &rows, 1);
      break;
    case Source::ValidSequences:
      put(to, &sequences, 1);
      break;
    case Source::ValidHeadRows:
      put(to, &heads, 1);
      break;
    case Source::HandoffSlot:
      put(to, &handoffNumber, 1);
      break;
    case Source::RowId:
      put(to, step.rowId.data(), rows);
      break;
    case Source::RowPosition:
      put(to, step.rowPosition.data(), rows);
      break;
    case Source::RowSequence:
      put(to, step.rowSequence.data(), rows);
      break;
    case Source::QueryStart:
      put(to, step.queryStart.data(), sequences + 1);
      break;
    case Source::SequenceLength:
      put(to, step.sequenceLength.data(), sequences);
      break;
    case Source::SequenceSlot:
      put(to, step.sequenceSlot.data(), sequences);
      break;
    case Source::HeadRow:
      put(to, step.headRow.data(), heads);
      break;
    case Source::HeadSequence:
      put(to, step.headSequence.data(), heads);
      break;
    case Source::Temperature:
      putSampling(to, &SamplingParameters::temperature);
      break;
    case Source::TopP:
      putSampling(to, &SamplingParameters::topP);
      break;
    case Source::MinP:
      putSampling(to, &SamplingParameters::minP);
      break;
    case Source::TopK:
      putSampling(to, &SamplingParameters::topK);
      break;
    case Source::Seed:
      putSampling(to, &SamplingParameters::seed);
      break;
    case Source::RepetitionPenalty:
      putSampling(to, &SamplingParameters::repetitionPenalty);
      break;
    case Source::PresencePenalty:
      putSampling(to, &SamplingParameters::presencePenalty);
      break;
    case Source::FrequencyPenalty:
      putSampling(to, &SamplingParameters::frequencyPenalty);
      break;
    case Source::PenaltyWindow:
      putSampling(to, &SamplingParameters::penaltyWindow);
      break;
    case Source::BlockTable:
      put(to, step.blockTables[copy.group].data(), size_t(sequences) * copy.blocksPerSequence);
      break;
    }
  }
}

Result<OutBlock> OutBlock::create(const fb::Plan &plan, const fb::BlockLayout &layout) {
  OutBlock block;
  block.sequences_ = plan.max_sequences();
  const uint64_t heads = plan.max_head_rows();
  const struct {
    std::string_view name, type;
    uint64_t elements;
    uint64_t *offset;
  } known[] = {
      {"id", "i32", heads, &block.id_},
      {"log_probability", "f32", heads, &block.logProbability_},
      {"top_id", "i32", heads * topTokens, &block.topId_},
      {"top_log_probability", "f32", heads * topTokens, &block.topLogProbability_},
      {"nonfinite_layer", "i32", plan.max_sequences(), &block.nonfinite_},
  };
  for (uint32_t i = 0; i < count(layout.fields()); ++i) {
    const fb::Field &field = *layout.fields()->Get(i);
    auto found = std::find_if(std::begin(known), std::end(known),
                              [&](const auto &each) { return each.name == text(field.name()); });
    if (found == std::end(known))
      return makeError(StatusCode::InvalidData,
                       "field '{}' of the out block is unknown to this build", text(field.name()));
    STRATA_RETURN_IF_ERROR(checkField(field, found->type, found->elements));
    *found->offset = field.offset();
  }
  return block;
}

void OutBlock::clear(std::byte *block) const {
  if (nonfinite_ == absent)
    return;
  const int32_t none = INT32_MAX;
  for (uint32_t s = 0; s < sequences_; ++s)
    put(block + nonfinite_ + s * sizeof none, &none, 1);
}

void OutBlock::readNonfinite(const std::byte *block, uint32_t sequences, StepResult &result) const {
  if (nonfinite_ == absent)
    return;
  for (uint32_t s = 0; s < sequences; ++s) {
    int32_t layer;
    std::memcpy(&layer, block + nonfinite_ + s * sizeof layer, sizeof layer);
    int32_t &known = result.nonfiniteLayer[s];
    if (layer != INT32_MAX && (known < 0 || layer < known))
      known = layer;
  }
}

void OutBlock::readHead(const std::byte *block, uint32_t rows, StepResult &result) const {
  auto get = [&](auto &to, uint64_t offset, size_t elements) {
    if (offset != absent)
      std::memcpy(to.data(), block + offset, elements * sizeof to[0]);
  };
  get(result.id, id_, rows);
  get(result.logProbability, logProbability_, rows);
  get(result.topId, topId_, size_t(rows) * topTokens);
  get(result.topLogProbability, topLogProbability_, size_t(rows) * topTokens);
}

} // namespace strata
