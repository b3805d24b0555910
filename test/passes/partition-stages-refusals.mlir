// What cannot be placed is refused with the numbers that say why.
//
// RUN: strata-opt %s --split-input-file --verify-diagnostics \
// RUN:     --pass-pipeline='builtin.module(strata.model(strata-partition-stages))'

// expected-error @below {{cannot be cut into 6 stages: it has 5 units (embedding, 3 layers, head); name at most 5 devices}}
strata.model @m attributes {family = "f", hidden = 8 : i64, layers = 3 : i64,
    vocabulary = 16 : i64, max_context = 32 : i64, max_sequences = 2 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3", "cpu:x86-64-v3", "cpu:x86-64-v3",
    "cpu:x86-64-v3", "cpu:x86-64-v3", "cpu:x86-64-v3"],
    after = "profile-units"} {
  strata.weight @table : tensor<16x8xf32> from "table" unit "embedding"
  strata.weight @norm : tensor<8xf32> from "norm" unit "shared"
  strata.weight @w1 : tensor<8x8xf32> from "w1" unit "layer 1"
  strata.state @kv paged block_tokens 4 components [#strata.component<"k", "f32", 8>,
      #strata.component<"v", "f32", 8>] layers [0, 2]
  strata.forward @body(%step) {
    %0 = strata.layer embedding 0 () : () -> tensor<?x8xf32> {
      %e = strata.embed @table[%step] : tensor<?x8xf32>
      strata.yield %e : tensor<?x8xf32>
    }
    %1 = strata.layer decoder 0 (%x = %0) : (tensor<?x8xf32>) -> tensor<?x8xf32> {
      %n = strata.rms_norm %x, @norm {epsilon = 1.0e-5 : f64} : tensor<?x8xf32>
      strata.kv_write %n, %n, @kv[%step] layer 0 : tensor<?x8xf32>, tensor<?x8xf32>
      strata.yield %n : tensor<?x8xf32>
    }
    %2 = strata.layer decoder 1 (%x = %1) : (tensor<?x8xf32>) -> tensor<?x8xf32> {
      %n = strata.linear %x, @w1 : tensor<?x8xf32> -> tensor<?x8xf32>
      strata.yield %n : tensor<?x8xf32>
    }
    %3 = strata.layer decoder 2 (%x = %2) : (tensor<?x8xf32>) -> tensor<?x8xf32> {
      %n = strata.rms_norm %x, @norm {epsilon = 1.0e-5 : f64} : tensor<?x8xf32>
      strata.kv_write %n, %n, @kv[%step] layer 2 : tensor<?x8xf32>, tensor<?x8xf32>
      strata.yield %n : tensor<?x8xf32>
    }
    strata.layer head 0 (%x = %3) : (tensor<?x8xf32>) -> () {
      %g = strata.gather_rows %x[%step] : tensor<?x8xf32> -> tensor<?x8xf32>
      %l = strata.logits %g, @table : tensor<?x8xf32> -> tensor<?x16xf32>
      strata.sample %l[%step] : tensor<?x16xf32>
      strata.yield
    }
  }
}

// -----

// expected-error @below {{split adds up to 2 layers, the model has 3}}
strata.model @m attributes {family = "f", hidden = 8 : i64, layers = 3 : i64,
    vocabulary = 16 : i64, max_context = 32 : i64, max_sequences = 2 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"],
    split = array<i64: 1, 1>, after = "profile-units"} {
  strata.weight @table : tensor<16x8xf32> from "table" unit "embedding"
  strata.weight @norm : tensor<8xf32> from "norm" unit "shared"
  strata.weight @w1 : tensor<8x8xf32> from "w1" unit "layer 1"
  strata.state @kv paged block_tokens 4 components [#strata.component<"k", "f32", 8>,
      #strata.component<"v", "f32", 8>] layers [0, 2]
  strata.forward @body(%step) {
    %0 = strata.layer embedding 0 () : () -> tensor<?x8xf32> {
      %e = strata.embed @table[%step] : tensor<?x8xf32>
      strata.yield %e : tensor<?x8xf32>
    }
    %1 = strata.layer decoder 0 (%x = %0) : (tensor<?x8xf32>) -> tensor<?x8xf32> {
      %n = strata.rms_norm %x, @norm {epsilon = 1.0e-5 : f64} : tensor<?x8xf32>
      strata.kv_write %n, %n, @kv[%step] layer 0 : tensor<?x8xf32>, tensor<?x8xf32>
      strata.yield %n : tensor<?x8xf32>
    }
    %2 = strata.layer decoder 1 (%x = %1) : (tensor<?x8xf32>) -> tensor<?x8xf32> {
      %n = strata.linear %x, @w1 : tensor<?x8xf32> -> tensor<?x8xf32>
      strata.yield %n : tensor<?x8xf32>
    }
    %3 = strata.layer decoder 2 (%x = %2) : (tensor<?x8xf32>) -> tensor<?x8xf32> {
      %n = strata.rms_norm %x, @norm {epsilon = 1.0e-5 : f64} : tensor<?x8xf32>
      strata.kv_write %n, %n, @kv[%step] layer 2 : tensor<?x8xf32>, tensor<?x8xf32>
      strata.yield %n : tensor<?x8xf32>
    }
    strata.layer head 0 (%x = %3) : (tensor<?x8xf32>) -> () {
      %g = strata.gather_rows %x[%step] : tensor<?x8xf32> -> tensor<?x8xf32>
      %l = strata.logits %g, @table : tensor<?x8xf32> -> tensor<?x16xf32>
      strata.sample %l[%step] : tensor<?x16xf32>
      strata.yield
    }
  }
}

// -----

// expected-error @below {{split gives stage 0 -1 layers}}
strata.model @m attributes {family = "f", hidden = 8 : i64, layers = 3 : i64,
    vocabulary = 16 : i64, max_context = 32 : i64, max_sequences = 2 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"],
    split = array<i64: -1, 4>, after = "profile-units"} {
  strata.weight @table : tensor<16x8xf32> from "table" unit "embedding"
  strata.weight @norm : tensor<8xf32> from "norm" unit "shared"
  strata.weight @w1 : tensor<8x8xf32> from "w1" unit "layer 1"
  strata.state @kv paged block_tokens 4 components [#strata.component<"k", "f32", 8>,
      #strata.component<"v", "f32", 8>] layers [0, 2]
  strata.forward @body(%step) {
    %0 = strata.layer embedding 0 () : () -> tensor<?x8xf32> {
      %e = strata.embed @table[%step] : tensor<?x8xf32>
      strata.yield %e : tensor<?x8xf32>
    }
    %1 = strata.layer decoder 0 (%x = %0) : (tensor<?x8xf32>) -> tensor<?x8xf32> {
      %n = strata.rms_norm %x, @norm {epsilon = 1.0e-5 : f64} : tensor<?x8xf32>
      strata.kv_write %n, %n, @kv[%step] layer 0 : tensor<?x8xf32>, tensor<?x8xf32>
      strata.yield %n : tensor<?x8xf32>
    }
    %2 = strata.layer decoder 1 (%x = %1) : (tensor<?x8xf32>) -> tensor<?x8xf32> {
      %n = strata.linear %x, @w1 : tensor<?x8xf32> -> tensor<?x8xf32>
      strata.yield %n : tensor<?x8xf32>
    }
    %3 = strata.layer decoder 2 (%x = %2) : (tensor<?x8xf32>) -> tensor<?x8xf32> {
      %n = strata.rms_norm %x, @norm {epsilon = 1.0e-5 : f64} : tensor<?x8xf32>
      strata.kv_write %n, %n, @kv[%step] layer 2 : tensor<?x8xf32>, tensor<?x8xf32>
      strata.yield %n : tensor<?x8xf32>
    }
    strata.layer head 0 (%x = %3) : (tensor<?x8xf32>) -> () {
      %g = strata.gather_rows %x[%step] : tensor<?x8xf32> -> tensor<?x8xf32>
      %l = strata.logits %g, @table : tensor<?x8xf32> -> tensor<?x16xf32>
      strata.sample %l[%step] : tensor<?x16xf32>
      strata.yield
    }
  }
}

// -----

// expected-error @below {{split gives stage 1 nothing; only the first (embedding) and the last (head) stage may have 0 layers}}
strata.model @m attributes {family = "f", hidden = 8 : i64, layers = 3 : i64,
    vocabulary = 16 : i64, max_context = 32 : i64, max_sequences = 2 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3", "cpu:x86-64-v3",
    "cpu:x86-64-v3"],
    split = array<i64: 1, 0, 2>, after = "profile-units"} {
  strata.weight @table : tensor<16x8xf32> from "table" unit "embedding"
  strata.weight @norm : tensor<8xf32> from "norm" unit "shared"
  strata.weight @w1 : tensor<8x8xf32> from "w1" unit "layer 1"
  strata.state @kv paged block_tokens 4 components [#strata.component<"k", "f32", 8>,
      #strata.component<"v", "f32", 8>] layers [0, 2]
  strata.forward @body(%step) {
    %0 = strata.layer embedding 0 () : () -> tensor<?x8xf32> {
      %e = strata.embed @table[%step] : tensor<?x8xf32>
      strata.yield %e : tensor<?x8xf32>
    }
    %1 = strata.layer decoder 0 (%x = %0) : (tensor<?x8xf32>) -> tensor<?x8xf32> {
      %n = strata.rms_norm %x, @norm {epsilon = 1.0e-5 : f64} : tensor<?x8xf32>
      strata.kv_write %n, %n, @kv[%step] layer 0 : tensor<?x8xf32>, tensor<?x8xf32>
      strata.yield %n : tensor<?x8xf32>
    }
    %2 = strata.layer decoder 1 (%x = %1) : (tensor<?x8xf32>) -> tensor<?x8xf32> {
      %n = strata.linear %x, @w1 : tensor<?x8xf32> -> tensor<?x8xf32>
      strata.yield %n : tensor<?x8xf32>
    }
    %3 = strata.layer decoder 2 (%x = %2) : (tensor<?x8xf32>) -> tensor<?x8xf32> {
      %n = strata.rms_norm %x, @norm {epsilon = 1.0e-5 : f64} : tensor<?x8xf32>
      strata.kv_write %n, %n, @kv[%step] layer 2 : tensor<?x8xf32>, tensor<?x8xf32>
      strata.yield %n : tensor<?x8xf32>
    }
    strata.layer head 0 (%x = %3) : (tensor<?x8xf32>) -> () {
      %g = strata.gather_rows %x[%step] : tensor<?x8xf32> -> tensor<?x8xf32>
      %l = strata.logits %g, @table : tensor<?x8xf32> -> tensor<?x16xf32>
      strata.sample %l[%step] : tensor<?x16xf32>
      strata.yield
    }
  }
}

// -----

// expected-error @below {{'partition-stages' must follow 'profile-units', but the last pass was 'canonicalize'}}
strata.model @m attributes {family = "f", hidden = 8 : i64, layers = 3 : i64,
    vocabulary = 16 : i64, max_context = 32 : i64, max_sequences = 2 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"],
    after = "canonicalize"} {
  strata.weight @table : tensor<16x8xf32> from "table" unit "embedding"
  strata.weight @norm : tensor<8xf32> from "norm" unit "shared"
  strata.weight @w1 : tensor<8x8xf32> from "w1" unit "layer 1"
  strata.state @kv paged block_tokens 4 components [#strata.component<"k", "f32", 8>,
      #strata.component<"v", "f32", 8>] layers [0, 2]
  strata.forward @body(%step) {
    %0 = strata.layer embedding 0 () : () -> tensor<?x8xf32> {
      %e = strata.embed @table[%step] : tensor<?x8xf32>
      strata.yield %e : tensor<?x8xf32>
    }
    %1 = strata.layer decoder 0 (%x = %0) : (tensor<?x8xf32>) -> tensor<?x8xf32> {
      %n = strata.rms_norm %x, @norm {epsilon = 1.0e-5 : f64} : tensor<?x8xf32>
      strata.kv_write %n, %n, @kv[%step] layer 0 : tensor<?x8xf32>, tensor<?x8xf32>
      strata.yield %n : tensor<?x8xf32>
    }
    %2 = strata.layer decoder 1 (%x = %1) : (tensor<?x8xf32>) -> tensor<?x8xf32> {
      %n = strata.linear %x, @w1 : tensor<?x8xf32> -> tensor<?x8xf32>
      strata.yield %n : tensor<?x8xf32>
    }
    %3 = strata.layer decoder 2 (%x = %2) : (tensor<?x8xf32>) -> tensor<?x8xf32> {
      %n = strata.rms_norm %x, @norm {epsilon = 1.0e-5 : f64} : tensor<?x8xf32>
      strata.kv_write %n, %n, @kv[%step] layer 2 : tensor<?x8xf32>, tensor<?x8xf32>
      strata.yield %n : tensor<?x8xf32>
    }
    strata.layer head 0 (%x = %3) : (tensor<?x8xf32>) -> () {
      %g = strata.gather_rows %x[%step] : tensor<?x8xf32> -> tensor<?x8xf32>
      %l = strata.logits %g, @table : tensor<?x8xf32> -> tensor<?x16xf32>
      strata.sample %l[%step] : tensor<?x16xf32>
      strata.yield
    }
  }
}
