#include "codegen/select/Fusion.h"

#include "codegen/cuda/MatvecShape.h"
#include "codegen/select/Filler.h"
#include "codegen/select/Lookup.h"

using namespace mlir;

namespace strata {

using namespace ir;

namespace {

class FusionFinder {
public:
  FusionFinder(Block &block, Value leaves, ContextOf contextOf)
      : block(block), leaves(leaves), contextOf(contextOf) {}

  FailureOr<SmallVector<Fusion, 0>> run() {
    for (auto norm : block.getOps<RmsNormOp>())
      if (isFewRows(norm))
        addNorm(norm);
    for (auto add : block.getOps<AddOp>())
      if (failed(addLinearAdd(add)))
        return failure();
    return std::move(found);
  }

private:
  bool isFewRows(RmsNormOp norm) const {
    int64_t rows = norm.getResult().getType().getDimSize(0);
    return !norm.getHeads() && rows > 0 && rows <= int64_t{cuda::matvecRows};
  }

  /// The value of a linear whose input is `norm` and whose weight has the type of `like`, if any.
  LinearOp linearOf(Value value, RmsNormOp norm, StringRef type) const {
    auto linear = value.getDefiningOp<LinearOp>();
    if (!linear || linear.getInput() != norm.getResult() ||
        weightTypeName(linear, linear.getWeightAttr()) != type)
      return {};
    return linear;
  }

  void addNorm(RmsNormOp norm) {
    for (Operation *user : norm->getUsers())
      if (addNormQkv(norm, user) || addNormGated(norm, user) || addNormLinear(norm, user))
        return;
  }

  /// What all fusions with a norm have.
  Fusion start(RmsNormOp norm, std::string kernel, StringRef weight, Value result,
               const SelectionContext &context) {
    Fusion fusion;
    fusion.result = result;
    Selection &s = fusion.selection;
    s.label = (StringRef(kernel).split('.').first + " " + weight).str();
    s.kernel = std::move(kernel);
    s.inputs = {norm.getInput()};
    s.result = result.getType();
    MLIRContext *mlir = norm.getContext();
    s.items =
        context.headRows ? ItemsAttr::get(mlir, 0, 0, 1, 0) : ItemsAttr::get(mlir, 1, 0, 0, 0);
    Filler(mlir, s)
        .buffer("x", 0)
        .weight("norm", norm.getWeightAttr())
        .buffer("y", 1)
        .step("row_sequence", context.headRows ? "head_sequence" : "row_sequence")
        .out("nonfinite_layer")
        .integer("columns", widthOf(norm.getResult()))
        .number("epsilon", norm.getEpsilon().convertToDouble())
        .integer("layer", context.layer);
    return fusion;
  }

