// A stage holds of a table the layers that it reads and no other, whether the split was found or given.
//
// RUN: strata-opt %s --pass-pipeline='builtin.module(strata.model(strata-replicate-constants))' \
// RUN:     --remarks-filter='strata-.*' --remark-format=emitRemark 2>&1 | FileCheck %s --check-prefix=RANGES
// RUN: strata-opt %s --pass-pipeline='builtin.module(strata.model(strata-replicate-constants,strata-insert-handoffs,strata-verify-placement))' \
// RUN:     | FileCheck %s

// RANGES: trimmed | Category:strata-replicate-constants | EndLayer=1, FirstLayer=0, Stage=0, Weight=t
// RANGES: trimmed | Category:strata-replicate-constants | EndLayer=3, FirstLayer=1, Stage=1, Weight=t
// RANGES: strata.weight @t : tensor<3x4x8xf32> {{.*}} layers <0, 3, 3> {{.*}} stages [0, 1] ranges [0, 1, 1, 3]

// CHECK: strata.stage @s0
// CHECK: strata.weight @t : tensor<1x4x8xf32> from "t" layers <0, 1, 3> unit "t"{{$}}
// CHECK: strata.latent_down {{.*}} @t layer 0
// CHECK: strata.stage @s1
// CHECK: strata.weight @t : tensor<2x4x8xf32> from "t" layers <1, 3, 3> unit "t"{{$}}
// CHECK: strata.latent_down {{.*}} @t layer 1
// CHECK: strata.latent_down {{.*}} @t layer 2
strata.model @m attributes {family = "f", hidden = 8 : i64, layers = 3 : i64,
    vocabulary = 16 : i64, max_context = 32 : i64, max_sequences = 2 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"],
    after = "partition-stages"} {
  strata.weight @table : tensor<16x8xf32> from "table" unit "embedding"
  strata.weight @up : tensor<8x4xf32> from "up" unit "shared"
  strata.weight @t : tensor<3x4x8xf32> from "t" layers <0, 3, 3> unit "t"
  strata.forward @body(%step) {
    %0 = strata.layer embedding 0 () attributes {stage = 0 : i64} : () -> tensor<?x8xf32> {
      %e = strata.embed @table[%step] : tensor<?x8xf32>
      strata.yield %e : tensor<?x8xf32>
    }
    %1 = strata.layer decoder 0 (%x = %0) attributes {stage = 0 : i64} : (tensor<?x8xf32>) -> tensor<?x8xf32> {
      %a = strata.latent_down %x, @t layer 0 {groups = 1 : i64} : tensor<?x8xf32> -> tensor<?x4xf32, #strata.space<latent>>
      %n = strata.latent_up %a, @up {groups = 1 : i64} : tensor<?x4xf32, #strata.space<latent>> -> tensor<?x8xf32>
      strata.yield %n : tensor<?x8xf32>
    }
    %2 = strata.layer decoder 1 (%x = %1) attributes {stage = 1 : i64} : (tensor<?x8xf32>) -> tensor<?x8xf32> {
      %a = strata.latent_down %x, @t layer 1 {groups = 1 : i64} : tensor<?x8xf32> -> tensor<?x4xf32, #strata.space<latent>>
      %n = strata.latent_up %a, @up {groups = 1 : i64} : tensor<?x4xf32, #strata.space<latent>> -> tensor<?x8xf32>
      strata.yield %n : tensor<?x8xf32>
    }
    %3 = strata.layer decoder 2 (%x = %2) attributes {stage = 1 : i64} : (tensor<?x8xf32>) -> tensor<?x8xf32> {
      %a = strata.latent_down %x, @t layer 2 {groups = 1 : i64} : tensor<?x8xf32> -> tensor<?x4xf32, #strata.space<latent>>
      %n = strata.latent_up %a, @up {groups = 1 : i64} : tensor<?x4xf32, #strata.space<latent>> -> tensor<?x8xf32>
      strata.yield %n : tensor<?x8xf32>
    }
    strata.layer head 0 (%x = %3) attributes {stage = 1 : i64} : (tensor<?x8xf32>) -> () {
      %g = strata.gather_rows %x[%step] : tensor<?x8xf32> -> tensor<?x8xf32>
      %l = strata.logits %g, @table : tensor<?x8xf32> -> tensor<?x16xf32>
      strata.sample %l[%step] : tensor<?x16xf32>
      strata.yield
    }
  }
}
