// No op can reach another device's memory, because no name leads there.
//
// RUN: strata-opt %s --split-input-file --verify-diagnostics

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"]} {
  // expected-error @below {{holds layers 3 to 2}}
  strata.stage @s0 on "cpu:x86-64-v3" layers 3 to 2 {
  }
}

// -----

// expected-error @below {{expects parent op 'strata.model'}}
strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 0 {
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{expects parent op 'strata.stage'}}
  strata.port @in input width 64
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"]} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 0 {
    strata.port @out output width 64
  }
  strata.stage @s1 on "cpu:x86-64-v3" layers 0 to 0 {
    strata.port @in input width 64
  }
  // expected-error @below {{names @s0::@aut, which is no port}}
  strata.handoff @h : @s0::@aut -> @s1::@in rows 1 slots 1
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"]} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 0 {
    strata.port @out output width 64
  }
  strata.stage @s1 on "cpu:x86-64-v3" layers 0 to 0 {
    strata.port @in input width 64
  }
  // expected-error @below {{names @s2::@in, which is no port}}
  strata.handoff @h : @s0::@out -> @s2::@in rows 1 slots 1
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"]} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 0 {
    // expected-note @below {{the port is declared here}}
    strata.port @out input width 64
  }
  strata.stage @s1 on "cpu:x86-64-v3" layers 0 to 0 {
    strata.port @in input width 64
  }
  // expected-error @below {{needs @s0::@out as an output port}}
  strata.handoff @h : @s0::@out -> @s1::@in rows 1 slots 1
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"]} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 0 {
    strata.port @out output width 64
  }
  strata.stage @s1 on "cpu:x86-64-v3" layers 0 to 0 {
    // expected-note @below {{the port is declared here}}
    strata.port @in output width 64
  }
  // expected-error @below {{needs @s1::@in as an input port}}
  strata.handoff @h : @s0::@out -> @s1::@in rows 1 slots 1
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"]} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 0 {
    strata.port @out output width 64
  }
  strata.stage @s1 on "cpu:x86-64-v3" layers 0 to 0 {
    // expected-note @below {{the consumer is declared here}}
    strata.port @in input width 32
  }
  // expected-error @below {{joins a port of width 64 to one of width 32}}
  strata.handoff @h : @s0::@out -> @s1::@in rows 1 slots 1
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"]} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 0 {
    strata.port @out output width 64
  }
  strata.stage @s1 on "cpu:x86-64-v3" layers 0 to 0 {
    strata.port @in input width 64
  }
  // expected-error @below {{needs at least one row and one slot}}
  strata.handoff @h : @s0::@out -> @s1::@in rows 0 slots 2
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"]} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 0 {
    strata.port @out output width 64
  }
  strata.stage @s1 on "cpu:x86-64-v3" layers 0 to 0 {
    strata.port @in input width 64
  }
  // expected-error @below {{needs at least one row and one slot}}
  strata.handoff @h : @s0::@out -> @s1::@in rows 8 slots 0
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"]} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 0 {
    strata.forward @body(%step) {
      %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
      // expected-error @below {{names @out, which is no port of its stage}}
      strata.send %x, @out : tensor<?x64xf32>
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"]} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 0 {
    // expected-note @below {{the port is declared here}}
    strata.port @out output width 32
    strata.forward @body(%step) {
      %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
      // expected-error @below {{needs @out as an output port of width 64}}
      strata.send %x, @out : tensor<?x64xf32>
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"]} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 0 {
    // expected-note @below {{the port is declared here}}
    strata.port @out output width 64
    strata.forward @body(%step) {
      // expected-error @below {{needs @out as an input port of width 64}}
      %x = strata.receive @out : tensor<?x64xf32>
    }
  }
}

// -----

// The use is foreign, not misspelt: the note points at the stage that holds the weight.
strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"]} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 0 {
    // expected-note @below {{a symbol of that name is held here}}
    strata.weight @norm : tensor<64xf32> from "n" unit "u"
  }
  strata.stage @s1 on "cpu:x86-64-v3" layers 0 to 0 {
    strata.forward @body(%step) {
      %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
      // expected-error @below {{names @norm, which is not a strata.weight of its own stage or model}}
      %y = strata.rms_norm %x, @norm {epsilon = 1.0e-5 : f64} : tensor<?x64xf32>
    }
  }
}

// -----

// A stage is isolated from its model as well.
strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"]} {
  // expected-note @below {{a symbol of that name is held here}}
  strata.weight @norm : tensor<64xf32> from "n" unit "u"
  strata.stage @s1 on "cpu:x86-64-v3" layers 0 to 0 {
    strata.forward @body(%step) {
      %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
      // expected-error @below {{names @norm, which is not a strata.weight of its own stage or model}}
      %y = strata.rms_norm %x, @norm {epsilon = 1.0e-5 : f64} : tensor<?x64xf32>
    }
  }
}
