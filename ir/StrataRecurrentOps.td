//===- StrataRecurrentOps.td - convolution and state-space scan -----------===//
//
// Ops whose state is one slot a sequence. A row at position 0 begins with zeros, whatever the slot holds,
// so a slot is clean when it is used again.
//
//===----------------------------------------------------------------------===//

#ifndef STRATA_RECURRENT_OPS
#define STRATA_RECURRENT_OPS

include "ir/StrataComputeOps.td"

def Strata_ConvOp : Strata_ComputeOp<"conv", [
    MemoryEffects<[MemRead, MemWrite]>, AllTypesMatch<["input", "result"]>]> {
  let summary = "causal depthwise convolution along each sequence";
  let description = [{
    `y[t][c] = bias[c] + sum_j weight[c][j] x[t - (taps - 1) + j][c]`: the last tap is the current token's.
    Rows before the step's first come from component `conv` of the state, which keeps the last `taps - 1`
    rows of x.

    ```mlir
    %y = strata.conv %x, @l0.conv bias @l0.conv_bias, @recurrent[%step] layer 0 : tensor<?x192xf32>
    ```
  }];
  let arguments = (ins Strata_Activation:$input, FlatSymbolRefAttr:$weight,
                       OptionalAttr<FlatSymbolRefAttr>:$bias, FlatSymbolRefAttr:$state,
                       Strata_StepType:$step, Strata_I64Attr:$layer);
  let results = (outs Strata_Activation:$result);
  let assemblyFormat = [{
    $input `,` $weight (`bias` $bias^)? `,` $state `[` $step `]` `layer` $layer attr-dict
    `:` type($input)
  }];
}

def Strata_SsmScanOp : Strata_ComputeOp<"ssm_scan", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "selective state-space recurrence along each sequence (Mamba-2)";
  let description = [{
    A row of `input` is `x [heads][head_width] | B [groups][state] | C [groups][state]`; head `h` reads group
    `h / (heads / groups)`. With `d = softplus(dt[h] + dt_bias[h])`, held within `least_dt` and `most_dt`,

        S[h][p][n] = exp(d a[h]) S[h][p][n] + d x[h][p] B[g][n]
        y[h][p]    = sum_n S[h][p][n] C[g][n] + skip[h] x[h][p]

    S is component `ssm` of the state, in F32.

    ```mlir
    %y = strata.ssm_scan %c, %dt, @l0.a skip @l0.d dt_bias @l0.dt_bias, @recurrent[%step] layer 0
        {heads = 8 : i64, groups = 2 : i64, state_width = 16 : i64}
        : tensor<?x192xf32>, tensor<?x8xf32> -> tensor<?x128xf32>
    ```
  }];
  let arguments = (ins Strata_Activation:$input, Strata_Activation:$dt, FlatSymbolRefAttr:$a,
                       FlatSymbolRefAttr:$skip, FlatSymbolRefAttr:$dt_bias, FlatSymbolRefAttr:$state,
                       Strata_StepType:$step, Strata_I64Attr:$layer, Strata_I64Attr:$heads,
                       Strata_I64Attr:$groups, Strata_I64Attr:$state_width,
                       DefaultValuedAttr<F64Attr, "0.0">:$least_dt,
                       DefaultValuedAttr<F64Attr, "std::numeric_limits<double>::infinity()">:$most_dt);
  let results = (outs Strata_Activation:$result);
  let assemblyFormat = [{
    $input `,` $dt `,` $a `skip` $skip `dt_bias` $dt_bias `,` $state `[` $step `]` `layer` $layer attr-dict
    `:` type($input) `,` type($dt) `->` type($result)
  }];
}

#endif // STRATA_RECURRENT_OPS
