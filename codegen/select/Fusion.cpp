#include "codegen/select/Fusion.h"

#include "codegen/cuda/MatvecShape.h"
#include "codegen/select/Filler.h"
#include "codegen/select/Lookup.h"
#include "codegen/select/ManyRows.h"

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
    for (auto write : block.getOps<KvWriteOp>())
      addGemmQkv(write);
    for (auto gated : block.getOps<GatedOp>())
      addGemmGated(gated);
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

  /// The linear that makes `value` of `input` by a weight of `type`, if one does.
  LinearOp linearOf(Value value, Value input, StringRef type) const {
    auto linear = value.getDefiningOp<LinearOp>();
    if (!linear || linear.getInput() != input ||
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
    for (Selection &selection : fusion.before)
      if (failed(finishSelection(last, selection, context)))
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
    LinearOp gate = linearOf(gated.getGate(), norm.getResult(), type);
    LinearOp up = linearOf(gated.getUp(), norm.getResult(), type);
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

  /// The queries, keys and values that products of `input` give an attention.
  struct Qkv {
    LinearOp query, key, value;
    RopeOp queryRope, keyRope;
    KvWriteOp write;
    int64_t heads, kvHeads, width;
    StringRef keyType, valueType;

    SmallVector<Operation *> ops() const { return {query, key, value, queryRope, keyRope, write}; }
  };

  std::optional<Qkv> findQkv(Value input, StringRef type) {
    Qkv qkv;
    for (auto candidate : block.getOps<KvWriteOp>())
      qkv.write = candidate;
    if (!qkv.write)
      return {};
    qkv.keyRope = qkv.write.getKey().getDefiningOp<RopeOp>();
    qkv.value = linearOf(qkv.write.getValue(), input, type);
    qkv.key = qkv.keyRope ? linearOf(qkv.keyRope.getInput(), input, type) : LinearOp();
    for (auto rope : block.getOps<RopeOp>())
      if (LinearOp linear = linearOf(rope.getInput(), input, type); linear && rope != qkv.keyRope) {
        qkv.queryRope = rope;
        qkv.query = linear;
      }
    if (!qkv.key || !qkv.value || !qkv.query || !isOneRotation(qkv.queryRope, qkv.keyRope))
      return {};
    qkv.heads = qkv.queryRope.getHeads(), qkv.kvHeads = qkv.keyRope.getHeads();
    qkv.width = widthOf(qkv.queryRope.getResult()) / qkv.heads;
    if (qkv.width % 4 != 0 || widthOf(qkv.keyRope.getResult()) != qkv.kvHeads * qkv.width ||
        widthOf(qkv.value.getResult()) != qkv.kvHeads * qkv.width)
      return {};
    auto state = lookupSymbol<StateOp>(qkv.write, qkv.write.getStateAttr());
    qkv.keyType = state.findComponent("k").getType();
    qkv.valueType = state.findComponent("v").getType();
    return qkv;
  }

  static void fill(Selection &selection, const Qkv &qkv) {
    KvWriteOp write = qkv.write;
    LinearOp query = qkv.query, key = qkv.key, value = qkv.value;
    RopeOp rope = qkv.queryRope;
    Filler(write.getContext(), selection)
        .optionalWeight("q_bias", query.getBiasAttr())
        .optionalWeight("k_bias", key.getBiasAttr())
        .optionalWeight("v_bias", value.getBiasAttr())
        .weight("frequencies", rope.getFrequenciesAttr())
        .state("k", write.getStateAttr(), "k", write.getLayer())
        .state("v", write.getStateAttr(), "v", write.getLayer())
        .paging(write.getStateAttr())
        .step("row_sequence")
        .step("row_position")
        .integer("query_heads", qkv.heads)
        .integer("kv_heads", qkv.kvHeads)
        .integer("head_width", qkv.width)
        .integer("rotary_width", rope.getRotaryWidth())
        .integer("interleaved", rope.getPairs() == RopePairs::interleaved)
        .number("magnitude", rope.getMagnitude().convertToDouble());
  }

  bool addNormQkv(RmsNormOp norm, Operation *user) {
    auto first = dyn_cast<LinearOp>(user);
    if (!first)
      return false;
    std::string type = weightTypeName(first, first.getWeightAttr());
    std::optional<Qkv> qkv = findQkv(norm.getResult(), type);
    if (!qkv)
      return false;
    Fusion fusion =
        start(norm, ("norm_qkv." + type + "." + qkv->keyType + "." + qkv->valueType).str(),
              qkv->query.getWeight(), qkv->queryRope.getResult(), contextOf(norm));
    fill(fusion.selection, *qkv);
    Filler(norm.getContext(), fusion.selection)
        .weight("q_weight", qkv->query.getWeightAttr())
        .weight("k_weight", qkv->key.getWeightAttr())
        .weight("v_weight", qkv->value.getWeightAttr());
    SmallVector<Operation *> ops = qkv->ops();
    ops.push_back(norm);
    return keep(std::move(fusion), ops);
  }

  /// A product that the library computes of all `linears`, whose weights lie one behind the other,
  /// and the selection that makes `result` of it; nothing where they are no such product.
  std::optional<Fusion> startGemm(ArrayRef<LinearOp> linears, Value result, std::string kernel,
                                  bool keepsType) {
    LinearOp first = linears.front();
    SelectionContext context = contextOf(first);
    Type type = gemmType(first, context.library);
    SmallVector<WeightOp> weights;
    SmallVector<FlatSymbolRefAttr> symbols;
    int64_t outputs = 0;
    for (LinearOp linear : linears) {
      if (gemmType(linear, context.library) != type || linear.getInput() != first.getInput())
        return {};
      weights.push_back(lookupSymbol<WeightOp>(linear, linear.getWeightAttr()));
      symbols.push_back(linear.getWeightAttr());
      outputs += widthOf(linear.getResult());
    }
    if (!type || !areAdjacent(weights))
      return {};
    RankedTensorType rows = first.getInput().getType();
    Fusion fusion;
    fusion.result = result;
    fusion.before = selectGemm(first.getInput(), symbols, type,
                               RankedTensorType::get({rows.getDimSize(0), outputs},
                                                     keepsType ? type : rows.getElementType()),
                               context);
    fusion.before.back().label = ("gemm " + first.getWeight()).str();
    Selection &s = fusion.selection;
    s.label = (StringRef(kernel).split('.').first + " " + first.getWeight()).str();
    s.kernel = std::move(kernel);
    s.inputs = {Value()};
    s.result = cast<RankedTensorType>(result.getType()).clone(storedType(result, context.library));
    s.items = ItemsAttr::get(first.getContext(), 1, 0, 0, 0);
    Filler(first.getContext(), s).buffer("x", 0).buffer("y", 1);
    return fusion;
  }

  void addGemmQkv(KvWriteOp write) {
    auto value = write.getValue().getDefiningOp<LinearOp>();
    if (!value)
      return;
    std::optional<Qkv> qkv =
        findQkv(value.getInput(), weightTypeName(value, value.getWeightAttr()));
    if (!qkv)
      return;
    auto fusion =
        startGemm({qkv->query, qkv->key, qkv->value}, qkv->queryRope.getResult(),
                  ("qkv_rope." + qkv->keyType + "." + qkv->valueType).str(), /*keepsType=*/false);
    if (!fusion)
      return;
    fill(fusion->selection, *qkv);
    keep(std::move(*fusion), qkv->ops());
  }

  void addGemmGated(GatedOp gated) {
    auto gate = gated.getGate().getDefiningOp<LinearOp>();
    auto up = gated.getUp().getDefiningOp<LinearOp>();
    if (!gate || !up || gate == up || gate.getBiasAttr() || up.getBiasAttr())
      return;
    const KernelLibrary &library = contextOf(gated).library;
    Type type = storedType(gated.getResult(), library);
    if (gemmType(gate, library) != type)
      return;
    std::string kernel = ("gated_pair." + stringifyFunction(gated.getFunction())).str();
    auto fusion =
        startGemm({gate, up}, gated.getResult(),
                  type.isF32() ? kernel : kernel + "." + typeName(type), /*keepsType=*/true);
    if (!fusion)
      return;
    Filler(gated.getContext(), fusion->selection).integer("width", widthOf(gated.getResult()));
    keep(std::move(*fusion), {gate, up, gated});
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
      FailureOr<Selections> selections = selectLinearAdd(linear, other, contextOf(linear));
      if (failed(selections))
        return failure();
      taken.insert(linear);
      taken.insert(add);
      Selection last = selections->pop_back_val();
      found.push_back({{linear, add}, add.getResult(), std::move(*selections), std::move(last)});
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
