// What the target cannot run is refused by the kernel's name, at the op, when the plan is made.
//
// RUN: strata-opt %s --split-input-file --verify-diagnostics \
// RUN:     --pass-pipeline='builtin.module(strata.model(strata-select-kernels))'

strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 1 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 2 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3"], after = "choose-layouts"} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 1 embedding {
    strata.port @in input width 16
    strata.forward @r4s2(%step) rows 4 sequences 2 body {
      %0 = strata.receive @in : tensor<4x16xf32>
      %1 = strata.layer decoder 0 (%x = %0) : (tensor<4x16xf32>) -> tensor<4x16xf32> {
        // expected-error @below {{'strata.gated' op needs kernel 'gated.relu2', which target cpu:x86-64-v3 does not have}}
        %y = strata.gated relu2 %x, %x : tensor<4x16xf32>
        strata.yield %y : tensor<4x16xf32>
      }
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 1 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 2 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3"], after = "choose-layouts"} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 1 embedding {
    strata.port @in input width 16
    strata.forward @r4s2(%step) rows 4 sequences 2 body {
      %0 = strata.receive @in : tensor<4x16xf32>
      %1 = strata.layer decoder 0 (%x = %0) : (tensor<4x16xf32>) -> tensor<4x16xf32> {
        // expected-error @below {{'builtin.unrealized_conversion_cast' op has no kernel on target cpu:x86-64-v3}}
        %y = builtin.unrealized_conversion_cast to tensor<4x16xf32>
        strata.yield %y : tensor<4x16xf32>
      }
    }
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 1 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 2 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3"], after = "choose-layouts"} {
  // expected-error @below {{is on "cuda:sm_75", which is no target; known: cpu:x86-64-v3, cpu:x86-64-v4, cuda:sm_80}}
  strata.stage @s0 on "cuda:sm_75" layers 0 to 1 embedding {
  }
}

// -----

strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 1 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 2 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3"], after = "choose-layouts"} {
  // expected-error @below {{is on "cpu", which is no target}}
  strata.stage @s0 on "cpu" layers 0 to 1 embedding {
  }
}
