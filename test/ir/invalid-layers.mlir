// Forwards and layers are the structure that every pass walks without asking again.
//
// RUN: strata-opt %s --split-input-file --verify-diagnostics

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{rows and sequences come together}}
  strata.forward @body(%step) rows 8 {
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{runs neither body nor head}}
  strata.forward @body(%step) rows 8 sequences 8 {
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  // expected-error @below {{takes exactly the step}}
  "strata.forward"() <{sym_name = "body"}> ({
  ^bb0(%step: !strata.step, %more: !strata.step):
  }) : () -> ()
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  strata.forward @body(%step) {
    // expected-error @below {{unknown layer kind 'encoder'}}
    strata.layer encoder 0 () : () -> () {
      strata.yield
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  strata.forward @body(%step) {
    // expected-error @below {{must end with a strata.yield}}
    strata.layer head 0 () : () -> () {
    ^bb0:
      %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  strata.forward @body(%step) {
    // expected-error @below {{a layer has a body}}
    strata.layer head 0 () : () -> () {
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  strata.forward @body(%step) {
    // expected-error @below {{1 values enter but 0 types are given}}
    strata.layer head 0 (%x = %y) : () -> () {
      strata.yield
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  strata.forward @body(%step) {
    strata.layer embedding 0 () : () -> tensor<?x64xf32> {
      // expected-error @below {{'strata.yield' op yields other types than its layer's results}}
      strata.yield
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  strata.forward @body(%step) {
    %0 = strata.layer embedding 0 () : () -> tensor<?x64xf32> {
      %e = builtin.unrealized_conversion_cast to tensor<?x64xf32>
      strata.yield %e : tensor<?x64xf32>
    }
    // expected-error @below {{binds a 'tensor<?x64xf32>' to a 'tensor<?x32xf32>'}}
    "strata.layer"(%0) <{kind = #strata<layer_kind head>, index = 0 : i64}> ({
    ^bb0(%h: tensor<?x32xf32>):
      strata.yield
    }) : (tensor<?x64xf32>) -> ()
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  strata.forward @body(%step) {
    %0 = strata.layer embedding 0 () : () -> tensor<?x64xf32> {
      %e = builtin.unrealized_conversion_cast to tensor<?x64xf32>
      strata.yield %e : tensor<?x64xf32>
    }
    // expected-error @below {{binds 0 values to 1 operands}}
    "strata.layer"(%0) <{kind = #strata<layer_kind head>, index = 0 : i64}> ({
      strata.yield
    }) : (tensor<?x64xf32>) -> ()
  }
}

// -----

// A layer's memory is its own: nothing reaches into it but its declared inputs.
strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  strata.forward @body(%step) {
    // expected-note @below {{the value is defined here}}
    %0 = strata.layer embedding 0 () : () -> tensor<?x64xf32> {
      %e = builtin.unrealized_conversion_cast to tensor<?x64xf32>
      strata.yield %e : tensor<?x64xf32>
    }
    strata.layer head 0 () : () -> () {
      // expected-error @below {{uses a value of another layer that is not declared among this layer's inputs}}
      %1 = strata.add %0, %0 : tensor<?x64xf32>
      strata.yield
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
  strata.forward @body(%step) {
    strata.layer head 0 () : () -> () {
      // expected-error @below {{expects parent op 'strata.forward'}}
      strata.layer head 0 () : () -> () {
        strata.yield
      }
      strata.yield
    }
  }
}
