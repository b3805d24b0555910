// The order inside a layer is free where values, memory reused in place and state allow it; it is changed
// only where the peak falls, and never so that something is read after it was overwritten.
//
// RUN: strata-opt %s --pass-pipeline='builtin.module(strata.model(strata-order-ops))' | FileCheck %s
// RUN: strata-opt %s --pass-pipeline='builtin.module(strata.model(strata-order-ops))' -o /dev/null \
// RUN:     --remarks-filter='strata-.*' --remark-format=emitRemark 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK: [Passed] reordered | Category:strata-order-ops | Forward=r4s1, Layer=0, PeakAfter=2624, PeakBefore=3904
// REMARK-NOT: reordered

strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 4 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 1 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3"], tails = [], after = "pad-tail-chunks"} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 4 embedding scratch 0 {
    strata.kernel @cpu.k
    strata.state @kv paged block_tokens 4 components [#strata.component<"k", "f32", 16>]
        layers [1]
    strata.forward @r4s1(%step) rows 4 sequences 1 body {
      // CHECK: "embed"
      %x = strata.invoke @cpu.k() slots [#strata.buffer<0>] items <row = 1> tied [-1] "embed" layer -1 carries
          : () -> tensor<4x16xf32>

      // Two wide branches. The residual of 256 bytes lives throughout; a and b have 4 * 112 * 4 = 1792, c has
      // 4 * 32 * 4 = 512 and d 4 * 4 * 4 = 64. As given, a and b live together while d is made: 256 + 1792 +
      // 1792 + 64 = 3904. One branch after the other, the most is 256 + 1792 + 512 + 64 = 2624.
      // CHECK-NEXT: "b"
      // CHECK-NEXT: "d"
      // CHECK-NEXT: "a"
      // CHECK-NEXT: "c"
      // CHECK-NEXT: "join"
      %a = strata.invoke @cpu.k(%x) slots [#strata.buffer<0>, #strata.buffer<1>] items <row = 1>
          tied [-1] "a" layer 0 : (tensor<4x16xf32>) -> tensor<4x112xf32>
      %b = strata.invoke @cpu.k(%x) slots [#strata.buffer<0>, #strata.buffer<1>] items <row = 1>
          tied [-1] "b" layer 0 : (tensor<4x16xf32>) -> tensor<4x112xf32>
      %d = strata.invoke @cpu.k(%b) slots [#strata.buffer<0>, #strata.buffer<1>] items <row = 1>
          tied [-1] "d" layer 0 : (tensor<4x112xf32>) -> tensor<4x4xf32>
      %c = strata.invoke @cpu.k(%a) slots [#strata.buffer<0>, #strata.buffer<1>] items <row = 1>
          tied [-1] "c" layer 0 : (tensor<4x112xf32>) -> tensor<4x32xf32>
      %x0 = strata.invoke @cpu.k(%c, %d, %x) slots [#strata.buffer<0>, #strata.buffer<1>, #strata.buffer<2>, #strata.buffer<3>] items <row = 1>
          tied [2] "join" layer 0 : (tensor<4x32xf32>, tensor<4x4xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>

      // State is written before it is read, though no value says so. To read and reduce first would spare
      // 1792 bytes: k lives from its write to the end.
      // CHECK-NEXT: "k"
      // CHECK-NEXT: "write"
      // CHECK-NEXT: "read"
      // CHECK-NEXT: "reduce"
      // CHECK-NEXT: "end"
      %k = strata.invoke @cpu.k(%x0) slots [#strata.buffer<0>, #strata.buffer<1>] items <row = 1>
          tied [-1] "k" layer 1 : (tensor<4x16xf32>) -> tensor<4x112xf32>
      strata.invoke @cpu.k(%k) slots [#strata.buffer<0>, #strata.state<@kv, "k", 1>] items <row = 1>
          tied [] "write" layer 1 : (tensor<4x112xf32>) -> ()
      %v = strata.invoke @cpu.k() slots [#strata.state<@kv, "k", 1>, #strata.buffer<0>] items <row = 1>
          tied [-1] "read" layer 1 : () -> tensor<4x112xf32>
      %n = strata.invoke @cpu.k(%v) slots [#strata.buffer<0>, #strata.buffer<1>] items <row = 1>
          tied [-1] "reduce" layer 1 : (tensor<4x112xf32>) -> tensor<4x4xf32>
      %x1 = strata.invoke @cpu.k(%k, %n, %x0) slots [#strata.buffer<0>, #strata.buffer<1>, #strata.buffer<2>, #strata.buffer<3>] items <row = 1>
          tied [2] "end" layer 1 : (tensor<4x112xf32>, tensor<4x4xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>

      // What overwrites the residual waits for all who read it. To overwrite it first would spare 1792 bytes:
      // wide dies there, and late is made of the old residual.
      // CHECK-NEXT: "wide"
      // CHECK-NEXT: "hint"
      // CHECK-NEXT: "late"
      // CHECK-NEXT: "use"
      // CHECK-NEXT: "overwrite"
      %w2 = strata.invoke @cpu.k(%x1) slots [#strata.buffer<0>, #strata.buffer<1>] items <row = 1>
          tied [-1] "wide" layer 2 : (tensor<4x16xf32>) -> tensor<4x112xf32>
      %h2 = strata.invoke @cpu.k(%w2) slots [#strata.buffer<0>, #strata.buffer<1>] items <row = 1>
          tied [-1] "hint" layer 2 : (tensor<4x112xf32>) -> tensor<4x4xf32>
      %l2 = strata.invoke @cpu.k(%x1, %h2) slots [#strata.buffer<0>, #strata.buffer<1>, #strata.buffer<2>] items <row = 1>
          tied [-1] "late" layer 2 : (tensor<4x16xf32>, tensor<4x4xf32>) -> tensor<4x112xf32>
      strata.invoke @cpu.k(%l2) slots [#strata.buffer<0>] items <row = 1>
          tied [] "use" layer 2 : (tensor<4x112xf32>) -> ()
      %x2 = strata.invoke @cpu.k(%w2, %x1) slots [#strata.buffer<0>, #strata.buffer<1>, #strata.buffer<2>] items <row = 1>
          tied [1] "overwrite" layer 2 : (tensor<4x112xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>

      // As does what carries the next residual: it takes offset 0, with nothing but its place to say so.
      // CHECK-NEXT: "wide"
      // CHECK-NEXT: "hint"
      // CHECK-NEXT: "late"
      // CHECK-NEXT: "use"
      // CHECK-NEXT: "carry"
      %w3 = strata.invoke @cpu.k(%x2) slots [#strata.buffer<0>, #strata.buffer<1>] items <row = 1>
          tied [-1] "wide" layer 3 : (tensor<4x16xf32>) -> tensor<4x112xf32>
      %h3 = strata.invoke @cpu.k(%w3) slots [#strata.buffer<0>, #strata.buffer<1>] items <row = 1>
          tied [-1] "hint" layer 3 : (tensor<4x112xf32>) -> tensor<4x4xf32>
      %l3 = strata.invoke @cpu.k(%x2, %h3) slots [#strata.buffer<0>, #strata.buffer<1>, #strata.buffer<2>] items <row = 1>
          tied [-1] "late" layer 3 : (tensor<4x16xf32>, tensor<4x4xf32>) -> tensor<4x112xf32>
      strata.invoke @cpu.k(%l3) slots [#strata.buffer<0>] items <row = 1>
          tied [] "use" layer 3 : (tensor<4x112xf32>) -> ()
      %x3 = strata.invoke @cpu.k(%w3) slots [#strata.buffer<0>, #strata.buffer<1>] items <row = 1>
          tied [-1] "carry" layer 3 carries : (tensor<4x112xf32>) -> tensor<4x16xf32>
    }
  }
}
