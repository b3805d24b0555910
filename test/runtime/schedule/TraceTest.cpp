// Stages on threads, with a random delay before some of their commands: what they give is what one
// stage gives, and the order in which they acted, recorded, is one that schedule and flow allow.
#include <chrono>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "runtime/Strata.h"
#include "runtime/stage/PlanExecutor.h"
#include "test/runtime/plan/TinyPlan.h"
#include "test/runtime/schedule/Harness.h"
#include "test/runtime/schedule/StagedModel.h"

namespace strata::test {
namespace {

struct Act {
  enum Kind : char { Cancel, Submit, Retire, Begin, End } kind;
  uint64_t of;              ///< The request cancelled; the stage that begins or ends.
  Launch launch;            ///< Submitted.
  std::vector<int32_t> ids; ///< Sampled by the launch retired.

  explicit Act(Kind kind, uint64_t of = 0) : kind(kind), of(of), launch() {}
};

/// What host and stages did, in an order in which it happened.
class Trace {
public:
  void add(Act act) {
    std::lock_guard lock(mutex_);
    acts_.push_back(std::move(act));
  }
  const std::vector<Act> &acts() const { return acts_; }

private:
  std::mutex mutex_;
  std::vector<Act> acts_;
};

Launch launchOf(const ScheduleConfig &config, const Step &step) {
  return {config.buckets[step.bucket].name, step.validRows, step.validSequences,
          step.validHeadRows};
}

/// Notes what passes between a schedule and an executor.
class RecordingExecutor final : public Executor {
public:
  RecordingExecutor(std::unique_ptr<PlanExecutor> executor, const ScheduleConfig &config,
                    Trace &trace)
      : executor_(std::move(executor)), config_(config), trace_(trace) {}

  uint32_t stages() const override { return executor_->stages(); }
  Status submit(const Step &step) override {
    Launch launch = launchOf(config_, step);
    headRows_.push_back(launch.headRows);
    Act act(Act::Submit);
    act.launch = std::move(launch);
    trace_.add(std::move(act));
    return executor_->submit(step);
  }
  Status wait(StepResult &result) override {
    STRATA_RETURN_IF_ERROR(executor_->wait(result));
    uint32_t rows = headRows_[retired_++];
    Act act(Act::Retire);
    act.ids.assign(result.id.begin(), result.id.begin() + rows);
    trace_.add(std::move(act));
    return {};
  }
  Result<std::span<const float>> logits() override { return executor_->logits(); }
  uint32_t blockCount(uint32_t group) const override { return executor_->blockCount(group); }

private:
  std::unique_ptr<PlanExecutor> executor_;
  ScheduleConfig config_;
  Trace &trace_;
  std::vector<uint32_t> headRows_;
  size_t retired_ = 0;
};

constexpr uint64_t cancelled = 4; ///< The request that is withdrawn.

std::vector<Request> makeRequests() {
  std::vector<Request> requests;
  for (uint32_t i = 0; i < 12; ++i) {
    Request &request = requests.emplace_back();
    request.prompt = makePrompt(1 + i * 5 % 17, i, TinyModel::vocabulary);
    request.maxTokens = 1 + i % 7;
    request.sampling.temperature = i % 2 ? 0.8f : 0.0f;
    request.sampling.seed = i;
    request.ignoreEndOfGeneration = true;
  }
  requests[cancelled - 1].maxTokens = 1000;
  return requests;
}

using Outcomes = std::map<RequestId, Generation>;

void note(const TokenEvent &event, Outcomes &outcomes) {
  Generation &outcome = outcomes[event.request];
  if (event.id >= 0)
    outcome.ids.push_back(event.id);
  outcome.finish = event.finish;
}

class Traced : public testing::TestWithParam<std::pair<uint32_t, uint32_t>> {
protected:
  /// Runs the requests over a plan of so many stages and slots.
  void run(uint32_t stages, uint32_t slots, uint32_t seed, Trace &trace, Outcomes &outcomes) {
    TemporaryFolder folder;
    fb::PlanT plan = tinyPlan({.stages = stages, .slots = slots});
    ASSERT_TRUE(writeTinyPlan(folder / "a", plan, TinyModel()).isOk());
    auto file = PlanFile::open(folder / "a");
    ASSERT_TRUE(file.isOk()) << file.status().toString();
    std::vector<std::mt19937> random; // one a stage, used on its thread alone
    for (uint32_t i = 0; i < stages; ++i)
      random.emplace_back(seed * 16 + i);
    ExecutorOptions options{.threads = 1 + seed % 2};
    options.observer = [&](const CommandSite &site) {
      if (random[site.stage]() % 16 == 0)
        std::this_thread::sleep_for(std::chrono::microseconds(random[site.stage]() % 300));
      if (site.command == 0)
        trace.add(Act(Act::Begin, site.stage));
      else if (site.operands.empty())
        trace.add(Act(Act::End, site.stage));
    };
    auto executor = PlanExecutor::create(*file, options);
    ASSERT_TRUE(executor.isOk()) << executor.status().toString();
    auto config = scheduleConfig((*file)->plan(), (*executor)->blockCounts(), 0);
    ASSERT_TRUE(config.isOk());
    config_ = *config;
    auto engine = Engine::create(
        std::make_unique<RecordingExecutor>(std::move(*executor), config_, trace), config_);
    ASSERT_TRUE(engine.isOk());
    for (const Request &request : makeRequests())
      ASSERT_TRUE((*engine)->submit(request).isOk());
    TokenEvent events[2 * TinyModel::sequences];
    bool isCancelled = false;
    while ((*engine)->busy()) {
      auto count = (*engine)->poll(events);
      ASSERT_TRUE(count.isOk()) << count.status().toString();
      for (const TokenEvent &event : std::span(events).first(*count))
        note(event, outcomes);
      if (!isCancelled && outcomes[cancelled].ids.size() == 2) {
        isCancelled = true;
        trace.add(Act(Act::Cancel, cancelled));
        ASSERT_TRUE((*engine)->cancel(cancelled).isOk());
      }
    }
  }

