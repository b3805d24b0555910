// A weight's shape, type and recipe fix its bytes in the plan; what cannot be packed, or has more bytes
// than fit a number, is refused where it is declared.
//
// RUN: strata-opt %s --split-input-file --verify-diagnostics

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{has a dynamic shape 'tensor<?x64xf32>'}}
  strata.weight @w : tensor<?x64xf32> from "w" unit "u"
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{element type 'i8' is not f32, f16, bf16 or !strata.quant}}
  strata.weight @w : tensor<64xi8> from "w" unit "u"
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{has rank 0, must be 1 to 4}}
  strata.weight @w : tensor<f32> from "w" unit "u"
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{has rank 5, must be 1 to 4}}
  strata.weight @w : tensor<1x1x1x1x4xf32> from "w" unit "u"
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{has a dimension of 0, must be 1 to 2147483647}}
  strata.weight @w : tensor<0x64xf32> from "w" unit "u"
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{has a dimension of 2147483648, must be 1 to 2147483647}}
  strata.weight @w : tensor<2147483648xf32> from "w" unit "u"
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // 48 = 1.5 blocks of 32.
  // expected-error @below {{rows of 48 elements are no whole number of blocks of 32 (q4_1)}}
  strata.weight @w : tensor<64x48x!strata.quant<q4_1>> from "w" unit "u"
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // (2^31 - 1)^3 elements of 4 bytes are more than 2^63.
  // expected-error @below {{or the size overflows}}
  strata.weight @w : tensor<2147483647x2147483647x2147483647xf32> from "w" unit "u"
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{needs a source tensor or a computation}}
  strata.weight @w : tensor<64xf32> unit "u"
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{rope frequencies of width 8 are tensor<4xf32>, not 'tensor<8xf32>'}}
  strata.weight @w : tensor<8xf32> computed #strata.rope_frequencies<width = 8, theta = 1.0e4>
      unit "u"
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{no weight type is called 'q9_9'}}
  strata.weight @w : tensor<64x!strata.quant<q9_9>> from "w" unit "u"
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{'f16' is a builtin element type, not a quantised one}}
  strata.weight @w : tensor<64x!strata.quant<f16>> from "w" unit "u"
}

// -----

// expected-error @below {{expects parent op to be one of 'strata.model, strata.stage'}}
strata.weight @w : tensor<64xf32> from "w" unit "u"

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{rope frequencies need theta}}
  strata.weight @w : tensor<4xf32> computed #strata.rope_frequencies<width = 8> unit "u"
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{rope theta must be above 0}}
  strata.weight @w : tensor<4xf32> computed #strata.rope_frequencies<width = 8, theta = 0.0> unit "u"
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{rope width 7 is not a positive even number}}
  strata.weight @w : tensor<4xf32> computed #strata.rope_frequencies<width = 7, theta = 1.0e4> unit "u"
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{unknown rope scaling 'dynamic'}}
  strata.weight @w : tensor<4xf32> computed #strata.rope_frequencies<width = 8, theta = 1.0e4, scaling = "dynamic"> unit "u"
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{rope factor must be above 0}}
  strata.weight @w : tensor<4xf32> computed #strata.rope_frequencies<width = 8, theta = 1.0e4, scaling = "linear", factor = 0.0> unit "u"
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{rope scaling 'yarn' needs its original context}}
  strata.weight @w : tensor<4xf32> computed #strata.rope_frequencies<width = 8, theta = 1.0e4, scaling = "yarn", factor = 2.0> unit "u"
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{rope scaling 'llama3' needs 0 < low_frequency_factor < high_frequency_factor}}
  strata.weight @w : tensor<4xf32> computed #strata.rope_frequencies<width = 8, theta = 1.0e4, scaling = "llama3", factor = 2.0,
      low_frequency_factor = 4.0, high_frequency_factor = 4.0, original_context = 64.0> unit "u"
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{rope scaling 'yarn' needs theta above 1 and beta_fast >= beta_slow > 0}}
  strata.weight @w : tensor<4xf32> computed #strata.rope_frequencies<width = 8, theta = 1.0e4, scaling = "yarn", factor = 2.0,
      original_context = 64.0, beta_fast = 1.0, beta_slow = 2.0> unit "u"
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{rope parameters must be finite}}
  strata.weight @w : tensor<4xf32> computed #strata.rope_frequencies<width = 8, theta = 0x7FF0000000000000> unit "u"
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{unknown rope parameter 'speed'}}
  strata.weight @w : tensor<4xf32> computed #strata.rope_frequencies<width = 8, theta = 1.0e4, speed = 2.0> unit "u"
}
