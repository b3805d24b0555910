// pad-tail-chunks: in which buckets every prompt remainder runs.
#include "mlir/IR/Builders.h"

#include "codegen/targets/Target.h"
#include "passes/Buckets.h"
#include "passes/PassOrder.h"
#include "passes/Passes.h"
#include "passes/planner/Tails.h"

using namespace mlir;

namespace strata {
#define GEN_PASS_DEF_PADTAILCHUNKS
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

struct PadTailChunksPass
    : OrderedPass<impl::PadTailChunksBase<PadTailChunksPass>, PadTailChunksPass> {
  LogicalResult runOnModel(ModelOp model) {
    // For one sequence, the bucket of each row count that holds the fewest others.
    std::vector<BucketShape> shapes = bucketShapes(model);
    std::vector<int64_t> rows, indices;
    for (auto [index, shape] : llvm::enumerate(shapes)) {
      if (!shape.body || (!rows.empty() && rows.back() == shape.rows))
        continue;
      rows.push_back(shape.rows);
      indices.push_back(static_cast<int64_t>(index));
    }
    auto target = findTarget(cast<StringAttr>(model.getDevices()[0]).str());
    if (!target.isOk())
      return model.emitOpError() << target.status().toString();
    SmallVector<Attribute> tails;
    int64_t padded = 0;
    for (const planner::Tail &tail :
         planner::tailTable(rows, {target->launchRows, target->paddedRowCost})) {
      SmallVector<int64_t> buckets;
      for (size_t choice : tail.buckets)
        buckets.push_back(indices[choice]);
      padded += tail.padding;
      tails.push_back(TailAttr::get(model.getContext(), tail.rows, buckets));
    }
    model.setTailsAttr(ArrayAttr::get(model.getContext(), tails));
    measured(model, "strata-pad-tail-chunks", "tails")
        << remark::metric("Remainders", tails.size()) << remark::metric("PaddedRows", padded);
    return success();
  }
};

} // namespace
} // namespace strata
