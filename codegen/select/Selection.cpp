// From an op to the kernels that a target has for it: signatures are the same on all targets, so
// slots are filled alike; scratch is a CPU's, and grids are a GPU's.
#include "codegen/select/Selection.h"

#include "llvm/ADT/TypeSwitch.h"

#include "codegen/cuda/KernelTable.h"
#include "codegen/select/Filler.h"
#include "codegen/select/Lookup.h"
#include "codegen/select/ManyRows.h"
#include "runtime/base/CheckedMath.h"

using namespace mlir;

namespace strata {

using namespace ir;

namespace {

/// Builds selections for the ops of one layer.
class Selector {
public:
  Selector(Operation *op, const SelectionContext &where)
      : op(op), where(where), context(op->getContext()) {}

  Selection start(std::string kernel, ArrayRef<Value> inputs, Value result) {
    Selection selection;
    selection.kernel = std::move(kernel);
    selection.inputs.assign(inputs.begin(), inputs.end());
    selection.result = result ? result.getType() : Type();
    selection.items =
        where.headRows ? ItemsAttr::get(context, 0, 0, 1, 0) : ItemsAttr::get(context, 1, 0, 0, 0);
    return selection;
  }

  Selection embed(EmbedOp embed) {
    Selection s = start("embed." + weightTypeName(op, embed.getTableAttr()), {}, embed.getResult());
    WeightOp table = lookupSymbol<WeightOp>(op, embed.getTableAttr());
    fill(s)
        .weight("table", embed.getTableAttr())
        .buffer("y", 0)
        .step("row_id")
        .step("row_sequence")
        .step("sequence_slot")
        .table("last_id")
        .integer("width", widthOf(embed.getResult()))
        .integer("vocabulary", table.getTensorType().getDimSize(0))
        .number("scale", embed.getScale().convertToDouble());
    return s;
  }

  Selection rmsNorm(RmsNormOp norm) {
    double epsilon = norm.getEpsilon().convertToDouble();
    int64_t width = widthOf(norm.getResult());
    if (auto heads = norm.getHeads()) {
      Selection s = start("rms_norm_heads", {norm.getInput()}, norm.getResult());
      s.inPlace = 0;
      fill(s)
          .buffer("x", 0)
          .weight("weight", norm.getWeightAttr())
          .integer("heads", *heads)
          .integer("head_width", width / *heads)
          .number("epsilon", epsilon)
          .integer("weight_stride", norm.getGrouped() ? width / *heads : 0);
      return s;
    }
    Selection s = start("rms_norm", {norm.getInput()}, norm.getResult());
    narrow(s, norm.getResult());
    fill(s)
        .buffer("x", 0)
        .weight("weight", norm.getWeightAttr())
        .buffer("y", 1)
        .step("row_sequence", where.headRows ? "head_sequence" : "row_sequence")
        .out("nonfinite_layer")
        .integer("width", width)
        .number("epsilon", epsilon)
        .integer("layer", where.layer);
    return s;
  }

  template <class Linear> Selections linears(Linear linear, Value residual) {
    Type type = gemmType(op, where.library);
    if (!type)
      return {this->linear(linear, residual)};
    Selections selections =
        selectGemm(linear.getInput(), linear.getWeightAttr(), type, linear.getType(), where);
    Selection &gemm = selections.back();
    if (residual) {
      gemm.inputs.push_back(residual);
      gemm.inPlace = 1;
      fill(gemm).integer("accumulate", 1).buffer("workspace", 3);
    }
    if (auto layer = tableLayer(linear))
      fill(gemm).set("weight", WeightSlotAttr::get(context, linear.getWeightAttr(), layer));
    if constexpr (requires { linear.getBiasAttr(); })
      fill(gemm).optionalWeight("bias", linear.getBiasAttr());
    return selections;
  }

