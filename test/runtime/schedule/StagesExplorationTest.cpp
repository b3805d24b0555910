// Every order in which host and stages of a small system can act, through the schedule and the flow
// that the runtime links: no row is lost, no slot reused too early, and nothing waits for ever. The
// orders that threads really take are put through them in TraceTest.cpp.
#include <optional>
#include <string>
#include <unordered_set>

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include "test/runtime/schedule/Choices.h"
#include "test/runtime/schedule/Harness.h"
#include "test/runtime/schedule/StagedModel.h"

namespace strata::test {
namespace {

struct System {
  ScheduleConfig config;
  uint32_t slots;
  std::vector<Request> requests;
  bool cancels = false;
  bool faults = false; ///< Once, some stage stops in the middle of a launch and never goes on.
};

/// One run of the system, up to a state that another run has gone on from. What the system is in
/// follows from what the host did and how far each stage has come.
class Run {
public:
  Run(const System &system, Choices &choices, std::unordered_set<std::string> &known)
      : system_(system), choices_(choices), known_(known), model_(system.config, system.slots),
        schedule_(std::move(*Schedule::create(system.config))), step_(schedule_->makeStep()),
        result_(schedule_->makeResult()) {}

  /// False where the run ended in a known state.
  bool run() {
    while (!testing::Test::HasFailure()) {
      findActions();
      if (actions_.empty()) {
        checkEnd();
        return true;
      }
      if (choices_.isNew() && !known_.insert(key()).second)
        return false;
      act(actions_[choices_.choose(uint32_t(actions_.size()))]);
    }
    return true;
  }

private:
  struct Action {
    enum Kind : char {
      Submit = 's',
      Launch = 'l',
      Retire = 'r',
      Cancel = 'c',
      Begin,
      End,
      Fault
    } kind;
    uint32_t of = 0;
  };

  void findActions() {
    actions_.clear();
    if (submitted_ < system_.requests.size())
      actions_.push_back({Action::Submit});
    if (mayLaunch_)
      actions_.push_back({Action::Launch});
    if (model_.canRetire())
      actions_.push_back({Action::Retire});
    for (uint32_t i = 0; system_.cancels && !cancelled_ && i < submitted_; ++i)
      if (outcomes_[i].finish == FinishReason::None)
        actions_.push_back({Action::Cancel, i});
    for (uint32_t stage = 0; stage < model_.stages(); ++stage) {
      if (stage == faulty_)
        continue;
      if (model_.canBegin(stage))
        actions_.push_back({Action::Begin, stage});
      if (!model_.isRunning(stage))
        continue;
      actions_.push_back({Action::End, stage});
      if (system_.faults && !faulty_)
        actions_.push_back({Action::Fault, stage});
    }
  }

  std::string key() const {
    std::string key = host_;
    key.push_back(mayLaunch_ ? '+' : '-');
    key.push_back(faulty_ ? char('0' + *faulty_) : '.');
    for (uint32_t stage = 0; stage < model_.stages(); ++stage) {
      key.push_back(char('A' + model_.begun(stage)));
      key.push_back(char('A' + model_.ended(stage)));
    }
    return key;
  }

  void act(const Action &action) {
    switch (action.kind) {
    case Action::Submit: {
      auto id = schedule_->submit(system_.requests[submitted_++]);
      ASSERT_TRUE(id.isOk()) << id.status().toString();
      outcomes_.emplace_back();
      break;
    }
    case Action::Launch:
      mayLaunch_ = schedule_->next(step_);
      if (mayLaunch_)
        model_.submit(step_);
      if (!mayLaunch_)
        return; // nothing has changed
      break;
    case Action::Retire:
      model_.retire(result_);
      ASSERT_TRUE(schedule_->launchDone(result_).isOk());
      break;
    case Action::Cancel:
      ASSERT_TRUE(schedule_->cancel(action.of + 1).isOk());
      cancelled_ = action.of;
      host_.push_back(char('0' + action.of));
      break;
    case Action::Begin:
      return model_.begin(action.of);
    case Action::End:
      return model_.end(action.of);
    case Action::Fault:
      faulty_ = action.of;
      return;
    }
    host_.push_back(char(action.kind));
    mayLaunch_ = true;
    takeEvents();
  }

  void takeEvents() {
    TokenEvent event;
    while (schedule_->takeEvent(event)) {
      Generation &outcome = outcomes_[event.request - 1];
      ASSERT_EQ(outcome.finish, FinishReason::None) << "an event after the last one";
      if (event.id >= 0)
        outcome.ids.push_back(event.id);
      outcome.finish = event.finish;
    }
  }

  void checkEnd() {
    if (!faulty_) {
      ASSERT_FALSE(schedule_->busy()) << "a deadlock, after " << key();
      EXPECT_EQ(schedule_->freeSlots(), system_.config.maxSequences);
      EXPECT_EQ(schedule_->blocks(0).heldBlocks(), 0u);
    } else {
      // What was before the faulty launch has come through: it alone is waited for.
      EXPECT_EQ(model_.retired(), model_.ended(*faulty_));
    }
    for (size_t i = 0; i < outcomes_.size(); ++i) {
      Generation expected = generateStaged(system_.config, system_.requests[i]);
      const Generation &found = outcomes_[i];
      ASSERT_LE(found.ids.size(), expected.ids.size());
      bool isCut = found.finish == FinishReason::Cancelled || faulty_;
      if (isCut)
        expected.ids.resize(found.ids.size());
      ASSERT_EQ(found.ids, expected.ids) << "request " << i;
      if (!isCut) {
        ASSERT_EQ(found.finish, expected.finish);
      }
    }
  }

