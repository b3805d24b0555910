// Head counts and widths are constants of a kernel that walks a state by them.
//
// RUN: strata-opt %s --split-input-file --verify-diagnostics

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  strata.weight @rope : tensor<4xf32> computed #strata.rope_frequencies<width = 8, theta = 1.0e4>
      unit "u"
  strata.forward @body(%step) {
    %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
    // expected-error @below {{cannot cut a row of 64 into 5 heads}}
    %0 = strata.rope %x, @rope[%step] half {heads = 5 : i64, rotary_width = 8 : i64}
        : tensor<?x64xf32>
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  strata.weight @rope : tensor<4xf32> computed #strata.rope_frequencies<width = 8, theta = 1.0e4>
      unit "u"
  strata.forward @body(%step) {
    %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
    // expected-error @below {{rotary width 9 must be even and at most the head width 8}}
    %0 = strata.rope %x, @rope[%step] half {heads = 8 : i64, rotary_width = 9 : i64}
        : tensor<?x64xf32>
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  strata.weight @rope : tensor<4xf32> computed #strata.rope_frequencies<width = 8, theta = 1.0e4>
      unit "u"
  strata.forward @body(%step) {
    %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
    // expected-error @below {{rotary width 10 must be even and at most the head width 8}}
    %0 = strata.rope %x, @rope[%step] half {heads = 8 : i64, rotary_width = 10 : i64}
        : tensor<?x64xf32>
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  strata.weight @rope : tensor<4xf32> computed #strata.rope_frequencies<width = 8, theta = 1.0e4>
      unit "u"
  strata.forward @body(%step) {
    %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
    // expected-error @below {{rotary width 0 must be even and at most the head width 8}}
    %0 = strata.rope %x, @rope[%step] half {heads = 8 : i64, rotary_width = 0 : i64}
        : tensor<?x64xf32>
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-note @below {{the weight is declared here}}
  strata.weight @rope : tensor<4xf32> computed #strata.rope_frequencies<width = 8, theta = 1.0e4>
      unit "u"
  strata.forward @body(%step) {
    %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
    // expected-error @below {{needs @rope as 8xf32, found 'tensor<4xf32>'}}
    %0 = strata.rope %x, @rope[%step] half {heads = 4 : i64, rotary_width = 16 : i64}
        : tensor<?x64xf32>
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-note @below {{the state is declared here}}
  strata.state @kv paged block_tokens 16 components [#strata.component<"k", "f16", 32>,
      #strata.component<"v", "f16", 32>] layers [0]
  strata.forward @body(%step) {
    %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
    // expected-error @below {{uses layer 1 of @kv, which has none}}
    %0 = strata.attention %x, @kv[%step] layer 1 {query_heads = 8 : i64, kv_heads = 4 : i64,
        scale = 1.0 : f64} : tensor<?x64xf32> -> tensor<?x64xf32>
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  strata.state @kv paged block_tokens 16 components [#strata.component<"k", "f16", 32>,
      #strata.component<"v", "f16", 32>] layers [0]
  strata.forward @body(%step) {
    %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
    // expected-error @below {{cannot attend with 8 query heads over 3 KV heads on rows of 64}}
    %0 = strata.attention %x, @kv[%step] layer 0 {query_heads = 8 : i64, kv_heads = 3 : i64,
        scale = 1.0 : f64} : tensor<?x64xf32> -> tensor<?x64xf32>
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  strata.state @kv paged block_tokens 16 components [#strata.component<"k", "f16", 32>,
      #strata.component<"v", "f16", 32>] layers [0]
  strata.forward @body(%step) {
    %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
    // expected-error @below {{cannot attend with 8 query heads over 0 KV heads on rows of 64}}
    %0 = strata.attention %x, @kv[%step] layer 0 {query_heads = 8 : i64, kv_heads = 0 : i64,
        scale = 1.0 : f64} : tensor<?x64xf32> -> tensor<?x64xf32>
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  strata.state @kv paged block_tokens 16 components [#strata.component<"k", "f16", 32>,
      #strata.component<"v", "f16", 32>] layers [0]
  strata.forward @body(%step) {
    %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
    // expected-error @below {{cannot attend with 7 query heads over 7 KV heads on rows of 64}}
    %0 = strata.attention %x, @kv[%step] layer 0 {query_heads = 7 : i64, kv_heads = 7 : i64,
        scale = 1.0 : f64} : tensor<?x64xf32> -> tensor<?x64xf32>
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  strata.state @kv paged block_tokens 16 components [#strata.component<"k", "f16", 32>,
      #strata.component<"v", "f16", 32>] layers [0]
  strata.forward @body(%step) {
    %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
    // expected-error @below {{cannot cut a result row of 60 into 8 heads}}
    %0 = strata.attention %x, @kv[%step] layer 0 {query_heads = 8 : i64, kv_heads = 4 : i64,
        scale = 1.0 : f64} : tensor<?x64xf32> -> tensor<?x60xf32>
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-note @below {{the state is declared here}}
  strata.state @kv paged block_tokens 16 components [#strata.component<"k", "f16", 32>,
      #strata.component<"v", "f16", 32>] layers [0]
  strata.forward @body(%step) {
    %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
    // expected-error @below {{needs component 'k' of width 16, found width 32}}
    %0 = strata.attention %x, @kv[%step] layer 0 {query_heads = 8 : i64, kv_heads = 2 : i64,
        scale = 1.0 : f64} : tensor<?x64xf32> -> tensor<?x64xf32>
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-note @below {{the state is declared here}}
  strata.state @kv paged block_tokens 16 components [#strata.component<"k", "f16", 32>,
      #strata.component<"v", "f16", 32>] layers [0]
  strata.forward @body(%step) {
    %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
    // expected-error @below {{needs component 'v' of width 16, found width 32}}
    %0 = strata.attention %x, @kv[%step] layer 0 {query_heads = 8 : i64, kv_heads = 4 : i64,
        scale = 1.0 : f64} : tensor<?x64xf32> -> tensor<?x32xf32>
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  strata.state @kv paged block_tokens 16 components [#strata.component<"k", "f16", 32>,
      #strata.component<"v", "f16", 32>] layers [0]
  strata.forward @body(%step) {
    %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
    // expected-error @below {{window 0 must be at least 1}}
    %0 = strata.attention %x, @kv[%step] layer 0 {query_heads = 8 : i64, kv_heads = 4 : i64,
        scale = 1.0 : f64, window = 0 : i64} : tensor<?x64xf32> -> tensor<?x64xf32>
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-note @below {{the state is declared here}}
  strata.state @kv paged block_tokens 16 components [#strata.component<"k", "f16", 32>] layers [0]
  strata.forward @body(%step) {
    %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
    // expected-error @below {{needs component 'v' of width 32}}
    %0 = strata.attention %x, @kv[%step] layer 0 {query_heads = 8 : i64, kv_heads = 4 : i64,
        scale = 1.0 : f64} : tensor<?x64xf32> -> tensor<?x64xf32>
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  strata.state @kv window 8 block_tokens 16 components [#strata.component<"k", "f16", 32>,
      #strata.component<"v", "f16", 32>] layers [0]
  strata.forward @body(%step) {
    %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
    // expected-error @below {{sees more than the 8 tokens that its state keeps}}
    %0 = strata.attention %x, @kv[%step] layer 0 {query_heads = 8 : i64, kv_heads = 4 : i64,
        scale = 1.0 : f64, window = 9 : i64} : tensor<?x64xf32> -> tensor<?x64xf32>
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  strata.state @kv window 8 block_tokens 16 components [#strata.component<"k", "f16", 32>,
      #strata.component<"v", "f16", 32>] layers [0]
  strata.forward @body(%step) {
    %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
    // expected-error @below {{sees more than the 8 tokens that its state keeps}}
    %0 = strata.attention %x, @kv[%step] layer 0 {query_heads = 8 : i64, kv_heads = 4 : i64,
        scale = 1.0 : f64} : tensor<?x64xf32> -> tensor<?x64xf32>
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-note @below {{the state is declared here}}
  strata.state @kv paged block_tokens 16 components [#strata.component<"k", "f16", 32>,
      #strata.component<"v", "f16", 32>] layers [0]
  strata.forward @body(%step) {
    %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
    // expected-error @below {{needs component 'k' of width 64, found width 32}}
    strata.kv_write %x, %x, @kv[%step] layer 0 : tensor<?x64xf32>, tensor<?x64xf32>
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  strata.state @kv paged block_tokens 16 components [#strata.component<"k", "f16", 32>,
      #strata.component<"v", "f16", 32>] layers [0]
  strata.forward @body(%step) {
    %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
    // expected-error @below {{names @vk, which is not a strata.state of its own stage or model}}
    strata.kv_write %x, %x, @vk[%step] layer 0 : tensor<?x64xf32>, tensor<?x64xf32>
  }
}
