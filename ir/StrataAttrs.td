//===- StrataAttrs.td - attributes and enumerations -----------------------===//

#ifndef STRATA_ATTRS
#define STRATA_ATTRS

include "ir/StrataDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/CommonAttrConstraints.td"
include "mlir/IR/CommonTypeConstraints.td"

class Strata_Attr<string name, string attrMnemonic> : AttrDef<StrataDialect, name> {
  let mnemonic = attrMnemonic;
}

class Strata_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::strata::ir";
  let genSpecializedAttr = 0;
}

/// As I64Attr, but signed in C++: sizes are compared and subtracted.
def Strata_I64Attr : TypedSignlessIntegerAttrBase<I64, "int64_t", "64-bit signed count">;

def Strata_LayerKind : Strata_Enum<"LayerKind", "what a layer is in the chain", [
  I32EnumAttrCase<"embedding", 0>, I32EnumAttrCase<"decoder", 1>, I32EnumAttrCase<"head", 2>]>;

def Strata_StateKind : Strata_Enum<"StateKind", "how a state group is kept", [
  I32EnumAttrCase<"paged", 0>, I32EnumAttrCase<"window", 1>, I32EnumAttrCase<"slot", 2>]>;

def Strata_RopePairs : Strata_Enum<"RopePairs", "which elements of a head rotate together", [
  I32EnumAttrCase<"half", 0>, I32EnumAttrCase<"interleaved", 1>]>;

def Strata_Function : Strata_Enum<"Function", "a pointwise function", [
  I32EnumAttrCase<"silu", 0>, I32EnumAttrCase<"gelu_tanh", 1>, I32EnumAttrCase<"relu2", 2>,
  I32EnumAttrCase<"sigmoid", 3>]>;

def Strata_GateFunction : Strata_Enum<"GateFunction", "how a router turns logits into probabilities", [
  I32EnumAttrCase<"softmax", 0>, I32EnumAttrCase<"sigmoid", 1>]>;

def Strata_PortDirection : Strata_Enum<"PortDirection", "which way rows cross a port", [
  I32EnumAttrCase<"input", 0>, I32EnumAttrCase<"output", 1>]>;

class Strata_EnumAttr<EnumAttrInfo info, string attrMnemonic>
    : EnumAttr<StrataDialect, info, attrMnemonic> {
  let assemblyFormat = "$value"; // with a space before it: ops write `` and leave theirs out
}
def Strata_LayerKindAttr : Strata_EnumAttr<Strata_LayerKind, "layer_kind">;
def Strata_StateKindAttr : Strata_EnumAttr<Strata_StateKind, "state_kind">;
def Strata_RopePairsAttr : Strata_EnumAttr<Strata_RopePairs, "rope_pairs">;
def Strata_FunctionAttr : Strata_EnumAttr<Strata_Function, "function">;
def Strata_GateFunctionAttr : Strata_EnumAttr<Strata_GateFunction, "gate_function">;
def Strata_PortDirectionAttr : Strata_EnumAttr<Strata_PortDirection, "port_direction">;

def Strata_SpaceAttr : Strata_Attr<"Space", "space"> {
  let summary = "the space that a tensor's rows live in";
  let description = [{
    The encoding of an activation tensor: `tensor<?x576xf32, #strata.space<hidden>>`. Rows of different
    spaces never meet in one op, even where their widths agree.
  }];
  let parameters = (ins StringRefParameter<"name of the space">:$name);
  let hasCustomAssemblyFormat = 1;
}

def Strata_ComponentAttr : Strata_Attr<"Component", "component"> {
  let summary = "a component of a state, such as K or V";
  let parameters = (ins StringRefParameter<"`k`, `v`">:$name,
                        StringRefParameter<"stored type: f32, f16, bf16">:$type,
                        "int64_t":$width);
  let assemblyFormat = "`<` $name `,` $type `,` $width `>`";
}

