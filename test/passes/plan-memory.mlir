// The answer is bytes that the runtime will allocate; each is small enough to be checked by eye.
//
// RUN: strata-opt %s --pass-pipeline='builtin.module(strata.model(strata-plan-memory))' | FileCheck %s
// RUN: strata-opt %s --pass-pipeline='builtin.module(strata.model(strata-plan-memory))' -o /dev/null \
// RUN:     --remarks-filter='strata-.*' --remark-format=emitRemark 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK: [Analysis] peak | Category:strata-plan-memory | Buffers=4, Forward=chain, LowerBound=768, PeakBytes=768, Proven=true

strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 1 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 1 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3"], tails = [], after = "assign-buffers"} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 1 embedding head scratch 0 {
    strata.kernel @cpu.k
    // The residual at offset 0, the others above it. b and c live together at 2, c and d at 3: b and d take
    // one place. 256 + 256 + 256 = 768 is live at 2.
    // CHECK-LABEL: strata.forward @chain
    // CHECK: strata.arena [#strata.interval<"a", 0, 4, 256>, #strata.interval<"b", 1, 3, 256>, #strata.interval<"c", 2, 4, 256>, #strata.interval<"d", 3, 4, 256>] offsets [0, [[B:256|512]], [[C:256|512]], [[B]]] peak 768 lower_bound 768 proven
    strata.forward @chain(%step) rows 4 sequences 1 body {
      %b:4 = strata.pack [#strata.interval<"a", 0, 4, 256>, #strata.interval<"b", 1, 3, 256>,
          #strata.interval<"c", 2, 4, 256>, #strata.interval<"d", 3, 4, 256>] carried
          : !strata.buffer<256>, !strata.buffer<256>, !strata.buffer<256>, !strata.buffer<256>
    }
    // Without a residual nothing has a place of its own; one buffer after the other in the same bytes.
    // CHECK-LABEL: strata.forward @apart
    // CHECK: offsets [0, 0] peak 512 lower_bound 512 proven
    strata.forward @apart(%step) rows 4 sequences 1 body {
      %b:2 = strata.pack [#strata.interval<"a", 0, 1, 512>, #strata.interval<"b", 1, 2, 64>]
          : !strata.buffer<512>, !strata.buffer<64>
    }
    // The residual alone.
    // CHECK-LABEL: strata.forward @alone
    // CHECK: offsets [0] peak 256 lower_bound 256 proven
    strata.forward @alone(%step) rows 4 sequences 1 body {
      %b = strata.pack [#strata.interval<"a", 0, 1, 256>] carried : !strata.buffer<256>
    }
    // No buffer at all.
    // CHECK-LABEL: strata.forward @none
    // CHECK: strata.arena [] offsets [] peak 0 lower_bound 0 proven
    strata.forward @none(%step) rows 4 sequences 1 body {
      strata.pack []
    }
  }
}
