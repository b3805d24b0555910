// What reaches neither the sample nor the state costs time and memory in every bucket. What is left must
// compute the same: nothing is reordered, no arithmetic changes.
//
// RUN: strata-opt %s --pass-pipeline='builtin.module(strata.model(strata-canonicalize))' | FileCheck %s
// RUN: strata-opt %s --pass-pipeline='builtin.module(strata.model(strata-canonicalize))' \
// RUN:     --remarks-filter='strata-.*' --remark-format=emitRemark -o /dev/null 2>&1 \
// RUN:     | FileCheck %s --check-prefix=REMARK

// REMARK: [Passed] unused-weight | Category:strata-canonicalize
// REMARK-SAME: Weight=dead
// REMARK: [Passed] unused-weight
// REMARK-SAME: Weight=spare_head
// REMARK-NOT: unused-weight

// CHECK-LABEL: strata.model @m attributes {after = "canonicalize"
strata.model @m attributes {family = "f", hidden = 8 : i64, layers = 1 : i64,
    vocabulary = 16 : i64, max_context = 32 : i64, max_sequences = 2 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3"], after = "verify-model"} {
  // CHECK: strata.weight @table
  strata.weight @table : tensor<16x8xf32> from "table" unit "embedding"
  // CHECK-NEXT: strata.weight @norm
  strata.weight @norm : tensor<8xf32> from "norm" unit "shared"
  // Only a dead op reads this one.
  strata.weight @dead : tensor<8x8xf32> from "dead" unit "layer 0"
  // The head of a checkpoint whose embedding is tied.
  strata.weight @spare_head : tensor<16x8xf32> from "output" unit "head"
  // A bias is a use too.
  // CHECK-NEXT: strata.weight @w
  // CHECK-NEXT: strata.weight @bias
  strata.weight @w : tensor<8x8xf32> from "w" unit "layer 0"
  strata.weight @bias : tensor<8xf32> from "b" unit "layer 0"
  // CHECK-NEXT: strata.state @kv
  strata.state @kv paged block_tokens 4 components [#strata.component<"k", "f32", 8>,
      #strata.component<"v", "f32", 8>] layers [0]
  // CHECK-NEXT: strata.state @local
  strata.state @local window 8 block_tokens 4 components [#strata.component<"k", "f32", 8>,
      #strata.component<"v", "f32", 8>] layers [0]
  strata.forward @body(%step) {
    %0 = strata.layer embedding 0 () : () -> tensor<?x8xf32> {
      %e = strata.embed @table[%step] : tensor<?x8xf32>
      strata.yield %e : tensor<?x8xf32>
    }
    // CHECK: strata.layer decoder 0 (%[[X:.*]] = %
    %1 = strata.layer decoder 0 (%x = %0) : (tensor<?x8xf32>) -> tensor<?x8xf32> {
      // One head is no heads: `heads` goes.
      // CHECK-NEXT: %[[N:.*]] = strata.rms_norm %[[X]], @norm {epsilon = 1.000000e-05 : f64} :
      %n = strata.rms_norm %x, @norm {epsilon = 1.0e-5 : f64, heads = 1 : i64} : tensor<?x8xf32>
      %d = strata.linear %n, @dead : tensor<?x8xf32> -> tensor<?x8xf32>
      %s = strata.add %d, %n : tensor<?x8xf32>
      // A write is never dead.
      // CHECK-NEXT: strata.kv_write %[[N]], %[[N]], @kv
      // CHECK-NEXT: strata.kv_write %[[N]], %[[N]], @local
      strata.kv_write %n, %n, @kv[%step] layer 0 : tensor<?x8xf32>, tensor<?x8xf32>
      strata.kv_write %n, %n, @local[%step] layer 0 : tensor<?x8xf32>, tensor<?x8xf32>
      // 32 tokens of context never fill a window of 32; they do fill one of 31.
      // CHECK-NEXT: %[[A:.*]] = strata.attention %[[N]], @kv[%{{.*}}] layer 0 {kv_heads = 1 : i64, query_heads = 1 : i64, scale = 1.000000e+00 : f64} :
      %a = strata.attention %n, @kv[%step] layer 0 {query_heads = 1 : i64, kv_heads = 1 : i64,
          scale = 1.0 : f64, window = 32 : i64} : tensor<?x8xf32> -> tensor<?x8xf32>
      // CHECK-NEXT: %[[B:.*]] = strata.attention %[[A]], {{.*}} window = 31 : i64}
      %b = strata.attention %a, @kv[%step] layer 0 {query_heads = 1 : i64, kv_heads = 1 : i64,
          scale = 1.0 : f64, window = 31 : i64} : tensor<?x8xf32> -> tensor<?x8xf32>
      // A state that keeps no more than 8 tokens says so of its attention.
      // CHECK-NEXT: %[[C:.*]] = strata.attention %[[B]], @local{{.*}} window = 8 : i64}
      %c = strata.attention %b, @local[%step] layer 0 {query_heads = 1 : i64, kv_heads = 1 : i64,
          scale = 1.0 : f64, window = 8 : i64} : tensor<?x8xf32> -> tensor<?x8xf32>
      // Reading alone keeps nothing alive.
      %unread = strata.attention %n, @kv[%step] layer 0 {query_heads = 1 : i64, kv_heads = 1 : i64,
          scale = 1.0 : f64} : tensor<?x8xf32> -> tensor<?x8xf32>
      // CHECK-NEXT: %[[W:.*]] = strata.linear %[[C]], @w bias @bias
      %w = strata.linear %c, @w bias @bias : tensor<?x8xf32> -> tensor<?x8xf32>
      // CHECK-NEXT: strata.yield %[[W]]
      strata.yield %w : tensor<?x8xf32>
    }
    // CHECK: strata.layer head
    strata.layer head 0 (%x = %1) : (tensor<?x8xf32>) -> () {
      %g = strata.gather_rows %x[%step] : tensor<?x8xf32> -> tensor<?x8xf32>
      // CHECK: strata.logits
      %l = strata.logits %g, @table : tensor<?x8xf32> -> tensor<?x16xf32>
      // CHECK: strata.sample
      strata.sample %l[%step] : tensor<?x16xf32>
      strata.yield
    }
  }
}
