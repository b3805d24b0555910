// Values become buffers: which share one, from which command to which each lives, how many bytes it has.
//
// RUN: strata-opt %s --pass-pipeline='builtin.module(strata.model(strata-assign-buffers))' | FileCheck %s

strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 1 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 1 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3"], tails = [], after = "order-ops"} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 1 embedding head scratch 0 {
    strata.kernel @cpu.k
    // Commands 0 .. 6. The residual (4 * 16 * 4 = 256) is made by 0 and again by 3, and lives throughout; wide
    // (4 * 17 * 4 = 272, rounded up to 320) from 1 to its last use in 2; half shares its memory with what
    // is tied to it, from 2 to 3; the logits (32 * 4 = 128) until all is done, though 5 uses them last.
    // CHECK-LABEL: strata.forward @r4s1
    // CHECK-NEXT: %[[B:.*]]:5 = strata.pack [#strata.interval<"residual", 0, 7, 256>,
    // CHECK-SAME: #strata.interval<"wide", 1, 3, 320>,
    // CHECK-SAME: #strata.interval<"half", 2, 4, 256>,
    // CHECK-SAME: #strata.interval<"gather", 4, 6, 64>,
    // CHECK-SAME: #strata.interval<"logits", 5, 7, 128>] carried
    // CHECK-NEXT: strata.dispatch @cpu.k(%[[B]]#0) {{.*}} "embed" layer -1 :
    // CHECK-NEXT: strata.dispatch @cpu.k(%[[B]]#0, %[[B]]#1) {{.*}} "wide"
    // CHECK-NEXT: strata.dispatch @cpu.k(%[[B]]#1, %[[B]]#2) {{.*}} "half"
    // CHECK-NEXT: strata.dispatch @cpu.k(%[[B]]#2, %[[B]]#0, %[[B]]#0) {{.*}} "join"
    // CHECK-NEXT: strata.dispatch @cpu.k(%[[B]]#0, %[[B]]#3) {{.*}} "gather"
    // CHECK-NEXT: strata.dispatch @cpu.k(%[[B]]#3, %[[B]]#4) {{.*}} "logits" layer 1 logits
    // CHECK-NEXT: strata.dispatch @cpu.k(%[[B]]#4) {{.*}} "sample"
    strata.forward @r4s1(%step) rows 4 sequences 1 body head {
      %x = strata.invoke @cpu.k() slots [#strata.buffer<0>] items <row = 1>
          tied [-1] "embed" layer -1 carries : () -> tensor<4x16xf32>
      %w = strata.invoke @cpu.k(%x) slots [#strata.buffer<0>, #strata.buffer<1>] items <row = 1>
          tied [-1] "wide" layer 0 : (tensor<4x16xf32>) -> tensor<4x17xf32>
      %h = strata.invoke @cpu.k(%w) slots [#strata.buffer<0>, #strata.buffer<1>] items <row = 1>
          tied [-1] "half" layer 0 : (tensor<4x17xf32>) -> tensor<4x16xf32>
      %y = strata.invoke @cpu.k(%h, %x) slots [#strata.buffer<0>, #strata.buffer<1>, #strata.buffer<2>] items <row = 1>
          tied [1] "join" layer 0 : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
      %g = strata.invoke @cpu.k(%y) slots [#strata.buffer<0>, #strata.buffer<1>] items <row = 1>
          tied [-1] "gather" layer 1 : (tensor<4x16xf32>) -> tensor<1x16xf32>
      %l = strata.invoke @cpu.k(%g) slots [#strata.buffer<0>, #strata.buffer<1>] items <row = 1>
          tied [-1] "logits" layer 1 logits : (tensor<1x16xf32>) -> tensor<1x32xf32>
      strata.invoke @cpu.k(%l) slots [#strata.buffer<0>] items <row = 1>
          tied [] "sample" layer 1 : (tensor<1x32xf32>) -> ()
    }
    // A head alone: what the body left is at offset 0, and lives on for the next slice.
    // CHECK-LABEL: strata.forward @h1
    // CHECK-NEXT: %{{.*}}:3 = strata.pack [#strata.interval<"residual", 0, 3, 256>,
    // CHECK-SAME: #strata.interval<"gather", 0, 2, 64>,
    // CHECK-SAME: #strata.interval<"logits", 1, 3, 128>] carried
    strata.forward @h1(%step) rows 1 sequences 1 head {
      %c = strata.carried : tensor<4x16xf32>
      %g = strata.invoke @cpu.k(%c) slots [#strata.buffer<0>, #strata.buffer<1>] items <row = 1>
          tied [-1] "gather" layer 1 : (tensor<4x16xf32>) -> tensor<1x16xf32>
      %l = strata.invoke @cpu.k(%g) slots [#strata.buffer<0>, #strata.buffer<1>] items <row = 1>
          tied [-1] "logits" layer 1 logits : (tensor<1x16xf32>) -> tensor<1x32xf32>
      strata.invoke @cpu.k(%l) slots [#strata.buffer<0>] items <row = 1>
          tied [] "sample" layer 1 : (tensor<1x32xf32>) -> ()
    }
    // Two tied one after the other are one buffer from the first to the last: 0 to 3.
    // CHECK-LABEL: strata.forward @tied
    // CHECK-NEXT: %{{.*}} = strata.pack [#strata.interval<"a", 0, 3, 256>] : !strata.buffer<256>
    strata.forward @tied(%step) rows 4 sequences 1 body {
      %a = strata.invoke @cpu.k() slots [#strata.buffer<0>] items <row = 1>
          tied [-1] "a" layer 0 : () -> tensor<4x16xf32>
      %b = strata.invoke @cpu.k(%a) slots [#strata.buffer<0>, #strata.buffer<1>] items <row = 1>
          tied [0] "b" layer 0 : (tensor<4x16xf32>) -> tensor<4x16xf32>
      %c = strata.invoke @cpu.k(%b) slots [#strata.buffer<0>, #strata.buffer<1>] items <row = 1>
          tied [0] "c" layer 0 : (tensor<4x16xf32>) -> tensor<4x16xf32>
    }
    // A copy carries where nothing carried before: one residual all the same.
    // CHECK-LABEL: strata.forward @moved
    // CHECK-NEXT: %{{.*}}:2 = strata.pack [#strata.interval<"residual", 0, 3, 256>, #strata.interval<"y", 1, 3, 256>] carried
    strata.forward @moved(%step) rows 4 sequences 1 body {
      %x = strata.invoke @cpu.k() slots [#strata.buffer<0>] items <row = 1>
          tied [-1] "x" layer 0 carries : () -> tensor<4x16xf32>
      %y = strata.invoke @cpu.k(%x) slots [#strata.buffer<0>, #strata.buffer<1>] items <row = 1>
          tied [-1] "y" layer 0 : (tensor<4x16xf32>) -> tensor<4x16xf32>
      %z = strata.invoke @cpu.k(%y) slots [#strata.buffer<0>, #strata.buffer<1>] items <row = 1>
          tied [-1] "move" layer 0 carries : (tensor<4x16xf32>) -> tensor<4x16xf32>
    }
  }
}
