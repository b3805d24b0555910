// After this pass an op can name only what its own stage holds, and rows cross by a ring that is sized for
// the largest bucket.
//
// RUN: strata-opt %s --pass-pipeline='builtin.module(strata.model(strata-insert-handoffs))' | FileCheck %s
// RUN: strata-opt %s | strata-opt --pass-pipeline='builtin.module(strata.model(strata-insert-handoffs,strata-verify-placement))' \
// RUN:     -o /dev/null

// CHECK: after = "insert-handoffs"
// CHECK-NOT: strata.weight
// CHECK: strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 2 embedding {
// CHECK-NEXT: strata.weight @table : tensor<16x8xf32> from "table" unit "embedding"{{$}}
// CHECK-NEXT: strata.weight @norm
// CHECK-NEXT: strata.weight @w1
// The state of the layers that stand here, no more.
// CHECK-NEXT: strata.state @kv {{.*}} layers [0]{{$}}
// CHECK-NEXT: strata.port @out output width 8
// CHECK-NEXT: strata.forward @body(%[[STEP:.*]]) {
// CHECK: strata.embed @table[%[[STEP]]]
// CHECK: %[[LAST:.*]] = strata.layer decoder 1
// CHECK: strata.send %[[LAST]], @out : tensor<?x8xf32>
// CHECK: strata.stage @s1 on "cpu:x86-64-v3" layers 2 to 3 head {
// CHECK-NEXT: strata.weight @table
// CHECK-NEXT: strata.weight @norm
// CHECK-NEXT: strata.state @kv {{.*}} layers [2]{{$}}
// CHECK-NEXT: strata.port @in input width 8
// CHECK: %[[ROWS:.*]] = strata.receive @in : tensor<?x8xf32>
// CHECK: strata.layer decoder 2 (%{{.*}} = %[[ROWS]])
// CHECK-NOT: stage =
// CHECK: strata.layer head 0
// max_rows is 4.
// CHECK: strata.handoff @h0_rows : @s0::@out -> @s1::@in rows 4 slots 2
strata.model @m attributes {family = "f", hidden = 8 : i64, layers = 3 : i64,
    vocabulary = 16 : i64, max_context = 32 : i64, max_sequences = 2 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"],
    after = "replicate-constants"} {
  strata.weight @table : tensor<16x8xf32> from "table" unit "embedding"
      stages [0, 1]
  strata.weight @norm : tensor<8xf32> from "norm" unit "shared" stages [0, 1]
  strata.weight @w1 : tensor<8x8xf32> from "w1" unit "layer 1" stages [0]
  strata.state @kv paged block_tokens 4 components [#strata.component<"k", "f32", 8>,
      #strata.component<"v", "f32", 8>] layers [0, 2]
  strata.forward @body(%step) {
    %0 = strata.layer embedding 0 () attributes {stage = 0 : i64} : () -> tensor<?x8xf32> {
      %e = strata.embed @table[%step] : tensor<?x8xf32>
      strata.yield %e : tensor<?x8xf32>
    }
    %1 = strata.layer decoder 0 (%x = %0) attributes {stage = 0 : i64} : (tensor<?x8xf32>) -> tensor<?x8xf32> {
      %n = strata.rms_norm %x, @norm {epsilon = 1.0e-5 : f64} : tensor<?x8xf32>
      strata.kv_write %n, %n, @kv[%step] layer 0 : tensor<?x8xf32>, tensor<?x8xf32>
      strata.yield %n : tensor<?x8xf32>
    }
    %2 = strata.layer decoder 1 (%x = %1) attributes {stage = 0 : i64} : (tensor<?x8xf32>) -> tensor<?x8xf32> {
      %n = strata.linear %x, @w1 : tensor<?x8xf32> -> tensor<?x8xf32>
      strata.yield %n : tensor<?x8xf32>
    }
    %3 = strata.layer decoder 2 (%x = %2) attributes {stage = 1 : i64} : (tensor<?x8xf32>) -> tensor<?x8xf32> {
      %n = strata.rms_norm %x, @norm {epsilon = 1.0e-5 : f64} : tensor<?x8xf32>
      strata.kv_write %n, %n, @kv[%step] layer 2 : tensor<?x8xf32>, tensor<?x8xf32>
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
