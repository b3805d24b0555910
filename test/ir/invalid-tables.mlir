// A table of layers is read at a layer that is held, or not at all: what lies beside a trimmed table is
// another weight.
//
// RUN: strata-opt %s --split-input-file --verify-diagnostics

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 4 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  strata.stage @s1 on "cpu:x86-64-v3" layers 2 to 4 {
    // expected-note @below {{the weight is declared here}}
    strata.weight @t : tensor<2x48x64xf32> from "t" layers <2, 4, 4> unit "t"
    strata.forward @body(%step) {
      %n = builtin.unrealized_conversion_cast to tensor<?x64xf32, #strata.space<hidden>>
      // expected-error @below {{reads layer 1 of table @t, of which layers 2 to 4 are held here}}
      %a = strata.latent_down %n, @t layer 1 {groups = 2 : i64}
          : tensor<?x64xf32, #strata.space<hidden>> -> tensor<?x48xf32, #strata.space<latent>>
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 4 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-note @below {{the weight is declared here}}
  strata.weight @t : tensor<4x48x64xf32> from "t" layers <0, 4, 4> unit "t"
  strata.forward @body(%step) {
    %n = builtin.unrealized_conversion_cast to tensor<?x64xf32, #strata.space<hidden>>
    // expected-error @below {{must say which layer of table @t it reads}}
    %a = strata.latent_down %n, @t {groups = 2 : i64}
        : tensor<?x64xf32, #strata.space<hidden>> -> tensor<?x48xf32, #strata.space<latent>>
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 4 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-note @below {{the weight is declared here}}
  strata.weight @t : tensor<48x64xf32> from "t" unit "t"
  strata.forward @body(%step) {
    %n = builtin.unrealized_conversion_cast to tensor<?x64xf32, #strata.space<hidden>>
    // expected-error @below {{reads layer 0 of @t, which is no table of layers}}
    %a = strata.latent_down %n, @t layer 0 {groups = 2 : i64}
        : tensor<?x64xf32, #strata.space<hidden>> -> tensor<?x48xf32, #strata.space<latent>>
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 4 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-note @below {{the weight is declared here}}
  strata.weight @t : tensor<4x48x64xf32> from "t" layers <0, 4, 4> unit "t"
  strata.forward @body(%step) {
    %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
    // expected-error @below {{must say which layer of table @t it reads}}
    %y = strata.linear %x, @t : tensor<?x64xf32> -> tensor<?x48xf32>
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 4 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 2 {
    strata.kernel @cpu.k
    // expected-note @below {{the weight is declared here}}
    strata.weight @t : tensor<2x48x64xf32> from "t" layers <0, 2, 4> unit "t" layout "rows"
    strata.forward @r1s1(%step) rows 1 sequences 1 body {
      // expected-error @below {{reads layer 2 of table @t, of which layers 0 to 2 are held here}}
      strata.dispatch @cpu.k() slots [#strata.weight<@t, 2>] items <constant = 1> "down" layer 2
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 4 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{layers 2 to 2 of 4 are no range}}
  strata.weight @t : tensor<4x48x64xf32> from "t" layers <2, 2, 4> unit "t"
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 4 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{layers 2 to 5 of 4 are no range}}
  strata.weight @t : tensor<3x48x64xf32> from "t" layers <2, 5, 4> unit "t"
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 4 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{holds layers 0 to 4 of at most 65536, which the outermost dimension counts, not 'tensor<3x48x64xf32>'}}
  strata.weight @t : tensor<3x48x64xf32> from "t" layers <0, 4, 4> unit "t"
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 4 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{is a table of layers, which is read whole from one source}}
  strata.weight @t : tensor<4x48x64xf32> from "t.*" stack 4 layers <0, 4, 4> unit "t"
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 4 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{has 2 ends of ranges for 2 stages}}
  strata.weight @t : tensor<4x48x64xf32> from "t" layers <0, 4, 4> unit "u" stages [0, 1] ranges [0, 4]
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 4 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{gives stage 1 layers 2 to 5}}
  strata.weight @t : tensor<4x48x64xf32> from "t" layers <0, 4, 4> unit "u" stages [0, 1] ranges [0, 2, 2, 5]
}
