// Rows of one width are not rows of one space, and experts are given what their weights and tables say.
//
// RUN: strata-opt %s --split-input-file --verify-diagnostics

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  strata.weight @down_table : tensor<64x64xf32> from "d" unit "u"
  strata.forward @body(%step) {
    // The hidden space and the latent one are both 64 wide.
    %n = builtin.unrealized_conversion_cast to tensor<?x64xf32, #strata.space<hidden>>
    // expected-error @below {{the input is 'tensor<?x64xf32, #strata.space<hidden>>', must be of space 'latent'}}
    %y = strata.latent_up %n, @down_table {groups = 1 : i64}
        : tensor<?x64xf32, #strata.space<hidden>> -> tensor<?x64xf32, #strata.space<hidden>>
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  strata.weight @down_table : tensor<64x64xf32> from "d" unit "u"
  strata.forward @body(%step) {
    %a = builtin.unrealized_conversion_cast to tensor<?x64xf32, #strata.space<latent>>
    // expected-error @below {{only strata.latent_down leads into latent space and only strata.latent_up out of it}}
    %y = strata.linear %a, @down_table : tensor<?x64xf32, #strata.space<latent>>
        -> tensor<?x64xf32, #strata.space<hidden>>
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  strata.weight @down_table : tensor<64x64xf32> from "d" unit "u"
  strata.forward @body(%step) {
    %n = builtin.unrealized_conversion_cast to tensor<?x64xf32, #strata.space<hidden>>
    // expected-error @below {{the result is 'tensor<?x64xf32, #strata.space<hidden>>', must be of space 'latent'}}
    %y = strata.latent_down %n, @down_table {groups = 1 : i64}
        : tensor<?x64xf32, #strata.space<hidden>> -> tensor<?x64xf32, #strata.space<hidden>>
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  strata.weight @up : tensor<8x48x64xf32> from "up" unit "u"
  strata.weight @down : tensor<8x64x48xf32> from "down" unit "u"
  strata.weight @slots : tensor<8xf32> computed #strata.identity<8> unit "u"
  strata.forward @body(%step) {
    // What experts made of latent rows is still latent: it does not add to the residual.
    %x = builtin.unrealized_conversion_cast to tensor<?x64xf32, #strata.space<hidden>>
    %a = builtin.unrealized_conversion_cast to tensor<?x64xf32, #strata.space<latent>>
    %r = builtin.unrealized_conversion_cast to tensor<?x4xf32, #strata.space<routing>>
    // expected-note @below {{prior use here}}
    %e = strata.experts relu2 %a, %r up @up down @down slots @slots
        : tensor<?x64xf32, #strata.space<latent>>, tensor<?x4xf32, #strata.space<routing>>
    // expected-error @below {{use of value '%e' expects different type}}
    %y = strata.add %x, %e : tensor<?x64xf32, #strata.space<hidden>>
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-note @below {{the weight is declared here}}
  strata.weight @down_table : tensor<24x48xf32> from "d" unit "u"
  strata.forward @body(%step) {
    // Hidden rows of 64 for a table whose columns are 48.
    %n = builtin.unrealized_conversion_cast to tensor<?x64xf32, #strata.space<hidden>>
    // expected-error @below {{needs @down_table as 24x64, found 'tensor<24x48xf32>'}}
    %y = strata.latent_down %n, @down_table {groups = 1 : i64}
        : tensor<?x64xf32, #strata.space<hidden>> -> tensor<?x24xf32, #strata.space<latent>>
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  strata.weight @up : tensor<8x48x64xf32> from "up" unit "u"
  strata.weight @down : tensor<8x64x48xf32> from "down" unit "u"
  strata.weight @slots : tensor<8xf32> computed #strata.identity<8> unit "u"
  strata.forward @body(%step) {
    // Hidden rows of 48 for experts of 64.
    %n = builtin.unrealized_conversion_cast to tensor<?x48xf32, #strata.space<latent>>
    %r = builtin.unrealized_conversion_cast to tensor<?x4xf32, #strata.space<routing>>
    // expected-error @below {{has rows of 48 for experts of width 64}}
    %y = strata.experts relu2 %n, %r up @up down @down slots @slots
        : tensor<?x48xf32, #strata.space<latent>>, tensor<?x4xf32, #strata.space<routing>>
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  strata.weight @up : tensor<8x48x64xf32> from "up" unit "u"
  strata.weight @down : tensor<8x64x48xf32> from "down" unit "u"
  strata.weight @slots : tensor<8xf32> computed #strata.identity<8> unit "u"
  strata.forward @body(%step) {
    %n = builtin.unrealized_conversion_cast to tensor<?x64xf32, #strata.space<hidden>>
    %r = builtin.unrealized_conversion_cast to tensor<?x4xf32, #strata.space<hidden>>
    // expected-error @below {{the routing is 'tensor<?x4xf32, #strata.space<hidden>>', must be of space 'routing'}}
    %y = strata.experts relu2 %n, %r up @up down @down slots @slots
        : tensor<?x64xf32, #strata.space<hidden>>, tensor<?x4xf32, #strata.space<hidden>>
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  strata.forward @body(%step) {
    %l = builtin.unrealized_conversion_cast to tensor<?x8xf32>
    // expected-error @below {{uses 3 of 2 experts}}
    %r = strata.router softmax %l {used = 3 : i64, groups = 4 : i64, groups_used = 1 : i64} : tensor<?x8xf32> -> tensor<?x6xf32, #strata.space<routing>>
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  strata.forward @body(%step) {
    %l = builtin.unrealized_conversion_cast to tensor<?x8xf32>
    // expected-error @below {{cannot use 1 of 3 groups of 8 experts}}
    %r = strata.router softmax %l {used = 2 : i64, groups = 3 : i64} : tensor<?x8xf32> -> tensor<?x4xf32, #strata.space<routing>>
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  strata.forward @body(%step) {
    %l = builtin.unrealized_conversion_cast to tensor<?x8xf32>
    // expected-error @below {{makes rows of 6, must be 4: number and weight of 2 experts}}
    %r = strata.router softmax %l {used = 2 : i64} : tensor<?x8xf32> -> tensor<?x6xf32, #strata.space<routing>>
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  strata.forward @body(%step) {
    %l = builtin.unrealized_conversion_cast to tensor<?x8xf32>
    // expected-error @below {{scores a group by its 3 best of 2 experts}}
    %r = strata.router softmax %l {used = 1 : i64, groups = 4 : i64, group_top = 3 : i64} : tensor<?x8xf32> -> tensor<?x2xf32, #strata.space<routing>>
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  strata.weight @conv : tensor<64x4xf32> from "conv" unit "u"
  // expected-note @below {{the state is declared here}}
  strata.state @kv paged block_tokens 16 components [#strata.component<"conv", "f32", 192>] layers [0]
  strata.forward @body(%step) {
    %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
    // expected-error @below {{needs component 'conv' in f32 and in one slot a sequence, which is not what @kv keeps}}
    %y = strata.conv %x, @conv, @kv[%step] layer 0 : tensor<?x64xf32>
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  strata.weight @conv : tensor<64x4xf32> from "conv" unit "u"
  // expected-note @below {{the state is declared here}}
  strata.state @s slot block_tokens 1 components [#strata.component<"conv", "f32", 128>] layers [0]
  strata.forward @body(%step) {
    // Three rows of 64 before the first: 192.
    %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
    // expected-error @below {{needs component 'conv' of width 192, found width 128}}
    %y = strata.conv %x, @conv, @s[%step] layer 0 : tensor<?x64xf32>
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-note @below {{the state is declared here}}
  strata.state @s slot block_tokens 1 components [#strata.component<"k", "f32", 16>, #strata.component<"v", "f32", 16>] layers [0]
  strata.forward @body(%step) {
    %x = builtin.unrealized_conversion_cast to tensor<?x16xf32>
    // expected-error @below {{needs a state that keeps every token, not one slot a sequence}}
    strata.kv_write %x, %x, @s[%step] layer 0 : tensor<?x16xf32>, tensor<?x16xf32>
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{stacks 5 of 'w.*' into 'tensor<4x8x8xf32>'}}
  strata.weight @w : tensor<4x8x8xf32> from "w.*" stack 5 unit "u"
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{takes rows 5..+4 of every 8}}
  strata.weight @w : tensor<4x8xf32> from "w" part <5, 8> unit "u"
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{joins 2 groups into 'tensor<4x9xf32>'}}
  strata.weight @w : tensor<4x9xf32> from "w" join 2 unit "u"
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{maps by 'exp', must be neg_exp}}
  strata.weight @w : tensor<4xf32> from "w" map "exp" unit "u"
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{is an identity of width 5 without a source, not 'tensor<4xf32>'}}
  strata.weight @w : tensor<4xf32> computed #strata.identity<5> unit "u"
}
