// Which op may stand in which layer. What is let in here is computed as it stands: an op that reads rows
// or state that are not there would make fluent wrong text.
//
// RUN: strata-opt %s --split-input-file --verify-diagnostics \
// RUN:     --pass-pipeline='builtin.module(strata.model(strata-verify-model))'

strata.model @m attributes {family = "f", hidden = 8 : i64, layers = 1 : i64,
    vocabulary = 16 : i64, max_context = 32 : i64, max_sequences = 2 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3"]} {
  strata.weight @table : tensor<16x8xf32> from "table" unit "embedding"
  strata.weight @norm : tensor<8xf32> from "norm" unit "shared"
  strata.forward @body(%step) {
    // expected-error @below {{(embedding) has 2 strata.embed, must have one}}
    %0 = strata.layer embedding 0 () : () -> tensor<?x8xf32> {
      %e = strata.embed @table[%step] : tensor<?x8xf32>
      %f = strata.embed @table[%step] : tensor<?x8xf32>
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

// Ids stand in the step of the first stage alone.
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
      // expected-error @below {{does not belong in the decoder}}
      %f = strata.embed @table[%step] : tensor<?x8xf32>
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
    %1 = strata.layer decoder 0 (%x = %0) : (tensor<?x8xf32>) -> tensor<?x8xf32> {
      %n = strata.rms_norm %x, @norm {epsilon = 1.0e-5 : f64} : tensor<?x8xf32>
      // expected-error @below {{does not belong in the decoder}}
      %f = strata.gather_rows %n[%step] : tensor<?x8xf32> -> tensor<?x8xf32>
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

// Gathered rows have a sequence but no position.
strata.model @m attributes {family = "f", hidden = 8 : i64, layers = 1 : i64,
    vocabulary = 16 : i64, max_context = 32 : i64, max_sequences = 2 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3"]} {
  strata.weight @table : tensor<16x8xf32> from "table" unit "embedding"
  strata.weight @norm : tensor<8xf32> from "norm" unit "shared"
  strata.state @kv paged block_tokens 4 components [#strata.component<"k", "f32", 8>,
      #strata.component<"v", "f32", 8>] layers [0]
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
      // expected-error @below {{does not belong in the head}}
      strata.kv_write %g, %g, @kv[%step] layer 0 : tensor<?x8xf32>, tensor<?x8xf32>
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
  strata.weight @rope : tensor<4xf32> computed #strata.rope_frequencies<width = 8, theta = 1.0e4>
      unit "shared"
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
      // expected-error @below {{does not belong in the head}}
      %r = strata.rope %g, @rope[%step] half {heads = 1 : i64, rotary_width = 8 : i64}
          : tensor<?x8xf32>
      %l = strata.logits %g, @table : tensor<?x8xf32> -> tensor<?x16xf32>
      strata.sample %l[%step] : tensor<?x16xf32>
      strata.yield
    }
  }
}

// -----

// Commands of the lower levels are no ops of a model.
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
      // expected-error @below {{does not belong in the decoder}}
      %f = strata.carried : tensor<?x8xf32>
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

// A head forward of its own has no valid rows but the gathered ones, and runs in slices over what one body
// left: rows that are not gathered are neither computed nor to be written there.
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
      // expected-error @below {{reads the head's rows before they are gathered; gather first}}
      %n = strata.rms_norm %x, @norm {epsilon = 1.0e-5 : f64} : tensor<?x8xf32>
      %g = strata.gather_rows %n[%step] : tensor<?x8xf32> -> tensor<?x8xf32>
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
    // expected-error @below {{(head) has 0 strata.sample, must have one}}
    strata.layer head 0 (%x = %1) : (tensor<?x8xf32>) -> () {
      %g = strata.gather_rows %x[%step] : tensor<?x8xf32> -> tensor<?x8xf32>
      %l = strata.logits %g, @table : tensor<?x8xf32> -> tensor<?x16xf32>
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
    // expected-error @below {{(head) has 2 strata.logits, must have one}}
    strata.layer head 0 (%x = %1) : (tensor<?x8xf32>) -> () {
      %g = strata.gather_rows %x[%step] : tensor<?x8xf32> -> tensor<?x8xf32>
      %l = strata.logits %g, @table : tensor<?x8xf32> -> tensor<?x16xf32>
      %k = strata.logits %g, @table : tensor<?x8xf32> -> tensor<?x16xf32>
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
    // expected-error @below {{(head) yields a value, must yield none}}
    %2 = strata.layer head 0 (%x = %1) : (tensor<?x8xf32>) -> tensor<?x8xf32> {
      %g = strata.gather_rows %x[%step] : tensor<?x8xf32> -> tensor<?x8xf32>
      %l = strata.logits %g, @table : tensor<?x8xf32> -> tensor<?x16xf32>
      strata.sample %l[%step] : tensor<?x16xf32>
      strata.yield %g : tensor<?x8xf32>
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 8 : i64, layers = 1 : i64,
    vocabulary = 15 : i64, max_context = 32 : i64, max_sequences = 2 : i64, max_rows = 4 : i64,
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
      // expected-error @below {{makes 16 logits for a vocabulary of 15}}
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
      // expected-error @below {{draws from 'tensor<?x8xf32>', the logits are 'tensor<?x16xf32>'}}
      strata.sample %g[%step] : tensor<?x8xf32>
      strata.yield
    }
  }
}

// -----

// What no one wrote is another sequence's, or noise.
strata.model @m attributes {family = "f", hidden = 8 : i64, layers = 1 : i64,
    vocabulary = 16 : i64, max_context = 32 : i64, max_sequences = 2 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3"]} {
  strata.weight @table : tensor<16x8xf32> from "table" unit "embedding"
  strata.weight @norm : tensor<8xf32> from "norm" unit "shared"
  strata.state @kv paged block_tokens 4 components [#strata.component<"k", "f32", 8>,
      #strata.component<"v", "f32", 8>] layers [0]
  strata.forward @body(%step) {
    %0 = strata.layer embedding 0 () : () -> tensor<?x8xf32> {
      %e = strata.embed @table[%step] : tensor<?x8xf32>
      strata.yield %e : tensor<?x8xf32>
    }
    %1 = strata.layer decoder 0 (%x = %0) : (tensor<?x8xf32>) -> tensor<?x8xf32> {
      %n = strata.rms_norm %x, @norm {epsilon = 1.0e-5 : f64} : tensor<?x8xf32>
      // expected-error @below {{reads layer 0 of @kv before a strata.kv_write of it}}
      %a = strata.attention %n, @kv[%step] layer 0 {query_heads = 1 : i64, kv_heads = 1 : i64,
          scale = 1.0 : f64} : tensor<?x8xf32> -> tensor<?x8xf32>
      strata.kv_write %n, %n, @kv[%step] layer 0 : tensor<?x8xf32>, tensor<?x8xf32>
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

// 2^30 tokens of 2^16 sequences in blocks of 4: 2^44 blocks, numbered with 32 bits.
strata.model @m attributes {family = "f", hidden = 8 : i64, layers = 1 : i64,
    vocabulary = 16 : i64, max_context = 1073741824 : i64, max_sequences = 65536 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3"]} {
  strata.weight @table : tensor<16x8xf32> from "table" unit "embedding"
  strata.weight @norm : tensor<8xf32> from "norm" unit "shared"
  // expected-error @below {{needs too many blocks of 4 tokens for 65536 sequences of 1073741824 tokens}}
  strata.state @kv paged block_tokens 4 components [#strata.component<"k", "f32", 8>,
      #strata.component<"v", "f32", 8>] layers [0]
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

// A state that no layer writes would be promised memory for nothing.
strata.model @m attributes {family = "f", hidden = 8 : i64, layers = 1 : i64,
    vocabulary = 16 : i64, max_context = 32 : i64, max_sequences = 2 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3"]} {
  strata.weight @table : tensor<16x8xf32> from "table" unit "embedding"
  strata.weight @norm : tensor<8xf32> from "norm" unit "shared"
  // expected-error @below {{(@kv) holds layer 0, which nothing writes}}
  strata.state @kv paged block_tokens 4 components [#strata.component<"k", "f32", 8>,
      #strata.component<"v", "f32", 8>] layers [0]
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
