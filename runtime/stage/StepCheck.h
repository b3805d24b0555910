// Whether a step is consistent with the plan. Kernels trust the step block, so what reaches it is
// checked here: a few comparisons a row.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/Status.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/stage/Executor.h"

namespace strata {

class StepCheck {
public:
  /// `plan` outlives this; `blockCounts` has one entry a state group, in the order of
  /// stateGroups().
  StepCheck(const fb::Plan &plan, std::vector<uint32_t> blockCounts)
      : plan_(plan), groups_(stateGroups(plan)), blockCounts_(std::move(blockCounts)) {}

  /// Errors: Internal (what, found and allowed).
  Status step(const Step &step) const;
  /// Errors: Internal (a vector too short for what a launch of this size reports).
  Status result(const StepResult &result, uint32_t sequences, uint32_t headRows) const;

private:
  Status starts(const Step &step) const;
  Status blocks(const Step &step) const;
  Status moves(const Step &step, bool isBody) const;
  Status runs(const Step &step) const;

  const fb::Plan &plan_;
  std::vector<const fb::StateGroup *> groups_;
  std::vector<uint32_t> blockCounts_;
};

} // namespace strata
