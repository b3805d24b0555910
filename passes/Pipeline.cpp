// The order of the passes, and pipelines that go on from wherever a text was stopped.
#include "passes/Passes.h"

#include "mlir/Pass/PassRegistry.h"

#include "passes/PassOrder.h"

using namespace mlir;

namespace strata {
namespace {

constexpr std::string_view order[] = {
    "verify-model",        "canonicalize",    "profile-units",    "partition-stages",
    "replicate-constants", "insert-handoffs", "verify-placement", "instantiate-buckets",
    "expand-experts",      "choose-layouts",  "select-kernels",   "pad-tail-chunks",
    "order-ops",           "assign-buffers",  "plan-memory",      "verify-plan",
};

std::unique_ptr<Pass> makePass(std::string_view name) {
  using Maker = std::unique_ptr<Pass> (*)();
  static constexpr Maker makers[] = {
      [] { return createVerifyModel(); },        [] { return createCanonicalize(); },
      [] { return createProfileUnits(); },       [] { return createPartitionStages(); },
      [] { return createReplicateConstants(); }, [] { return createInsertHandoffs(); },
      [] { return createVerifyPlacement(); },    [] { return createInstantiateBuckets(); },
      [] { return createExpandExperts(); },      [] { return createChooseLayouts(); },
      [] { return createSelectKernels(); },      [] { return createPadTailChunks(); },
      [] { return createOrderOps(); },           [] { return createAssignBuffers(); },
      [] { return createPlanMemory(); },         [] { return createVerifyPlan(); },
  };
  static_assert(std::size(makers) == std::size(order));
  return makers[llvm::find(order, name) - std::begin(order)]();
}

/// Index of `name` in the order, or the order's size.
size_t indexOf(StringRef name) {
  return llvm::find(order, std::string_view(name.data(), name.size())) - std::begin(order);
}

} // namespace

std::span<const std::string_view> pipelinePasses() { return order; }

LogicalResult enterPass(ir::ModelOp model, StringRef pass) {
  size_t index = indexOf(pass);
  StringRef after = model.getAfter().value_or("");
  StringRef expected = index == 0 ? StringRef() : StringRef(order[index - 1]);
  if (after == expected)
    return success();
  auto name = [](StringRef pass) { return pass.empty() ? "import" : pass; };
  return model.emitError() << "'" << pass << "' must follow '" << name(expected)
                           << "', but the last pass was '" << name(after) << "'";
}

void leavePass(ir::ModelOp model, StringRef pass) { model.setAfter(pass); }

/// The copy that profile-units plans stands inside its model.
static bool isTrial(Operation *op) {
  auto model = dyn_cast<ir::ModelOp>(op);
  if (!model)
    model = op->getParentOfType<ir::ModelOp>();
  return model && model->getParentOfType<ir::ModelOp>();
}

remark::detail::InFlightRemark decided(Operation *op, StringRef category, StringRef name) {
  if (isTrial(op))
    return {};
  return remark::passed(op->getLoc(), remark::RemarkOpts::name(name).category(category));
}

remark::detail::InFlightRemark measured(Operation *op, StringRef category, StringRef name) {
  if (isTrial(op))
    return {};
  return remark::analysis(op->getLoc(), remark::RemarkOpts::name(name).category(category));
}

LogicalResult addPipeline(OpPassManager &manager, StringRef after, StringRef until,
                          raw_ostream &errors) {
  size_t first = 0, last = std::size(order) - 1;
  auto find = [&](StringRef name, size_t &index) {
    index = indexOf(name);
    if (index < std::size(order))
      return success();
    errors << "there is no pass '" << name << "'; the passes are ";
    llvm::interleave(order, errors, ", ");
    return failure();
  };
  if (!after.empty()) {
    if (failed(find(after, first)))
      return failure();
    ++first;
  }
  if (!until.empty()) {
    if (failed(find(until, last)))
      return failure();
    if (last + 1 < first) {
      errors << "pass '" << until << "' is past: the last to run was '" << after << "'";
      return failure();
    }
  }
  for (size_t i = first; i <= last; ++i)
    manager.addPass(makePass(order[i]));
  return success();
}

namespace {

struct PipelineOptions : PassPipelineOptions<PipelineOptions> {
  Option<std::string> after{*this, "after", llvm::cl::desc("the last pass that ran"),
                            llvm::cl::init("")};
  Option<std::string> until{*this, "until", llvm::cl::desc("the last pass to run"),
                            llvm::cl::init("")};
};

} // namespace

void registerStrataPipelines() {
  auto build = [](OpPassManager &manager, StringRef text,
                  function_ref<LogicalResult(const Twine &)> error) -> LogicalResult {
    PipelineOptions options;
    if (failed(options.parseFromString(text)))
      return failure(); // which was said
    std::string message;
    llvm::raw_string_ostream errors(message);
    if (failed(addPipeline(manager.nest<ir::ModelOp>(), options.after.getValue(),
                           options.until.getValue(), errors)))
      return error(message);
    return success();
  };
  registerPassPipeline(
      "strata-pipeline", "The passes after `after`, up to `until`", build,
      [](function_ref<void(const detail::PassOptions &)> use) { use(PipelineOptions()); });
}

} // namespace strata
