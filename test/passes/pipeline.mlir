// A text is finished from wherever it was stopped, and by nothing that does not know its level: every pass
// checks that it comes next.
//
// RUN: strata-opt --list-passes | FileCheck %s --check-prefix=LIST
// LIST: verify-model
// LIST-NEXT: canonicalize
// LIST-NEXT: profile-units
// LIST-NEXT: partition-stages
// LIST-NEXT: replicate-constants
// LIST-NEXT: insert-handoffs
// LIST-NEXT: verify-placement
// LIST-NEXT: instantiate-buckets
// LIST-NEXT: expand-experts
// LIST-NEXT: choose-layouts
// LIST-NEXT: select-kernels
// LIST-NEXT: pad-tail-chunks
// LIST-NEXT: order-ops
// LIST-NEXT: assign-buffers
// LIST-NEXT: plan-memory
// LIST-NEXT: verify-plan
// LIST-NOT: {{.}}
//
// In one go, and stopped, printed and parsed after each level: the same text.
// RUN: strata-opt %s --strata-pipeline > %t.whole
// RUN: strata-opt %s --strata-pipeline=until=verify-placement \
// RUN:     | strata-opt --strata-pipeline=after=verify-placement > %t.parts
// RUN: diff %t.whole %t.parts
// RUN: strata-opt %s --strata-pipeline=until=order-ops --emit-bytecode \
// RUN:     | strata-opt --strata-pipeline=after=order-ops > %t.parts
// RUN: diff %t.whole %t.parts
// RUN: FileCheck %s < %t.whole
//
// CHECK: after = "verify-plan"
// CHECK: strata.stage @s0
// Residual 4 * 64 = 256 throughout, and 2 gathered rows of 64, 128, until the 2 * 128 of logits are made.
// CHECK: strata.forward @h2
// CHECK: peak 640 lower_bound 640 proven
//
// RUN: not strata-opt %s --pass-pipeline='builtin.module(strata.model(strata-plan-memory))' 2>&1 \
// RUN:     | FileCheck %s --check-prefix=ORDER
// ORDER: error: 'plan-memory' must follow 'assign-buffers', but the last pass was 'import'
// RUN: strata-opt %s --strata-pipeline=until=canonicalize \
// RUN:     | not strata-opt --pass-pipeline='builtin.module(strata.model(strata-verify-model))' 2>&1 \
// RUN:     | FileCheck %s --check-prefix=TWICE
// TWICE: error: 'verify-model' must follow 'import', but the last pass was 'canonicalize'
// RUN: not strata-opt %s --strata-pipeline=until=paint 2>&1 | FileCheck %s --check-prefix=UNKNOWN --implicit-check-not "LLVM ERROR"
// UNKNOWN: there is no pass 'paint'; the passes are verify-model, canonicalize,
// RUN: not strata-opt %s --strata-pipeline="after=order-ops until=canonicalize" 2>&1 \
// RUN:     | FileCheck %s --check-prefix=PAST
// PAST: pass 'canonicalize' is past: the last to run was 'order-ops'

strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 1 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 2 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3"]} {
  strata.weight @table : tensor<32x16xf32> from "table" unit "embedding"
  strata.weight @norm : tensor<16xf32> from "norm" unit "shared"
  strata.forward @body(%step) {
    %0 = strata.layer embedding 0 () : () -> tensor<?x16xf32> {
      %e = strata.embed @table[%step] : tensor<?x16xf32>
      strata.yield %e : tensor<?x16xf32>
    }
    %1 = strata.layer decoder 0 (%x = %0) : (tensor<?x16xf32>) -> tensor<?x16xf32> {
      %n = strata.rms_norm %x, @norm {epsilon = 1.0e-5 : f64} : tensor<?x16xf32>
      strata.yield %n : tensor<?x16xf32>
    }
    strata.layer head 0 (%x = %1) : (tensor<?x16xf32>) -> () {
      %g = strata.gather_rows %x[%step] : tensor<?x16xf32> -> tensor<?x16xf32>
      %l = strata.logits %g, @table : tensor<?x16xf32> -> tensor<?x32xf32>
      strata.sample %l[%step] : tensor<?x32xf32>
      strata.yield
    }
  }
}
