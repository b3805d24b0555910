// The last door: a text that was planned by hand, or edited, is held to what the passes promise.
//
// RUN: strata-opt %s --split-input-file --verify-diagnostics \
// RUN:     --pass-pipeline='builtin.module(strata.model(strata-verify-plan))'

strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 1 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 1 : i64, max_rows = 1 : i64,
    devices = ["cpu:x86-64-v3"], tails = [], after = "plan-memory"} {
  // expected-error @below {{lacks forward @r1s1}}
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 1 embedding scratch 0 {
    strata.kernel @cpu.add
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 1 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 1 : i64, max_rows = 2 : i64,
    devices = ["cpu:x86-64-v3"], tails = [#strata.tail<1, 0>], after = "plan-memory"} {
  // expected-error @below {{lacks forward @r2s1}}
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 1 embedding scratch 0 {
    strata.kernel @cpu.add
    strata.forward @r1s1(%step) rows 1 sequences 1 body {
      %b:2 = strata.arena [#strata.interval<"x", 0, 1, 64>, #strata.interval<"y", 0, 1, 64>]
          offsets [0, 64] peak 128 lower_bound 128 proven : !strata.buffer<64>, !strata.buffer<64>
      strata.dispatch @cpu.add(%b#0, %b#1, %b#1) slots [#strata.buffer<0>, #strata.buffer<1>, #strata.buffer<2>, #strata.const<16 : i64>]
          items <row = 1> "add" layer 0 : !strata.buffer<64>, !strata.buffer<64>, !strata.buffer<64>
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 1 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 1 : i64, max_rows = 1 : i64,
    devices = ["cpu:x86-64-v3"], tails = [], after = "plan-memory"} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 1 embedding scratch 0 {
    strata.kernel @cpu.add
    strata.forward @r1s1(%step) rows 1 sequences 1 body {
      %b:2 = strata.arena [#strata.interval<"x", 0, 1, 64>, #strata.interval<"y", 0, 1, 64>]
          offsets [0, 64] peak 128 lower_bound 128 proven : !strata.buffer<64>, !strata.buffer<64>
      strata.dispatch @cpu.add(%b#0, %b#1, %b#1) slots [#strata.buffer<0>, #strata.buffer<1>, #strata.buffer<2>, #strata.const<16 : i64>]
          items <row = 1> "add" layer 0 : !strata.buffer<64>, !strata.buffer<64>, !strata.buffer<64>
    }
    // expected-error @below {{is of no bucket}}
    strata.forward @r2s1(%step) rows 2 sequences 1 body {
      %b:2 = strata.arena [#strata.interval<"x", 0, 1, 64>, #strata.interval<"y", 0, 1, 64>]
          offsets [0, 64] peak 128 lower_bound 128 proven : !strata.buffer<64>, !strata.buffer<64>
      strata.dispatch @cpu.add(%b#0, %b#1, %b#1) slots [#strata.buffer<0>, #strata.buffer<1>, #strata.buffer<2>, #strata.const<16 : i64>]
          items <row = 1> "add" layer 0 : !strata.buffer<64>, !strata.buffer<64>, !strata.buffer<64>
    }
  }
}

// -----

// expected-error @below {{has no complete tail table}}
strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 1 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 1 : i64, max_rows = 2 : i64,
    devices = ["cpu:x86-64-v3"], tails = [], after = "plan-memory"} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 1 embedding scratch 0 {
    strata.kernel @cpu.add
    strata.forward @r1s1(%step) rows 1 sequences 1 body {
      %b:2 = strata.arena [#strata.interval<"x", 0, 1, 64>, #strata.interval<"y", 0, 1, 64>]
          offsets [0, 64] peak 128 lower_bound 128 proven : !strata.buffer<64>, !strata.buffer<64>
      strata.dispatch @cpu.add(%b#0, %b#1, %b#1) slots [#strata.buffer<0>, #strata.buffer<1>, #strata.buffer<2>, #strata.const<16 : i64>]
          items <row = 1> "add" layer 0 : !strata.buffer<64>, !strata.buffer<64>, !strata.buffer<64>
    }
    strata.forward @r2s1(%step) rows 2 sequences 1 body {
      %b:2 = strata.arena [#strata.interval<"x", 0, 1, 64>, #strata.interval<"y", 0, 1, 64>]
          offsets [0, 64] peak 128 lower_bound 128 proven : !strata.buffer<64>, !strata.buffer<64>
      strata.dispatch @cpu.add(%b#0, %b#1, %b#1) slots [#strata.buffer<0>, #strata.buffer<1>, #strata.buffer<2>, #strata.const<16 : i64>]
          items <row = 1> "add" layer 0 : !strata.buffer<64>, !strata.buffer<64>, !strata.buffer<64>
    }
  }
}

// -----

// expected-error @below {{has no complete tail table}}
strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 1 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 1 : i64, max_rows = 1 : i64,
    devices = ["cpu:x86-64-v3"], after = "plan-memory"} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 1 embedding scratch 0 {
    strata.kernel @cpu.add
    strata.forward @r1s1(%step) rows 1 sequences 1 body {
      %b:2 = strata.arena [#strata.interval<"x", 0, 1, 64>, #strata.interval<"y", 0, 1, 64>]
          offsets [0, 64] peak 128 lower_bound 128 proven : !strata.buffer<64>, !strata.buffer<64>
      strata.dispatch @cpu.add(%b#0, %b#1, %b#1) slots [#strata.buffer<0>, #strata.buffer<1>, #strata.buffer<2>, #strata.const<16 : i64>]
          items <row = 1> "add" layer 0 : !strata.buffer<64>, !strata.buffer<64>, !strata.buffer<64>
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 1 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 1 : i64, max_rows = 1 : i64,
    devices = ["cpu:x86-64-v3"], tails = [], after = "plan-memory"} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 1 embedding scratch 0 {
    strata.kernel @cpu.add
    // expected-error @below {{has no arena}}
    strata.forward @r1s1(%step) rows 1 sequences 1 body {
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 1 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 1 : i64, max_rows = 1 : i64,
    devices = ["cpu:x86-64-v3"], tails = [], after = "plan-memory"} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 1 embedding scratch 0 {
    strata.kernel @cpu.add
    strata.forward @r1s1(%step) rows 1 sequences 1 body {
      %b:2 = strata.arena [#strata.interval<"x", 0, 1, 64>, #strata.interval<"y", 0, 1, 64>]
          offsets [0, 64] peak 128 lower_bound 128 proven : !strata.buffer<64>, !strata.buffer<64>
      // expected-error @below {{must stand once, before the dispatches}}
      %c:2 = strata.arena [#strata.interval<"x", 0, 1, 64>, #strata.interval<"y", 0, 1, 64>]
          offsets [0, 64] peak 128 lower_bound 128 proven : !strata.buffer<64>, !strata.buffer<64>
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 1 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 1 : i64, max_rows = 1 : i64,
    devices = ["cpu:x86-64-v3"], tails = [], after = "plan-memory"} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 1 embedding scratch 0 {
    strata.kernel @cpu.add
    strata.forward @r1s1(%step) rows 1 sequences 1 body {
      // expected-error @below {{stands before the arena}}
      strata.dispatch @cpu.add() slots [] items <> "add" layer 0
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 1 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 1 : i64, max_rows = 1 : i64,
    devices = ["cpu:x86-64-v3"], tails = [], after = "plan-memory"} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 1 embedding scratch 0 {
    strata.kernel @cpu.add
    strata.forward @r1s1(%step) rows 1 sequences 1 body {
      %b:2 = strata.arena [#strata.interval<"x", 0, 1, 64>, #strata.interval<"y", 0, 1, 64>]
          offsets [0, 64] peak 128 lower_bound 128 proven : !strata.buffer<64>, !strata.buffer<64>
      // expected-error @below {{does not belong to the planned level}}
      %c = strata.carried : tensor<1x16xf32>
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 1 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 1 : i64, max_rows = 1 : i64,
    devices = ["cpu:x86-64-v3"], tails = [], after = "plan-memory"} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 1 embedding scratch 0 {
    strata.kernel @cpu.add
    strata.forward @r1s1(%step) rows 1 sequences 1 body {
      %b:2 = strata.arena [#strata.interval<"x", 0, 1, 64>, #strata.interval<"y", 0, 1, 64>]
          offsets [0, 64] peak 128 lower_bound 128 proven : !strata.buffer<64>, !strata.buffer<64>
      // expected-error @below {{fills 1 slots of kernel @cpu.add, which takes 4}}
      strata.dispatch @cpu.add(%b#0) slots [#strata.buffer<0>]
          items <row = 1> "add" layer 0 : !strata.buffer<64>
    }
  }
}

// -----

// No such kernel.
strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 1 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 1 : i64, max_rows = 1 : i64,
    devices = ["cpu:x86-64-v3"], tails = [], after = "plan-memory"} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 1 embedding scratch 0 {
    strata.kernel @cpu.add
    strata.kernel @cpu.zzz
    strata.forward @r1s1(%step) rows 1 sequences 1 body {
      %b:2 = strata.arena [#strata.interval<"x", 0, 1, 64>, #strata.interval<"y", 0, 1, 64>]
          offsets [0, 64] peak 128 lower_bound 128 proven : !strata.buffer<64>, !strata.buffer<64>
      // expected-error @below {{fills 0 slots of kernel @cpu.zzz, which takes 0}}
      strata.dispatch @cpu.zzz() slots [] items <> "z" layer 0
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 1 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 1 : i64, max_rows = 1 : i64,
    devices = ["cpu:x86-64-v3"], tails = [], after = "plan-memory"} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 1 embedding scratch 0 {
    strata.kernel @cpu.add
    strata.forward @r1s1(%step) rows 1 sequences 1 body {
      %b:2 = strata.arena [#strata.interval<"x", 0, 1, 64>, #strata.interval<"y", 0, 1, 64>]
          offsets [0, 64] peak 128 lower_bound 128 proven : !strata.buffer<64>, !strata.buffer<64>
      // expected-error @below {{fills slot 'width' of kernel @cpu.add with #strata.buffer<2>}}
      strata.dispatch @cpu.add(%b#0, %b#1, %b#1) slots [#strata.buffer<0>, #strata.buffer<1>, #strata.buffer<2>, #strata.buffer<2>]
          items <row = 1> "add" layer 0 : !strata.buffer<64>, !strata.buffer<64>, !strata.buffer<64>
    }
  }
}

// -----

// Only an optional slot may be a null address.
strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 1 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 1 : i64, max_rows = 1 : i64,
    devices = ["cpu:x86-64-v3"], tails = [], after = "plan-memory"} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 1 embedding scratch 0 {
    strata.kernel @cpu.add
    strata.forward @r1s1(%step) rows 1 sequences 1 body {
      %b:2 = strata.arena [#strata.interval<"x", 0, 1, 64>, #strata.interval<"y", 0, 1, 64>]
          offsets [0, 64] peak 128 lower_bound 128 proven : !strata.buffer<64>, !strata.buffer<64>
      // expected-error @below {{fills slot 'a' of kernel @cpu.add with #strata.const<0 : i64>}}
      strata.dispatch @cpu.add(%b#0, %b#1, %b#1) slots [#strata.const<0 : i64>, #strata.buffer<1>, #strata.buffer<2>, #strata.const<16 : i64>]
          items <row = 1> "add" layer 0 : !strata.buffer<64>, !strata.buffer<64>, !strata.buffer<64>
    }
  }
}

// -----

// A buffer is used when it is dead.
strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 1 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 1 : i64, max_rows = 1 : i64,
    devices = ["cpu:x86-64-v3"], tails = [], after = "plan-memory"} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 1 embedding scratch 0 {
    strata.kernel @cpu.add
    strata.forward @r1s1(%step) rows 1 sequences 1 body {
      %b:2 = strata.arena [#strata.interval<"x", 0, 1, 64>, #strata.interval<"y", 0, 1, 64>]
          offsets [0, 64] peak 128 lower_bound 128 proven : !strata.buffer<64>, !strata.buffer<64>
      strata.dispatch @cpu.add(%b#0, %b#1, %b#1) slots [#strata.buffer<0>, #strata.buffer<1>, #strata.buffer<2>, #strata.const<16 : i64>]
          items <row = 1> "add" layer 0 : !strata.buffer<64>, !strata.buffer<64>, !strata.buffer<64>
      // expected-error @below {{(command 1) uses buffer 'x', which lives in [0, 1)}}
      strata.dispatch @cpu.add(%b#0, %b#1, %b#1) slots [#strata.buffer<0>, #strata.buffer<1>, #strata.buffer<2>, #strata.const<16 : i64>]
          items <row = 1> "add" layer 0 : !strata.buffer<64>, !strata.buffer<64>, !strata.buffer<64>
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 1 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 1 : i64, max_rows = 1 : i64,
    devices = ["cpu:x86-64-v3"], tails = [], after = "plan-memory"} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 1 embedding scratch 0 {
    strata.kernel @cpu.add
    strata.forward @r1s1(%step) rows 1 sequences 1 body {
      // expected-error @below {{places buffers #strata.interval<"x", 0, 1, 64> and #strata.interval<"y", 0, 1, 64> over one another}}
      %b:2 = strata.arena [#strata.interval<"x", 0, 1, 64>, #strata.interval<"y", 0, 1, 64>]
          offsets [0, 0] peak 64 lower_bound 128 : !strata.buffer<64>, !strata.buffer<64>
      strata.dispatch @cpu.add(%b#0, %b#1, %b#1) slots [#strata.buffer<0>, #strata.buffer<1>, #strata.buffer<2>, #strata.const<16 : i64>]
          items <row = 1> "add" layer 0 : !strata.buffer<64>, !strata.buffer<64>, !strata.buffer<64>
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 1 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 1 : i64, max_rows = 1 : i64,
    devices = ["cpu:x86-64-v3"], tails = [], after = "plan-memory"} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 1 embedding scratch 0 {
    strata.kernel @cpu.add
    strata.forward @r1s1(%step) rows 1 sequences 1 body {
      // expected-error @below {{has a peak of 128 below its lower bound 192}}
      %b:2 = strata.arena [#strata.interval<"x", 0, 1, 64>, #strata.interval<"y", 0, 1, 64>]
          offsets [0, 64] peak 128 lower_bound 192 proven : !strata.buffer<64>, !strata.buffer<64>
      strata.dispatch @cpu.add(%b#0, %b#1, %b#1) slots [#strata.buffer<0>, #strata.buffer<1>, #strata.buffer<2>, #strata.const<16 : i64>]
          items <row = 1> "add" layer 0 : !strata.buffer<64>, !strata.buffer<64>, !strata.buffer<64>
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 1 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 1 : i64, max_rows = 1 : i64,
    devices = ["cpu:x86-64-v3"], tails = [], after = "plan-memory"} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 1 embedding scratch 64 {
    strata.kernel @cpu.add
    strata.kernel @cpu.linear.f32
    strata.weight @w : tensor<16x16xf32> from "w" unit "u" layout "rows"
    strata.forward @r1s1(%step) rows 1 sequences 1 body {
      %b:2 = strata.arena [#strata.interval<"x", 0, 1, 64>, #strata.interval<"y", 0, 1, 64>]
          offsets [0, 64] peak 128 lower_bound 128 proven : !strata.buffer<64>, !strata.buffer<64>
      // expected-error @below {{needs 128 bytes of scratch, its stage has 64}}
      strata.dispatch @cpu.linear.f32(%b#0, %b#1) slots [#strata.buffer<0>, #strata.weight<@w>,
          #strata.const<0 : i64>, #strata.buffer<1>, #strata.step_field<"valid_rows">,
          #strata.scratch<128>, #strata.scratch_stride, #strata.const<16 : i64>,
          #strata.const<16 : i64>, #strata.const<0 : i64>] items <constant = 1> "linear" layer 0
          : !strata.buffer<64>, !strata.buffer<64>
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 1 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 1 : i64, max_rows = 1 : i64,
    devices = ["cpu:x86-64-v3"], tails = [], after = "plan-memory"} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 1 embedding scratch 0 {
    strata.kernel @cpu.add
    // expected-error @below {{has no layout}}
    strata.weight @w : tensor<16xf32> from "w" unit "u"
    strata.forward @r1s1(%step) rows 1 sequences 1 body {
      %b:2 = strata.arena [#strata.interval<"x", 0, 1, 64>, #strata.interval<"y", 0, 1, 64>]
          offsets [0, 64] peak 128 lower_bound 128 proven : !strata.buffer<64>, !strata.buffer<64>
      strata.dispatch @cpu.add(%b#0, %b#1, %b#1) slots [#strata.buffer<0>, #strata.buffer<1>, #strata.buffer<2>, #strata.const<16 : i64>]
          items <row = 1> "add" layer 0 : !strata.buffer<64>, !strata.buffer<64>, !strata.buffer<64>
    }
  }
}

// -----

// Rows would be read from where they leave.
strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 1 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 1 : i64, max_rows = 1 : i64,
    devices = ["cpu:x86-64-v3"], tails = [], after = "plan-memory"} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 1 embedding scratch 0 {
    strata.kernel @cpu.add
    strata.kernel @cpu.copy_rows
    strata.port @out output width 16
    strata.forward @r1s1(%step) rows 1 sequences 1 body {
      %b:2 = strata.arena [#strata.interval<"x", 0, 1, 64>, #strata.interval<"y", 0, 1, 64>]
          offsets [0, 64] peak 128 lower_bound 128 proven : !strata.buffer<64>, !strata.buffer<64>
      // expected-error @below {{fills slot 'x' of kernel @cpu.copy_rows with #strata.port<@out>}}
      strata.dispatch @cpu.copy_rows(%b#0) slots [#strata.port<@out>, #strata.buffer<0>,
          #strata.const<16 : i64>] items <row = 1> "receive" layer 0 : !strata.buffer<64>
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 1 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 1 : i64, max_rows = 1 : i64,
    devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"], tails = [], after = "plan-memory"} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 1 embedding scratch 0 {
    // expected-note @below {{the other replica is declared here}}
    strata.weight @w : tensor<16xf32> from "one" unit "u" layout "rows"
  }
  strata.stage @s1 on "cpu:x86-64-v3" layers 1 to 1 head scratch 0 {
    // expected-error @below {{differs from its replica on another stage}}
    strata.weight @w : tensor<16xf32> from "another" unit "u" layout "rows"
  }
}

// -----

// An arena is the maximum of what its layers need: only the residual, at offset 0, outlives one.
strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 2 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 1 : i64, max_rows = 1 : i64,
    devices = ["cpu:x86-64-v3"], tails = [], after = "plan-memory"} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 2 embedding scratch 0 {
    strata.kernel @cpu.add
    strata.forward @r1s1(%step) rows 1 sequences 1 body {
      // expected-error @below {{keeps buffer 'y' from layer 0 to layer 1; only the residual outlives a layer}}
      %b:2 = strata.arena [#strata.interval<"x", 0, 2, 64>, #strata.interval<"y", 0, 2, 64>]
          offsets [0, 64] peak 128 lower_bound 128 proven : !strata.buffer<64>, !strata.buffer<64>
      strata.dispatch @cpu.add(%b#0, %b#1, %b#1) slots [#strata.buffer<0>, #strata.buffer<1>, #strata.buffer<2>, #strata.const<16 : i64>]
          items <row = 1> "add" layer 0 : !strata.buffer<64>, !strata.buffer<64>, !strata.buffer<64>
      strata.dispatch @cpu.add(%b#0, %b#1, %b#1) slots [#strata.buffer<0>, #strata.buffer<1>, #strata.buffer<2>, #strata.const<16 : i64>]
          items <row = 1> "add" layer 1 : !strata.buffer<64>, !strata.buffer<64>, !strata.buffer<64>
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 1 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 1 : i64, max_rows = 1 : i64,
    devices = ["cpu:x86-64-v3"], tails = [], after = "plan-memory"} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 1 embedding scratch 0 {
    strata.kernel @cpu.add
    strata.forward @r1s1(%step) rows 1 sequences 1 body {
      // expected-error @below {{keeps buffer 'y' to command 3 of 1}}
      %b:2 = strata.arena [#strata.interval<"x", 0, 1, 64>, #strata.interval<"y", 0, 3, 64>]
          offsets [0, 64] peak 128 lower_bound 128 proven : !strata.buffer<64>, !strata.buffer<64>
      strata.dispatch @cpu.add(%b#0, %b#1, %b#1) slots [#strata.buffer<0>, #strata.buffer<1>, #strata.buffer<2>, #strata.const<16 : i64>]
          items <row = 1> "add" layer 0 : !strata.buffer<64>, !strata.buffer<64>, !strata.buffer<64>
    }
  }
}
