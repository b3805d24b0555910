// Drives an Executor over the tiny plan by hand: which rows of which sequences go into which
// bucket.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/stage/PlanExecutor.h"
#include "test/runtime/plan/TinyPlan.h"

namespace strata::test {

/// A step sized to the plan's maxima, and its result.
struct Launch {
  Launch();
  Step step;
  StepResult result;
};

/// Sequences with their block tables; sequence i uses the slot and the blocks that it is given.
class Driver {
public:
  Driver(const std::string &planPath, ExecutorOptions options);

  bool isBooted() const { return executor_ != nullptr; }
  const Status &status() const { return status_; }
  PlanExecutor &executor() { return *executor_; }
  Launch &launch() { return launch_; }

  struct Part {
    uint32_t sequence;
    std::vector<int32_t> ids; ///< -1: the id last sampled.
    bool wantsHead = false;   ///< Over its last row, where the bucket has a head.
  };
  /// Fills the step with `parts` in order.
  void fill(uint32_t bucket, const std::vector<Part> &parts);
  /// fill(), and a launch; fails the calling test where it fails.
  void run(uint32_t bucket, const std::vector<Part> &parts);
  /// Runs a head bucket over rows of the last body.
  void runHead(uint32_t bucket, const std::vector<int32_t> &rows);

  /// Logits of head row `row` of the last launch.
  std::vector<float> logits(uint32_t row) const;

  uint32_t length(uint32_t sequence) const { return lengths_[sequence]; }
  /// Forgets the sequence's tokens.
  void restart(uint32_t sequence) { lengths_[sequence] = 0; }
  /// Logical block b of sequence s lies in blocks[s * blocksPerSequence + b].
  void setBlocks(std::vector<int32_t> blocks) { blocks_ = std::move(blocks); }

private:
  Status status_;
  std::unique_ptr<PlanExecutor> executor_;
  Launch launch_;
  std::vector<uint32_t> lengths_;
  std::vector<int32_t> blocks_;
};

} // namespace strata::test
