// Commands and their memory: each slot names something that the op's own stage holds, and no buffer stands
// where the arithmetic of its arena would not see it.
//
// RUN: strata-opt %s --split-input-file --verify-diagnostics

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"]} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 0 {
    strata.kernel @cpu.add
    strata.forward @body(%step) {
      %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
      // expected-error @below {{runs @cpu.sub, which is no kernel of its stage}}
      strata.invoke @cpu.sub(%x) slots [] items <row = 1>
          tied [] "op" layer 0 : (tensor<?x64xf32>) -> ()
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"]} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 0 {
    strata.kernel @cpu.add
    strata.forward @body(%step) {
      %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
      // expected-error @below {{slot 0 is buffer 1 of 1}}
      strata.invoke @cpu.add(%x) slots [#strata.buffer<1>] items <row = 1>
          tied [] "op" layer 0 : (tensor<?x64xf32>) -> ()
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"]} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 0 {
    strata.kernel @cpu.add
    strata.forward @body(%step) {
      %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
      // expected-error @below {{slot 1 is buffer -1 of 1}}
      strata.invoke @cpu.add(%x) slots [#strata.const<1 : i64>, #strata.buffer<-1>] items <row = 1>
          tied [] "op" layer 0 : (tensor<?x64xf32>) -> ()
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"]} {
  strata.stage @s1 on "cpu:x86-64-v3" layers 0 to 0 {
    // expected-note @below {{a symbol of that name is held here}}
    strata.weight @w : tensor<64xf32> from "n" unit "u"
  }
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 0 {
    strata.kernel @cpu.add
    strata.forward @body(%step) {
      %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
      // expected-error @below {{slot 0 (#strata.weight<@w>) names what its stage does not hold}}
      strata.invoke @cpu.add(%x) slots [#strata.weight<@w>] items <row = 1>
          tied [] "op" layer 0 : (tensor<?x64xf32>) -> ()
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"]} {
  strata.stage @s1 on "cpu:x86-64-v3" layers 0 to 0 {
    // expected-note @below {{a symbol of that name is held here}}
    strata.state @kv paged block_tokens 16 components [#strata.component<"k", "f16", 32>]
        layers [3]
  }
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 0 {
    strata.kernel @cpu.add
    strata.forward @body(%step) {
      %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
      // expected-error @below {{slot 0 (#strata.state<@kv, "k", 3>) names what its stage does not hold}}
      strata.invoke @cpu.add(%x) slots [#strata.state<@kv, "k", 3>] items <row = 1>
          tied [] "op" layer 0 : (tensor<?x64xf32>) -> ()
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"]} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 0 {
    strata.kernel @cpu.add
    // expected-note @below {{a symbol of that name is held here}}
    strata.state @kv paged block_tokens 16 components [#strata.component<"k", "f16", 32>]
        layers [3]
    strata.forward @body(%step) {
      %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
      // expected-error @below {{names what its stage does not hold}}
      strata.invoke @cpu.add(%x) slots [#strata.state<@kv, "v", 3>] items <row = 1>
          tied [] "op" layer 0 : (tensor<?x64xf32>) -> ()
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"]} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 0 {
    strata.kernel @cpu.add
    // expected-note @below {{a symbol of that name is held here}}
    strata.state @kv paged block_tokens 16 components [#strata.component<"k", "f16", 32>]
        layers [3]
    strata.forward @body(%step) {
      %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
      // expected-error @below {{names what its stage does not hold}}
      strata.invoke @cpu.add(%x) slots [#strata.state<@kv, "k", 2>] items <row = 1>
          tied [] "op" layer 0 : (tensor<?x64xf32>) -> ()
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"]} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 0 {
    strata.kernel @cpu.add
    strata.forward @body(%step) {
      %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
      // expected-error @below {{names what its stage does not hold}}
      strata.invoke @cpu.add(%x) slots [#strata.state_constant<@kv, "block_tokens">] items <row = 1>
          tied [] "op" layer 0 : (tensor<?x64xf32>) -> ()
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"]} {
  strata.stage @s1 on "cpu:x86-64-v3" layers 0 to 0 {
    // expected-note @below {{a symbol of that name is held here}}
    strata.port @in input width 64
  }
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 0 {
    strata.kernel @cpu.add
    strata.forward @body(%step) {
      %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
      // expected-error @below {{slot 0 (#strata.port<@in>) names what its stage does not hold}}
      strata.invoke @cpu.add(%x) slots [#strata.port<@in>] items <row = 1>
          tied [] "op" layer 0 : (tensor<?x64xf32>) -> ()
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"]} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 0 {
    strata.kernel @cpu.add
    strata.forward @body(%step) {
      %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
      // expected-error @below {{ties 1 of 0 results}}
      strata.invoke @cpu.add(%x) slots [] items <row = 1>
          tied [0] "op" layer 0 : (tensor<?x64xf32>) -> ()
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"]} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 0 {
    strata.kernel @cpu.add
    strata.forward @body(%step) {
      %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
      // expected-error @below {{ties result 0 to operand 1 of 1}}
      %y = strata.invoke @cpu.add(%x) slots [] items <row = 1>
          tied [1] "op" layer 0 : (tensor<?x64xf32>) -> tensor<?x64xf32>
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"]} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 0 {
    strata.kernel @cpu.add
    strata.forward @body(%step) {
      %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
      // expected-error @below {{ties result 0 to operand -2 of 1}}
      %y = strata.invoke @cpu.add(%x) slots [] items <row = 1>
          tied [-2] "op" layer 0 : (tensor<?x64xf32>) -> tensor<?x64xf32>
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"]} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 0 {
    strata.kernel @cpu.add
    strata.forward @body(%step) {
      %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
      // expected-error @below {{ties result 0 to an operand of another type}}
      %y = strata.invoke @cpu.add(%x) slots [] items <row = 1>
          tied [0] "op" layer 0 : (tensor<?x64xf32>) -> tensor<?x32xf32>
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"]} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 0 {
    strata.forward @body(%step) {
      // expected-error @below {{1 intervals for 2 buffers}}
      %b:2 = strata.pack [#strata.interval<"a", 0, 1, 64>] : !strata.buffer<64>, !strata.buffer<64>
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"]} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 0 {
    strata.forward @body(%step) {
      // expected-error @below {{buffer 'a' lives in [2, 2), an empty or negative span}}
      %b = strata.pack [#strata.interval<"a", 2, 2, 64>] : !strata.buffer<64>
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"]} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 0 {
    strata.forward @body(%step) {
      // expected-error @below {{buffer 'a' lives in [-1, 2), an empty or negative span}}
      %b = strata.pack [#strata.interval<"a", -1, 2, 64>] : !strata.buffer<64>
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"]} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 0 {
    strata.forward @body(%step) {
      // expected-error @below {{buffer 'a' has 65 bytes, not a positive multiple of 64}}
      %b = strata.pack [#strata.interval<"a", 0, 2, 65>] : !strata.buffer<65>
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"]} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 0 {
    strata.forward @body(%step) {
      // expected-error @below {{buffer 'a' has 64 bytes but type '!strata.buffer<128>'}}
      %b = strata.pack [#strata.interval<"a", 0, 2, 64>] : !strata.buffer<128>
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"]} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 0 {
    strata.forward @body(%step) {
      // expected-error @below {{0 offsets for 1 buffers}}
      %b = strata.arena [#strata.interval<"a", 0, 2, 64>] offsets [] peak 64 lower_bound 64
          : !strata.buffer<64>
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"]} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 0 {
    strata.forward @body(%step) {
      // expected-error @below {{buffer 'a' stands at 32, not a multiple of 64}}
      %b = strata.arena [#strata.interval<"a", 0, 2, 64>] offsets [32] peak 96 lower_bound 64
          : !strata.buffer<64>
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"]} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 0 {
    strata.forward @body(%step) {
      // 64 + 64 = 128.
      // expected-error @below {{peak is 64 but the buffers end at 128}}
      %b = strata.arena [#strata.interval<"a", 0, 2, 64>] offsets [64] peak 64 lower_bound 64
          : !strata.buffer<64>
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"]} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 0 {
    strata.forward @body(%step) {
      // expected-error @below {{1 intervals for 0 buffers}}
      "strata.pack"() <{intervals = [#strata.interval<"a", 0, 1, 64>], carried}> : () -> ()
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"]} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 0 {
    strata.forward @body(%step) {
      // expected-error @below {{a constant slot holds an i64 or an f64, not 1.000000e+00 : f32}}
      "builtin.unrealized_conversion_cast"() {slot = #strata.const<1.0 : f32>} : () -> tensor<4xf32>
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"]} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 0 {
    strata.kernel @cpu.add
    strata.forward @body(%step) {
      %b = strata.pack [#strata.interval<"a", 0, 1, 64>] : !strata.buffer<64>
      // expected-error @below {{slot 0 is buffer 1 of 1}}
      strata.dispatch @cpu.add(%b) slots [#strata.buffer<1>] items <> "op" layer 0
          : !strata.buffer<64>
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"]} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 0 {
    strata.forward @body(%step) {
      // expected-error @below {{runs @cpu.add, which is no kernel of its stage}}
      strata.dispatch @cpu.add() slots [] items <> "op" layer 0
    }
  }
}
