// A launch that does not end: noticed, and described from what every stage is at.
#include <fmt/format.h>

#include "runtime/plan/PlanAccess.h"
#include "runtime/stage/PlanExecutor.h"

namespace strata {
namespace {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

} // namespace

Status PlanExecutor::awaitStage(uint32_t stage, const Pending &pending,
                                const TimelineValue &ended) {
  // The first look starts the clocks; a host that came late has not watched.
  std::chrono::nanoseconds look = std::clamp<std::chrono::nanoseconds>(
      options_.stall / 8, std::chrono::milliseconds(1), std::chrono::seconds(1));
  for (bool isWatching = false;; isWatching = true) {
    Result<bool> reached = devices_[stage]->wait(ended, look);
    if (!reached.isOk())
      return fail(placed(std::move(reached).status(), stage, pending));
    if (*reached)
      return {};
    if (!isWatching) {
      for (uint32_t i = 0; i < stages(); ++i) {
        progress_[i] = devices_[i]->activity().progress;
        since_[i] = Clock::now();
      }
      continue;
    }
    std::optional<uint32_t> stalled = findStalled();
    if (!stalled)
      continue;
    hasStalled_ = true;
    std::string_view bucket = text(file_->plan().buckets()->Get(pending.bucket)->name());
    return fail(makeError(StatusCode::DeadlineExceeded, "{}", stallReport())
                    .at("forward", bucket)
                    .at("stage", stages_[*stalled]->name())
                    .at("device", devices_[*stalled]->name()));
  }
}

// A stage that runs one command for too long; or none of them does anything, and the one waited for
// is named.
std::optional<uint32_t> PlanExecutor::findStalled() {
  std::optional<uint32_t> still = 0;
  bool isAnyMoving = false;
  for (uint32_t i = 0; i < stages(); ++i) {
    DeviceActivity activity = devices_[i]->activity();
    if (activity.progress != progress_[i]) {
      progress_[i] = activity.progress;
      since_[i] = Clock::now();
    }
    bool isMoving = Clock::now() - since_[i] < options_.stall;
    if (!isMoving && activity.kind == DeviceActivity::Kind::Running)
      return i;
    if (activity.kind == DeviceActivity::Kind::Waiting)
      still = i;
    isAnyMoving |= isMoving;
  }
  return isAnyMoving ? std::nullopt : still;
}

std::string PlanExecutor::stallReport() const {
  std::string text = fmt::format("nothing has come to its end within {:.1f} s",
                                 std::chrono::duration<double>(options_.stall).count());
  for (uint32_t i = 0; i < stages(); ++i)
    text += "; " + describe(i);
  for (uint32_t e = 0; e < flow_.edges().size(); ++e)
    text += "; " + describeEdge(e);
  return text;
}

std::string PlanExecutor::describe(uint32_t stage) const {
  DeviceActivity activity = devices_[stage]->activity();
  std::string text = fmt::format("stage '{}' ", stages_[stage]->name());
  if (activity.kind == DeviceActivity::Kind::Idle)
    return text + "has nothing to run";
  const std::vector<DeviceLaunch> &launches = channels_[stage].launches;
  const Pending &pending = pending_[size_t(activity.launch - launches.data())];
  if (activity.kind == DeviceActivity::Kind::Running)
    text += fmt::format("has run command {} ({}), worker {} of {},", activity.index,
                        devices_[stage]->op(activity.launch->line, activity.index), activity.worker,
                        devices_[stage]->workers());
  else
    text += fmt::format("has waited for {}", describeWait(activity.launch->waits[activity.index]));
  return text + fmt::format(" for {:.1f} s in launch {} ('{}' with {} rows, {} sequences, {} head "
                            "rows)",
                            secondsSince(since_[stage]), pending.number,
                            strata::text(file_->plan().buckets()->Get(pending.bucket)->name()),
                            pending.rows, pending.sequences, pending.headRows);
}

std::string PlanExecutor::describeWait(const TimelineValue &wait) const {
  uint32_t of = 0;
  Flow::TimelineKind kind = flow_.kindOf(uint32_t(wait.timeline - timelines_.get()), of);
  uint32_t slots = flow_.edges()[of].slots;
  // Fill number n lies in slot (n - 1) % slots; a slot is freed for the fill that lies in it next.
  return fmt::format("slot {} of {} to be {}", (wait.value - 1) % slots, edgeName(of),
                     kind == Flow::TimelineKind::Filled ? "filled" : "freed");
}

std::string PlanExecutor::edgeName(uint32_t edge) const {
  if (flow_.returnsIds() && edge == flow_.idsEdge())
    return "the sampled ids";
  return fmt::format("handoff '{}'", text(file_->plan().handoffs()->Get(edge)->name()));
}

std::string PlanExecutor::describeEdge(uint32_t edge) const {
  uint32_t slots = flow_.edges()[edge].slots;
  uint32_t filled = timelines_[flow_.filled(edge)].value();
  uint32_t freed = timelines_[flow_.freed(edge)].value();
  std::string held;
  for (uint32_t n = freed; n != filled; ++n)
    held += fmt::format("{}{}", held.empty() ? "" : ", ", n % slots);
  if (held.empty())
    return fmt::format("{} holds nothing", edgeName(edge));
  return fmt::format("{} holds slots {} of {}", edgeName(edge), held, slots);
}

} // namespace strata
