// On a GPU the same signatures are filled, without scratch, and every invocation has a grid that
// covers the bucket's most rows.
//
// RUN: strata-opt %s --pass-pipeline='builtin.module(strata.model(strata-select-kernels))' | FileCheck %s

strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 1 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 2 : i64, max_rows = 20 : i64,
    devices = ["cuda:sm_90"], after = "choose-layouts"} {
  // No worker of a GPU has scratch.
  // CHECK: strata.stage @s0 on "cuda:sm_90"
  // CHECK-SAME: scratch 0
  // CHECK-DAG: strata.kernel @cuda.linear.f32
  // CHECK-DAG: strata.kernel @cuda.gated.silu
  strata.stage @s0 on "cuda:sm_90" layers 0 to 1 embedding {
    strata.weight @l0.w : tensor<10x16xf32> from "w" unit "layer 0" layout "rows"
    strata.port @in input width 16
    strata.forward @r20s2(%step) rows 20 sequences 2 body {
      %0 = strata.receive @in : tensor<20x16xf32>
      // A block a row: the row's 16 elements are within one block's 1024.
      // CHECK: strata.invoke @cuda.copy_rows({{.*}} grid [20, 1] "receive"
      %1 = strata.layer decoder 0 (%x = %0) : (tensor<20x16xf32>) -> tensor<20x16xf32> {
        // 10 outputs, two a block: 5 blocks; 20 rows, eight at a time: 3.
        // CHECK: strata.invoke @cuda.linear.f32({{.*}} grid [5, 3]
        %l = strata.linear %x, @l0.w : tensor<20x16xf32> -> tensor<20x10xf32>
        // CHECK: strata.invoke @cuda.gated.silu({{.*}} grid [20, 1]
        %y = strata.gated silu %x, %x : tensor<20x16xf32>
        strata.yield %y : tensor<20x16xf32>
      }
    }
  }
}
