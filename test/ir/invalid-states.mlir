// A state's blocks are laid out from these numbers alone, and a pool has thousands of blocks.
//
// RUN: strata-opt %s --split-input-file --verify-diagnostics

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{a window group, and no other, has a window}}
  strata.state @s paged 16 block_tokens 16 components [#strata.component<"k", "f16", 32>] layers [0]
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{a window group, and no other, has a window}}
  strata.state @s window block_tokens 16 components [#strata.component<"k", "f16", 32>] layers [0]
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{window 0 must be at least 1}}
  strata.state @s window 0 block_tokens 16 components [#strata.component<"k", "f16", 32>] layers [0]
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{a slot group keeps everything once: block_tokens is 16, must be 1}}
  strata.state @s slot block_tokens 16 components [#strata.component<"k", "f16", 32>] layers [0]
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{block_tokens is 0, must be 1 to 65536}}
  strata.state @s paged block_tokens 0 components [#strata.component<"k", "f16", 32>] layers [0]
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{has no components}}
  strata.state @s paged block_tokens 16 components [] layers [0]
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{component 'k' has type 'q8_0', must be f32, f16 or bf16}}
  strata.state @s paged block_tokens 16 components [#strata.component<"k", "q8_0", 32>] layers [0]
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{component 'k' has width 0, must be 1 to 2147483647}}
  strata.state @s paged block_tokens 16 components [#strata.component<"k", "f16", 0>] layers [0]
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{has two components 'k'}}
  strata.state @s paged block_tokens 16 components [#strata.component<"k", "f16", 8>,
      #strata.component<"k", "f16", 8>] layers [0]
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{is of no layer}}
  strata.state @s paged block_tokens 16 components [#strata.component<"k", "f16", 32>] layers []
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{lists layer 0, which is out of range or listed before}}
  strata.state @s paged block_tokens 16 components [#strata.component<"k", "f16", 32>] layers [0, 1, 0]
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{lists layer -1, which is out of range or listed before}}
  strata.state @s paged block_tokens 16 components [#strata.component<"k", "f16", 32>] layers [-1]
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // 2^31 - 1 elements of 4 bytes, 65536 tokens: about 2^49 bytes.
  // expected-error @below {{has blocks of more than 1099511627776 bytes}}
  strata.state @s paged block_tokens 65536 components [#strata.component<"k", "f32", 2147483647>]
      layers [0]
}
