#include "test/runtime/schedule/FakeExecutor.h"

#include <algorithm>

#include "runtime/stage/Flow.h"

namespace strata::test {

uint64_t mix(uint64_t value, uint64_t next) {
  value = (value ^ next) + 0x9E3779B97F4A7C15;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EB;
  return value ^ (value >> 31);
}

uint32_t firstVisible(const ScheduleConfig::Group &group, uint32_t position) {
  return group.window && position >= group.window ? position - group.window + 1 : 0;
}

int32_t draw(uint64_t hidden, uint64_t seed, uint32_t length, uint32_t vocabulary) {
  return static_cast<int32_t>(mix(mix(hidden, seed), length) % vocabulary);
}

namespace {

uint64_t stateOf(int32_t id, int32_t position) { return mix(mix(1, id), position); }

template <class... Args> Status broken(fmt::format_string<Args...> format, Args &&...args) {
  return makeError(StatusCode::Internal, format, std::forward<Args>(args)...);
}

} // namespace

FakeExecutor::FakeExecutor(const ScheduleConfig &config)
    : config_(config), lastId_(config.maxSequences, -1), poisoned_(config.maxSequences, -1) {
  uint32_t rows = 0;
  for (const ScheduleConfig::Bucket &bucket : config.buckets)
    rows = std::max(rows, bucket.rows);
  hidden_.resize(rows);
  logits_.resize(size_t{rows} * config.vocabularySize);
  results_.resize(launchesInFlight(config.stages));
  for (StepResult &result : results_) {
    result.id.resize(rows);
    result.logProbability.resize(rows);
    result.topId.resize(size_t{rows} * topTokens);
    result.topLogProbability.resize(size_t{rows} * topTokens);
    result.nonfiniteLayer.resize(config.maxSequences, -1);
  }
  for (const ScheduleConfig::Group &group : config.groups)
    pools_.emplace_back(size_t{group.blocks} * group.blockTokens, 0xDEAD);
}

Status FakeExecutor::wait(StepResult &result) {
  if (out_ == 0)
    return broken("no launch is out");
  // Moves contents, not memory: both are sized alike.
  std::swap(result, results_[first_]);
  first_ = (first_ + 1) % results_.size();
  --out_;
  return Status::ok();
}

Status FakeExecutor::submit(const Step &step) {
  STRATA_RETURN_IF_ERROR(failure_);
  if (out_ == results_.size())
    return broken("{} launches are out", out_);
  StepResult &result = results_[(first_ + out_++) % results_.size()];
  STRATA_RETURN_IF_ERROR(checkShape(step));
  STRATA_RETURN_IF_ERROR(checkStarts(step));
  const ScheduleConfig::Bucket &bucket = config_.buckets[step.bucket];
  if (bucket.body)
    STRATA_RETURN_IF_ERROR(runBody(step));
  STRATA_RETURN_IF_ERROR(checkHeads(step));
  for (uint32_t i = 0; i < step.validSequences; ++i)
    result.nonfiniteLayer[i] = poisoned_[step.sequenceSlot[i]];
  if (bucket.head)
    runHead(step, result);
  if (bucket.head && bucket.body)
    hiddenRows_ = 0; // Only a body without a head leaves its rows for the next gather.
  return Status::ok();
}

Status FakeExecutor::checkShape(const Step &step) const {
  if (step.bucket >= config_.buckets.size())
    return broken("bucket {} of {}", step.bucket, config_.buckets.size());
  const ScheduleConfig::Bucket &bucket = config_.buckets[step.bucket];
  if (step.validRows > bucket.rows || step.validSequences > bucket.sequences ||
      step.validHeadRows > (bucket.head ? bucket.rows : 0) || step.validSequences == 0)
    return broken("{} rows, {} sequences, {} head rows in bucket '{}'", step.validRows,
                  step.validSequences, step.validHeadRows, bucket.name);
  if ((step.validRows > 0) != bucket.body)
    return broken("{} rows in bucket '{}'", step.validRows, bucket.name);
  if (!step.moves.empty() && !bucket.body)
    return broken("blocks move before a head alone");
  for (uint32_t i = 0; i < step.validSequences; ++i)
    STRATA_RETURN_IF_ERROR(checkSequence(step, i));
  if (step.queryStart[step.validSequences] != static_cast<int32_t>(step.validRows))
    return broken("queries end at {} of {} rows", step.queryStart[step.validSequences],
                  step.validRows);
  return Status::ok();
}

Status FakeExecutor::checkSequence(const Step &step, uint32_t sequence) const {
  int32_t slot = step.sequenceSlot[sequence];
  if (slot < 0 || slot >= static_cast<int32_t>(config_.maxSequences))
    return broken("sequence {} has slot {}", sequence, slot);
  for (uint32_t other = 0; other < sequence; ++other)
    if (step.sequenceSlot[other] == slot)
      return broken("sequences {} and {} share slot {}", other, sequence, slot);
  if (!config_.buckets[step.bucket].body)
    return Status::ok();
  int32_t begin = step.queryStart[sequence], end = step.queryStart[sequence + 1];
  if (begin >= end || (sequence == 0 && begin != 0))
    return broken("sequence {} has rows {} to {}", sequence, begin, end);
  for (int32_t row = begin; row < end; ++row)
    if (step.rowSequence[row] != static_cast<int32_t>(sequence) ||
        step.rowPosition[row] != step.sequenceLength[sequence] - end + row)
      return broken("row {} of sequence {} says sequence {} and position {}", row, sequence,
                    step.rowSequence[row], step.rowPosition[row]);
  return Status::ok();
}

// Every sequence starts in the step that holds its first row, and in no other.
Status FakeExecutor::checkStarts(const Step &step) const {
  size_t expected = 0;
  for (uint32_t i = 0; i < step.validSequences && step.validRows > 0; ++i) {
    int32_t first = step.queryStart[i];
    if (step.rowPosition[first] > 0)
      continue;
    if (expected == step.starts.size())
      return broken("sequence {} has its first row but no start", i);
    const SequenceStart &start = step.starts[expected++];
    size_t rows = step.queryStart[i + 1] - first;
    if (start.slot != step.sequenceSlot[i] || start.ids.size() < rows ||
        !std::equal(start.ids.begin(), start.ids.begin() + rows, step.rowId.begin() + first))
      return broken("sequence {} of slot {} starts in slot {} with other ids than its rows", i,
                    step.sequenceSlot[i], start.slot);
  }
  if (expected != step.starts.size())
    return broken("{} sequences start in a step with {} first rows", step.starts.size(), expected);
  return Status::ok();
}

Status FakeExecutor::checkHeads(const Step &step) const {
  for (uint32_t i = 0; i < step.validHeadRows; ++i)
    if (step.headRow[i] < 0 || step.headRow[i] >= static_cast<int32_t>(hiddenRows_) ||
        step.headSequence[i] < 0 ||
        step.headSequence[i] >= static_cast<int32_t>(step.validSequences))
      return broken("head row {} gathers row {} of {} for sequence {}", i, step.headRow[i],
                    hiddenRows_, step.headSequence[i]);
  return Status::ok();
}

Result<uint64_t> FakeExecutor::see(const Step &step, uint32_t row) const {
  uint64_t hidden = 0;
  auto position = static_cast<uint32_t>(step.rowPosition[row]);
  for (size_t g = 0; g < config_.groups.size(); ++g) {
    const ScheduleConfig::Group &group = config_.groups[g];
    const int32_t *table =
        step.blockTables[g].data() + size_t(step.rowSequence[row]) * group.blocksPerSequence;
    for (uint32_t token = firstVisible(group, position); token <= position; ++token) {
      int32_t block = table[token / group.blockTokens];
      if (block < 0 || block >= static_cast<int32_t>(group.blocks))
        return broken("row {} at position {} reads block {} for token {} of group '{}'", row,
                      position, block, token, group.name);
      hidden = mix(hidden, pools_[g][block * group.blockTokens + token % group.blockTokens]);
    }
  }
  return hidden;
}

Status FakeExecutor::runMoves(const Step &step) {
  for (const StateMove &move : step.moves) {
    const ScheduleConfig::Group &group = config_.groups[move.group];
    auto blocks = static_cast<int32_t>(group.blocks);
    if (move.from < 0 || move.from >= blocks || move.to < 0 || move.to >= move.from)
      return broken("block {} of {} moves to {}", move.from, blocks, move.to);
    uint64_t *pool = pools_[move.group].data();
    uint64_t *from = pool + size_t(move.from) * group.blockTokens;
    std::copy_n(from, group.blockTokens, pool + size_t(move.to) * group.blockTokens);
    std::fill_n(from, group.blockTokens, 0xDEAD);
    ++moves_;
  }
  return Status::ok();
}

Status FakeExecutor::runBody(const Step &step) {
  STRATA_RETURN_IF_ERROR(runMoves(step));
  for (uint32_t row = 0; row < step.validRows; ++row) {
    int32_t sequence = step.rowSequence[row], position = step.rowPosition[row];
    int32_t id = step.rowId[row];
    if (id < 0)
      id = lastId_[step.sequenceSlot[sequence]];
    for (size_t g = 0; g < config_.groups.size(); ++g) {
      const ScheduleConfig::Group &group = config_.groups[g];
      int32_t block = step.blockTables[g][size_t(sequence) * group.blocksPerSequence +
                                          position / group.blockTokens];
      if (block < 0 || block >= static_cast<int32_t>(group.blocks))
        return broken("row {} at position {} writes block {} of group '{}'", row, position, block,
                      group.name);
      pools_[g][block * group.blockTokens + position % group.blockTokens] = stateOf(id, position);
    }
  }
  for (uint32_t row = 0; row < step.validRows; ++row) {
    STRATA_ASSIGN_OR_RETURN(hidden_[row], see(step, row));
  }
  hiddenRows_ = step.validRows;
  return Status::ok();
}

void FakeExecutor::runHead(const Step &step, StepResult &result) {
  for (uint32_t i = 0; i < step.validHeadRows; ++i) {
    int32_t sequence = step.headSequence[i], slot = step.sequenceSlot[sequence];
    uint64_t hidden = hidden_[step.headRow[i]];
    int32_t id = draw(hidden, step.sampling[sequence].seed, step.sequenceLength[sequence],
                      config_.vocabularySize);
    lastId_[slot] = result.id[i] = id;
    result.logProbability[i] = -static_cast<float>(id);
    for (uint32_t j = 0; j < config_.vocabularySize; ++j)
      logits_[size_t{i} * config_.vocabularySize + j] = fakeLogit(hidden, j);
  }
  logitsSize_ = size_t{step.validHeadRows} * config_.vocabularySize;
}

float fakeLogit(uint64_t hidden, uint32_t id) { return static_cast<float>(mix(hidden, id) >> 40); }

uint64_t hiddenAt(const ScheduleConfig &config, std::span<const int32_t> ids, uint32_t position) {
  uint64_t hidden = 0;
  for (const ScheduleConfig::Group &group : config.groups)
    for (uint32_t token = firstVisible(group, position); token <= position; ++token)
      hidden = mix(hidden, stateOf(ids[token], token));
  return hidden;
}

Generation generateAlone(const ScheduleConfig &config, const Request &request) {
  Generation generation;
  std::vector<int32_t> ids = request.prompt;
  const std::vector<int32_t> &ends = config.endOfGeneration;
  while (generation.finish == FinishReason::None) {
    auto position = static_cast<uint32_t>(ids.size());
    uint64_t hidden = hiddenAt(config, ids, position - 1);
    int32_t id = draw(hidden, request.sampling.seed, position, config.vocabularySize);
    ids.push_back(id);
    generation.ids.push_back(id);
    if (!request.ignoreEndOfGeneration && std::find(ends.begin(), ends.end(), id) != ends.end())
      generation.finish = FinishReason::Stop;
    else if (generation.ids.size() == request.maxTokens || ids.size() == config.maxContext)
      generation.finish = FinishReason::Length;
  }
  return generation;
}

} // namespace strata::test
