// Stages are disjoint, complete and own what they use. A placed text may be written by hand: this is where it
// is held to that.
//
// RUN: strata-opt %s --split-input-file --verify-diagnostics \
// RUN:     --pass-pipeline='builtin.module(strata.model(strata-verify-placement))'

// Nothing is wrong with this one.
strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 1 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 1 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"], after = "insert-handoffs"} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 1 embedding {
    strata.port @out output width 16
    strata.forward @body(%step) {
      %0 = strata.layer embedding 0 () : () -> tensor<?x16xf32> {
        %e = builtin.unrealized_conversion_cast to tensor<?x16xf32>
        strata.yield %e : tensor<?x16xf32>
      }
      %1 = strata.layer decoder 0 (%x = %0) : (tensor<?x16xf32>) -> tensor<?x16xf32> {
        strata.yield %x : tensor<?x16xf32>
      }
      strata.send %1, @out : tensor<?x16xf32>
    }
  }
  strata.stage @s1 on "cpu:x86-64-v3" layers 1 to 1 head {
    strata.port @in input width 16
    strata.forward @body(%step) {
      %0 = strata.receive @in : tensor<?x16xf32>
      strata.layer head 0 (%x = %0) : (tensor<?x16xf32>) -> () {
        strata.yield
      }
    }
  }
  strata.handoff @h : @s0::@out -> @s1::@in rows 4 slots 2
}

// -----

// expected-error @below {{has 1 stages for 2 devices}}
strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 1 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 1 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"], after = "insert-handoffs"} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 1 embedding head {
    strata.forward @body(%step) {
      %0 = strata.layer embedding 0 () : () -> tensor<?x16xf32> {
        %e = builtin.unrealized_conversion_cast to tensor<?x16xf32>
        strata.yield %e : tensor<?x16xf32>
      }
      %1 = strata.layer decoder 0 (%x = %0) : (tensor<?x16xf32>) -> tensor<?x16xf32> {
        strata.yield %x : tensor<?x16xf32>
      }
      strata.layer head 0 (%x = %1) : (tensor<?x16xf32>) -> () {
        strata.yield
      }
    }
  }
}

// -----

// Layer 0 would run twice.
strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 1 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 1 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"], after = "insert-handoffs"} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 1 embedding {
    strata.port @out output width 16
    strata.forward @body(%step) {
      %0 = strata.layer embedding 0 () : () -> tensor<?x16xf32> {
        %e = builtin.unrealized_conversion_cast to tensor<?x16xf32>
        strata.yield %e : tensor<?x16xf32>
      }
      %1 = strata.layer decoder 0 (%x = %0) : (tensor<?x16xf32>) -> tensor<?x16xf32> {
        strata.yield %x : tensor<?x16xf32>
      }
      strata.send %1, @out : tensor<?x16xf32>
    }
  }
  // expected-error @below {{begins at layer 0, must begin at 1}}
  strata.stage @s1 on "cpu:x86-64-v3" layers 0 to 1 head {
    strata.port @in input width 16
    strata.forward @body(%step) {
      %0 = strata.receive @in : tensor<?x16xf32>
      %1 = strata.layer decoder 0 (%x = %0) : (tensor<?x16xf32>) -> tensor<?x16xf32> {
        strata.yield %x : tensor<?x16xf32>
      }
      strata.layer head 0 (%x = %1) : (tensor<?x16xf32>) -> () {
        strata.yield
      }
    }
  }
  strata.handoff @h : @s0::@out -> @s1::@in rows 4 slots 2
}

// -----

strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 1 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 1 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"], after = "insert-handoffs"} {
  // expected-error @below {{is stage 0 of 2: the first embeds and the last has the head, no other}}
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 1 {
    strata.port @out input width 16
    strata.forward @body(%step) {
      %0 = strata.receive @out : tensor<?x16xf32>
      %1 = strata.layer decoder 0 (%x = %0) : (tensor<?x16xf32>) -> tensor<?x16xf32> {
        strata.yield %x : tensor<?x16xf32>
      }
    }
  }
  strata.stage @s1 on "cpu:x86-64-v3" layers 1 to 1 head {
    strata.port @in input width 16
    strata.forward @body(%step) {
      %0 = strata.receive @in : tensor<?x16xf32>
      strata.layer head 0 (%x = %0) : (tensor<?x16xf32>) -> () {
        strata.yield
      }
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 1 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 1 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"], after = "insert-handoffs"} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 1 embedding {
    strata.port @out output width 16
    strata.forward @body(%step) {
      %0 = strata.layer embedding 0 () : () -> tensor<?x16xf32> {
        %e = builtin.unrealized_conversion_cast to tensor<?x16xf32>
        strata.yield %e : tensor<?x16xf32>
      }
      // expected-error @below {{(layer 1) stands where layer 0 must}}
      %1 = strata.layer decoder 1 (%x = %0) : (tensor<?x16xf32>) -> tensor<?x16xf32> {
        strata.yield %x : tensor<?x16xf32>
      }
      strata.send %1, @out : tensor<?x16xf32>
    }
  }
  strata.stage @s1 on "cpu:x86-64-v3" layers 1 to 1 head {
    strata.port @in input width 16
    strata.forward @body(%step) {
      %0 = strata.receive @in : tensor<?x16xf32>
      strata.layer head 0 (%x = %0) : (tensor<?x16xf32>) -> () {
        strata.yield
      }
    }
  }
  strata.handoff @h : @s0::@out -> @s1::@in rows 4 slots 2
}