  template <class Linear> Selection linear(Linear linear, Value residual) {
    int64_t columns = widthOf(linear.getInput()), outputs = widthOf(linear.getResult());
    SmallVector<Value> inputs{linear.getInput()};
    if (residual)
      inputs.push_back(residual);
    Selection s =
        start("linear." + weightTypeName(op, linear.getWeightAttr()), inputs, linear.getResult());
    if (residual)
      s.inPlace = 1;
    s.items = ItemsAttr::get(context, 0, 0, 0,
                             static_cast<int64_t>(ceilDiv(outputs, int64_t{linearItemOutputs})));
    Filler filler = fill(s);
    filler.buffer("x", 0)
        .weight("weight", linear.getWeightAttr())
        .buffer("y", 1)
        .step("valid_rows", where.headRows ? "valid_head_rows" : "valid_rows")
        .scratch(where.library.scratchBytes(s.kernel, static_cast<uint64_t>(columns)))
        .integer("columns", columns)
        .integer("outputs", outputs)
        .integer("accumulate", residual ? 1 : 0);
    if (auto layer = tableLayer(linear))
      filler.set("weight", WeightSlotAttr::get(context, linear.getWeightAttr(), layer));
    if constexpr (requires { linear.getBiasAttr(); })
      filler.optionalWeight("bias", linear.getBiasAttr());
    else
      filler.integer("bias", 0);
    return s;
  }

  Selection rope(RopeOp rope) {
    Selection s = start("rope", {rope.getInput()}, rope.getResult());
    s.inPlace = 0;
    fill(s)
        .buffer("x", 0)
        .weight("frequencies", rope.getFrequenciesAttr())
        .step("row_position")
        .integer("heads", rope.getHeads())
        .integer("head_width", widthOf(rope.getResult()) / rope.getHeads())
        .integer("rotary_width", rope.getRotaryWidth())
        .integer("interleaved", rope.getPairs() == RopePairs::interleaved)
        .number("magnitude", rope.getMagnitude().convertToDouble())
        .integer("first", rope.getFirst());
    return s;
  }

  Selection headLinear(HeadLinearOp linear) {
    Selection s = start("head_linear." + weightTypeName(op, linear.getWeightAttr()),
                        {linear.getInput()}, linear.getResult());
    RankedTensorType weight = lookupSymbol<WeightOp>(op, linear.getWeightAttr()).getTensorType();
    s.items = ItemsAttr::get(context, 0, 0, 0, weight.getDimSize(0));
    fill(s)
        .buffer("x", 0)
        .weight("weight", linear.getWeightAttr())
        .buffer("y", 1)
        .step("valid_rows")
        .scratch(where.library.scratchBytes(s.kernel, static_cast<uint64_t>(weight.getDimSize(2))))
        .integer("heads", weight.getDimSize(0))
        .integer("weight_rows", weight.getDimSize(1))
        .integer("columns", weight.getDimSize(2))
        .integer("tail", linear.getTail())
        .integer("transposed", linear.getTransposed());
    return s;
  }

  Selection kvWrite(KvWriteOp write, StringRef component, Value rows) {
    StateOp state = lookupSymbol<StateOp>(op, write.getStateAttr());
    Selection s =
        start(("kv_write." + state.findComponent(component).getType()).str(), {rows}, Value());
    fill(s)
        .buffer("x", 0)
        .state("state", write.getStateAttr(), component, write.getLayer())
        .paging(write.getStateAttr())
        .step("row_sequence")
        .step("row_position")
        .integer("width", widthOf(rows));
    return s;
  }

  Selection attention(AttentionOp attention) {
    StateOp state = lookupSymbol<StateOp>(op, attention.getStateAttr());
    int64_t heads = attention.getQueryHeads();
    bool isPrompt = runsAsPrompt(attention, where.library);
    std::string kernel = attention.getLatent() ? "attention_latent."
                         : isPrompt            ? "attention_prompt."
                                               : "attention.";
    kernel += state.findComponent("k").getType();
    if (!isPrompt)
      kernel += "." + state.findComponent("v").getType().str();
    Selection s = start(kernel, {attention.getQuery()}, attention.getResult());
    s.items = ItemsAttr::get(context, heads, 0, 0, 0);
    narrow(s, attention.getResult());
    if (isPrompt)
      fill(s)
          .step("query_start")
          .step("valid_sequences")
          .integer("sequences", *attention->getParentOfType<ForwardOp>().getSequences());
    fill(s)
        .buffer("q", 0)
        .state("k", attention.getStateAttr(), "k", attention.getLayer())
        .state("v", attention.getStateAttr(), "v", attention.getLayer())
        .buffer("y", 1)
        .paging(attention.getStateAttr())
        .step("row_sequence")
        .step("row_position")
        .integer("query_heads", heads)
        .integer("kv_heads", attention.getKvHeads())
        .integer("key_width", attention.keyWidth())
        .integer("value_width", widthOf(attention.getResult()) / heads)
        .number("scale", attention.getScale().convertToDouble())
        .integer("window", attention.getWindow().value_or(0));
    return s;
  }

