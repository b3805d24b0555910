#include "codegen/blocks/BlockLayouts.h"

#include "runtime/base/CheckedMath.h"
#include "runtime/sampling/Sampler.h"
#include "runtime/stage/Executor.h"

namespace strata {

void BlockFields::add(std::string name, std::string type, uint64_t count) {
  // A cache line each, so that workers which write neighbouring fields do not share one.
  uint64_t offset = alignUp(bytes, 64);
  fields.push_back({std::move(name), std::move(type), offset, count});
  bytes = alignUp(offset + fields.back().bytes(), 64);
}

const BlockField *BlockFields::find(llvm::StringRef name) const {
  for (const BlockField &field : fields)
    if (field.name == name)
      return &field;
  return nullptr;
}

BlockFields stepFields(llvm::ArrayRef<ir::StateOp> states, const BlockBounds &bounds) {
  BlockFields step;
  step.add("valid_rows", "u32", 1);
  step.add("valid_sequences", "u32", 1);
  step.add("valid_head_rows", "u32", 1);
  step.add("handoff_slot", "u32", 1);
  step.add("row_id", "i32", bounds.rows);
  step.add("row_position", "i32", bounds.rows);
  step.add("row_sequence", "i32", bounds.rows);
  step.add("query_start", "i32", bounds.sequences + 1);
  step.add("sequence_length", "i32", bounds.sequences);
  step.add("sequence_slot", "i32", bounds.sequences);
  step.add("head_row", "i32", bounds.headRows);
  step.add("head_sequence", "i32", bounds.headRows);
  step.add("temperature", "f32", bounds.sequences);
  step.add("top_k", "i32", bounds.sequences);
  step.add("top_p", "f32", bounds.sequences);
  step.add("min_p", "f32", bounds.sequences);
  step.add("seed", "u64", bounds.sequences);
  step.add("repetition_penalty", "f32", bounds.sequences);
  step.add("presence_penalty", "f32", bounds.sequences);
  step.add("frequency_penalty", "f32", bounds.sequences);
  step.add("penalty_window", "i32", bounds.sequences);
  for (ir::StateOp state : states)
    step.add(("block_table." + state.getSymName()).str(), "i32",
             bounds.sequences *
                 static_cast<uint64_t>(state.getTableBlocks(static_cast<int64_t>(bounds.context))));
  return step;
}

uint64_t handoffSlotBytes(int64_t width, int64_t rows) {
  return alignUp(static_cast<uint64_t>(width) * static_cast<uint64_t>(rows) * sizeof(float), 64);
}

BlockFields outFields(const BlockBounds &bounds) {
  BlockFields out;
  out.add("id", "i32", bounds.headRows);
  out.add("log_probability", "f32", bounds.headRows);
  out.add("top_id", "i32", bounds.headRows * topTokens);
  out.add("top_log_probability", "f32", bounds.headRows * topTokens);
  out.add("nonfinite_layer", "i32", bounds.sequences);
  return out;
}

BlockFields tableFields(bool hasHead, const BlockBounds &bounds) {
  BlockFields table;
  table.add("last_id", "i32", bounds.sequences);
  if (!hasHead)
    return table;
  table.add("history", "i32", bounds.sequences * bounds.context);
  table.add("bias_count", "i32", bounds.sequences);
  table.add("bias_id", "i32", bounds.sequences * maxLogitBiases);
  table.add("bias_value", "f32", bounds.sequences * maxLogitBiases);
  table.add("is_masked", "i32", bounds.sequences);
  table.add("mask", "u32", bounds.sequences * maskWords(bounds.vocabulary));
  return table;
}

} // namespace strata