// -----

strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 1 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 1 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"], after = "insert-handoffs"} {
  // expected-error @below {{says layers 0 to 2 but ends with layer 0}}
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 2 embedding {
    strata.port @out output width 16
    strata.forward @body(%step) {
      %0 = strata.layer embedding 0 () : () -> tensor<?x16xf32> {
        %e = builtin.unrealized_conversion_cast to tensor<?x16xf32>
        strata.yield %e : tensor<?x16xf32>
      }
      %1 = strata.layer decoder 0 (%x = %0) : (tensor<?x16xf32>) -> tensor<?x16xf32> {
        strata.yield %x : tensor<?x16xf32>
      }
      strata.send %1, @out : tensor<?x16xf32>
    }
  }
  strata.stage @s1 on "cpu:x86-64-v3" layers 1 to 1 head {
    strata.port @in input width 16
    strata.forward @body(%step) {
      %0 = strata.receive @in : tensor<?x16xf32>
      strata.layer head 0 (%x = %0) : (tensor<?x16xf32>) -> () {
        strata.yield
      }
    }
  }
  strata.handoff @h : @s0::@out -> @s1::@in rows 4 slots 2
}

// -----

// expected-error @below {{has 2 layers, its stages hold 1}}
strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 2 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 1 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"], after = "insert-handoffs"} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 1 embedding {
    strata.port @out output width 16
    strata.forward @body(%step) {
      %0 = strata.layer embedding 0 () : () -> tensor<?x16xf32> {
        %e = builtin.unrealized_conversion_cast to tensor<?x16xf32>
        strata.yield %e : tensor<?x16xf32>
      }
      %1 = strata.layer decoder 0 (%x = %0) : (tensor<?x16xf32>) -> tensor<?x16xf32> {
        strata.yield %x : tensor<?x16xf32>
      }
      strata.send %1, @out : tensor<?x16xf32>
    }
  }
  strata.stage @s1 on "cpu:x86-64-v3" layers 1 to 1 head {
    strata.port @in input width 16
    strata.forward @body(%step) {
      %0 = strata.receive @in : tensor<?x16xf32>
      strata.layer head 0 (%x = %0) : (tensor<?x16xf32>) -> () {
        strata.yield
      }
    }
  }
  strata.handoff @h : @s0::@out -> @s1::@in rows 4 slots 2
}

// -----

strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 1 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 1 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"], after = "insert-handoffs"} {
  // expected-error @below {{says embedding and no head, its layers say otherwise}}
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 1 embedding {
    strata.port @in input width 16
    strata.port @out output width 16
    strata.forward @body(%step) {
      %0 = strata.receive @in : tensor<?x16xf32>
      %1 = strata.layer decoder 0 (%x = %0) : (tensor<?x16xf32>) -> tensor<?x16xf32> {
        strata.yield %x : tensor<?x16xf32>
      }
      strata.send %1, @out : tensor<?x16xf32>
    }
  }
  strata.stage @s1 on "cpu:x86-64-v3" layers 1 to 1 head {
    strata.port @in input width 16
    strata.forward @body(%step) {
      %0 = strata.receive @in : tensor<?x16xf32>
      strata.layer head 0 (%x = %0) : (tensor<?x16xf32>) -> () {
        strata.yield
      }
    }
  }
  strata.handoff @h : @s0::@out -> @s1::@in rows 4 slots 2
}

// -----

// Memory that no one reads.
strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 1 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 1 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"], after = "insert-handoffs"} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 1 embedding {
    // expected-error @below {{is held by @s0 but not used there}}
    strata.weight @w : tensor<16xf32> from "w" unit "u"
    strata.port @out output width 16
    strata.forward @body(%step) {
      %0 = strata.layer embedding 0 () : () -> tensor<?x16xf32> {
        %e = builtin.unrealized_conversion_cast to tensor<?x16xf32>
        strata.yield %e : tensor<?x16xf32>
      }
      %1 = strata.layer decoder 0 (%x = %0) : (tensor<?x16xf32>) -> tensor<?x16xf32> {
        strata.yield %x : tensor<?x16xf32>
      }
      strata.send %1, @out : tensor<?x16xf32>
    }
  }
  strata.stage @s1 on "cpu:x86-64-v3" layers 1 to 1 head {
    strata.port @in input width 16
    strata.forward @body(%step) {
      %0 = strata.receive @in : tensor<?x16xf32>
      strata.layer head 0 (%x = %0) : (tensor<?x16xf32>) -> () {
        strata.yield
      }
    }
  }
  strata.handoff @h : @s0::@out -> @s1::@in rows 4 slots 2
}

