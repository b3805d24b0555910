//===- StrataStructureOps.td - model, weights, states, forwards, layers ---===//

#ifndef STRATA_STRUCTURE_OPS
#define STRATA_STRUCTURE_OPS

include "ir/StrataAttrs.td"
include "ir/StrataTypes.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/CommonAttrConstraints.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Strata_ModelOp : Strata_Op<"model", [
    SymbolTable, Symbol, IsolatedFromAbove, NoTerminator, SingleBlock, NoRegionArguments]> {
  let summary = "a model on its way to a plan";
  let description = [{
    Holds weights, states and one forward; after placement, stages and handoffs. The attributes say what
    is to be served: they are part of the text, so the text and the checkpoint alone make the plan.

    `after` names the last pass that ran; every pass checks that it comes next.

    ```mlir
    strata.model @tiny attributes {family = "tiny", hidden = 64 : i64, layers = 2 : i64,
        vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
        max_rows = 128 : i64, devices = ["cpu:x86-64-v4"]} {
      ...
    }
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    StrAttr:$family,                             // a word for people
    Strata_I64Attr:$hidden, Strata_I64Attr:$layers, Strata_I64Attr:$vocabulary,
    Strata_I64Attr:$max_context,                        // tokens of one sequence
    Strata_I64Attr:$max_sequences,
    Strata_I64Attr:$max_rows,                           // rows of the largest bucket: the chunk
    StrArrayAttr:$devices,                       // targets, one a stage
    DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$device_bytes, // capacity a device; 0 or absent: not limited
    OptionalAttr<DenseI64ArrayAttr>:$split,      // decoder layers a stage
    OptionalAttr<DenseI64ArrayAttr>:$buckets,    // rows, sequences, rows, sequences, ...
    OptionalAttr<StrAttr>:$after,
    OptionalAttr<TypedArrayAttrBase<Strata_TailAttr, "tail table">>:$tails,
    DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$end_of_generation
  );
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

def Strata_WeightOp : Strata_Op<"weight", [Symbol, ParentOneOf<["ModelOp", "StageOp"]>]> {
  let summary = "a constant of the model: its type and where it comes from, never its bytes";
  let description = [{
    `type` is a tensor whose element type is f32, f16, bf16 or `!strata.quant`. `source` names a tensor
    of the checkpoint with the same elements and the same innermost dimension (a vector's source may have
    any shape); where its stored type differs from `type`, which must then be f32, it is converted when
    packed; `map` is then applied (`neg_exp`: -exp(v)) and `plus` added to every element. With `stack` the
    source's `*` stands for 0, 1, ...: so many tensors, one behind the other. `part` takes some of the
    source's rows. Of what it takes, `[join, rows, columns]` becomes `[rows, join * columns]`.
    `computed` describes a weight that is calculated instead. `unit`
    is the layer whose segment of the plan holds the bytes. `stages` lists the stages that hold a
    replica, once replicate-constants has run; `layout` is the physical layout that choose-layouts took.

    A *table* has `layers`: one source tensor for all layers, of which the outermost dimension of `type`
    counts those that are held; `join` joins each of them for itself. An op that reads a table says which
    layer of it. Layers lie one behind the other, each at a multiple of 64 bytes. A stage's replica is
    trimmed to the layers that the stage reads: `ranges` lists them, first and end for each of `stages`.

    ```mlir
    strata.weight @l0.q : tensor<64x64x!strata.quant<q4_1>> from "blk.0.attn_q.weight" unit "layer 0"
    strata.weight @rope : tensor<4xf32> computed #strata.rope_frequencies<theta = 10000.0, width = 8,
        scaling = "none"> unit "shared"
    ```
    ```mlir
    strata.weight @l0.experts_up : tensor<8x48x64xf32> from "layers.0.experts.*.up.weight" stack 8
        unit "layer 0"
    ```
    ```mlir
    strata.weight @l0.dt : tensor<8x64xf32> from "layers.0.in_proj.weight" part <320, 328> unit "layer 0"
    ```
    ```mlir
    strata.weight @latent_up : tensor<2x64x48xf32> from "latent_up" join 2 layers <0, 2, 2> unit "latent_up"
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name, TypeAttrOf<AnyRankedTensor>:$type,
    OptionalAttr<StrAttr>:$source, OptionalAttr<Strata_I64Attr>:$stack,
    OptionalAttr<Strata_SourcePartAttr>:$part, OptionalAttr<Strata_I64Attr>:$join,
    OptionalAttr<Strata_LayerRangeAttr>:$layers, OptionalAttr<StrAttr>:$map,
    OptionalAttr<AnyAttrOf<[Strata_RopeFrequenciesAttr, Strata_IdentityAttr]>>:$computed,
    OptionalAttr<F64Attr>:$plus, StrAttr:$unit, OptionalAttr<DenseI64ArrayAttr>:$stages,
    OptionalAttr<DenseI64ArrayAttr>:$ranges, OptionalAttr<StrAttr>:$layout
  );
  let assemblyFormat = [{
    $sym_name `:` $type (`from` $source^)? (`stack` $stack^)? (`part` $part^)? (`join` $join^)?
    (`layers` $layers^)? (`map` $map^)? (`computed` $computed^)? (`plus` $plus^)?
    `unit` $unit
    (`stages` $stages^)? (`ranges` $ranges^)? (`layout` $layout^)? attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getTensorType() {
      return ::llvm::cast<::mlir::RankedTensorType>(getType());
    }
    ::mlir::LogicalResult verifySource();
    ::mlir::LogicalResult verifyTable();
    bool isTable() { return getLayers().has_value(); }
    /// What one layer of a table is, or the whole of any other weight.
    ::mlir::RankedTensorType getLayerType();
    /// Bytes from one layer of a table to the next.
    int64_t getLayerStride();
    /// Bytes that are held, of a table from the first layer's begin to the last one's end.
    int64_t getBytes();
    /// Leaves layers `first` to `end` of a table.
    void trimTo(int64_t first, int64_t end);
  }];
}

def Strata_StateOp : Strata_Op<"state", [Symbol, ParentOneOf<["ModelOp", "StageOp"]>]> {
  let summary = "a group of per-sequence state that is kept together";
  let description = [{
    A `paged` or `window` group holds, for each of its layers, `block_tokens` tokens of every component
    in a block; block numbers are those of the step's block table `block_table.<name>`. A `slot` group
    holds one block a sequence, whatever its length, with every component once.

    ```mlir
    strata.state @kv paged block_tokens 16 components [#strata.component<"k", "f16", 32>,
        #strata.component<"v", "f16", 32>] layers [0, 1]
    strata.state @local window 4096 block_tokens 16 components [...] layers [0, 1]
    ```
    ```mlir
    strata.state @recurrent slot block_tokens 1 components [#strata.component<"conv", "f32", 576>,
        #strata.component<"ssm", "f32", 2048>] layers [0, 2]
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name, Strata_StateKindAttr:$kind, OptionalAttr<Strata_I64Attr>:$window,
    Strata_I64Attr:$block_tokens, TypedArrayAttrBase<Strata_ComponentAttr, "components">:$components,
    DenseI64ArrayAttr:$layers
  );
  let assemblyFormat = [{
    $sym_name `` $kind ($window^)? `block_tokens` $block_tokens `components` $components `layers` $layers
    attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Bytes of one token of `component`.
    int64_t getRowBytes(ComponentAttr component);
    /// Offset of (layer, component) inside a block, or nothing where the group lacks it.
    std::optional<int64_t> getComponentOffset(int64_t layer, ::llvm::StringRef component);
    ComponentAttr findComponent(::llvm::StringRef name);
    /// 64-byte aligned bytes of a block.
    int64_t getBlockBytes();
    /// Entries of a sequence's block table: one a logical block of `context` tokens.
    int64_t getTableBlocks(int64_t context);
    /// Blocks that one sequence of `context` tokens holds at most when `rows` rows arrive at once.
    int64_t getBlocksPerSequence(int64_t context, int64_t rows);
  }];
}

def Strata_ForwardOp : Strata_Op<"forward", [
    Symbol, NoTerminator, SingleBlock, RecursiveMemoryEffects,
    ParentOneOf<["ModelOp", "StageOp"]>]> {
  let summary = "one pass over a ragged batch of rows";
  let description = [{
    Before instantiate-buckets a model or stage has one forward with symbolic rows. After it, one a
    bucket: `rows` rows of `sequences` sequences, with the layers (`body`), the head over gathered rows
    (`head`), or both.

    ```mlir
    strata.forward @body(%step) {
      ...
    }
    strata.forward @r8s4(%step) rows 8 sequences 4 body head {
      ...
    }
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name, OptionalAttr<Strata_I64Attr>:$rows, OptionalAttr<Strata_I64Attr>:$sequences,
    UnitAttr:$body, UnitAttr:$head
  );
  let regions = (region SizedRegion<1>:$region);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Value getStep() { return getRegion().getArgument(0); }
    ::mlir::Block &getBlock() { return getRegion().front(); }
  }];
}

