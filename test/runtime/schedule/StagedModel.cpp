#include "test/runtime/schedule/StagedModel.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace strata::test {
namespace {

std::vector<Flow::Edge> chain(uint32_t stages, uint32_t slots) {
  std::vector<Flow::Edge> edges;
  for (uint32_t stage = 0; stage + 1 < stages; ++stage)
    edges.push_back({stage, stage + 1, slots});
  return edges;
}

uint64_t embed(uint64_t id) { return mix(1, id); }

} // namespace

StagedModel::StagedModel(const ScheduleConfig &config, uint32_t slots)
    : config_(config), flow_(config.stages, chain(config.stages, slots), config.maxSequences),
      timelines_(flow_.timelines()), stages_(config.stages) {
  for (const Flow::Edge &edge : flow_.edges())
    rings_.emplace_back(edge.slots);
  for (Stage &stage : stages_) {
    stage.lastIds.assign(config.maxSequences, 0xDEAD);
    for (const ScheduleConfig::Group &group : config.groups)
      stage.pools.emplace_back(size_t{group.blocks} * group.blockTokens, 0xDEAD);
  }
}

void StagedModel::submit(const Step &step) {
  const ScheduleConfig::Bucket &bucket = config_.buckets[step.bucket];
  Launch &launch =
      launches_.emplace_back(Launch{submitted_, step, std::vector<Flow::Leg>(stages()), {}});
  bool runs[64];
  for (uint32_t stage = 0; stage < stages(); ++stage)
    runs[stage] = bucket.body || stage + 1 == stages();
  flow_.submit(step, {bucket.body, bucket.head}, {runs, stages()}, launch.legs);
  for (uint32_t stage = 0; stage < stages(); ++stage)
    if (runs[stage])
      stages_[stage].queue.push_back(submitted_);
  ++submitted_;
}

bool StagedModel::isReached(const Flow::Gate &gate) const {
  return int32_t(timelines_[gate.timeline] - gate.value) >= 0;
}

bool StagedModel::canRetire() const {
  return !launches_.empty() &&
         std::ranges::all_of(launches_.front().legs, [&](const Flow::Leg &leg) {
           return !leg.runs || isReached(leg.signals.back());
         });
}

void StagedModel::retire(StepResult &result) {
  flow_.retire();
  std::ranges::copy(launches_.front().ids, result.id.begin());
  for (size_t i = 0; i < launches_.front().ids.size(); ++i)
    result.logProbability[i] = -static_cast<float>(result.id[i]);
  std::ranges::fill(result.nonfiniteLayer, -1);
  launches_.pop_front();
  ++retired_;
}

bool StagedModel::canBegin(uint32_t stage) const {
  const Stage &at = stages_[stage];
  return !at.isRunning && !at.queue.empty() &&
         std::ranges::all_of(launch(at.queue.front()).legs[stage].waits,
                             [&](const Flow::Gate &gate) { return isReached(gate); });
}

StagedModel::Slot *StagedModel::slotIn(uint32_t stage, const Launch &launch) {
  if (stage == 0 || !config_.buckets[launch.step.bucket].body)
    return nullptr;
  return &rings_[stage - 1][flow_.slot(stage - 1, launch.legs[stage].handoffNumber)];
}

StagedModel::Slot *StagedModel::slotOut(uint32_t stage, const Launch &launch) {
  if (stage + 1 == stages())
    return nullptr;
  return &rings_[stage][flow_.slot(stage, launch.legs[stage].handoffNumber)];
}

// A stage reads what it is given when it begins and finds it unchanged when it ends; what it writes
// is unfit for use from its begin to its end.
void StagedModel::begin(uint32_t index) {
  Stage &stage = stages_[index];
  Launch &launch = this->launch(stage.queue.front());
  const Flow::Leg &leg = launch.legs[index];
  const ScheduleConfig::Bucket &bucket = config_.buckets[launch.step.bucket];
  if (leg.idsFrom >= 0) {
    const Slot &slot = rings_[flow_.idsEdge()][leg.idsFrom];
    EXPECT_NE(slot.launch, UINT64_MAX) << "ids read before they were written";
    stage.lastIds = slot.values;
  }
  Slot *in = slotIn(index, launch);
  if (in) {
    EXPECT_EQ(in->launch, launch.number) << "stage " << index << " is given another launch's rows";
  }
  if (Slot *out = slotOut(index, launch))
    out->launch = UINT64_MAX;
  if (leg.idsTo >= 0)
    rings_[flow_.idsEdge()][leg.idsTo].launch = UINT64_MAX;
  if (bucket.body)
    runBody(index, launch, in);
  if (index + 1 == stages() && bucket.head)
    runHead(launch);
  stage.isRunning = true;
  ++stage.begun;
}