  Selection gated(GatedOp gated) {
    Selection s = start(("gated." + stringifyFunction(gated.getFunction())).str(),
                        {gated.getGate(), gated.getUp()}, gated.getResult());
    s.mayReuse = !narrow(s, gated.getResult());
    fill(s).buffer("gate", 0).buffer("up", 1).buffer("y", 2).integer("width",
                                                                     widthOf(gated.getResult()));
    return s;
  }

  Selection activation(ActivationOp activation) {
    Selection s = start(("activation." + stringifyFunction(activation.getFunction())).str(),
                        {activation.getInput()}, activation.getResult());
    s.mayReuse = true;
    fill(s).buffer("x", 0).buffer("y", 1).integer("width", widthOf(activation.getResult()));
    return s;
  }

  Selection add(AddOp add) {
    Selection s = start("add", {add.getLhs(), add.getRhs()}, add.getResult());
    s.mayReuse = true;
    fill(s).buffer("a", 0).buffer("b", 1).buffer("y", 2).integer("width", widthOf(add.getResult()));
    return s;
  }

  Selection rowGated(RowGatedOp gated) {
    Selection s = start(("row_gated." + stringifyFunction(gated.getFunction())).str(),
                        {gated.getGate(), gated.getInput()}, gated.getResult());
    s.inPlace = 1;
    fill(s).buffer("gate", 0).buffer("x", 1).buffer("y", 2).integer("width",
                                                                    widthOf(gated.getResult()));
    return s;
  }

  Selection router(RouterOp router) {
    Selection s = start(("router." + stringifyGateFunction(router.getFunction())).str(),
                        {router.getLogits()}, router.getResult());
    int64_t experts = widthOf(router.getLogits());
    fill(s)
        .buffer("logits", 0)
        .optionalWeight("bias", router.getBiasAttr())
        .buffer("y", 1)
        .scratch(where.library.scratchBytes(s.kernel, static_cast<uint64_t>(experts)))
        .integer("experts", experts)
        .integer("used", router.getUsed())
        .integer("groups", router.getGroups())
        .integer("groups_used", router.getGroupsUsed())
        .integer("group_top", router.getGroupTop())
        .integer("normalise", router.getNormalise())
        .number("least_sum", router.getLeastSum().convertToDouble())
        .number("scale", router.getScale().convertToDouble());
    return s;
  }

  Selection expertLists(ExpertListsOp lists) {
    Selection s = start("expert_lists", {lists.getRouting()}, lists.getResult());
    s.items = ItemsAttr::get(context, 0, 0, 0, 1);
    fill(s)
        .buffer("routing", 0)
        .buffer("lists", 1)
        .step("valid_rows")
        .integer("experts", lists.getExperts())
        .integer("used", widthOf(lists.getRouting()) / 2);
    return s;
  }

  Selection expertUp(ExpertUpOp up) {
    SmallVector<Value> inputs{up.getInput(), up.getLists()};
    if (up.getGated())
      inputs.push_back(up.getGated());
    Selection s =
        start("expert_up." + weightTypeName(op, up.getWeightAttr()), inputs, up.getResult());
    if (up.getGated())
      s.inPlace = 2;
    int64_t tiles = fillExperts(s, up, /*rowsOfWidth=*/up.getInput());
    // With few rows an item is of an expert that some row uses: no more than rows times used.
    int64_t rows = cast<RankedTensorType>(up.getInput().getType()).getDimSize(0);
    bool byUse =
        up.getCount() == expertsOf(up.getWeightAttr()) && rows * up.getUsed() <= up.getCount();
    s.items = byUse ? ItemsAttr::get(context, up.getUsed() * tiles, 0, 0, 0)
                    : ItemsAttr::get(context, 0, 0, 0, up.getCount() * tiles);
    fill(s)
        .integer("by_use", byUse)
        .integer("gated", up.getGated() != nullptr)
        .integer("function", up.getFunction()
                                 ? static_cast<int64_t>(*up.getFunction())
                                 : static_cast<int64_t>(getMaxEnumValForFunction()) + 1);
    return s;
  }