def Strata_LayerOp : Strata_Op<"layer", [
    SingleBlock, RecursiveMemoryEffects, HasParent<"ForwardOp">]> {
  let summary = "one unit of the chain: the embedding, a decoder layer or the head";
  let description = [{
    Only the operands enter and only the yielded values leave, so memory inside a layer is never shared
    with another. `index` numbers decoder layers. `stage` and `cost` are the decisions of
    partition-stages and profile-units.

    ```mlir
    %1 = strata.layer decoder 0 (%h = %0) : (tensor<?x64xf32, #strata.space<hidden>>)
        -> tensor<?x64xf32, #strata.space<hidden>> {
      ...
      strata.yield %y : tensor<?x64xf32, #strata.space<hidden>>
    }
    ```
  }];
  let arguments = (ins
    Strata_LayerKindAttr:$kind, Strata_I64Attr:$index, Variadic<AnyRankedTensor>:$inputs,
    OptionalAttr<Strata_I64Attr>:$stage, OptionalAttr<Strata_UnitCostAttr>:$cost
  );
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The name of the unit for people and for segments: `embedding`, `layer 3`, `head`.
    std::string getUnitName();
  }];
}

def Strata_YieldOp : Strata_Op<"yield", [Pure, Terminator, ParentOneOf<["LayerOp"]>]> {
  let summary = "ends a layer with the values that leave it";
  let description = [{
    ```mlir
    strata.yield %y : tensor<?x64xf32, #strata.space<hidden>>
    ```
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

#endif // STRATA_STRUCTURE_OPS
