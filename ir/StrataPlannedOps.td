//===- StrataPlannedOps.td - kernels, dispatches, the allocation problem --===//

#ifndef STRATA_PLANNED_OPS
#define STRATA_PLANNED_OPS

include "ir/StrataPlacedOps.td"

def Strata_KernelOp : Strata_Op<"kernel", [Symbol, HasParent<"StageOp">]> {
  let summary = "a kernel that the stage's dispatches run";
  let description = [{
    ```mlir
    strata.kernel @cpu.rms_norm
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name);
  let assemblyFormat = "$sym_name attr-dict";
}

def Strata_InvokeOp : Strata_ComputeOp<"invoke", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "a selected kernel on tensors";
  let description = [{
    `slots` lists the kernel's arguments in its signature's order; a buffer slot numbers the operands
    followed by the results. `tied[r]` is the operand whose memory result r reuses, or -1. `carries` marks
    the op whose result 0 is the residual, which lives at offset 0 of the arena, and `logits` the one whose
    result 0 the host reads; a result behind it is a workspace, and dies at once. On a GPU, `grid` is the
    blocks of its launch, in x and y: enough for the bucket's most rows.

    ```mlir
    %1 = strata.invoke @cpu.rms_norm(%0) slots [#strata.buffer<0>, #strata.weight<@l0.norm>,
        #strata.buffer<1>, ...] items <row = 1> tied [-1] "layer 0 rms_norm" layer 0
        : (tensor<8x64xf32>) -> tensor<8x64xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<AnyRankedTensor>:$inputs, ArrayAttr:$slots,
                       Strata_ItemsAttr:$items, DenseI64ArrayAttr:$tied,
                       OptionalAttr<DenseI64ArrayAttr>:$grid, StrAttr:$label,
                       Strata_I64Attr:$layer, UnitAttr:$carries, UnitAttr:$logits);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let assemblyFormat = [{
    $kernel `(` $inputs `)` `slots` $slots `items` $items `tied` $tied (`grid` $grid^)? $label `layer` $layer
    (`carries` $carries^)? (`logits` $logits^)? attr-dict `:` functional-type($inputs, $outputs)
  }];
  let hasVerifier = 1;
}

def Strata_PackOp : Strata_Op<"pack", []> {
  let summary = "the allocation problem of a forward";
  let description = [{
    One buffer a result, with its lifetime in positions of the forward's dispatches. The first
    `carried` buffer, if any, is the residual: it stands at offset 0 and lives throughout. plan-memory
    answers with a `strata.arena`.

    ```mlir
    // [0, 3) 2048 and [1, 3) 512 live together: at least 2560 bytes.
    %b:2 = strata.pack [#strata.interval<"residual", 0, 3, 2048>,
                        #strata.interval<"norm", 1, 3, 512>] carried
        : !strata.buffer<2048>, !strata.buffer<512>
    ```
  }];
  let arguments = (ins TypedArrayAttrBase<Strata_IntervalAttr, "intervals">:$intervals,
                       UnitAttr:$carried);
  let results = (outs Variadic<Strata_BufferType>:$buffers);
  let assemblyFormat = "$intervals (`carried` $carried^)? attr-dict (`:` type($buffers)^)?";
  let hasVerifier = 1;
}

def Strata_ArenaOp : Strata_Op<"arena", []> {
  let summary = "the answer: every buffer at its offset";
  let description = [{
    ```mlir
    %b:2 = strata.arena [#strata.interval<"residual", 0, 3, 2048>, #strata.interval<"norm", 1, 3, 512>]
        offsets [0, 2048] peak 2560 lower_bound 2560 proven
        : !strata.buffer<2048>, !strata.buffer<512>
    ```
  }];
  let arguments = (ins TypedArrayAttrBase<Strata_IntervalAttr, "intervals">:$intervals,
                       DenseI64ArrayAttr:$offsets, Strata_I64Attr:$peak, Strata_I64Attr:$lower_bound,
                       UnitAttr:$proven);
  let results = (outs Variadic<Strata_BufferType>:$buffers);
  let assemblyFormat = [{
    $intervals `offsets` $offsets `peak` $peak `lower_bound` $lower_bound (`proven` $proven^)?
    attr-dict (`:` type($buffers)^)?
  }];
  let hasVerifier = 1;
}

def Strata_DispatchOp : Strata_ComputeOp<"dispatch", [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "a command: one kernel on buffers";
  let description = [{
    Operands are the buffers that the slots number, in the order of the invocation's operands and results.

    ```mlir
    strata.dispatch @cpu.rms_norm(%b#0, %b#1) slots [...] items <row = 1> "layer 0 rms_norm" layer 0
        : !strata.buffer<2048>, !strata.buffer<512>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<Strata_BufferType>:$buffers,
                       ArrayAttr:$slots, Strata_ItemsAttr:$items,
                       OptionalAttr<DenseI64ArrayAttr>:$grid, StrAttr:$label, Strata_I64Attr:$layer,
                       UnitAttr:$logits);
  let assemblyFormat = [{
    $kernel `(` $buffers `)` `slots` $slots `items` $items (`grid` $grid^)? $label `layer` $layer
    (`logits` $logits^)? attr-dict (`:` type($buffers)^)?
  }];
  let hasVerifier = 1;
}

#endif // STRATA_PLANNED_OPS