  Selection expertDown(ExpertDownOp down) {
    SmallVector<Value> inputs{down.getInput(), down.getLists()};
    if (down.getOnto())
      inputs.push_back(down.getOnto());
    Selection s =
        start("expert_down." + weightTypeName(op, down.getWeightAttr()), inputs, down.getResult());
    if (down.getOnto())
      s.inPlace = 2;
    s.items = ItemsAttr::get(context, 0, 0, 0, fillExperts(s, down, down.getResult()));
    fill(s).integer("accumulate", down.getOnto() != nullptr);
    return s;
  }

  Selection conv(ConvOp conv) {
    Selection s = start("conv", {conv.getInput()}, conv.getResult());
    s.inPlace = 0;
    int64_t width = widthOf(conv.getInput());
    s.items = ItemsAttr::get(context, 0, 0, 0,
                             static_cast<int64_t>(ceilDiv(width, int64_t(cpu::convChannels))));
    fill(s)
        .buffer("x", 0)
        .weight("weight", conv.getWeightAttr())
        .optionalWeight("bias", conv.getBiasAttr())
        .slotState(conv.getStateAttr(), "conv", conv.getLayer())
        .integer("width", width)
        .integer("taps",
                 lookupSymbol<WeightOp>(op, conv.getWeightAttr()).getTensorType().getDimSize(1));
    return s;
  }

  Selection ssmScan(SsmScanOp scan) {
    Selection s = start("ssm_scan", {scan.getInput(), scan.getDt()}, scan.getResult());
    s.items = ItemsAttr::get(context, 0, 0, 0, scan.getHeads());
    fill(s)
        .buffer("x", 0)
        .buffer("dt", 1)
        .weight("a", scan.getAAttr())
        .weight("skip", scan.getSkipAttr())
        .weight("dt_bias", scan.getDtBiasAttr())
        .buffer("y", 2)
        .slotState(scan.getStateAttr(), "ssm", scan.getLayer())
        .integer("heads", scan.getHeads())
        .integer("head_width", widthOf(scan.getResult()) / scan.getHeads())
        .integer("groups", scan.getGroups())
        .integer("state_width", scan.getStateWidth())
        .number("least_dt", scan.getLeastDt().convertToDouble())
        .number("most_dt", scan.getMostDt().convertToDouble());
    return s;
  }

  Selection gatherRows(GatherRowsOp gather) {
    Selection s = start("gather_rows", {gather.getInput()}, gather.getResult());
    s.items = ItemsAttr::get(context, 0, 0, 1, 0);
    fill(s)
        .buffer("x", 0)
        .buffer("y", 1)
        .step("head_row")
        .integer("width", widthOf(gather.getResult()));
    return s;
  }

  Selection sample(SampleOp sample) {
    Selection s = start("sample", {sample.getLogits()}, Value());
    int64_t vocabulary = widthOf(sample.getLogits());
    Filler filler = fill(s);
    auto model = op->getParentOfType<ModelOp>();
    filler.buffer("logits", 0).integer("vocabulary", vocabulary);
    filler.integer("context", model.getMaxContext());
    for (StringRef field : {"valid_head_rows", "head_sequence", "sequence_slot", "sequence_length",
                            "temperature", "top_k", "top_p", "min_p", "seed", "repetition_penalty",
                            "presence_penalty", "frequency_penalty", "penalty_window"})
      filler.step(field);
    for (StringRef field :
         {"last_id", "history", "bias_count", "bias_id", "bias_value", "is_masked", "mask"})
      filler.table(field);
    for (StringRef field : {"id", "log_probability", "top_id", "top_log_probability"})
      filler.out(field);
    filler.scratch(where.library.scratchBytes(s.kernel, static_cast<uint64_t>(vocabulary)));
    return s;
  }

  Selection receive(ReceiveOp receive) {
    Selection s = start("copy_rows", {}, receive.getResult());
    fill(s)
        .set("x", PortSlotAttr::get(context, receive.getPortAttr()))
        .buffer("y", 0)
        .integer("width", widthOf(receive.getResult()));
    return s;
  }

  Selection send(SendOp send) {
    Selection s = start("copy_rows", {send.getInput()}, Value());
    fill(s)
        .buffer("x", 0)
        .set("y", PortSlotAttr::get(context, send.getPortAttr()))
        .integer("width", widthOf(send.getInput()));
    return s;
  }