  /// Puts a trace through the schedule and the flow.
  void replay(const Trace &trace, uint32_t slots, Outcomes &outcomes) {
    StagedModel model(config_, slots);
    auto schedule = std::move(*Schedule::create(config_));
    for (const Request &request : makeRequests())
      ASSERT_TRUE(schedule->submit(request).isOk());
    Step step = schedule->makeStep();
    StepResult result = schedule->makeResult();
    for (const Act &act : trace.acts()) {
      auto stage = static_cast<uint32_t>(act.of);
      switch (act.kind) {
      case Act::Cancel:
        ASSERT_TRUE(schedule->cancel(act.of).isOk());
        break;
      case Act::Submit:
        ASSERT_TRUE(schedule->next(step));
        ASSERT_EQ(launchOf(config_, step), act.launch);
        model.submit(step);
        break;
      case Act::Retire:
        ASSERT_TRUE(model.canRetire());
        model.retire(result);
        std::ranges::copy(act.ids, result.id.begin());
        ASSERT_TRUE(schedule->launchDone(result).isOk());
        break;
      case Act::Begin:
        ASSERT_TRUE(model.canBegin(stage)) << "stage " << stage << " began too early";
        model.begin(stage);
        break;
      case Act::End:
        model.end(stage);
        break;
      }
      ASSERT_FALSE(HasFailure());
      TokenEvent event;
      while (schedule->takeEvent(event))
        note(event, outcomes);
    }
    EXPECT_FALSE(schedule->busy());
  }

  ScheduleConfig config_;
};

TEST_P(Traced, Row29StagesGiveWhatOneGivesInAnOrderThatIsAllowed) {
  auto [stages, slots] = GetParam();
  Trace one;
  Outcomes expected;
  run(1, 1, 0, one, expected);
  ASSERT_EQ(expected.size(), makeRequests().size());
  for (uint32_t seed = 1; seed <= 3; ++seed) {
    Trace trace;
    Outcomes found, replayed;
    run(stages, slots, seed, trace, found);
    ASSERT_FALSE(HasFailure());
    replay(trace, slots, replayed);
    ASSERT_FALSE(HasFailure());
    EXPECT_EQ(found, replayed);
    // When a request is withdrawn says how much it has given, not what.
    found[cancelled].ids.resize(expected[cancelled].ids.size());
    EXPECT_EQ(found, expected);
  }
}

INSTANTIATE_TEST_SUITE_P(, Traced,
                         testing::Values(std::pair(1, 1), std::pair(2, 1), std::pair(2, 2),
                                         std::pair(3, 2), std::pair(4, 1), std::pair(4, 2)),
                         [](const auto &info) {
                           return fmt::format("S{}Slots{}", info.param.first, info.param.second);
                         });

} // namespace
} // namespace strata::test
