// Rows of different spaces, or of no fixed width, meet no kernel at all.
//
// RUN: strata-opt %s --split-input-file --verify-diagnostics

// Spaces never meet, even of one width.
strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  strata.forward @body(%step) {
    %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
    // expected-note @below {{prior use here}}
    %y = builtin.unrealized_conversion_cast to tensor<?x64xf32, #strata.space<latent>>
    // expected-error @below {{expects different type than prior uses}}
    %0 = strata.add %y, %x : tensor<?x64xf32>
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  strata.forward @body(%step) {
    %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
    // expected-error @below {{gathers rows of 'tensor<?x64xf32>' into 'tensor<?x32xf32>'}}
    %0 = strata.gather_rows %x[%step] : tensor<?x64xf32> -> tensor<?x32xf32>
  }
}

// -----

// No rows, no width.
strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  strata.forward @body(%step) {
    %y = builtin.unrealized_conversion_cast to tensor<f32>
    // expected-error @below {{must be tensor of rows x width x f32 with a fixed width, but got 'tensor<f32>'}}
    %0 = strata.activation silu %y : tensor<f32>
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  strata.forward @body(%step) {
    %y = builtin.unrealized_conversion_cast to tensor<?x?xf32>
    // expected-error @below {{must be tensor of rows x width x f32 with a fixed width, but got 'tensor<?x?xf32>'}}
    %0 = strata.activation silu %y : tensor<?x?xf32>
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  strata.forward @body(%step) {
    %y = builtin.unrealized_conversion_cast to tensor<?x64xf16>
    // expected-error @below {{must be tensor of rows x width x f32 with a fixed width, but got 'tensor<?x64xf16>'}}
    %0 = strata.activation silu %y : tensor<?x64xf16>
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  strata.forward @body(%step) {
    %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
    // expected-error @below {{expected ::strata::ir::Function to be one of: silu, gelu_tanh, relu2, sigmoid}}
    // expected-error @below {{failed to parse Strata_FunctionAttr parameter}}
    %0 = strata.activation tanh %x : tensor<?x64xf32>
  }
}