  /// Keeps `fusion` of `ops`, which are in no particular order, if the target has its kernel and
  /// nothing else reads what it keeps to itself.
  bool keep(Fusion fusion, ArrayRef<Operation *> ops) {
    fusion.ops.assign(ops.begin(), ops.end());
    llvm::sort(fusion.ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    Operation *last = fusion.ops.back();
    for (Operation *op : fusion.ops) {
      if (op->getBlock() != &block || taken.contains(op))
        return false;
      for (Value value : op->getResults())
        for (Operation *user : value.getUsers())
          if (!llvm::is_contained(fusion.ops, user) &&
              (value != fusion.result || !last->isBeforeInBlock(user)))
            return false;
      if (leaves && leaves != fusion.result && leaves.getDefiningOp() == op)
        return false;
    }
    SelectionContext context = contextOf(last);
    if (!context.library.has(fusion.selection.kernel) ||
        failed(finishSelection(last, fusion.selection, context)))
      return false;
    taken.insert(fusion.ops.begin(), fusion.ops.end());
    found.push_back(std::move(fusion));
    return true;
  }

  bool addNormLinear(RmsNormOp norm, Operation *user) {
    FlatSymbolRefAttr weight, bias;
    if (auto linear = dyn_cast<LinearOp>(user)) {
      weight = linear.getWeightAttr();
      bias = linear.getBiasAttr();
    } else if (auto logits = dyn_cast<LogitsOp>(user)) {
      weight = logits.getWeightAttr();
    } else {
      return false;
    }
    Fusion fusion = start(norm, "norm_linear." + weightTypeName(user, weight), weight.getValue(),
                          user->getResult(0), contextOf(norm));
    fusion.selection.logits = isa<LogitsOp>(user);
    Filler(norm.getContext(), fusion.selection)
        .weight("weight", weight)
        .optionalWeight("bias", bias)
        .integer("outputs", widthOf(user->getResult(0)));
    return keep(std::move(fusion), {norm, user});
  }

  bool addNormGated(RmsNormOp norm, Operation *user) {
    auto first = dyn_cast<LinearOp>(user);
    if (!first || !first->hasOneUse())
      return false;
    auto gated = dyn_cast<GatedOp>(*first->user_begin());
    if (!gated)
      return false;
    std::string type = weightTypeName(first, first.getWeightAttr());
    LinearOp gate = linearOf(gated.getGate(), norm, type), up = linearOf(gated.getUp(), norm, type);
    if (!gate || !up || gate == up || gate.getBiasAttr() || up.getBiasAttr())
      return false;
    Fusion fusion =
        start(norm, ("norm_gated." + stringifyFunction(gated.getFunction()) + "." + type).str(),
              gate.getWeight(), gated.getResult(), contextOf(norm));
    Filler(norm.getContext(), fusion.selection)
        .weight("gate", gate.getWeightAttr())
        .weight("up", up.getWeightAttr())
        .integer("outputs", widthOf(gated.getResult()));
    return keep(std::move(fusion), {norm, gate, up, gated});
  }

  bool addNormQkv(RmsNormOp norm, Operation *user) {
    auto first = dyn_cast<LinearOp>(user);
    if (!first)
      return false;
    KvWriteOp write;
    for (auto candidate : block.getOps<KvWriteOp>())
      write = candidate;
    if (!write)
      return false;
    std::string type = weightTypeName(first, first.getWeightAttr());
    auto keyRope = write.getKey().getDefiningOp<RopeOp>();
    LinearOp value = linearOf(write.getValue(), norm, type);
    LinearOp key = keyRope ? linearOf(keyRope.getInput(), norm, type) : LinearOp();
    RopeOp queryRope;
    LinearOp query;
    for (auto rope : block.getOps<RopeOp>())
      if (LinearOp linear = linearOf(rope.getInput(), norm, type); linear && rope != keyRope) {
        queryRope = rope;
        query = linear;
      }
    if (!key || !value || !query || !isOneRotation(queryRope, keyRope))
      return false;
    int64_t heads = queryRope.getHeads(), kvHeads = keyRope.getHeads();
    int64_t width = widthOf(queryRope.getResult()) / heads;
    if (width % 4 != 0 || widthOf(keyRope.getResult()) != kvHeads * width ||
        widthOf(value.getResult()) != kvHeads * width)
      return false;
    auto state = lookupSymbol<StateOp>(write, write.getStateAttr());
    StringRef keyType = state.findComponent("k").getType();
    StringRef valueType = state.findComponent("v").getType();
    Fusion fusion = start(norm, ("norm_qkv." + type + "." + keyType + "." + valueType).str(),
                          query.getWeight(), queryRope.getResult(), contextOf(norm));
    Filler(norm.getContext(), fusion.selection)
        .weight("q_weight", query.getWeightAttr())
        .weight("k_weight", key.getWeightAttr())
        .weight("v_weight", value.getWeightAttr())
        .optionalWeight("q_bias", query.getBiasAttr())
        .optionalWeight("k_bias", key.getBiasAttr())
        .optionalWeight("v_bias", value.getBiasAttr())
        .weight("frequencies", queryRope.getFrequenciesAttr())
        .state("k", write.getStateAttr(), "k", write.getLayer())
        .state("v", write.getStateAttr(), "v", write.getLayer())
        .paging(write.getStateAttr())
        .step("row_position")
        .integer("query_heads", heads)
        .integer("kv_heads", kvHeads)
        .integer("head_width", width)
        .integer("rotary_width", queryRope.getRotaryWidth())
        .integer("interleaved", queryRope.getPairs() == RopePairs::interleaved)
        .number("magnitude", queryRope.getMagnitude().convertToDouble());
    return keep(std::move(fusion), {norm, query, key, value, queryRope, keyRope, write});
  }

  static bool isOneRotation(RopeOp a, RopeOp b) {
    return a.getFrequenciesAttr() == b.getFrequenciesAttr() &&
           a.getRotaryWidth() == b.getRotaryWidth() && a.getPairs() == b.getPairs() &&
           a.getMagnitude() == b.getMagnitude() && a.getFirst() == 0 && b.getFirst() == 0;
  }

  /// A linear whose result is added to what no one reads later adds to it in place.
  LogicalResult addLinearAdd(AddOp add) {
    for (Value side : {add.getRhs(), add.getLhs()}) {
      auto linear = side.getDefiningOp<LinearOp>();
      Value other = side == add.getRhs() ? add.getLhs() : add.getRhs();
      // The sum overwrites `other`: nothing may read it later, the linear's own input least of all.
      if (!linear || !side.hasOneUse() || linear->getBlock() != &block ||
          linear.getInput() == other || taken.contains(linear) || taken.contains(add))
        continue;
      bool readLater =
          other == leaves || llvm::any_of(other.getUsers(), [&](Operation *user) {
            return user != add && (user->getBlock() != &block || add->isBeforeInBlock(user));
          });
      if (readLater)
        continue;
      FailureOr<Selection> selection = selectLinearAdd(linear, other, contextOf(linear));
      if (failed(selection))
        return failure();
      taken.insert(linear);
      taken.insert(add);
      found.push_back({{linear, add}, add.getResult(), std::move(*selection)});
      break;
    }
    return success();
  }

  Block &block;
  Value leaves;
  ContextOf contextOf;
  SmallVector<Fusion, 0> found;
  llvm::SmallDenseSet<Operation *> taken;
};

} // namespace

FailureOr<SmallVector<Fusion, 0>> findFusions(Block &block, Value leaves, ContextOf contextOf) {
  return FusionFinder(block, leaves, contextOf).run();
}

} // namespace strata
