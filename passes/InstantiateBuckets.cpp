// instantiate-buckets: the body for every bucket, the head for every head bucket.
#include <set>

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

#include "passes/Buckets.h"
#include "passes/PassOrder.h"
#include "passes/Passes.h"

using namespace mlir;

namespace strata {
#define GEN_PASS_DEF_INSTANTIATEBUCKETS
#include "passes/Passes.h.inc"

using namespace ir;

namespace {

/// From this many rows on a prompt chunk of one sequence is worth a bucket of its own.
constexpr int64_t singleSequenceRows = 32;

/// 1, 2, 4, ... and `last` itself.
std::vector<int64_t> doubling(int64_t last) {
  std::vector<int64_t> values;
  for (int64_t value = 1; value < last; value *= 2)
    values.push_back(value);
  values.push_back(last);
  return values;
}

/// Gives every value of `block` static rows: `rows` before the gather, `headRows` behind it.
void makeStatic(Block &block, int64_t rows, int64_t headRows,
                llvm::SmallDenseSet<Value, 16> &gathered) {
  auto setRows = [&](Value value, int64_t count) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (type && type.getRank() == 2 && type.isDynamicDim(0))
      value.setType(RankedTensorType::get({count, type.getDimSize(1)}, type.getElementType(),
                                          type.getEncoding()));
  };
  for (Operation &op : block) {
    if (auto layer = dyn_cast<LayerOp>(op)) {
      Block &body = layer.getBody().front();
      for (auto [argument, input] : llvm::zip(body.getArguments(), layer.getInputs()))
        argument.setType(input.getType());
      makeStatic(body, rows, headRows, gathered);
      for (auto [output, value] :
           llvm::zip(layer.getOutputs(), cast<YieldOp>(body.back()).getValues()))
        output.setType(value.getType());
      continue;
    }
    bool behindGather = isa<GatherRowsOp>(op) || llvm::any_of(op.getOperands(), [&](Value operand) {
                          return gathered.contains(operand);
                        });
    for (Value result : op.getResults()) {
      setRows(result, behindGather ? headRows : rows);
      if (behindGather)
        gathered.insert(result);
    }
  }
}

struct InstantiateBucketsPass
    : OrderedPass<impl::InstantiateBucketsBase<InstantiateBucketsPass>, InstantiateBucketsPass> {
  LogicalResult runOnModel(ModelOp model) {
    std::vector<BucketShape> shapes = bucketShapes(model);
    for (StageOp stage : model.getOps<StageOp>()) {
      ForwardOp symbolic = *stage.getOps<ForwardOp>().begin();
      OpBuilder builder(symbolic);
      for (const BucketShape &shape : shapes) {
        if (shape.body)
          instantiateBody(builder, stage, symbolic, shape);
        else if (stage.getHead())
          instantiateHead(builder, symbolic, shape, model.getMaxRows());
      }
      symbolic.erase();
    }
    decided(model, "strata-instantiate-buckets", "buckets")
        << remark::metric("Buckets", shapes.size());
    return success();
  }

private:
  static ForwardOp makeForward(OpBuilder &builder, ForwardOp symbolic, const BucketShape &shape,
                               bool head) {
    auto forward = ForwardOp::create(builder, symbolic.getLoc(), shape.name(),
                                     builder.getI64IntegerAttr(shape.rows),
                                     builder.getI64IntegerAttr(shape.sequences), shape.body, head);
    forward.getRegion().emplaceBlock().addArgument(StepType::get(builder.getContext()),
                                                   symbolic.getLoc());
    return forward;
  }

  void instantiateBody(OpBuilder &builder, StageOp stage, ForwardOp symbolic,
                       const BucketShape &shape) {
    ForwardOp forward = makeForward(builder, symbolic, shape, shape.head && stage.getHead());
    OpBuilder inner = OpBuilder::atBlockEnd(&forward.getBlock());
    IRMapping mapping;
    mapping.map(symbolic.getStep(), forward.getStep());
    for (Operation &op : symbolic.getBlock()) {
      auto layer = dyn_cast<LayerOp>(op);
      if (layer && layer.getKind() == LayerKind::head && !shape.head)
        continue;
      inner.clone(op, mapping);
    }
    llvm::SmallDenseSet<Value, 16> gathered;
    makeStatic(forward.getBlock(), shape.rows, shape.rows, gathered);
  }

  void instantiateHead(OpBuilder &builder, ForwardOp symbolic, const BucketShape &shape,
                       int64_t maxRows) {
    ForwardOp forward = makeForward(builder, symbolic, shape, true);
    OpBuilder inner = OpBuilder::atBlockEnd(&forward.getBlock());
    IRMapping mapping;
    mapping.map(symbolic.getStep(), forward.getStep());
    for (LayerOp layer : symbolic.getOps<LayerOp>()) {
      if (layer.getKind() != LayerKind::head)
        continue;
      for (Value input : layer.getInputs()) {
        auto type = cast<RankedTensorType>(input.getType());
        auto carried =
            CarriedOp::create(inner, layer.getLoc(),
                              RankedTensorType::get({maxRows, type.getDimSize(1)},
                                                    type.getElementType(), type.getEncoding()));
        mapping.map(input, carried.getResult());
      }
      inner.clone(*layer, mapping);
    }
    llvm::SmallDenseSet<Value, 16> gathered;
    makeStatic(forward.getBlock(), maxRows, shape.rows, gathered);
  }
};

} // namespace

std::string BucketShape::name() const {
  if (!body)
    return "h" + std::to_string(rows);
  return "r" + std::to_string(rows) + "s" + std::to_string(sequences);
}

int64_t mostBodyRows(ArrayRef<BucketShape> shapes) {
  int64_t rows = 0;
  for (const BucketShape &shape : shapes)
    rows = std::max(rows, shape.body ? shape.rows : 0);
  return rows;
}

int64_t mostHeadRows(ArrayRef<BucketShape> shapes) {
  int64_t rows = 0;
  for (const BucketShape &shape : shapes)
    rows = std::max(rows, shape.head ? shape.rows : 0);
  return rows;
}

std::vector<BucketShape> bucketShapes(ModelOp model) {
  int64_t maxSequences = model.getMaxSequences(), maxRows = model.getMaxRows();
  std::set<std::pair<int64_t, int64_t>> bodies;
  if (auto buckets = model.getBuckets()) {
    for (size_t i = 0; i < buckets->size(); i += 2)
      bodies.emplace((*buckets)[i], std::min((*buckets)[i + 1], maxSequences));
  } else {
    for (int64_t rows : doubling(maxRows)) {
      bodies.emplace(rows, std::min(rows, maxSequences));
      if (rows >= singleSequenceRows)
        bodies.emplace(rows, 1);
    }
  }
  std::vector<BucketShape> shapes;
  for (auto [rows, sequences] : bodies)
    shapes.push_back({rows, sequences, true, rows <= maxSequences});
  for (int64_t rows : doubling(maxSequences))
    shapes.push_back({rows, rows, false, true});
  return shapes;
}

} // namespace strata
