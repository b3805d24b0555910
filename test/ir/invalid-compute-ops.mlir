// A kernel trusts its slots: a weight of another shape would be read past its end. Each such use is refused
// at the op, with a note at what it names.
//
// RUN: strata-opt %s --split-input-file --verify-diagnostics

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  strata.forward @body(%step) {
    %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
    // expected-error @below {{names @nrom, which is not a strata.weight of its own stage or model}}
    %0 = strata.rms_norm %x, @nrom {epsilon = 1.0e-5 : f64} : tensor<?x64xf32>
  }
}

// -----

// A state where a weight must be.
strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  strata.state @kv paged block_tokens 16 components [#strata.component<"k", "f16", 32>] layers [0]
  strata.forward @body(%step) {
    %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
    // expected-error @below {{names @kv, which is not a strata.weight of its own stage or model}}
    %0 = strata.linear %x, @kv : tensor<?x64xf32> -> tensor<?x64xf32>
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-note @below {{the weight is declared here}}
  strata.weight @norm : tensor<32xf32> from "n" unit "u"
  strata.forward @body(%step) {
    %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
    // expected-error @below {{needs @norm as 64xf32, found 'tensor<32xf32>'}}
    %0 = strata.rms_norm %x, @norm {epsilon = 1.0e-5 : f64} : tensor<?x64xf32>
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-note @below {{the weight is declared here}}
  strata.weight @norm : tensor<64xf16> from "n" unit "u"
  strata.forward @body(%step) {
    %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
    // expected-error @below {{needs @norm as 64xf32, found 'tensor<64xf16>'}}
    %0 = strata.rms_norm %x, @norm {epsilon = 1.0e-5 : f64} : tensor<?x64xf32>
  }
}

// -----

// One weight of 64 / 8 elements for every head.
strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-note @below {{the weight is declared here}}
  strata.weight @norm : tensor<64xf32> from "n" unit "u"
  strata.forward @body(%step) {
    %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
    // expected-error @below {{needs @norm as 8xf32, found 'tensor<64xf32>'}}
    %0 = strata.rms_norm %x, @norm {epsilon = 1.0e-5 : f64, heads = 8 : i64} : tensor<?x64xf32>
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  strata.weight @norm : tensor<64xf32> from "n" unit "u"
  strata.forward @body(%step) {
    %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
    // expected-error @below {{cannot cut a row of 64 into 7 heads}}
    %0 = strata.rms_norm %x, @norm {epsilon = 1.0e-5 : f64, heads = 7 : i64} : tensor<?x64xf32>
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  strata.weight @norm : tensor<64xf32> from "n" unit "u"
  strata.forward @body(%step) {
    %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
    // expected-error @below {{cannot cut a row of 64 into 0 heads}}
    %0 = strata.rms_norm %x, @norm {epsilon = 1.0e-5 : f64, heads = 0 : i64} : tensor<?x64xf32>
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-note @below {{the weight is declared here}}
  strata.weight @w : tensor<32x64xf32> from "w" unit "u"
  strata.forward @body(%step) {
    %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
    // expected-error @below {{needs @w as 64x64, found 'tensor<32x64xf32>'}}
    %0 = strata.linear %x, @w : tensor<?x64xf32> -> tensor<?x64xf32>
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-note @below {{the weight is declared here}}
  strata.weight @w : tensor<4096xf32> from "w" unit "u"
  strata.forward @body(%step) {
    %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
    // expected-error @below {{needs @w as 64x64, found 'tensor<4096xf32>'}}
    %0 = strata.linear %x, @w : tensor<?x64xf32> -> tensor<?x64xf32>
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  strata.weight @w : tensor<32x64xf32> from "w" unit "u"
  // expected-note @below {{the weight is declared here}}
  strata.weight @b : tensor<64xf32> from "b" unit "u"
  strata.forward @body(%step) {
    %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
    // expected-error @below {{needs @b as 32xf32, found 'tensor<64xf32>'}}
    %0 = strata.linear %x, @w bias @b : tensor<?x64xf32> -> tensor<?x32xf32>
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-note @below {{the weight is declared here}}
  strata.weight @w : tensor<32x64xf32> from "w" unit "u"
  strata.forward @body(%step) {
    %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
    // expected-error @below {{needs @w as 512x64, found 'tensor<32x64xf32>'}}
    %0 = strata.logits %x, @w : tensor<?x64xf32> -> tensor<?x512xf32>
  }
}

// -----

// Any vocabulary, but rows as wide as the table's.
strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-note @below {{the weight is declared here}}
  strata.weight @w : tensor<32x32xf32> from "w" unit "u"
  strata.forward @body(%step) {
    // expected-error @below {{needs @w as ?x64, found 'tensor<32x32xf32>'}}
    %0 = strata.embed @w[%step] : tensor<?x64xf32>
  }
}