def Strata_RopeFrequenciesAttr : Strata_Attr<"RopeFrequencies", "rope_frequencies"> {
  let summary = "a weight computed from rope parameters";
  let description = [{
    F32 `[width / 2]`: `theta^(-2j / width)`, then scaled. `scaling` is `none`, `linear` (divided by
    `factor`), `llama3` (wavelengths above `original_context / low_frequency_factor` are divided by
    `factor`, those below `original_context / high_frequency_factor` are kept, a ramp between), or
    `yarn` (a ramp from `beta_fast` to `beta_slow` rotations over the original context). A source
    tensor, where the weight names one, holds divisors that apply instead.
  }];
  let parameters = (ins "::mlir::FloatAttr":$theta, "int64_t":$width,
                        StringRefParameter<"none, linear, llama3, yarn">:$scaling,
                        "::mlir::FloatAttr":$factor, "::mlir::FloatAttr":$low_frequency_factor,
                        "::mlir::FloatAttr":$high_frequency_factor,
                        "::mlir::FloatAttr":$original_context, "::mlir::FloatAttr":$beta_fast,
                        "::mlir::FloatAttr":$beta_slow);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Strata_SourcePartAttr : Strata_Attr<"SourcePart", "part"> {
  let summary = "which rows of its source a weight takes";
  let description = [{
    The source's rows come in groups of `of`; of each group the weight takes those from `first` on, as many
    as its second-last dimension says. `#strata.part<4096, 10304>` of a source of 10304 rows takes one range;
    `#strata.part<16, 32>` takes the second half of every 32 rows.
  }];
  let parameters = (ins "int64_t":$first, "int64_t":$of);
  let assemblyFormat = "`<` $first `,` $of `>`";
  let genVerifyDecl = 1;
}

def Strata_LayerRangeAttr : Strata_Attr<"LayerRange", "layers"> {
  let summary = "which layers of a table a weight holds";
  let description = [{
    Layers `first` to `end` of a table of layers 0 to `of`: `#strata.layers<24, 48, 48>` is its second half.
  }];
  let parameters = (ins "int64_t":$first, "int64_t":$end, "int64_t":$of);
  let assemblyFormat = "`<` $first `,` $end `,` $of `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    bool contains(int64_t layer) const { return layer >= getFirst() && layer < getEnd(); }
  }];
}

def Strata_IdentityAttr : Strata_Attr<"Identity", "identity"> {
  let summary = "a computed weight: element i is i";
  let parameters = (ins "int64_t":$width);
  let assemblyFormat = "`<` $width `>`";
  let genVerifyDecl = 1;
}

def Strata_UnitCostAttr : Strata_Attr<"UnitCost", "unit_cost"> {
  let summary = "what a layer costs on a device, measured by planning it alone";
  let parameters = (ins "int64_t":$weight_bytes, "int64_t":$state_bytes, "int64_t":$arena_bytes,
                        "int64_t":$commands, "int64_t":$decode_nanoseconds,
                        "int64_t":$prefill_nanoseconds,
                        DefaultValuedParameter<"int64_t", "0">:$scratch_bytes);
  let assemblyFormat = "`<` struct(params) `>`";
}

//===----------------------------------------------------------------------===//
// Slots: what each 8-byte argument of a kernel is
//===----------------------------------------------------------------------===//

