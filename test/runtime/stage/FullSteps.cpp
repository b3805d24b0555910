#include "test/runtime/stage/FullSteps.h"

#include <algorithm>

namespace strata::test {

FullSteps::FullSteps(const fb::Plan &plan) : plan_(plan) {
  for (auto *rows : {&step_.rowId, &step_.rowPosition, &step_.rowSequence})
    rows->resize(plan.max_rows());
  step_.queryStart.resize(plan.max_sequences() + 1);
  step_.sequenceLength.resize(plan.max_sequences());
  step_.sequenceSlot.resize(plan.max_sequences());
  step_.sampling.resize(plan.max_sequences());
  step_.headRow.resize(plan.max_head_rows());
  step_.headSequence.resize(plan.max_head_rows());
  result_.id.resize(plan.max_head_rows());
  result_.logProbability.resize(plan.max_head_rows());
  result_.topId.resize(size_t{plan.max_head_rows()} * topTokens);
  result_.topLogProbability.resize(size_t{plan.max_head_rows()} * topTokens);
  result_.nonfiniteLayer.resize(plan.max_sequences());
  // Each sequence has its share of the promise, in order.
  for (const fb::StateGroup *group : stateGroups(plan)) {
    uint32_t width = group->blocks_per_sequence();
    uint32_t share = group->promised_blocks() / plan.max_sequences();
    std::vector<int32_t> &table =
        step_.blockTables.emplace_back(size_t{plan.max_sequences()} * width, -1);
    for (uint32_t s = 0; s < plan.max_sequences(); ++s)
      for (uint32_t b = 0; b < std::min(width, share); ++b)
        table[size_t{s} * width + b] = int32_t(s * share + b);
  }
}

void FullSteps::fillBody(const fb::Bucket &bucket) {
  step_.validRows = bucket.rows();
  step_.validSequences = std::min(bucket.sequences(), bucket.rows());
  uint32_t row = 0;
  for (uint32_t s = 0; s < step_.validSequences; ++s) {
    uint32_t end = bucket.rows() * (s + 1) / step_.validSequences;
    step_.queryStart[s] = int32_t(row);
    step_.sequenceSlot[s] = int32_t(s);
    for (int32_t position = 0; row < end; ++row, ++position) {
      step_.rowId[row] = int32_t((row * 37 + 11) % plan_.vocabulary_size());
      step_.rowPosition[row] = position;
      step_.rowSequence[row] = int32_t(s);
      step_.sequenceLength[s] = position + 1;
    }
  }
  step_.queryStart[step_.validSequences] = int32_t(row);
}

Status FullSteps::run(Executor &executor, uint32_t bucket, std::span<const Run> runs) {
  step_.bucket = bucket;
  step_.validRows = step_.validSequences = step_.validHeadRows = 0;
  std::vector<std::vector<int32_t>> tables = step_.blockTables;
  for (const Run &run : runs) {
    uint32_t s = step_.validSequences++;
    for (size_t g = 0; g < tables.size(); ++g) { // the sequence's blocks, where this step looks
      size_t width = tables[g].size() / plan_.max_sequences();
      std::copy_n(tables[g].begin() + run.sequence * width, width,
                  step_.blockTables[g].begin() + s * width);
    }
    step_.queryStart[s] = int32_t(step_.validRows);
    step_.sequenceSlot[s] = int32_t(run.sequence);
    step_.sequenceLength[s] = int32_t(run.begin + run.rows);
    for (uint32_t position = run.begin; position < run.begin + run.rows; ++position) {
      uint32_t row = step_.validRows++;
      step_.rowId[row] =
          int32_t((run.sequence * 101 + position * 37 + 11) % plan_.vocabulary_size());
      step_.rowPosition[row] = int32_t(position);
      step_.rowSequence[row] = int32_t(s);
    }
    if (run.wantsHead && plan_.buckets()->Get(bucket)->head()) {
      step_.headRow[step_.validHeadRows] = int32_t(step_.validRows) - 1;
      step_.headSequence[step_.validHeadRows++] = int32_t(s);
    }
  }
  step_.queryStart[step_.validSequences] = int32_t(step_.validRows);
  Status status = executor.run(step_, result_);
  step_.blockTables = tables;
  return status;
}

Status FullSteps::runAll(Executor &executor) {
  for (bool bodies : {true, false}) // bodies come by rising rows, so heads follow the largest
    for (uint32_t i = 0; i < plan_.buckets()->size(); ++i) {
      const fb::Bucket &bucket = *plan_.buckets()->Get(i);
      if (bucket.body() != bodies)
        continue;
      step_.bucket = i;
      if (bodies)
        fillBody(bucket);
      step_.validHeadRows = bucket.head() ? bucket.rows() : 0;
      for (uint32_t head = 0; head < step_.validHeadRows; ++head) {
        step_.headRow[head] = int32_t(head);
        step_.headSequence[head] = step_.rowSequence[head];
      }
      STRATA_RETURN_IF_ERROR(executor.run(step_, result_));
    }
  return {};
}

} // namespace strata::test
