// order-ops: order a layer's invocations so that the peak falls.
#include <map>

#include "mlir/IR/Builders.h"

#include "passes/PassOrder.h"
#include "passes/Passes.h"
#include "passes/planner/Ordering.h"
#include "runtime/base/CheckedMath.h"

using namespace mlir;

namespace strata {
#define GEN_PASS_DEF_ORDEROPS
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

/// The ordering problem of one run of invocations with the same layer number.
class LayerOrder {
public:
  explicit LayerOrder(MutableArrayRef<InvokeOp> ops) : ops(ops) {
    for (auto [index, op] : llvm::enumerate(ops))
      number[op] = index;
    problem.commands = ops.size();
    problem.before.resize(ops.size());
    addMemory();
    addState();
  }

  const planner::OrderProblem &get() const { return problem; }

private:
  size_t bufferOf(Value value) {
    auto [entry, isNew] = buffers.try_emplace(value, problem.buffers.size());
    if (isNew) {
      problem.buffers.push_back(
          {{}, bufferBytes(cast<RankedTensorType>(value.getType())), false, false});
      // Made elsewhere (the residual, carried rows): there before and, being updated in place,
      // after.
      if (!number.contains(value.getDefiningOp()))
        problem.buffers.back().aliveBefore = true;
    }
    return entry->second;
  }

  void addMemory() {
    llvm::SmallDenseMap<size_t, size_t> writer; // the last command that wrote a buffer
    llvm::SmallDenseMap<size_t, SmallVector<size_t>> readers;
    for (auto [index, op] : llvm::enumerate(ops)) {
      auto touch = [&](size_t buffer) { problem.buffers[buffer].commands.push_back(index); };
      for (Value input : op.getInputs()) {
        size_t buffer = bufferOf(input);
        touch(buffer);
        if (auto made = writer.find(buffer); made != writer.end())
          problem.before[index].push_back(made->second);
        readers[buffer].push_back(index);
      }
      for (auto [result, tied] : llvm::zip(op.getOutputs(), op.getTied())) {
        size_t buffer = tied >= 0 ? bufferOf(op.getInputs()[tied]) : bufferOf(result);
        buffers[result] = buffer;
        touch(buffer);
        // Overwriting waits for every reader of what was there.
        for (size_t reader : readers[buffer])
          if (reader != index)
            problem.before[index].push_back(reader);
        readers[buffer].clear();
        writer[buffer] = index;
        bool isFirst = result == op.getOutputs().front(); // workspaces stand behind it
        if ((isFirst && (op.getCarries() || op.getLogits())) || usedOutside(result))
          problem.buffers[buffer].aliveAfter = true;
        // What takes offset 0 of the arena waits until the old residual has been read.
        if (isFirst && op.getCarries())
          for (size_t earlier = 0; earlier < index; ++earlier)
            problem.before[index].push_back(earlier);
      }
    }
  }

  /// State, tables and ports are touched in the order given.
  void addState() {
    std::map<std::string, size_t> last;
    for (auto [index, op] : llvm::enumerate(ops))
      for (Attribute slot : op.getSlots()) {
        std::string key;
        llvm::raw_string_ostream stream(key);
        if (auto state = dyn_cast<StateSlotAttr>(slot))
          stream << state;
        else if (isa<TableSlotAttr, PortSlotAttr>(slot))
          stream << slot;
        else
          continue;
        if (auto [entry, isNew] = last.try_emplace(key, index); !isNew) {
          if (entry->second != index)
            problem.before[index].push_back(entry->second);
          entry->second = index;
        }
      }
  }

  bool usedOutside(Value value) {
    return llvm::any_of(value.getUsers(), [&](Operation *user) { return !number.contains(user); });
  }

  MutableArrayRef<InvokeOp> ops;
  llvm::SmallDenseMap<Operation *, size_t> number;
  llvm::SmallDenseMap<Value, size_t> buffers;
  planner::OrderProblem problem;
};

/// Layers of one kind pose the same problem: solve it once.
class OrderCache {
public:
  const std::vector<size_t> &solve(const planner::OrderProblem &problem) {
    std::vector<int64_t> key{static_cast<int64_t>(problem.commands)};
    for (const auto &before : problem.before) {
      key.push_back(-1);
      key.insert(key.end(), before.begin(), before.end());
    }
    for (const planner::OrderBuffer &buffer : problem.buffers) {
      key.insert(key.end(), {-2, buffer.bytes, buffer.aliveBefore, buffer.aliveAfter});
      key.insert(key.end(), buffer.commands.begin(), buffer.commands.end());
    }
    auto [entry, isNew] = orders.try_emplace(std::move(key));
    if (isNew)
      entry->second = planner::orderToLowerPeak(problem);
    return entry->second;
  }

private:
  std::map<std::vector<int64_t>, std::vector<size_t>> orders;
};

struct OrderOpsPass : OrderedPass<impl::OrderOpsBase<OrderOpsPass>, OrderOpsPass> {
  LogicalResult runOnModel(ModelOp model) {
    OrderCache cache;
    for (StageOp stage : model.getOps<StageOp>())
      for (ForwardOp forward : stage.getOps<ForwardOp>())
        orderForward(forward, cache);
    return success();
  }

private:
  void orderForward(ForwardOp forward, OrderCache &cache) {
    SmallVector<InvokeOp> all(forward.getBlock().getOps<InvokeOp>());
    for (size_t begin = 0, end; begin < all.size(); begin = end) {
      end = begin + 1;
      while (end < all.size() && all[end].getLayer() == all[begin].getLayer())
        ++end;
      MutableArrayRef<InvokeOp> run = MutableArrayRef(all).slice(begin, end - begin);
      LayerOrder layer(run);
      const std::vector<size_t> &order = cache.solve(layer.get());
      if (llvm::is_sorted(order))
        continue;
      std::vector<size_t> given(run.size());
      std::iota(given.begin(), given.end(), 0);
      decided(forward, "strata-order-ops", "reordered")
          << remark::metric("Forward", forward.getSymName())
          << remark::metric("Layer", run.front().getLayer())
          << remark::metric("PeakBefore", planner::peakOf(layer.get(), given))
          << remark::metric("PeakAfter", planner::peakOf(layer.get(), order));
      Operation *after = run.back()->getNextNode();
      for (size_t index : order) {
        InvokeOp op = run[index];
        if (after)
          op->moveBefore(after);
        else
          op->moveBefore(&forward.getBlock(), forward.getBlock().end());
      }
    }
  }
};

} // namespace
} // namespace strata