def Strata_BufferSlotAttr : Strata_Attr<"BufferSlot", "buffer"> {
  let summary = "the n-th of the op's operands followed by its results";
  let parameters = (ins "int64_t":$index);
  let assemblyFormat = "`<` $index `>`";
}
def Strata_WeightSlotAttr : Strata_Attr<"WeightSlot", "weight"> {
  let summary = "a weight of the stage, or one layer of a table";
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$weight, OptionalParameter<"std::optional<int64_t>">:$layer);
  let assemblyFormat = "`<` $weight (`,` $layer^)? `>`";
  let builders = [AttrBuilder<(ins "::mlir::FlatSymbolRefAttr":$weight), [{
    return $_get($_ctxt, weight, std::nullopt);
  }]>];
}
def Strata_StateSlotAttr : Strata_Attr<"StateSlot", "state"> {
  let summary = "one component of one layer of a state, in the pool's first block";
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$state,
                        StringRefParameter<"component">:$component, "int64_t":$layer);
  let assemblyFormat = "`<` $state `,` $component `,` $layer `>`";
}
def Strata_StepSlotAttr : Strata_Attr<"StepSlot", "step_field"> {
  let summary = "a field of the step block";
  let parameters = (ins StringRefParameter<"field">:$field);
  let assemblyFormat = "`<` $field `>`";
}
def Strata_OutSlotAttr : Strata_Attr<"OutSlot", "out_field"> {
  let summary = "a field of the out block";
  let parameters = (ins StringRefParameter<"field">:$field);
  let assemblyFormat = "`<` $field `>`";
}
def Strata_TableSlotAttr : Strata_Attr<"TableSlot", "table_field"> {
  let summary = "a field of the device table, one entry a sequence slot";
  let parameters = (ins StringRefParameter<"field">:$field);
  let assemblyFormat = "`<` $field `>`";
}
def Strata_PortSlotAttr : Strata_Attr<"PortSlot", "port"> {
  let summary = "the ring of the handoff joined to a port of the stage";
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$port);
  let assemblyFormat = "`<` $port `>`";
}
def Strata_ScratchSlotAttr : Strata_Attr<"ScratchSlot", "scratch"> {
  let summary = "scratch of worker 0; the others follow at the stage's stride";
  let parameters = (ins "int64_t":$bytes);
  let assemblyFormat = "`<` $bytes `>`";
}
def Strata_ScratchStrideSlotAttr : Strata_Attr<"ScratchStrideSlot", "scratch_stride"> {
  let summary = "the stage's scratch bytes per worker, a constant known once all kernels are chosen";
  let parameters = (ins);
}
def Strata_StateConstantSlotAttr : Strata_Attr<"StateConstantSlot", "state_constant"> {
  let summary = "block_tokens, block_stride or max_blocks of a state, constants fixed by the plan";
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$state, StringRefParameter<"which">:$constant);
  let assemblyFormat = "`<` $state `,` $constant `>`";
}
def Strata_ConstantSlotAttr : Strata_Attr<"ConstantSlot", "const"> {
  let summary = "the slot's value itself: an integer, or the bits of an F64";
  let parameters = (ins "::mlir::Attribute":$value);
  let assemblyFormat = "`<` $value `>`";
  let genVerifyDecl = 1;
}

def Strata_ItemsAttr : Strata_Attr<"Items", "items"> {
  let summary = "how many items a command has: a linear form of the step's valid counts";
  let parameters = (ins DefaultValuedParameter<"int64_t", "0">:$row,
                        DefaultValuedParameter<"int64_t", "0">:$sequence,
                        DefaultValuedParameter<"int64_t", "0">:$head_row,
                        DefaultValuedParameter<"int64_t", "0">:$constant);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Strata_IntervalAttr : Strata_Attr<"Interval", "interval"> {
  let summary = "a buffer's lifetime [lower, upper) in command positions, and its bytes";
  let parameters = (ins StringRefParameter<"buffer name">:$name, "int64_t":$lower, "int64_t":$upper,
                        "int64_t":$bytes);
  let assemblyFormat = "`<` $name `,` $lower `,` $upper `,` $bytes `>`";
}

def Strata_TailAttr : Strata_Attr<"Tail", "tail"> {
  let summary = "the buckets that a prompt remainder of `rows` rows runs in, in order";
  let parameters = (ins "int64_t":$rows, ArrayRefParameter<"int64_t">:$buckets);
  let assemblyFormat = "`<` $rows `,` $buckets `>`";
}

#endif // STRATA_ATTRS
