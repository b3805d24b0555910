// The first door: what is no chain from embedding to sampling is refused here by name, since every pass
// behind it takes the chain for granted.
//
// RUN: strata-opt %s --split-input-file --verify-diagnostics \
// RUN:     --pass-pipeline='builtin.module(strata.model(strata-verify-model))'

// expected-error @below {{has 0 forwards, must have one}}
strata.model @m attributes {family = "f", hidden = 8 : i64, layers = 1 : i64,
    vocabulary = 16 : i64, max_context = 32 : i64, max_sequences = 2 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3"]} {
  strata.weight @table : tensor<16x8xf32> from "table" unit "embedding"
  strata.weight @norm : tensor<8xf32> from "norm" unit "shared"
}

// -----

// expected-error @below {{has 2 forwards, must have one}}
strata.model @m attributes {family = "f", hidden = 8 : i64, layers = 1 : i64,
    vocabulary = 16 : i64, max_context = 32 : i64, max_sequences = 2 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3"]} {
  strata.weight @table : tensor<16x8xf32> from "table" unit "embedding"
  strata.weight @norm : tensor<8xf32> from "norm" unit "shared"
  strata.forward @a(%s) {
  }
  strata.forward @b(%s) {
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 8 : i64, layers = 1 : i64,
    vocabulary = 16 : i64, max_context = 32 : i64, max_sequences = 2 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3"]} {
  strata.weight @table : tensor<16x8xf32> from "table" unit "embedding"
  strata.weight @norm : tensor<8xf32> from "norm" unit "shared"
  // expected-error @below {{has static rows at the model level}}
  strata.forward @r4s2(%step) rows 4 sequences 2 body {
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 8 : i64, layers = 1 : i64,
    vocabulary = 16 : i64, max_context = 32 : i64, max_sequences = 2 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3"]} {
  strata.weight @table : tensor<16x8xf32> from "table" unit "embedding"
  strata.weight @norm : tensor<8xf32> from "norm" unit "shared"
  // expected-error @below {{does not belong to the model level}}
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 0 {
  }
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

strata.model @m attributes {family = "f", hidden = 8 : i64, layers = 1 : i64,
    vocabulary = 16 : i64, max_context = 32 : i64, max_sequences = 2 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3"]} {
  strata.weight @table : tensor<16x8xf32> from "table" unit "embedding"
  strata.weight @norm : tensor<8xf32> from "norm" unit "shared"
  strata.forward @body(%step) {
    // expected-error @below {{stands outside a layer}}
    %c = strata.embed @table[%step] : tensor<?x8xf32>
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

strata.model @m attributes {family = "f", hidden = 8 : i64, layers = 1 : i64,
    vocabulary = 16 : i64, max_context = 32 : i64, max_sequences = 2 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3"]} {
  strata.weight @table : tensor<16x8xf32> from "table" unit "embedding"
  strata.weight @norm : tensor<8xf32> from "norm" unit "shared"
  // expected-error @below {{ends before its head: 2 of 3 units}}
  strata.forward @body(%step) {
    %0 = strata.layer embedding 0 () : () -> tensor<?x8xf32> {
      %e = strata.embed @table[%step] : tensor<?x8xf32>
      strata.yield %e : tensor<?x8xf32>
    }
    %1 = strata.layer decoder 0 (%x = %0) : (tensor<?x8xf32>) -> tensor<?x8xf32> {
      %n = strata.rms_norm %x, @norm {epsilon = 1.0e-5 : f64} : tensor<?x8xf32>
      strata.yield %n : tensor<?x8xf32>
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 8 : i64, layers = 1 : i64,
    vocabulary = 16 : i64, max_context = 32 : i64, max_sequences = 2 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3"]} {
  strata.weight @table : tensor<16x8xf32> from "table" unit "embedding"
  strata.weight @norm : tensor<8xf32> from "norm" unit "shared"
  strata.forward @body(%step) {
    // expected-error @below {{is 'layer 0' where the chain of 1 layers needs its embedding}}
    %1 = strata.layer decoder 0 () : () -> tensor<?x8xf32> {
      %n = strata.embed @table[%step] : tensor<?x8xf32>
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

// Layers are numbered as they stand.
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
    // expected-error @below {{is 'layer 1' where the chain of 1 layers needs its decoder 0}}
    %1 = strata.layer decoder 1 (%x = %0) : (tensor<?x8xf32>) -> tensor<?x8xf32> {
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
    // expected-error @below {{is 'head' where the chain of 1 layers needs its decoder 0}}
    strata.layer head 0 (%x = %0) : (tensor<?x8xf32>) -> () {
      %g = strata.gather_rows %x[%step] : tensor<?x8xf32> -> tensor<?x8xf32>
      %l = strata.logits %g, @table : tensor<?x8xf32> -> tensor<?x16xf32>
      strata.sample %l[%step] : tensor<?x16xf32>
      strata.yield
    }
  }
}

// -----

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
    // expected-error @below {{follows the head}}
    strata.layer head 0 (%x = %1) : (tensor<?x8xf32>) -> () {
      %g = strata.gather_rows %x[%step] : tensor<?x8xf32> -> tensor<?x8xf32>
      %l = strata.logits %g, @table : tensor<?x8xf32> -> tensor<?x16xf32>
      strata.sample %l[%step] : tensor<?x16xf32>
      strata.yield
    }
  }
}

// -----

// The embedding's rows would be lost.
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
    // expected-error @below {{(head) does not take exactly what the layer before yields}}
    strata.layer head 0 (%x = %0) : (tensor<?x8xf32>) -> () {
      %g = strata.gather_rows %x[%step] : tensor<?x8xf32> -> tensor<?x8xf32>
      %l = strata.logits %g, @table : tensor<?x8xf32> -> tensor<?x16xf32>
      strata.sample %l[%step] : tensor<?x16xf32>
      strata.yield
    }
  }
}

// -----

// A second way around a layer: memory of one layer would be read by a later one.
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
    // expected-error @below {{(head) does not take exactly what the layer before yields}}
    strata.layer head 0 (%x = %1, %y = %0) : (tensor<?x8xf32>, tensor<?x8xf32>) -> () {
      %g = strata.gather_rows %x[%step] : tensor<?x8xf32> -> tensor<?x8xf32>
      %l = strata.logits %g, @table : tensor<?x8xf32> -> tensor<?x16xf32>
      strata.sample %l[%step] : tensor<?x16xf32>
      strata.yield
    }
  }
}

// -----

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
    // expected-error @below {{(layer 0) yields 2 values, must yield the residual}}
    %1:2 = strata.layer decoder 0 (%x = %0) : (tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
      %n = strata.rms_norm %x, @norm {epsilon = 1.0e-5 : f64} : tensor<?x8xf32>
      strata.yield %n, %n : tensor<?x8xf32>, tensor<?x8xf32>
    }
    strata.layer head 0 (%x = %1#0, %y = %1#1) : (tensor<?x8xf32>, tensor<?x8xf32>) -> () {
      %g = strata.gather_rows %x[%step] : tensor<?x8xf32> -> tensor<?x8xf32>
      %l = strata.logits %g, @table : tensor<?x8xf32> -> tensor<?x16xf32>
      strata.sample %l[%step] : tensor<?x16xf32>
      strata.yield
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 8 : i64, layers = 1 : i64,
    vocabulary = 16 : i64, max_context = 32 : i64, max_sequences = 2 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3"]} {
  strata.weight @table : tensor<16x8xf32> from "table" unit "embedding"
  strata.weight @norm : tensor<8xf32> from "norm" unit "shared"
  strata.weight @wide : tensor<16x16xf32> from "wide" unit "head"
  strata.forward @body(%step) {
    %0 = strata.layer embedding 0 () : () -> tensor<?x8xf32> {
      %e = strata.embed @table[%step] : tensor<?x8xf32>
      strata.yield %e : tensor<?x8xf32>
    }
    // expected-error @below {{passes 'tensor<?x16xf32>' on, must be tensor<?x8xf32>}}
    %1 = strata.layer decoder 0 (%x = %0) : (tensor<?x8xf32>) -> tensor<?x16xf32> {
      %n = strata.linear %x, @table : tensor<?x8xf32> -> tensor<?x16xf32>
      strata.yield %n : tensor<?x16xf32>
    }
    strata.layer head 0 (%x = %1) : (tensor<?x16xf32>) -> () {
      %g = strata.gather_rows %x[%step] : tensor<?x16xf32> -> tensor<?x16xf32>
      %l = strata.logits %g, @wide : tensor<?x16xf32> -> tensor<?x16xf32>
      strata.sample %l[%step] : tensor<?x16xf32>
      strata.yield
    }
  }
}

// -----

// Four rows in every bucket: too few for r8, too many for r1.
strata.model @m attributes {family = "f", hidden = 8 : i64, layers = 1 : i64,
    vocabulary = 16 : i64, max_context = 32 : i64, max_sequences = 2 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3"]} {
  strata.weight @table : tensor<16x8xf32> from "table" unit "embedding"
  strata.weight @norm : tensor<8xf32> from "norm" unit "shared"
  strata.forward @body(%step) {
    %0 = strata.layer embedding 0 () : () -> tensor<4x8xf32> {
      // expected-error @below {{makes 'tensor<4x8xf32>', whose rows must be symbolic (?)}}
      %e = strata.embed @table[%step] : tensor<4x8xf32>
      strata.yield %e : tensor<4x8xf32>
    }
    %1 = strata.layer decoder 0 (%x = %0) : (tensor<4x8xf32>) -> tensor<?x8xf32> {
      %n = strata.embed @table[%step] : tensor<?x8xf32>
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
