//===- StrataComputeOps.td - compute ops on tensors -----------------------===//
//
// Rows are the first dimension of every activation. Weights are named by symbol and are found in the
// nearest symbol table: the model's, later the stage's own. Nothing names a weight of another stage.
//
//===----------------------------------------------------------------------===//

#ifndef STRATA_COMPUTE_OPS
#define STRATA_COMPUTE_OPS

include "ir/StrataStructureOps.td"

class Strata_ComputeOp<string mnemonic, list<Trait> traits = []>
    : Strata_Op<mnemonic, !listconcat([
        DeclareOpInterfaceMethods<SymbolUserOpInterface>], traits)>;

/// Rows are symbolic until instantiate-buckets; the width is what kernels are given.
def Strata_Activation : Type<And<[RankedTensorOf<[F32]>.predicate, CPred<[{
      ::llvm::cast<::mlir::RankedTensorType>($_self).getRank() == 2 &&
      ::llvm::cast<::mlir::RankedTensorType>($_self).getDimSize(0) != 0 &&
      ::llvm::cast<::mlir::RankedTensorType>($_self).getDimSize(1) > 0}]>]>,
    "tensor of rows x width x f32 with a fixed width", "::mlir::RankedTensorType">;

def Strata_EmbedOp : Strata_ComputeOp<"embed", [Pure]> {
  let summary = "the embedding rows of the step's ids";
  let description = [{
    `y[row] = scale * table[id[row]]`; a row whose id is "last sampled" takes its sequence's.

    ```mlir
    %0 = strata.embed @embedding[%step] : tensor<?x64xf32, #strata.space<hidden>>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$table, Strata_StepType:$step,
                       DefaultValuedAttr<F64Attr, "1.0">:$scale);
  let results = (outs Strata_Activation:$result);
  let assemblyFormat = "$table `[` $step `]` attr-dict `:` type($result)";
}

def Strata_RmsNormOp : Strata_ComputeOp<"rms_norm", [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "root-mean-square normalisation";
  let description = [{
    `y = x * rsqrt(mean(x^2) + epsilon) * weight` over the row, or over each of `heads` equal parts of it:
    with one weight for all, or, where `grouped`, with a weight for the whole row. Folds `heads = 1` away.

    ```mlir
    %1 = strata.rms_norm %0, @l0.attention_norm {epsilon = 1.0e-05 : f64} : tensor<?x64xf32>
    ```
  }];
  let arguments = (ins Strata_Activation:$input, FlatSymbolRefAttr:$weight, F64Attr:$epsilon,
                       OptionalAttr<Strata_I64Attr>:$heads, UnitAttr:$grouped);
  let results = (outs Strata_Activation:$result);
  let assemblyFormat = "$input `,` $weight attr-dict `:` type($result)";
  let hasFolder = 1;
}

def Strata_LinearOp : Strata_ComputeOp<"linear", [Pure]> {
  let summary = "rows times the transpose of a weight, plus a bias";
  let description = [{
    `y[row][o] = dot(weight[o], x[row]) + bias[o]`. The weight is `[outputs, columns]`.

    ```mlir
    %q = strata.linear %n, @l0.q bias @l0.q_bias : tensor<?x64xf32, #strata.space<hidden>>
        -> tensor<?x64xf32, #strata.space<query>>
    ```
  }];
  let arguments = (ins Strata_Activation:$input, FlatSymbolRefAttr:$weight,
                       OptionalAttr<FlatSymbolRefAttr>:$bias);
  let results = (outs Strata_Activation:$result);
  let assemblyFormat = [{
    $input `,` $weight (`bias` $bias^)? attr-dict `:` type($input) `->` type($result)
  }];
}

def Strata_HeadLinearOp : Strata_ComputeOp<"head_linear", [Pure]> {
  let summary = "a linear layer of each head's own";
  let description = [{
    Head `h` of the result is `weight[h] x_h`, or `weight[h]^T x_h` where `transposed`, followed by the last
    `tail` elements of head `h` of the input as they are; `x_h` is what stands before those. The weight is
    `[heads, rows, columns]`.

    ```mlir
    %q = strata.head_linear %p, @l0.k_up {tail = 8 : i64, transposed} : tensor<?x96xf32> -> tensor<?x96xf32>
    ```
  }];
  let arguments = (ins Strata_Activation:$input, FlatSymbolRefAttr:$weight,
                       DefaultValuedAttr<Strata_I64Attr, "0">:$tail, UnitAttr:$transposed);
  let results = (outs Strata_Activation:$result);
  let assemblyFormat = "$input `,` $weight attr-dict `:` type($input) `->` type($result)";
}

def Strata_RopeOp : Strata_ComputeOp<"rope", [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "rotary position embedding";
  let description = [{
    Rotates pairs of `rotary_width` elements of each head, from element `first` on, by position times
    frequency; the frequencies are a weight. Cosine and sine are multiplied by `magnitude`.

    ```mlir
    %r = strata.rope %q, @rope[%step] half {heads = 8 : i64, rotary_width = 8 : i64} : tensor<?x64xf32>
    ```
  }];
  let arguments = (ins Strata_Activation:$input, FlatSymbolRefAttr:$frequencies, Strata_StepType:$step,
                       Strata_RopePairsAttr:$pairs, Strata_I64Attr:$heads, Strata_I64Attr:$rotary_width,
                       DefaultValuedAttr<F64Attr, "1.0">:$magnitude,
                       DefaultValuedAttr<Strata_I64Attr, "0">:$first);
  let results = (outs Strata_Activation:$result);
  let assemblyFormat = "$input `,` $frequencies `[` $step `]` `` $pairs attr-dict `:` type($result)";
}

def Strata_KvWriteOp : Strata_ComputeOp<"kv_write", [MemoryEffects<[MemWrite]>]> {
  let summary = "stores the rows' keys and values in their sequences' blocks";
  let description = [{
    ```mlir
    strata.kv_write %k, %v, @kv[%step] layer 3 : tensor<?x32xf32>, tensor<?x32xf32>
    ```
  }];
  let arguments = (ins Strata_Activation:$key, Strata_Activation:$value, FlatSymbolRefAttr:$state,
                       Strata_StepType:$step, Strata_I64Attr:$layer);
  let assemblyFormat = [{
    $key `,` $value `,` $state `[` $step `]` `layer` $layer attr-dict `:` type($key) `,` type($value)
  }];
}

def Strata_AttentionOp : Strata_ComputeOp<"attention", [MemoryEffects<[MemRead]>]> {
  let summary = "causal attention of each row over its own sequence";
  let description = [{
    Query head h reads KV head `h / (query_heads / kv_heads)` of the state; position `p` sees key
    position `s` iff `0 <= p - s` and, where `window` is set, `p - s < window`. The rows' own keys and
    values are written before. A window that the model's context never fills folds away, unless the state
    itself keeps no more.

    Where `latent`, a key is its value followed by component `k`: what is kept of a token serves as both
    (multi-head latent attention in its absorbed form). A query head is as wide as that.

    ```mlir
    %a = strata.attention %q, @kv[%step] layer 3 {query_heads = 8 : i64, kv_heads = 4 : i64,
        scale = 0.35 : f64} : tensor<?x64xf32> -> tensor<?x64xf32>
    ```
  }];
  let arguments = (ins Strata_Activation:$query, FlatSymbolRefAttr:$state, Strata_StepType:$step,
                       Strata_I64Attr:$layer, Strata_I64Attr:$query_heads, Strata_I64Attr:$kv_heads, F64Attr:$scale,
                       OptionalAttr<Strata_I64Attr>:$window, UnitAttr:$latent);
  let results = (outs Strata_Activation:$result);
  let assemblyFormat = [{
    $query `,` $state `[` $step `]` `layer` $layer attr-dict `:` type($query) `->` type($result)
  }];
  let extraClassDeclaration = [{
    int64_t keyWidth(); ///< Of component `k` a KV head.
  }];
  let hasFolder = 1;
}

def Strata_GatedOp : Strata_Op<"gated", [Pure, AllTypesMatch<["gate", "up", "result"]>]> {
  let summary = "f(gate) * up";
  let description = [{
    ```mlir
    %m = strata.gated silu %gate, %up : tensor<?x172xf32>
    ```
  }];
  let arguments = (ins Strata_FunctionAttr:$function, Strata_Activation:$gate, Strata_Activation:$up);
  let results = (outs Strata_Activation:$result);
  let assemblyFormat = "`` $function $gate `,` $up attr-dict `:` type($result)";
}

def Strata_ActivationOp : Strata_Op<"activation", [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "f(x), pointwise";
  let description = [{
    ```mlir
    %s = strata.activation relu2 %x : tensor<?x172xf32>
    ```
  }];
  let arguments = (ins Strata_FunctionAttr:$function, Strata_Activation:$input);
  let results = (outs Strata_Activation:$result);
  let assemblyFormat = "`` $function $input attr-dict `:` type($result)";
}

def Strata_AddOp : Strata_Op<"add", [Pure, Commutative, AllTypesMatch<["lhs", "rhs", "result"]>]> {
  let summary = "lhs + rhs, of one space";
  let description = [{
    ```mlir
    %y = strata.add %h, %o : tensor<?x64xf32, #strata.space<hidden>>
    ```
  }];
  let arguments = (ins Strata_Activation:$lhs, Strata_Activation:$rhs);
  let results = (outs Strata_Activation:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
}

def Strata_GatherRowsOp : Strata_Op<"gather_rows", [Pure]> {
  let summary = "the rows that the step's head rows name";
  let description = [{
    ```mlir
    %g = strata.gather_rows %h[%step] : tensor<128x64xf32> -> tensor<4x64xf32>
    ```
  }];
  let arguments = (ins Strata_Activation:$input, Strata_StepType:$step);
  let results = (outs Strata_Activation:$result);
  let assemblyFormat = "$input `[` $step `]` attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def Strata_LogitsOp : Strata_ComputeOp<"logits", [Pure]> {
  let summary = "a linear layer onto the vocabulary, whose result the host can read after the launch";
  let description = [{
    ```mlir
    %l = strata.logits %n, @head : tensor<?x64xf32, #strata.space<hidden>>
        -> tensor<?x512xf32, #strata.space<vocabulary>>
    ```
  }];
  let arguments = (ins Strata_Activation:$input, FlatSymbolRefAttr:$weight,
                       OptionalAttr<FlatSymbolRefAttr>:$bias);
  let results = (outs Strata_Activation:$result);
  let assemblyFormat = [{
    $input `,` $weight (`bias` $bias^)? attr-dict `:` type($input) `->` type($result)
  }];
}

def Strata_SampleOp : Strata_Op<"sample", [MemoryEffects<[MemWrite]>]> {
  let summary = "draws one id a head row, by the step's sampling parameters";
  let description = [{
    Writes the id, its log-probability and the twenty likeliest tokens to the out block, and the id to
    the sequence's entry in the device table.

    ```mlir
    strata.sample %l[%step] : tensor<?x512xf32, #strata.space<vocabulary>>
    ```
  }];
  let arguments = (ins Strata_Activation:$logits, Strata_StepType:$step);
  let assemblyFormat = "$logits `[` $step `]` attr-dict `:` type($logits)";
}

def Strata_CarriedOp : Strata_Op<"carried", [Pure]> {
  let summary = "the rows that the last body forward left at offset 0 of the arena";
  let description = [{
    ```mlir
    %h = strata.carried : tensor<128x64xf32, #strata.space<hidden>>
    ```
  }];
  let results = (outs Strata_Activation:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

#endif // STRATA_COMPUTE_OPS
