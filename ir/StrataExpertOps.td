//===- StrataExpertOps.td - routing, experts and latent space -------------===//
//
// A model says `router`, `experts` and, where the experts work in a space of their own, `latent_down` and
// `latent_up`. expand-experts turns `experts` into the ops at the end, whose results are ordinary buffers.
//
//===----------------------------------------------------------------------===//

#ifndef STRATA_EXPERT_OPS
#define STRATA_EXPERT_OPS

include "ir/StrataComputeOps.td"

def Strata_RouterOp : Strata_ComputeOp<"router", [Pure]> {
  let summary = "chooses each row's experts and their weights";
  let description = [{
    With `p` the softmax over all experts, or the sigmoid, of the logits, the `used` experts of the largest
    `s = p + bias` are chosen, ties to the lower number; `bias` steers the choice alone. Where `groups` is
    above 1, the experts are cut into equal groups, a group's score is the sum of its `group_top` largest
    `s`, and only experts of the best `groups_used` groups are candidates. The weights are `p` of the
    chosen, divided by their sum (at least `least_sum`) where `normalise` is set, times `scale`.

    A row of the result is the `used` expert numbers, then the `used` weights, in order of falling `s`.

    ```mlir
    %r = strata.router sigmoid %l bias @l1.router_bias {used = 6 : i64, normalise, scale = 2.5 : f64}
        : tensor<?x128xf32, #strata.space<experts>> -> tensor<?x12xf32, #strata.space<routing>>
    ```
  }];
  let arguments = (ins Strata_GateFunctionAttr:$function, Strata_Activation:$logits,
                       OptionalAttr<FlatSymbolRefAttr>:$bias, Strata_I64Attr:$used,
                       DefaultValuedAttr<Strata_I64Attr, "1">:$groups,
                       DefaultValuedAttr<Strata_I64Attr, "1">:$groups_used,
                       DefaultValuedAttr<Strata_I64Attr, "1">:$group_top, UnitAttr:$normalise,
                       DefaultValuedAttr<F64Attr, "1e-20">:$least_sum,
                       DefaultValuedAttr<F64Attr, "1.0">:$scale);
  let results = (outs Strata_Activation:$result);
  let assemblyFormat = [{
    `` $function $logits (`bias` $bias^)? attr-dict `:` type($logits) `->` type($result)
  }];
}

def Strata_ExpertsOp : Strata_ComputeOp<"experts", [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "the weighted sum of each row's experts";
  let description = [{
    `y = sum_k w_k down[e_k] m(e_k)` with `m(e) = f(up[e] x)`, or `f(gate[e] x) * (up[e] x)` where there is a
    gate. `up` and `gate` are `[experts, inner, width]`, `down` is `[experts, width, inner]`; expert `e` lies
    at index `slots[e]` of them. A row's experts are added in order of their numbers.

    The rows stay in the space that they came in. Where `labels` is there, a row has several groups of
    `width`, and expert `e` reads and adds to group `labels[e]` alone.

    ```mlir
    %y = strata.experts silu %n, %r gate @l0.gate up @l0.up down @l0.down slots @l0.slots
        : tensor<?x64xf32, #strata.space<hidden>>, tensor<?x4xf32, #strata.space<routing>>
    ```
  }];
  let arguments = (ins Strata_FunctionAttr:$function, Strata_Activation:$input,
                       Strata_Activation:$routing, OptionalAttr<FlatSymbolRefAttr>:$gate,
                       FlatSymbolRefAttr:$up, FlatSymbolRefAttr:$down, FlatSymbolRefAttr:$slots,
                       OptionalAttr<FlatSymbolRefAttr>:$labels);
  let results = (outs Strata_Activation:$result);
  let assemblyFormat = [{
    `` $function $input `,` $routing (`gate` $gate^)? `up` $up `down` $down `slots` $slots
    (`labels` $labels^)? attr-dict `:` type($input) `,` type($routing)
  }];
}

def Strata_LatentDownOp : Strata_ComputeOp<"latent_down", [Pure]> {
  let summary = "rows into the latent space of experts, once for each group";
  let description = [{
    `a_g = D_g x` for each of `groups`; the weight is `[groups * width, columns]`, or `layer` of a table of
    such. The result, and nothing else, is of space `latent`.

    ```mlir
    %a = strata.latent_down %n, @l1.latent_down {groups = 1 : i64}
        : tensor<?x64xf32, #strata.space<hidden>> -> tensor<?x24xf32, #strata.space<latent>>
    %b = strata.latent_down %n, @latent_down layer 1 {groups = 2 : i64}
        : tensor<?x64xf32, #strata.space<hidden>> -> tensor<?x48xf32, #strata.space<latent>>
    ```
  }];
  let arguments = (ins Strata_Activation:$input, FlatSymbolRefAttr:$weight,
                       OptionalAttr<Strata_I64Attr>:$layer, Strata_I64Attr:$groups);
  let results = (outs Strata_Activation:$result);
  let assemblyFormat = [{
    $input `,` $weight (`layer` $layer^)? attr-dict `:` type($input) `->` type($result)
  }];
}

