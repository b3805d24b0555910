#include "runtime/Strata.h"

#include <cassert>

#include "runtime/plan/PlanFile.h"
#include "runtime/schedule/Schedule.h"
#include "runtime/stage/Executor.h"

namespace strata {

struct Engine::State {
  std::shared_ptr<const PlanFile> plan; ///< Outlives the executor, which points into it.
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<Executor> executor;
  std::unique_ptr<Schedule> schedule;
  Step step;
  StepResult result;
  Status failure; ///< What ended the engine.
  bool trace = false;
  std::vector<uint32_t> launches;

  size_t takeEvents(std::span<TokenEvent> events) {
    size_t count = 0;
    while (count < events.size() && schedule->takeEvent(events[count]))
      ++count;
    return count;
  }

  /// Runs the launch in `step`.
  Status launch() {
    if (trace)
      launches.push_back(step.bucket);
    failure = executor->run(step, result);
    if (failure.isOk())
      failure = schedule->stepDone(result);
    return failure;
  }

  Status runStep() {
    STRATA_RETURN_IF_ERROR(failure);
    while (schedule->next(step)) {
      STRATA_RETURN_IF_ERROR(launch());
      if (!schedule->midStep())
        break;
    }
    return Status::ok();
  }
};

Engine::Engine(std::unique_ptr<State> state) : state_(std::move(state)) {}
Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::create(std::unique_ptr<Executor> executor,
                                               ScheduleConfig config, bool trace) {
  auto state = std::make_unique<State>();
  state->executor = std::move(executor);
  state->trace = trace;
  STRATA_ASSIGN_OR_RETURN(state->schedule, Schedule::create(std::move(config)));
  state->step = state->schedule->makeStep();
  state->result = state->schedule->makeResult();
  return std::unique_ptr<Engine>(new Engine(std::move(state)));
}

Result<RequestId> Engine::submit(Request request) {
  return state_->schedule->submit(std::move(request));
}

Status Engine::cancel(RequestId request) { return state_->schedule->cancel(request); }

Result<size_t> Engine::poll(std::span<TokenEvent> events) {
  if (events.empty())
    return makeError(StatusCode::InvalidArgument, "poll() needs room for at least one event");
  size_t count = state_->takeEvents(events);
  if (count == events.size())
    return count;
  STRATA_RETURN_IF_ERROR(state_->runStep());
  return count + state_->takeEvents(events.subspan(count));
}

bool Engine::busy() const { return state_->schedule->busy(); }

void Engine::drain() { state_->schedule->drain(); }

Status Engine::logits(std::span<const int32_t> ids, LogitsSink sink, void *context) {
  State &state = *state_;
  STRATA_RETURN_IF_ERROR(state.failure);
  if (busy())
    return makeError(StatusCode::FailedPrecondition,
                     "the engine is busy; logits are taken when no request is queued or running");
  Result<RequestId> request = state.schedule->submitScoring({ids.begin(), ids.end()});
  if (!request.isOk())
    return std::move(request).status();
  uint32_t position = 0;
  while (state.schedule->next(state.step)) {
    STRATA_RETURN_IF_ERROR(state.launch());
    if (uint32_t rows = state.step.validHeadRows) {
      sink(context, position, rows, state.executor->logits());
      position += rows;
    }
  }
  TokenEvent last;
  bool ended = state.schedule->takeEvent(last);
  assert(ended && !busy());
  if (ended && last.finish == FinishReason::NonFinite)
    return makeError(StatusCode::Internal,
                     "layer {} gave an infinity or NaN; the logits mean nothing",
                     last.nonfiniteLayer);
  return Status::ok();
}

const PlanFile &Engine::plan() const {
  assert(state_->plan && "the engine was made from an executor");
  return *state_->plan;
}

const Tokenizer *Engine::tokenizer() const { return state_->tokenizer.get(); }

std::span<const uint32_t> Engine::launches() const { return state_->launches; }

} // namespace strata
