#include "runtime/stage/SequenceTable.h"

#include <algorithm>
#include <iterator>

#include "runtime/plan/PlanAccess.h"
#include "runtime/stage/StepBlock.h"

namespace strata {

Result<SequenceTable> SequenceTable::create(const fb::Plan &plan, const fb::BlockLayout &layout) {
  SequenceTable table;
  table.sequences_ = plan.max_sequences();
  table.context_ = plan.max_context();
  table.maskWords_ = maskWords(plan.vocabulary_size());
  const uint64_t biases = table.sequences_ * maxLogitBiases;
  const struct {
    std::string_view name, type;
    uint64_t elements;
    uint64_t *offset;
  } known[] = {
      {"last_id", "i32", table.sequences_, &table.lastId_},
      {"history", "i32", table.sequences_ * table.context_, &table.history_},
      {"bias_count", "i32", table.sequences_, &table.biasCount_},
      {"bias_id", "i32", biases, &table.biasId_},
      {"bias_value", "f32", biases, &table.biasValue_},
      {"is_masked", "i32", table.sequences_, &table.isMasked_},
      {"mask", "u32", table.sequences_ * table.maskWords_, &table.mask_},
  };
  for (uint32_t i = 0; i < count(layout.fields()); ++i) {
    const fb::Field &field = *layout.fields()->Get(i);
    auto found = std::find_if(std::begin(known), std::end(known),
                              [&](const auto &each) { return each.name == text(field.name()); });
    if (found == std::end(known))
      return makeError(StatusCode::InvalidData,
                       "field '{}' of the sequence table is unknown to this build",
                       text(field.name()));
    STRATA_RETURN_IF_ERROR(checkField(field, found->type, found->elements));
    *found->offset = field.offset();
  }
  return table;
}

void SequenceTable::start(const SequenceStart &sequence, std::byte *table, Staged &staged,
                          std::vector<DeviceCopy> &copies) const {
  const auto slot = uint64_t(sequence.slot);
  auto put = [&](uint64_t field, uint64_t row, const auto *from, size_t elements) {
    if (field != absent && elements > 0)
      copies.push_back({table + field + slot * row * sizeof *from,
                        reinterpret_cast<const std::byte *>(from), elements * sizeof *from});
  };
  staged.biasCount = int32_t(sequence.biases.size());
  staged.isMasked = sequence.allowed.empty() ? 0 : 1;
  for (size_t i = 0; i < sequence.biases.size(); ++i) {
    staged.biasId[i] = sequence.biases[i].id;
    staged.biasValue[i] = sequence.biases[i].value;
  }
  put(history_, context_, sequence.ids.data(), sequence.ids.size());
  put(biasCount_, 1, &staged.biasCount, 1);
  put(biasId_, maxLogitBiases, staged.biasId, sequence.biases.size());
  put(biasValue_, maxLogitBiases, staged.biasValue, sequence.biases.size());
  put(isMasked_, 1, &staged.isMasked, 1);
  put(mask_, maskWords_, sequence.allowed.data(), sequence.allowed.size());
}

std::span<int32_t> SequenceTable::lastIds(std::byte *table) const {
  if (lastId_ == absent)
    return {};
  return {reinterpret_cast<int32_t *>(table + lastId_), sequences_};
}

} // namespace strata
