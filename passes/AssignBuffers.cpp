// assign-buffers: values become buffers with lifetimes.
#include "mlir/IR/Builders.h"
#include "llvm/ADT/EquivalenceClasses.h"

#include "passes/PassOrder.h"
#include "passes/Passes.h"
#include "runtime/base/CheckedMath.h"

using namespace mlir;

namespace strata {
#define GEN_PASS_DEF_ASSIGNBUFFERS
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

struct Lifetime {
  std::string name;
  int64_t lower = INT64_MAX;
  int64_t upper = 0;
  int64_t bytes = 0;

  void touch(int64_t position) {
    lower = std::min(lower, position);
    upper = std::max(upper, position + 1);
  }
};

/// Groups the values of one forward into buffers: tied values share one, and everything that
/// carries the residual is one.
class BufferAssignment {
public:
  explicit BufferAssignment(ForwardOp forward) {
    for (Operation &op : forward.getBlock())
      if (auto carried = dyn_cast<CarriedOp>(op))
        residual(carried.getResult());
    int64_t position = 0;
    for (InvokeOp op : forward.getBlock().getOps<InvokeOp>()) {
      for (Value input : op.getInputs())
        classes.insert(input);
      for (auto [result, tied] : llvm::zip(op.getOutputs(), op.getTied())) {
        classes.insert(result);
        if (tied >= 0)
          classes.unionSets(op.getInputs()[tied], result);
        if (op.getCarries() && result == op.getOutputs().front())
          residual(result);
      }
      ops.push_back(op);
      ++position;
    }
    measure();
  }

  /// The residual first, then by first use.
  ArrayRef<Lifetime> lifetimes() const { return buffers; }
  bool hasResidual() const { return residualValue != nullptr; }
  size_t bufferOf(Value value) const { return index.lookup(classes.getLeaderValue(value)); }

private:
  void residual(Value value) {
    classes.insert(value);
    if (residualValue)
      classes.unionSets(residualValue, value);
    else
      residualValue = value;
  }

  size_t bufferFor(Value value, StringRef name) {
    auto [entry, isNew] = index.try_emplace(classes.getLeaderValue(value), buffers.size());
    if (isNew)
      buffers.push_back({name.str()});
    Lifetime &lifetime = buffers[entry->second];
    lifetime.bytes = std::max(lifetime.bytes, bufferBytes(cast<RankedTensorType>(value.getType())));
    return entry->second;
  }

  void measure() {
    int64_t commands = static_cast<int64_t>(ops.size());
    if (residualValue)
      bufferFor(residualValue, "residual");
    for (auto [position, op] : llvm::enumerate(ops)) {
      InvokeOp invocation = op;
      for (Value input : invocation.getInputs())
        buffers[bufferFor(input, "residual")].touch(position);
      for (Value result : invocation.getOutputs()) {
        Lifetime &lifetime = buffers[bufferFor(result, invocation.getLabel())];
        lifetime.touch(position);
        if (invocation.getLogits() &&
            result == invocation.getOutputs().front()) // the host reads them after the launch
          lifetime.upper = commands;
      }
    }
    if (residualValue) {
      buffers[0].lower = 0;
      buffers[0].upper = commands;
    }
  }

  SmallVector<InvokeOp> ops;
  llvm::EquivalenceClasses<Value> classes;
  llvm::DenseMap<Value, size_t> index;
  std::vector<Lifetime> buffers;
  Value residualValue;
};

struct AssignBuffersPass
    : OrderedPass<impl::AssignBuffersBase<AssignBuffersPass>, AssignBuffersPass> {
  LogicalResult runOnModel(ModelOp model) {
    for (StageOp stage : model.getOps<StageOp>())
      for (ForwardOp forward : stage.getOps<ForwardOp>())
        assign(forward);
    return success();
  }

private:
  void assign(ForwardOp forward) {
    BufferAssignment assignment(forward);
    OpBuilder builder = OpBuilder::atBlockBegin(&forward.getBlock());
    SmallVector<Attribute> intervals;
    SmallVector<Type> types;
    for (const Lifetime &lifetime : assignment.lifetimes()) {
      intervals.push_back(IntervalAttr::get(builder.getContext(), lifetime.name, lifetime.lower,
                                            lifetime.upper, lifetime.bytes));
      types.push_back(BufferType::get(builder.getContext(), lifetime.bytes));
    }
    auto pack = PackOp::create(builder, forward.getLoc(), types, builder.getArrayAttr(intervals),
                               assignment.hasResidual());

    SmallVector<Operation *> old;
    for (Operation &op : forward.getBlock())
      if (isa<InvokeOp, CarriedOp>(op))
        old.push_back(&op);
    builder.setInsertionPointToEnd(&forward.getBlock());
    for (Operation *op : old) {
      auto invocation = dyn_cast<InvokeOp>(op);
      if (!invocation)
        continue;
      SmallVector<Value> buffers;
      for (Value value : llvm::concat<Value>(llvm::to_vector(invocation.getInputs()),
                                             llvm::to_vector(invocation.getOutputs())))
        buffers.push_back(pack.getBuffers()[assignment.bufferOf(value)]);
      DispatchOp::create(builder, op->getLoc(), invocation.getKernelAttr(), buffers,
                         invocation.getSlots(), invocation.getItems(), invocation.getGridAttr(),
                         invocation.getLabelAttr(), invocation.getLayerAttr(),
                         invocation.getLogitsAttr());
    }
    for (Operation *op : llvm::reverse(old))
      op->erase();
  }
};

} // namespace
} // namespace strata
