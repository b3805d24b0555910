#include "test/runtime/stage/Driver.h"

#include <numeric>

#include <gtest/gtest.h>

namespace strata::test {

using M = TinyModel;

Launch::Launch() {
  for (auto *rows : {&step.rowId, &step.rowPosition, &step.rowSequence})
    rows->resize(4);
  step.queryStart.resize(M::sequences + 1);
  step.sequenceLength.resize(M::sequences);
  step.sequenceSlot.resize(M::sequences);
  step.sampling.resize(M::sequences);
  step.blockTables.assign(1, std::vector<int32_t>(M::sequences * M::blocksPerSequence, -1));
  step.headRow.resize(2);
  step.headSequence.resize(2);
  result.id.resize(2);
  result.logProbability.resize(2);
  result.topId.resize(2 * topTokens);
  result.topLogProbability.resize(2 * topTokens);
  result.nonfiniteLayer.resize(M::sequences);
}

Driver::Driver(const std::string &planPath, ExecutorOptions options)
    : lengths_(M::sequences), blocks_(M::sequences * M::blocksPerSequence) {
  std::iota(blocks_.begin(), blocks_.end(), 0);
  auto file = PlanFile::open(planPath);
  if (!file.isOk()) {
    status_ = file.status();
    return;
  }
  auto executor = PlanExecutor::create(*file, options);
  status_ = executor.status();
  if (executor.isOk())
    executor_ = std::move(*executor);
}

void Driver::fill(uint32_t bucket, const std::vector<Part> &parts) {
  Step &step = launch_.step;
  step.bucket = bucket;
  step.validRows = step.validHeadRows = 0;
  step.validSequences = uint32_t(parts.size());
  for (uint32_t s = 0; s < parts.size(); ++s) {
    const Part &part = parts[s];
    step.queryStart[s] = int32_t(step.validRows);
    step.sequenceSlot[s] = int32_t(part.sequence);
    std::copy_n(blocks_.begin() + part.sequence * M::blocksPerSequence, M::blocksPerSequence,
                step.blockTables[0].begin() + s * M::blocksPerSequence);
    for (int32_t id : part.ids) {
      step.rowId[step.validRows] = id;
      step.rowPosition[step.validRows] = int32_t(lengths_[part.sequence]++);
      step.rowSequence[step.validRows++] = int32_t(s);
    }
    step.sequenceLength[s] = int32_t(lengths_[part.sequence]);
    if (part.wantsHead) {
      step.headRow[step.validHeadRows] = int32_t(step.validRows) - 1;
      step.headSequence[step.validHeadRows++] = int32_t(s);
    }
  }
  step.queryStart[parts.size()] = int32_t(step.validRows);
  step.returnsIds = step.validHeadRows > 0;
}

void Driver::run(uint32_t bucket, const std::vector<Part> &parts) {
  fill(bucket, parts);
  Status status = executor_->run(launch_.step, launch_.result);
  ASSERT_TRUE(status.isOk()) << status.toString();
}

void Driver::runHead(uint32_t bucket, const std::vector<int32_t> &rows) {
  Step &step = launch_.step;
  step.bucket = bucket;
  step.validHeadRows = uint32_t(rows.size());
  step.returnsIds = false;
  for (size_t i = 0; i < rows.size(); ++i) {
    step.headRow[i] = rows[i];
    step.headSequence[i] = step.rowSequence[size_t(rows[i])];
  }
  Status status = executor_->run(step, launch_.result);
  ASSERT_TRUE(status.isOk()) << status.toString();
}

std::vector<float> Driver::logits(uint32_t row) const {
  auto begin = executor_->logits()->begin() + row * M::vocabulary;
  return {begin, begin + M::vocabulary};
}

} // namespace strata::test