  const System &system_;
  Choices &choices_;
  std::unordered_set<std::string> &known_;
  StagedModel model_;
  std::unique_ptr<Schedule> schedule_;
  Step step_;
  StepResult result_;
  std::vector<Action> actions_;
  std::vector<Generation> outcomes_;
  std::string host_; ///< What the host did so far.
  uint32_t submitted_ = 0;
  bool mayLaunch_ = false; ///< Something has changed since there was no launch.
  std::optional<uint32_t> cancelled_, faulty_;
};

/// How many states were met.
size_t explore(const System &system) {
  Choices choices;
  std::unordered_set<std::string> known;
  do
    Run(system, choices, known).run();
  while (!testing::Test::HasFailure() && choices.advance());
  return known.size();
}

Request request(uint32_t length, uint32_t maxTokens, uint32_t seed) {
  return {
      .prompt = makePrompt(length, seed), .maxTokens = maxTokens, .ignoreEndOfGeneration = true};
}

System makeSystem(uint32_t stages, uint32_t slots, const std::vector<std::string> &buckets,
                  std::vector<Request> requests) {
  System system{makeConfig(buckets, 2, 8), slots, std::move(requests)};
  system.config.stages = stages;
  system.config.groups[0] = {"kv", 0, 2, 4, 8, {}};
  addWindowGroup(system.config, 2);
  return system;
}

class Stages : public testing::TestWithParam<std::pair<uint32_t, uint32_t>> {
protected:
  uint32_t stages() const { return GetParam().first; }
  uint32_t slots() const { return GetParam().second; }
};

TEST_P(Stages, Row11APromptOfFourChunks) {
  System system = makeSystem(stages(), slots(), {"r2s2"}, {request(7, 1, 1)});
  EXPECT_GT(explore(system), stages() * 10u);
}

TEST_P(Stages, Row11HeadsAlone) {
  System system = makeSystem(stages(), slots(), {"b2s1", "h1"}, {request(3, 2, 1)});
  EXPECT_GT(explore(system), stages() * 10u);
}

TEST_P(Stages, Row11TwoRequestsAndACancel) {
  System system = makeSystem(stages(), slots(), {"r2s2"}, {request(3, 2, 1), request(1, 2, 2)});
  system.cancels = true;
  EXPECT_GT(explore(system), stages() * 10u);
}

// The first request ends with a token that nobody foresees, while the step after it may be out; the
// second takes its slot and blocks.
TEST_P(Stages, Row11AnEndTokenWhileTheNextStepIsOut) {
  System system = makeSystem(stages(), slots(), {"r2s2"}, {request(1, 4, 1), request(2, 2, 2)});
  system.config.maxSequences = 1;
  Request &ending = system.requests[0];
  ending.ignoreEndOfGeneration = false;
  system.config.endOfGeneration = {generateStaged(system.config, ending).ids[1]};
  ASSERT_EQ(generateStaged(system.config, ending).finish, FinishReason::Stop);
  EXPECT_GT(explore(system), stages() * 10u);
}

TEST_P(Stages, Row11OneSequenceAndACancelAheadOfItsTokens) {
  System system = makeSystem(stages(), slots(), {"r2s2"}, {request(1, 3, 1), request(2, 1, 2)});
  system.config.maxSequences = 1;
  system.cancels = true;
  EXPECT_GT(explore(system), stages() * 10u);
}

TEST_P(Stages, Row11AFaultHoldsBackOnlyWhatFollows) {
  System system = makeSystem(stages(), slots(), {"r2s2"}, {request(3, 1, 1), request(3, 1, 2)});
  system.faults = true;
  EXPECT_GT(explore(system), stages() * 10u);
}

INSTANTIATE_TEST_SUITE_P(, Stages,
                         testing::Values(std::pair(1, 1), std::pair(2, 1), std::pair(2, 2),
                                         std::pair(3, 1), std::pair(3, 2)),
                         [](const auto &info) {
                           return fmt::format("S{}Slots{}", info.param.first, info.param.second);
                         });

// The exploration can fail: a flow whose handoffs have fewer slots than it believes loses rows.
TEST(StagesExploration, Row12FindsASlotThatIsReusedTooEarly) {
  StagedModel model(makeSystem(2, 2, {"r2s2"}, {}).config, 2);
  auto schedule = std::move(*Schedule::create(makeSystem(2, 2, {"r2s2"}, {}).config));
  ASSERT_TRUE(schedule->submit(request(7, 1, 1)).isOk());
  Step step = schedule->makeStep();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(schedule->next(step));
    model.submit(step);
  }
  for (int i = 0; i < 2; ++i) {
    model.begin(0);
    model.end(0);
  }
  EXPECT_FALSE(model.canBegin(0)) << "both slots are filled";
  ASSERT_TRUE(model.canBegin(1));
  model.begin(1);
  EXPECT_FALSE(model.canBegin(0)) << "and the first is being read";
  model.begin(0); // all the same
  EXPECT_NONFATAL_FAILURE(model.end(1), "overwritten");
}

} // namespace
} // namespace strata::test
