// Steps that fill every bucket of any plan to its last row.
#pragma once

#include "runtime/plan/PlanFile.h"
#include "runtime/stage/Executor.h"

namespace strata::test {

class FullSteps {
public:
  explicit FullSteps(const fb::Plan &plan);

  /// Runs every body bucket full, each on sequences of its own length from position 0, and after
  /// the largest body every head bucket.
  Status runAll(Executor &executor);

  /// Rows of one sequence; its last row goes through the head, where the bucket has one.
  struct Run {
    uint32_t sequence;
    uint32_t begin; ///< Position of the first.
    uint32_t rows;
    bool wantsHead;
  };
  /// Runs one body bucket, filled in part. Ids follow from sequence and position.
  Status run(Executor &executor, uint32_t bucket, std::span<const Run> runs);

private:
  void fillBody(const fb::Bucket &bucket);

  const fb::Plan &plan_;
  Step step_;
  StepResult result_;
};

} // namespace strata::test
