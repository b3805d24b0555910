#include "runtime/Strata.h"

#include <cassert>
#include <numeric>

#include "runtime/plan/PlanFile.h"
#include "runtime/schedule/Schedule.h"
#include "runtime/stage/PlanExecutor.h"

namespace strata {

struct Engine::State {
  std::shared_ptr<const PlanFile> plan; ///< Outlives the executor, which points into it.
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<Executor> executor;
  std::unique_ptr<Schedule> schedule;
  Step step;
  StepResult result;
  Status failure; ///< What ended the engine.
  uint32_t threads = 0;
  bool trace = false;
  std::vector<uint32_t> launches;

  size_t takeEvents(std::span<TokenEvent> events) {
    size_t count = 0;
    while (count < events.size() && schedule->takeEvent(events[count]))
      ++count;
    return count;
  }

  Status fail(Status status) {
    failure = status;
    return status;
  }

  /// Begins the next launch; false where none can be begun.
  Result<bool> beginLaunch() {
    if (!schedule->next(step))
      return false;
    if (trace)
      launches.push_back(step.bucket);
    if (Status status = executor->submit(step); !status.isOk())
      return fail(std::move(status));
    return true;
  }

  /// Waits for the oldest launch and reports it.
  Status endLaunch() {
    Status status = executor->wait(result);
    if (status.isOk())
      status = schedule->launchDone(result);
    return status.isOk() ? status : fail(std::move(status));
  }

  /// Begins as many launches as may be out, and ends the oldest step.
  Status runStep() {
    STRATA_RETURN_IF_ERROR(failure);
    for (uint64_t ended = schedule->stepsEnded(); schedule->stepsEnded() == ended;) {
      for (bool begun = true; begun;) {
        STRATA_ASSIGN_OR_RETURN(begun, beginLaunch());
      }
      if (schedule->launchesOut() == 0)
        break;
      STRATA_RETURN_IF_ERROR(endLaunch());
    }
    return Status::ok();
  }
};

namespace {

/// A permutation of 0..count-1, each as likely as another (Fisher and Yates).
std::vector<uint32_t> shuffledOrder(uint32_t count, uint64_t seed) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  for (uint32_t i = count; i > 1; --i)
    std::swap(order[i - 1], order[static_cast<uint32_t>(uniformAt(seed, i) * i)]);
  return order;
}

} // namespace

Engine::Engine(std::unique_ptr<State> state) : state_(std::move(state)) {}
Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::create(const std::string &planPath,
                                               const EngineOptions &options) {
  STRATA_ASSIGN_OR_RETURN(std::shared_ptr<const PlanFile> plan, PlanFile::open(planPath));
  return create(std::move(plan), options);
}

Result<std::unique_ptr<Engine>> Engine::create(std::shared_ptr<const PlanFile> plan,
                                               const EngineOptions &options) {
  std::unique_ptr<Tokenizer> tokenizer;
  if (std::optional<Vocabulary> vocabulary = plan->vocabulary()) {
    STRATA_ASSIGN_OR_RETURN(tokenizer, Tokenizer::create(std::move(*vocabulary)));
  }
  ExecutorOptions executorOptions;
  executorOptions.threads = options.threads;
  executorOptions.sequences = options.sequences;
  executorOptions.kvTokens = options.kvTokens;
  executorOptions.randomWeightsSeed = options.randomWeightsSeed;
  executorOptions.devices = options.devices;
  executorOptions.useGraphs = options.useGraphs;
  STRATA_ASSIGN_OR_RETURN(std::unique_ptr<PlanExecutor> executor,
                          PlanExecutor::create(plan, executorOptions));
  STRATA_ASSIGN_OR_RETURN(ScheduleConfig config,
                          scheduleConfig(plan->plan(), executor->blockCounts(), options.sequences));
  if (options.shuffleBlocksSeed)
    for (ScheduleConfig::Group &group : config.groups)
      group.blockOrder = shuffledOrder(group.blocks, *options.shuffleBlocksSeed);
  uint32_t threads = executor->threads();
  STRATA_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                          create(std::move(executor), std::move(config), options.trace));
  engine->state_->threads = threads;
  engine->state_->plan = std::move(plan);
  engine->state_->tokenizer = std::move(tokenizer);
  return engine;
}

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

void Engine::compact() { state_->schedule->compact(); }

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
  // One launch at a time: the next would overwrite the logits.
  while (true) {
    STRATA_ASSIGN_OR_RETURN(bool begun, state.beginLaunch());
    if (!begun)
      break;
    STRATA_RETURN_IF_ERROR(state.endLaunch());
    if (uint32_t rows = state.step.validHeadRows) {
      STRATA_ASSIGN_OR_RETURN(std::span<const float> logits, state.executor->logits());
      sink(context, position, rows, logits);
      position += rows;
    }
  }
  TokenEvent last;
  bool ended = state.schedule->takeEvent(last);
  assert(ended && !busy());
  if (ended && last.finish == FinishReason::NonFinite)
    return makeError(StatusCode::InvalidData,
                     "layer {} gave an infinity or NaN, so that the logits mean nothing; the "
                     "weights are damaged (strata-run verify compares them with their hashes)",
                     last.nonfiniteLayer);
  return Status::ok();
}

uint32_t Engine::threads() const { return state_->threads; }

const PlanFile &Engine::plan() const {
  assert(state_->plan && "the engine was made from an executor");
  return *state_->plan;
}

const Tokenizer *Engine::tokenizer() const { return state_->tokenizer.get(); }

std::span<const uint32_t> Engine::launches() const { return state_->launches; }

} // namespace strata
