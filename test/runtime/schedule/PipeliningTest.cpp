// How busy the stages are, in virtual time: every launch costs each stage a fixed time, and the
// host a little. The schedule, the flow and the engine are the runtime's own.
#include <algorithm>

#include <gtest/gtest.h>

#include "runtime/Strata.h"
#include "test/runtime/schedule/Harness.h"

namespace strata::test {
namespace {

constexpr double stageCost = 1.0;
constexpr double hostCost = 0.05; ///< Of each launch begun and each launch ended.

/// The times of what the flow allows. Launches are submitted in an order in which every wait is for
/// something submitted before, so each launch's times are known at once.
class VirtualExecutor final : public FakeExecutor {
public:
  VirtualExecutor(const ScheduleConfig &config, uint32_t slots)
      : FakeExecutor(config), config_(config),
        flow_(config.stages, chain(config.stages, slots), config.maxSequences),
        legs_(config.stages), times_(flow_.timelines(), std::vector<double>(1, 0.0)),
        free_(config.stages) {}

  Status submit(const Step &step) override {
    STRATA_RETURN_IF_ERROR(FakeExecutor::submit(step));
    now += hostCost;
    auto [isBody, hasHead] =
        std::pair(config_.buckets[step.bucket].body, config_.buckets[step.bucket].head);
    bool runs[8];
    for (uint32_t stage = 0; stage < config_.stages; ++stage)
      runs[stage] = isBody || stage + 1 == config_.stages;
    flow_.submit(step, {isBody, hasHead}, {runs, config_.stages}, legs_);
    double last = 0;
    for (uint32_t stage = 0; stage < config_.stages; ++stage) {
      const Flow::Leg &leg = legs_[stage];
      if (!leg.runs)
        continue;
      double begin = std::max(now, free_[stage]);
      for (const Flow::Gate &wait : leg.waits)
        begin = std::max(begin, times_[wait.timeline].at(wait.value));
      last = free_[stage] = begin + stageCost;
      for (const Flow::Gate &signal : leg.signals)
        times_[signal.timeline].resize(signal.value + 1, last);
    }
    ends_.push_back(last);
    return {};
  }

  Status wait(StepResult &result) override {
    now = std::max(now, ends_[retired_++]) + hostCost;
    flow_.retire();
    return FakeExecutor::wait(result);
  }

  /// Part of the time up to now in which the stages were busy, with `launches` on each.
  double efficiency() const { return double(ends_.size()) * stageCost / ends_.back(); }
  size_t launches() const { return ends_.size(); }

  double now = 0;

private:
  static std::vector<Flow::Edge> chain(uint32_t stages, uint32_t slots) {
    std::vector<Flow::Edge> edges;
    for (uint32_t stage = 0; stage + 1 < stages; ++stage)
      edges.push_back({stage, stage + 1, slots});
    return edges;
  }

  ScheduleConfig config_;
  Flow flow_;
  std::vector<Flow::Leg> legs_;
  std::vector<std::vector<double>> times_; ///< [timeline][value]
  std::vector<double> free_;               ///< By stage.
  std::vector<double> ends_;               ///< By launch.
  size_t retired_ = 0;
};

struct Outcome {
  double efficiency;
  size_t launches;
};

Outcome serve(const ScheduleConfig &config, const std::vector<Request> &requests) {
  auto executor = std::make_unique<VirtualExecutor>(config, 2);
  VirtualExecutor &times = *executor;
  auto engine = Engine::create(std::move(executor), config);
  EXPECT_TRUE(engine.isOk()) << engine.status().toString();
  for (const Request &request : requests)
    EXPECT_TRUE((*engine)->submit(request).isOk());
  std::vector<TokenEvent> events(64);
  while ((*engine)->busy())
    EXPECT_TRUE((*engine)->poll(events).isOk());
  return {times.efficiency(), times.launches()};
}

Request request(uint32_t length, uint32_t maxTokens, uint32_t seed = 1) {
  return {
      .prompt = makePrompt(length, seed), .maxTokens = maxTokens, .ignoreEndOfGeneration = true};
}

TEST(Pipelining, ChunksOfAPromptOverlap) {
  for (uint32_t stages : {1, 2, 3, 4, 8})
    for (uint32_t chunks : {1, 2, 5, 16, 60}) {
      ScheduleConfig config = makeConfig({"r8s1"}, 1, 512);
      config.stages = stages;
      Outcome outcome = serve(config, {request(8 * chunks, 1)});
      ASSERT_EQ(outcome.launches, chunks);
      double best = double(chunks) / (chunks + stages - 1);
      EXPECT_GE(outcome.efficiency, 0.95 * best) << stages << " stages, " << chunks << " chunks";
    }
}

// As many sequences as stages keep all of them busy; more do not make more groups than stages.
TEST(Pipelining, GroupsOfSequencesKeepEveryStageBusy) {
  constexpr uint32_t tokens = 100;
  for (uint32_t stages : {1, 2, 3, 4})
    for (uint32_t sequences : {stages, 2 * stages, 2 * stages + 1, 4 * stages}) {
      ScheduleConfig config = makeConfig({"r1s1", "r2s2", "r4s4", "r8s8", "r16s16"}, 16, 128);
      config.stages = stages;
      std::vector<Request> requests;
      for (uint32_t i = 0; i < sequences; ++i)
        requests.push_back(request(1, tokens, i));
      Outcome outcome = serve(config, requests);
      EXPECT_GE(outcome.efficiency, 0.95) << stages << " stages, " << sequences << " sequences";
      EXPECT_LE(outcome.launches, (tokens + 2) * stages) << sequences << " sequences";
    }
}

// One sequence alone can keep one stage of several busy, and no more.
TEST(Pipelining, OneSequenceUsesOneStageAtATime) {
  ScheduleConfig config = makeConfig({"r1s1"}, 1, 128);
  config.stages = 4;
  Outcome outcome = serve(config, {request(1, 100)});
  EXPECT_LE(outcome.efficiency, 0.25);
  EXPECT_GE(outcome.efficiency, 0.99 * 0.25);
}

} // namespace
} // namespace strata::test
