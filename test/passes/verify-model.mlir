// A chain that is one: unchanged, but for the mark that this pass ran. A model without decoder layers is a
// chain as well.
//
// RUN: strata-opt %s --split-input-file \
// RUN:     --pass-pipeline='builtin.module(strata.model(strata-verify-model))' | FileCheck %s

// CHECK-LABEL: strata.model @m attributes {after = "verify-model"
// CHECK: strata.layer embedding 0
// CHECK: strata.layer decoder 0
// CHECK: strata.layer head 0
strata.model @m attributes {family = "f", hidden = 8 : i64, layers = 1 : i64,
    vocabulary = 16 : i64, max_context = 32 : i64, max_sequences = 2 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3"]} {
  strata.weight @table : tensor<16x8xf32> from "table" unit "embedding"
  strata.weight @norm : tensor<8xf32> from "norm" unit "shared"
  strata.forward @body(%step) {
    %0 = strata.layer embedding 0 () : () -> tensor<?x8xf32> {
      %e = strata.embed @table[%step] : tensor<?x8xf32>
      strata.yield %e : tensor<?x8xf32>
    }
    %1 = strata.layer decoder 0 (%x = %0) : (tensor<?x8xf32>) -> tensor<?x8xf32> {
      %n = strata.rms_norm %x, @norm {epsilon = 1.0e-5 : f64} : tensor<?x8xf32>
      strata.yield %n : tensor<?x8xf32>
    }
    strata.layer head 0 (%x = %1) : (tensor<?x8xf32>) -> () {
      %g = strata.gather_rows %x[%step] : tensor<?x8xf32> -> tensor<?x8xf32>
      %l = strata.logits %g, @table : tensor<?x8xf32> -> tensor<?x16xf32>
      strata.sample %l[%step] : tensor<?x16xf32>
      strata.yield
    }
  }
}

// -----

// CHECK-LABEL: strata.model @m attributes {after = "verify-model"
// CHECK: strata.layer embedding 0
// CHECK-NOT: decoder
// CHECK: strata.layer head 0
strata.model @m attributes {family = "f", hidden = 8 : i64, layers = 0 : i64,
    vocabulary = 16 : i64, max_context = 32 : i64, max_sequences = 2 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3"]} {
  strata.weight @table : tensor<16x8xf32> from "table" unit "embedding"
  strata.weight @norm : tensor<8xf32> from "norm" unit "shared"
  strata.forward @body(%step) {
    %0 = strata.layer embedding 0 () : () -> tensor<?x8xf32> {
      %e = strata.embed @table[%step] : tensor<?x8xf32>
      strata.yield %e : tensor<?x8xf32>
    }
    strata.layer head 0 (%x = %0) : (tensor<?x8xf32>) -> () {
      %g = strata.gather_rows %x[%step] : tensor<?x8xf32> -> tensor<?x8xf32>
      %l = strata.logits %g, @table : tensor<?x8xf32> -> tensor<?x16xf32>
      strata.sample %l[%step] : tensor<?x16xf32>
      strata.yield
    }
  }
}
