// One replica a stage of every weight that the stage reads, none of what it does not: a second copy is
// memory paid for nothing, a missing one a name that does not resolve.
//
// RUN: strata-opt %s --pass-pipeline='builtin.module(strata.model(strata-replicate-constants))' | FileCheck %s
// RUN: strata-opt %s --pass-pipeline='builtin.module(strata.model(strata-replicate-constants))' \
// RUN:     --remarks-filter='strata-.*' --remark-format=emitRemark -o /dev/null 2>&1 \
// RUN:     | FileCheck %s --check-prefix=REMARK

// The tied embedding is read by the first stage and the head: 16 * 8 * 4 = 512 bytes on each.
// REMARK: [Analysis] replicated | Category:strata-replicate-constants | BytesEach=512, Replicas=2, Weight=table
// REMARK: [Analysis] replicated | Category:strata-replicate-constants | BytesEach=32, Replicas=2, Weight=norm
// REMARK-NOT: replicated

// CHECK: strata.weight @table {{.*}} stages [0, 1]
// CHECK: strata.weight @norm {{.*}} stages [0, 1]
// CHECK: strata.weight @w1 {{.*}} stages [0]
strata.model @m attributes {family = "f", hidden = 8 : i64, layers = 3 : i64,
    vocabulary = 16 : i64, max_context = 32 : i64, max_sequences = 2 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"],
    after = "partition-stages"} {
  strata.weight @table : tensor<16x8xf32> from "table" unit "embedding"
  strata.weight @norm : tensor<8xf32> from "norm" unit "shared"
  strata.weight @w1 : tensor<8x8xf32> from "w1" unit "layer 1"
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
