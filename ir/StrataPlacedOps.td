//===- StrataPlacedOps.td - stages, ports and handoffs --------------------===//

#ifndef STRATA_PLACED_OPS
#define STRATA_PLACED_OPS

include "ir/StrataComputeOps.td"

def Strata_StageOp : Strata_Op<"stage", [
    SymbolTable, Symbol, IsolatedFromAbove, NoTerminator, SingleBlock, NoRegionArguments,
    HasParent<"ModelOp">]> {
  let summary = "what one device owns: layers, weights, state, ports, kernels, forwards";
  let description = [{
    Names resolve inside the stage or not at all, so an op cannot reach another device's memory.
    `scratch` is the bytes of scratch per worker, known once kernels are selected.

    ```mlir
    strata.stage @s0 on "cpu:x86-64-v4" layers 0 to 24 embedding {
      ...
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$device, Strata_I64Attr:$first_layer,
                       Strata_I64Attr:$end_layer, UnitAttr:$embedding, UnitAttr:$head,
                       OptionalAttr<Strata_I64Attr>:$scratch);
  let regions = (region SizedRegion<1>:$region);
  let assemblyFormat = [{
    $sym_name `on` $device `layers` $first_layer `to` $end_layer
    (`embedding` $embedding^)? (`head` $head^)? (`scratch` $scratch^)? attr-dict-with-keyword $region
  }];
  let hasVerifier = 1;
}

def Strata_PortOp : Strata_Op<"port", [Symbol, HasParent<"StageOp">]> {
  let summary = "where rows enter or leave a stage";
  let description = [{
    ```mlir
    strata.port @in input width 64
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Strata_PortDirectionAttr:$direction, Strata_I64Attr:$width);
  let assemblyFormat = "$sym_name `` $direction `width` $width attr-dict";
}

def Strata_HandoffOp : Strata_Op<"handoff", [
    Symbol, HasParent<"ModelOp">, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "an edge from a stage's output port to the next stage's input port";
  let description = [{
    A ring of `slots` slots, each of `rows` rows of the ports' width.

    ```mlir
    strata.handoff @h0 : @s0::@out -> @s1::@in rows 128 slots 2
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, SymbolRefAttr:$producer, SymbolRefAttr:$consumer,
                       Strata_I64Attr:$rows, Strata_I64Attr:$slots);
  let assemblyFormat = [{
    $sym_name `:` $producer `->` $consumer `rows` $rows `slots` $slots attr-dict
  }];
}

def Strata_ReceiveOp : Strata_ComputeOp<"receive", [MemoryEffects<[MemRead]>]> {
  let summary = "the rows that arrived at an input port";
  let description = [{
    ```mlir
    %h = strata.receive @in : tensor<?x64xf32, #strata.space<hidden>>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$port);
  let results = (outs Strata_Activation:$result);
  let assemblyFormat = "$port attr-dict `:` type($result)";
}

def Strata_SendOp : Strata_ComputeOp<"send", [MemoryEffects<[MemWrite]>]> {
  let summary = "hands rows to an output port";
  let description = [{
    ```mlir
    strata.send %h, @out : tensor<?x64xf32, #strata.space<hidden>>
    ```
  }];
  let arguments = (ins Strata_Activation:$input, FlatSymbolRefAttr:$port);
  let assemblyFormat = "$input `,` $port attr-dict `:` type($input)";
}

#endif // STRATA_PLACED_OPS