def Strata_LatentUpOp : Strata_ComputeOp<"latent_up", [Pure]> {
  let summary = "rows out of the latent space of experts, the groups added";
  let description = [{
    `y = sum_g U_g a_g`; the weight is `[outputs, groups * width]`, or `layer` of a table of such.

    ```mlir
    %y = strata.latent_up %a, @l1.latent_up {groups = 1 : i64}
        : tensor<?x24xf32, #strata.space<latent>> -> tensor<?x64xf32, #strata.space<hidden>>
    ```
  }];
  let arguments = (ins Strata_Activation:$input, FlatSymbolRefAttr:$weight,
                       OptionalAttr<Strata_I64Attr>:$layer, Strata_I64Attr:$groups);
  let results = (outs Strata_Activation:$result);
  let assemblyFormat = [{
    $input `,` $weight (`layer` $layer^)? attr-dict `:` type($input) `->` type($result)
  }];
}

def Strata_RowGatedOp : Strata_Op<"row_gated", [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "f(gate) * x, one gate a row";
  let description = [{
    ```mlir
    %s = strata.row_gated sigmoid %g, %x : tensor<?x1xf32>, tensor<?x64xf32>
    ```
  }];
  let arguments = (ins Strata_FunctionAttr:$function, Strata_Activation:$gate, Strata_Activation:$input);
  let results = (outs Strata_Activation:$result);
  let assemblyFormat = "`` $function $gate `,` $input attr-dict `:` type($gate) `,` type($input)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// What expand-experts leaves: rows are static
//===----------------------------------------------------------------------===//

def Strata_ExpertListsOp : Strata_ComputeOp<"expert_lists", [Pure]> {
  let summary = "the rows of each expert";
  let description = [{
    Sorts the routing by expert: 32-bit words, in this order: how many experts are used; their numbers,
    rising, in `experts` words; where each expert's entries begin, and the end, in `experts + 1`; then an
    entry of two words, row and weight, for each (row, expert) pair, by expert and then by row.

    ```mlir
    %l = strata.expert_lists %r[%step] {experts = 8 : i64} : tensor<4x4xf32, #strata.space<routing>>
        -> tensor<1x34xf32>
    ```
  }];
  let arguments = (ins Strata_Activation:$routing, Strata_StepType:$step, Strata_I64Attr:$experts);
  let results = (outs Strata_Activation:$result);
  let assemblyFormat = "$routing `[` $step `]` attr-dict `:` type($routing) `->` type($result)";
}

def Strata_ExpertUpOp : Strata_ComputeOp<"expert_up", [Pure]> {
  let summary = "one matrix of experts `first` to `first + count`, each on its own rows";
  let description = [{
    A row of the result for each entry of these experts, in the order of the lists: `weight[slots[e]] x`. With
    a `function`, of which that is the argument; with `gated`, the function of these earlier values times
    that.

    ```mlir
    %g = strata.expert_up %n, %l, @l0.gate slots @l0.slots[%step] {first = 0 : i64, count = 8 : i64, used = 2 : i64}
        : tensor<4x64xf32>, tensor<1x34xf32> -> tensor<8x48xf32>
    %m = strata.expert_up %n, %l, @l0.up slots @l0.slots[%step] gated %g : tensor<8x48xf32> {first = 0 : i64, count = 8 : i64,
        used = 2 : i64, function = #strata<function silu>} : tensor<4x64xf32>, tensor<1x34xf32> -> tensor<8x48xf32>
    ```
  }];
  let arguments = (ins Strata_Activation:$input, Strata_Activation:$lists, FlatSymbolRefAttr:$weight,
                       FlatSymbolRefAttr:$slots, OptionalAttr<FlatSymbolRefAttr>:$labels,
                       Strata_StepType:$step, Optional<Strata_Activation>:$gated,
                       OptionalAttr<Strata_FunctionAttr>:$function, Strata_I64Attr:$first,
                       Strata_I64Attr:$count, Strata_I64Attr:$used);
  let results = (outs Strata_Activation:$result);
  let assemblyFormat = [{
    $input `,` $lists `,` $weight `slots` $slots (`labels` $labels^)? `[` $step `]`
    (`gated` $gated^ `:` type($gated))? attr-dict
    `:` type($input) `,` type($lists) `->` type($result)
  }];
}

def Strata_ExpertDownOp : Strata_ComputeOp<"expert_down", [Pure]> {
  let summary = "adds what experts `first` to `first + count` make of their rows, weighted";
  let description = [{
    `y[row] += w * weight[slots[e]] m[entry]` for the entries of these experts, in the order of the lists;
    `y` begins as `onto`, or as zeros.

    ```mlir
    %y = strata.expert_down %m, %l, @l0.down slots @l0.slots[%step] {first = 0 : i64, count = 8 : i64, used = 2 : i64}
        : tensor<8x48xf32>, tensor<1x34xf32> -> tensor<4x64xf32>
    ```
  }];
  let arguments = (ins Strata_Activation:$input, Strata_Activation:$lists, FlatSymbolRefAttr:$weight,
                       FlatSymbolRefAttr:$slots, OptionalAttr<FlatSymbolRefAttr>:$labels,
                       Strata_StepType:$step, Optional<Strata_Activation>:$onto,
                       Strata_I64Attr:$first, Strata_I64Attr:$count, Strata_I64Attr:$used);
  let results = (outs Strata_Activation:$result);
  let assemblyFormat = [{
    $input `,` $lists `,` $weight `slots` $slots (`labels` $labels^)? `[` $step `]`
    (`onto` $onto^ `:` type($onto))? attr-dict
    `:` type($input) `,` type($lists) `->` type($result)
  }];
}

#endif // STRATA_EXPERT_OPS