  Filler fill(Selection &selection) { return Filler(context, selection); }

private:
  /// Lets `selection` store its result as the readers of `value` want it; whether that is not F32.
  bool narrow(Selection &selection, Value value) {
    Type type = storedType(value, where.library);
    if (type.isF32())
      return false;
    selection.kernel += "." + typeName(type);
    selection.result = cast<RankedTensorType>(selection.result).clone(type);
    return true;
  }

  int64_t expertsOf(FlatSymbolRefAttr weight) {
    return lookupSymbol<WeightOp>(op, weight).getTensorType().getDimSize(0);
  }

  /// What expert_up and expert_down have in common; returns how many tiles the outputs are.
  template <class ExpertOp> int64_t fillExperts(Selection &s, ExpertOp expert, Value rowsOfWidth) {
    RankedTensorType weight = lookupSymbol<WeightOp>(op, expert.getWeightAttr()).getTensorType();
    fill(s)
        .buffer("x", 0)
        .buffer("lists", 1)
        .weight("weight", expert.getWeightAttr())
        .weight("expert_slot", expert.getSlotsAttr())
        .optionalWeight("labels", expert.getLabelsAttr())
        .buffer("y", 2)
        .step("valid_rows")
        .scratch(where.library.scratchBytes(s.kernel, static_cast<uint64_t>(weight.getDimSize(2))))
        .integer("columns", weight.getDimSize(2))
        .integer("outputs", weight.getDimSize(1))
        .integer("row_width", widthOf(rowsOfWidth))
        .integer("experts", weight.getDimSize(0))
        .integer("used", expert.getUsed())
        .integer("first", expert.getFirst())
        .integer("count", expert.getCount());
    return static_cast<int64_t>(ceilDiv(weight.getDimSize(1), int64_t{linearItemOutputs}));
  }