void StagedModel::end(uint32_t index) {
  Stage &stage = stages_[index];
  const Launch &launch = this->launch(stage.queue.front());
  const Flow::Leg &leg = launch.legs[index];
  if (const Slot *in = slotIn(index, launch)) {
    EXPECT_EQ(in->launch, launch.number) << "stage " << index << "'s rows were overwritten";
  }
  if (Slot *out = slotOut(index, launch))
    *out = {launch.number, stage.hidden};
  if (leg.idsTo >= 0)
    rings_[flow_.idsEdge()][leg.idsTo] = {launch.number, stage.lastIds};
  if (leg.idsFrom >= 0) {
    EXPECT_NE(rings_[flow_.idsEdge()][leg.idsFrom].launch, UINT64_MAX) << "ids were overwritten";
  }
  for (const Flow::Gate &signal : leg.signals)
    if (!isReached(signal))
      timelines_[signal.timeline] = signal.value;
  stage.queue.pop_front();
  stage.isRunning = false;
  ++stage.ended;
}

void StagedModel::runBody(uint32_t index, const Launch &launch, const Slot *in) {
  Stage &stage = stages_[index];
  const Step &step = launch.step;
  stage.hidden.assign(step.validRows, 0);
  auto block = [&](size_t group, uint32_t row, uint32_t token) {
    const ScheduleConfig::Group &of = config_.groups[group];
    int32_t number = step.blockTables[group][size_t(step.rowSequence[row]) * of.blocksPerSequence +
                                             token / of.blockTokens];
    EXPECT_GE(number, 0);
    return std::max(number, 0) * of.blockTokens + token % of.blockTokens;
  };
  for (uint32_t row = 0; row < step.validRows; ++row) {
    uint64_t value = in && row < in->values.size() ? in->values[row] : 0;
    if (index == 0)
      value = embed(step.rowId[row] >= 0 ? uint64_t(step.rowId[row])
                                         : stage.lastIds[step.sequenceSlot[step.rowSequence[row]]]);
    for (size_t g = 0; g < config_.groups.size(); ++g)
      stage.pools[g][block(g, row, step.rowPosition[row])] = mix(value, step.rowPosition[row]);
  }
  for (uint32_t row = 0; row < step.validRows; ++row)
    for (size_t g = 0; g < config_.groups.size(); ++g) {
      auto position = static_cast<uint32_t>(step.rowPosition[row]);
      for (uint32_t token = firstVisible(config_.groups[g], position); token <= position; ++token)
        stage.hidden[row] = mix(stage.hidden[row], stage.pools[g][block(g, row, token)]);
    }
}

void StagedModel::runHead(Launch &launch) {
  Stage &stage = stages_.back();
  const Step &step = launch.step;
  for (uint32_t i = 0; i < step.validHeadRows; ++i) {
    int32_t sequence = step.headSequence[i];
    ASSERT_LT(size_t(step.headRow[i]), stage.hidden.size());
    int32_t id = draw(stage.hidden[step.headRow[i]], step.sampling[sequence].seed,
                      step.sequenceLength[sequence], config_.vocabularySize);
    stage.lastIds[step.sequenceSlot[sequence]] = uint64_t(id);
    launch.ids.push_back(id);
  }
}

Generation generateStaged(const ScheduleConfig &config, const Request &request) {
  Generation generation;
  std::vector<int32_t> ids = request.prompt;
  const std::vector<int32_t> &ends = config.endOfGeneration;
  std::vector<std::vector<uint64_t>> written(config.stages); ///< [stage][position]
  while (generation.finish == FinishReason::None) {
    uint64_t hidden = 0;
    for (auto position = static_cast<uint32_t>(written[0].size()); position < ids.size();
         ++position) {
      hidden = embed(uint64_t(ids[position]));
      for (std::vector<uint64_t> &stage : written) {
        stage.push_back(mix(hidden, position));
        hidden = 0;
        for (const ScheduleConfig::Group &group : config.groups)
          for (uint32_t token = firstVisible(group, position); token <= position; ++token)
            hidden = mix(hidden, stage[token]);
      }
    }
    int32_t id = draw(hidden, request.sampling.seed, static_cast<uint32_t>(ids.size()),
                      config.vocabularySize);
    ids.push_back(id);
    generation.ids.push_back(id);
    if (!request.ignoreEndOfGeneration && std::ranges::find(ends, id) != ends.end())
      generation.finish = FinishReason::Stop;
    else if (generation.ids.size() == request.maxTokens || ids.size() == config.maxContext)
      generation.finish = FinishReason::Length;
  }
  return generation;
}

} // namespace strata::test
