// canonicalize: drop what does not reach the sample or the state.
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include "passes/PassOrder.h"
#include "passes/Passes.h"

using namespace mlir;

namespace strata {
#define GEN_PASS_DEF_CANONICALIZE
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

struct CanonicalizePass : OrderedPass<impl::CanonicalizeBase<CanonicalizePass>, CanonicalizePass> {
  LogicalResult runOnModel(ModelOp model) {
    RewritePatternSet patterns(model.getContext());
    for (RegisteredOperationName op : model.getContext()->getRegisteredOperations())
      if (op.getDialectNamespace() == StrataDialect::getDialectNamespace())
        op.getCanonicalizationPatterns(patterns, model.getContext());
    GreedyRewriteConfig config;
    config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
    if (failed(applyPatternsGreedily(model, std::move(patterns), config)))
      return model.emitOpError() << "did not reach a fixed point";

    llvm::SmallPtrSet<Attribute, 32> used;
    model.walk([&](Operation *op) {
      for (NamedAttribute attribute : op->getAttrs())
        if (isa<FlatSymbolRefAttr>(attribute.getValue()))
          used.insert(cast<FlatSymbolRefAttr>(attribute.getValue()).getAttr());
    });
    for (WeightOp weight : llvm::make_early_inc_range(model.getOps<WeightOp>())) {
      if (used.contains(weight.getSymNameAttr()))
        continue;
      decided(weight, "strata-canonicalize", "unused-weight")
          << remark::metric("Weight", weight.getSymName());
      weight.erase();
    }
    return success();
  }
};

} // namespace
} // namespace strata