  Operation *op;
  const SelectionContext &where;
  MLIRContext *context;
};

/// On a GPU, the blocks that cover the most rows that the bucket gives the kernel.
void setGrid(Selection &selection, const KernelLibrary &library) {
  if (library.isCpu() || cuda::isGemm(selection.kernel))
    return;
  auto constant = [&](std::string_view name) -> uint64_t {
    auto slot = dyn_cast_or_null<ConstantSlotAttr>(
        selection.slots.lookup(StringRef(name.data(), name.size())));
    auto value = slot ? dyn_cast<IntegerAttr>(slot.getValue()) : IntegerAttr();
    return value ? static_cast<uint64_t>(value.getInt()) : 0;
  };
  // The rows of the bucket stand in the types; a gather makes fewer than it reads, and experts make
  // more inside.
  StringRef kernel = selection.kernel;
  bool byResult = selection.inputs.empty() || !selection.inputs.front() ||
                  kernel == "gather_rows" || kernel.starts_with("expert_down.");
  auto rows =
      cast<RankedTensorType>(byResult ? selection.result : selection.inputs.front().getType());
  cuda::LaunchShape shape = cuda::launchShape(
      selection.kernel, static_cast<uint64_t>(rows.getDimSize(0)), constant, *library.gpu());
  selection.grid = {static_cast<int64_t>(shape.gridX), static_cast<int64_t>(shape.gridY)};
}

/// What a dry run takes an op for that no kernel is known for: one that reads all its tensors.
Selection unknownKernel(Operation *op, const SelectionContext &where) {
  Selection selection;
  selection.kernel = ("missing." + op->getName().stripDialect()).str();
  for (Value operand : op->getOperands())
    if (isa<RankedTensorType>(operand.getType()))
      selection.inputs.push_back(operand);
  if (op->getNumResults() == 1)
    selection.result = op->getResult(0).getType();
  selection.items = where.headRows ? ItemsAttr::get(op->getContext(), 0, 0, 1, 0)
                                   : ItemsAttr::get(op->getContext(), 1, 0, 0, 0);
  return selection;
}

} // namespace

bool isDryRun(Operation *op) {
  auto model = dyn_cast<ModelOp>(op);
  if (!model)
    model = op->getParentOfType<ModelOp>();
  return model && model->hasAttr(dryRunAttribute);
}

std::string kernelSymbol(const KernelLibrary &library, StringRef kernel) {
  std::string_view kind = library.kind();
  return (StringRef(kind.data(), kind.size()) + "." + kernel).str();
}

StringRef kernelName(StringRef symbol) { return symbol.split('.').second; }

LogicalResult finishSelection(Operation *op, Selection &selection, const SelectionContext &where) {
  if (!where.library.has(selection.kernel)) {
    if (isDryRun(op))
      return success();
    return op->emitOpError() << "needs kernel '" << selection.kernel << "', which target "
                             << StageOp(where.stage).getDevice() << " does not have";
  }
  setGrid(selection, where.library);
  return success();
}

static FailureOr<Selections> finishAll(Operation *op, Selections selections,
                                       const SelectionContext &where) {
  for (Selection &selection : selections)
    if (failed(finishSelection(op, selection, where)))
      return failure();
  return selections;
}

FailureOr<Selections> selectKernels(Operation *op, const SelectionContext &where) {
  Selector selector(op, where);
  Selections selections;
  bool known =
      TypeSwitch<Operation *, bool>(op)
          .Case([&](EmbedOp o) { return selections.push_back(selector.embed(o)), true; })
          .Case([&](RmsNormOp o) { return selections.push_back(selector.rmsNorm(o)), true; })
          .Case([&](LinearOp o) { return selections = selector.linears(o, {}), true; })
          .Case([&](LogitsOp o) {
            selections = selector.linears(o, {});
            selections.back().logits = true;
            return true;
          })
          .Case([&](RopeOp o) { return selections.push_back(selector.rope(o)), true; })
          .Case([&](KvWriteOp o) {
            selections.push_back(selector.kvWrite(o, "k", o.getKey()));
            selections.push_back(selector.kvWrite(o, "v", o.getValue()));
            return true;
          })
          .Case([&](AttentionOp o) { return selections.push_back(selector.attention(o)), true; })
          .Case([&](GatedOp o) { return selections.push_back(selector.gated(o)), true; })
          .Case([&](ActivationOp o) { return selections.push_back(selector.activation(o)), true; })
          .Case([&](AddOp o) { return selections.push_back(selector.add(o)), true; })
          .Case([&](GatherRowsOp o) { return selections.push_back(selector.gatherRows(o)), true; })
          .Case([&](HeadLinearOp o) { return selections.push_back(selector.headLinear(o)), true; })
          .Case([&](RowGatedOp o) { return selections.push_back(selector.rowGated(o)), true; })
          .Case([&](RouterOp o) { return selections.push_back(selector.router(o)), true; })
          .Case(
              [&](ExpertListsOp o) { return selections.push_back(selector.expertLists(o)), true; })
          .Case([&](ExpertUpOp o) { return selections.push_back(selector.expertUp(o)), true; })
          .Case([&](ExpertDownOp o) { return selections.push_back(selector.expertDown(o)), true; })
          .Case([&](LatentDownOp o) { return selections = selector.linears(o, {}), true; })
          .Case([&](LatentUpOp o) { return selections = selector.linears(o, {}), true; })
          .Case([&](ConvOp o) { return selections.push_back(selector.conv(o)), true; })
          .Case([&](SsmScanOp o) { return selections.push_back(selector.ssmScan(o)), true; })
          .Case([&](SampleOp o) { return selections.push_back(selector.sample(o)), true; })
          .Case([&](ReceiveOp o) { return selections.push_back(selector.receive(o)), true; })
          .Case([&](SendOp o) { return selections.push_back(selector.send(o)), true; })
          .Default(false);
  if (!known && isDryRun(op) && op->getNumResults() <= 1)
    selections.push_back(unknownKernel(op, where));
  else if (!known)
    return op->emitOpError() << "has no kernel on target " << StageOp(where.stage).getDevice();
  return finishAll(op, std::move(selections), where);
}

FailureOr<Selections> selectLinearAdd(LinearOp linear, Value residual,
                                      const SelectionContext &where) {
  return finishAll(linear, Selector(linear, where).linears(linear, residual), where);
}

Selection selectCopy(Value rows, const SelectionContext &where) {
  MLIRContext *context = rows.getContext();
  Selection s;
  s.kernel = "copy_rows";
  s.inputs = {rows};
  s.result = rows.getType();
  s.items =
      where.headRows ? ItemsAttr::get(context, 0, 0, 1, 0) : ItemsAttr::get(context, 1, 0, 0, 0);
  Filler(context, s).buffer("x", 0).buffer("y", 1).integer("width", widthOf(rows));
  setGrid(s, where.library);
  return s;
}

} // namespace strata
