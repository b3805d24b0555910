// expand-experts: experts become explicit ops on ordinary buffers, in groups.
#include "mlir/IR/Builders.h"

#include "passes/PassOrder.h"
#include "passes/Passes.h"

using namespace mlir;

namespace strata {
#define GEN_PASS_DEF_EXPANDEXPERTS
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

/// F32 values a row that the experts' inner activations may take. A group of experts needs room for
/// the case that they take every row: min(used, experts of the group) times the inner width.
constexpr int64_t innerValuesPerRow = 16384;

/// How many experts run together: all of them, where the rows are few or the room suffices.
int64_t expertsAtOnce(int64_t rows, int64_t experts, int64_t used, int64_t inner) {
  if (rows * used <= experts || used * inner <= innerValuesPerRow)
    return experts;
  return std::max<int64_t>(1, innerValuesPerRow / inner);
}

/// Replaces one op. The rows in between are of the expanded ops alone and of no space.
class Expansion {
public:
  Expansion(ExpertsOp op, Value step)
      : op(op), step(step), builder(op), location(op.getLoc()),
        rows(cast<RankedTensorType>(op.getInput().getType()).getDimSize(0)),
        used(cast<RankedTensorType>(op.getRouting().getType()).getDimSize(1) / 2) {
    auto up = SymbolTable::lookupNearestSymbolFrom<WeightOp>(op, op.getUpAttr());
    experts = up.getTensorType().getDimSize(0);
    inner = up.getTensorType().getDimSize(1);
  }

  /// Returns how many groups there are.
  int64_t run() {
    int64_t atOnce = expertsAtOnce(rows, experts, used, inner), groups = 0;
    lists = ExpertListsOp::create(builder, location, type(1, 2 * experts + 2 + 2 * rows * used),
                                  op.getRouting(), step, builder.getI64IntegerAttr(experts));
    Value sum;
    for (int64_t first = 0; first < experts; first += atOnce, ++groups)
      sum = runGroup(first, std::min(atOnce, experts - first), sum);
    op.getResult().replaceAllUsesWith(sum);
    op.erase();
    return groups;
  }

private:
  Value runGroup(int64_t firstExpert, int64_t expertCount, Value onto) {
    IntegerAttr first = builder.getI64IntegerAttr(firstExpert);
    IntegerAttr count = builder.getI64IntegerAttr(expertCount);
    IntegerAttr usedAttr = builder.getI64IntegerAttr(used);
    RankedTensorType innerType = type(rows * std::min(used, expertCount), inner);
    auto function = FunctionAttr::get(builder.getContext(), op.getFunction());
    Value gate;
    if (op.getGateAttr())
      gate = ExpertUpOp::create(builder, location, innerType, op.getInput(), lists,
                                op.getGateAttr(), op.getSlotsAttr(), op.getLabelsAttr(), step,
                                Value(), FunctionAttr(), first, count, usedAttr);
    Value made = ExpertUpOp::create(builder, location, innerType, op.getInput(), lists,
                                    op.getUpAttr(), op.getSlotsAttr(), op.getLabelsAttr(), step,
                                    gate, function, first, count, usedAttr);
    return ExpertDownOp::create(builder, location, op.getType(), made, lists, op.getDownAttr(),
                                op.getSlotsAttr(), op.getLabelsAttr(), step, onto, first, count,
                                usedAttr);
  }

  RankedTensorType type(int64_t dimension, int64_t width) {
    return RankedTensorType::get({dimension, width}, builder.getF32Type());
  }

  ExpertsOp op;
  Value step, lists;
  OpBuilder builder;
  Location location;
  int64_t rows, used, experts, inner;
};

struct ExpandExpertsPass
    : OrderedPass<impl::ExpandExpertsBase<ExpandExpertsPass>, ExpandExpertsPass> {
  LogicalResult runOnModel(ModelOp model) {
    for (StageOp stage : model.getOps<StageOp>())
      for (ForwardOp forward : stage.getOps<ForwardOp>()) {
        SmallVector<ExpertsOp> found;
        forward.walk([&](ExpertsOp op) { found.push_back(op); });
        int64_t groups = 0;
        for (ExpertsOp op : found)
          groups = std::max(groups, Expansion(op, forward.getStep()).run());
        if (groups > 1)
          decided(forward, "strata-expand-experts", "grouped")
              << remark::metric("Forward", forward.getSymName())
              << remark::metric("Groups", groups);
      }
    return success();
  }
};

} // namespace
} // namespace strata
