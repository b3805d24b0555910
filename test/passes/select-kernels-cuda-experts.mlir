// Experts and recurrences on a GPU: grids cover the bucket's most rows, or the state where all rows
// follow one another.
//
// RUN: strata-opt %s --pass-pipeline='builtin.module(strata.model(strata-select-kernels))' | FileCheck %s

strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 1 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 2 : i64, max_rows = 20 : i64,
    devices = ["cuda:sm_90"], after = "choose-layouts"} {
  // CHECK: strata.stage @s0 on "cuda:sm_90"
  // CHECK-SAME: scratch 0
  strata.stage @s0 on "cuda:sm_90" layers 0 to 1 embedding {
    strata.weight @up : tensor<8x12x16xf32> from "up" unit "layer 0" layout "rows"
    strata.weight @down : tensor<8x16x12xf32> from "down" unit "layer 0" layout "rows"
    strata.weight @slots : tensor<8xf32> computed #strata.identity<8> unit "layer 0" layout "rows"
    strata.weight @gate : tensor<8x16xf32> from "gate" unit "layer 0" layout "rows"
    strata.port @in input width 16
    strata.forward @r20s2(%step) rows 20 sequences 2 body {
      %0 = strata.receive @in : tensor<20x16xf32>
      %1 = strata.layer decoder 0 (%x = %0) : (tensor<20x16xf32>) -> tensor<20x16xf32> {
        %l = strata.linear %x, @gate : tensor<20x16xf32> -> tensor<20x8xf32>
        // A warp a row.
        // CHECK: strata.invoke @cuda.router.softmax({{.*}} grid [20, 1]
        %r = strata.router softmax %l {used = 2 : i64}
            : tensor<20x8xf32> -> tensor<20x4xf32, #strata.space<routing>>
        // CHECK: strata.invoke @cuda.expert_lists({{.*}} grid [1, 1]
        %t = strata.expert_lists %r[%step] {experts = 8 : i64}
            : tensor<20x4xf32, #strata.space<routing>> -> tensor<1x98xf32>
        // 20 rows of 2 experts each; 12 outputs, eight a block.
        // CHECK: strata.invoke @cuda.expert_up.f32({{.*}} grid [40, 2]
        %m = strata.expert_up %x, %t, @up slots @slots[%step] {first = 0 : i64, count = 8 : i64, used = 2 : i64, function = #strata<function silu>}
            : tensor<20x16xf32>, tensor<1x98xf32> -> tensor<40x12xf32>
        // CHECK: strata.invoke @cuda.expert_down.f32({{.*}} grid [20, 2]
        %y = strata.expert_down %m, %t, @down slots @slots[%step] {first = 0 : i64, count = 8 : i64, used = 2 : i64}
            : tensor<40x12xf32>, tensor<1x98xf32> -> tensor<20x16xf32>
        strata.yield %y : tensor<20x16xf32>
      }
    }
  }
}
