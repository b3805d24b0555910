// plan-memory: answer each allocation problem.
#include <map>

#include "mlir/IR/Builders.h"

#include "passes/PassOrder.h"
#include "passes/Passes.h"
#include "passes/planner/Planner.h"

using namespace mlir;

namespace strata {
#define GEN_PASS_DEF_PLANMEMORY
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

struct PlanMemoryPass : OrderedPass<impl::PlanMemoryBase<PlanMemoryPass>, PlanMemoryPass> {
  using OrderedPass::OrderedPass;

  LogicalResult runOnModel(ModelOp model) {
    for (StageOp stage : model.getOps<StageOp>())
      for (ForwardOp forward : stage.getOps<ForwardOp>())
        for (PackOp pack : llvm::make_early_inc_range(forward.getBlock().getOps<PackOp>()))
          if (failed(answer(forward, pack)))
            return failure();
    return success();
  }

private:
  LogicalResult answer(ForwardOp forward, PackOp pack) {
    planner::Problem problem;
    problem.nodeLimit = nodeLimit.getValue();
    std::vector<planner::Buffer> all;
    for (Attribute attribute : pack.getIntervals()) {
      auto interval = cast<IntervalAttr>(attribute);
      all.push_back({interval.getLower(), interval.getUpper(), interval.getBytes()});
    }
    // The residual lives throughout at offset 0: the rest is packed above it.
    size_t fixed = pack.getCarried() ? 1 : 0;
    int64_t base = fixed ? all[0].size : 0;
    problem.buffers.assign(all.begin() + fixed, all.end());
    const planner::Solution &solution = solve(problem);

    SmallVector<int64_t> offsets(fixed, 0);
    for (int64_t offset : solution.offsets)
      offsets.push_back(base + offset);
    std::vector<planner::Bytes> checked(offsets.begin(), offsets.end());
    if (auto conflict = planner::check(all, checked))
      return pack.emitOpError() << "was answered wrongly: buffers " << conflict->first << " and "
                                << conflict->second << " overlap";

    OpBuilder builder(pack);
    auto arena =
        ArenaOp::create(builder, pack.getLoc(), pack.getResultTypes(), pack.getIntervals(), offsets,
                        base + solution.peak, base + solution.lowerBound, solution.proven);
    pack.replaceAllUsesWith(arena.getBuffers());
    pack.erase();
    measured(forward, "strata-plan-memory", "peak")
        << remark::metric("Forward", forward.getSymName()) << remark::metric("Buffers", all.size())
        << remark::metric("PeakBytes", arena.getPeak())
        << remark::metric("LowerBound", arena.getLowerBound())
        << remark::metric("Proven", arena.getProven());
    return success();
  }

  /// Forwards of one shape pose the same problem.
  const planner::Solution &solve(const planner::Problem &problem) {
    std::vector<int64_t> key;
    for (const planner::Buffer &buffer : problem.buffers)
      key.insert(key.end(), {buffer.lower, buffer.upper, buffer.size});
    auto [entry, isNew] = solutions.try_emplace(std::move(key));
    if (isNew)
      entry->second = planner::solve(problem);
    return entry->second;
  }

  std::map<std::vector<int64_t>, planner::Solution> solutions;
};

} // namespace
} // namespace strata