// -----

strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 1 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 1 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"], after = "insert-handoffs"} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 1 embedding {
    // expected-error @below {{is joined by no handoff}}
    strata.port @out output width 16
    strata.forward @body(%step) {
      %0 = strata.layer embedding 0 () : () -> tensor<?x16xf32> {
        %e = builtin.unrealized_conversion_cast to tensor<?x16xf32>
        strata.yield %e : tensor<?x16xf32>
      }
      %1 = strata.layer decoder 0 (%x = %0) : (tensor<?x16xf32>) -> tensor<?x16xf32> {
        strata.yield %x : tensor<?x16xf32>
      }
      strata.send %1, @out : tensor<?x16xf32>
    }
  }
  strata.stage @s1 on "cpu:x86-64-v3" layers 1 to 1 head {
    strata.port @in input width 16
    strata.forward @body(%step) {
      %0 = strata.receive @in : tensor<?x16xf32>
      strata.layer head 0 (%x = %0) : (tensor<?x16xf32>) -> () {
        strata.yield
      }
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 1 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 1 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"], after = "insert-handoffs"} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 1 embedding {
    strata.port @out output width 16
    strata.forward @body(%step) {
      %0 = strata.layer embedding 0 () : () -> tensor<?x16xf32> {
        %e = builtin.unrealized_conversion_cast to tensor<?x16xf32>
        strata.yield %e : tensor<?x16xf32>
      }
      %1 = strata.layer decoder 0 (%x = %0) : (tensor<?x16xf32>) -> tensor<?x16xf32> {
        strata.yield %x : tensor<?x16xf32>
      }
      strata.send %1, @out : tensor<?x16xf32>
    }
  }
  strata.stage @s1 on "cpu:x86-64-v3" layers 1 to 1 head {
    strata.port @in input width 16
    strata.forward @body(%step) {
      %0 = strata.receive @in : tensor<?x16xf32>
      strata.layer head 0 (%x = %0) : (tensor<?x16xf32>) -> () {
        strata.yield
      }
    }
  }
  strata.handoff @h : @s0::@out -> @s1::@in rows 4 slots 2
  // expected-error @below {{joins @s0::@out, which is joined already}}
  strata.handoff @i : @s0::@out -> @s1::@in rows 4 slots 2
}

// -----

// Backwards: a step would wait for itself.
strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 1 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 1 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"], after = "insert-handoffs"} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 1 embedding {
    strata.port @out output width 16
    strata.port @in input width 16
    strata.forward @body(%step) {
      %0 = strata.layer embedding 0 () : () -> tensor<?x16xf32> {
        %e = builtin.unrealized_conversion_cast to tensor<?x16xf32>
        strata.yield %e : tensor<?x16xf32>
      }
      %1 = strata.layer decoder 0 (%x = %0) : (tensor<?x16xf32>) -> tensor<?x16xf32> {
        strata.yield %x : tensor<?x16xf32>
      }
      strata.send %1, @out : tensor<?x16xf32>
      %9 = strata.receive @in : tensor<?x16xf32>
    }
  }
  strata.stage @s1 on "cpu:x86-64-v3" layers 1 to 1 head {
    strata.port @in input width 16
    strata.port @out output width 16
    strata.forward @body(%step) {
      %0 = strata.receive @in : tensor<?x16xf32>
      strata.layer head 0 (%x = %0) : (tensor<?x16xf32>) -> () {
        strata.yield
      }
      strata.send %0, @out : tensor<?x16xf32>
    }
  }
  strata.handoff @h : @s0::@out -> @s1::@in rows 4 slots 2
  // expected-error @below {{does not lead to the next stage}}
  strata.handoff @i : @s1::@out -> @s0::@in rows 4 slots 2
}

// -----

strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 1 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 1 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"], after = "insert-handoffs"} {
  // expected-error @below {{has 2 forwards, must have one}}
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 1 embedding {
    strata.port @out output width 16
    strata.forward @more(%step) {
    }
    strata.forward @body(%step) {
      %0 = strata.layer embedding 0 () : () -> tensor<?x16xf32> {
        %e = builtin.unrealized_conversion_cast to tensor<?x16xf32>
        strata.yield %e : tensor<?x16xf32>
      }
      %1 = strata.layer decoder 0 (%x = %0) : (tensor<?x16xf32>) -> tensor<?x16xf32> {
        strata.yield %x : tensor<?x16xf32>
      }
      strata.send %1, @out : tensor<?x16xf32>
    }
  }
  strata.stage @s1 on "cpu:x86-64-v3" layers 1 to 1 head {
    strata.port @in input width 16
    strata.forward @body(%step) {
      %0 = strata.receive @in : tensor<?x16xf32>
      strata.layer head 0 (%x = %0) : (tensor<?x16xf32>) -> () {
        strata.yield
      }
    }
  }
  strata.handoff @h : @s0::@out -> @s1::@in rows 4 slots 2
}
