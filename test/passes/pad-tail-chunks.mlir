// How a prompt ends is written into the plan: the scheduler reads the table and decides nothing. A
// CPU computes valid rows only, so padding is free and a second launch is not: one bucket, the smallest.
//
// RUN: strata-opt %s --split-input-file \
// RUN:     --pass-pipeline='builtin.module(strata.model(strata-pad-tail-chunks))' | FileCheck %s
// RUN: strata-opt %s --split-input-file -o /dev/null \
// RUN:     --pass-pipeline='builtin.module(strata.model(strata-pad-tail-chunks))' \
// RUN:     --remarks-filter='strata-.*' --remark-format=emitRemark 2>&1 | FileCheck %s --check-prefix=REMARK

// 547 = 4 * 128 + 35, and this is the table for 35: a bucket of 64. Bodies in order are r1s1 r2s2 r4s4 r8s4
// r16s4 r32s1 r32s4 r64s1 r64s4 r128s1 (0 .. 9); of 32 rows and more the bucket of one sequence is taken.
// CHECK-LABEL: strata.model
// CHECK-SAME: #strata.tail<32, 5>, #strata.tail<33, 7>,
// CHECK-SAME: #strata.tail<35, 7>,
// CHECK-SAME: #strata.tail<127, 9>]
strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 0 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 4 : i64, max_rows = 128 : i64,
    devices = ["cpu:x86-64-v3"], after = "select-kernels"} {
}

// -----

// Buckets of 1, 4 and 16 rows (0, 1, 2): 1 in 1, 2 to 4 in 4, 5 to 15 in 16.
// CHECK-LABEL: strata.model
// CHECK-SAME: tails = [#strata.tail<1, 0>, #strata.tail<2, 1>, #strata.tail<3, 1>, #strata.tail<4, 1>, #strata.tail<5, 2>, #strata.tail<6, 2>, #strata.tail<7, 2>, #strata.tail<8, 2>, #strata.tail<9, 2>, #strata.tail<10, 2>, #strata.tail<11, 2>, #strata.tail<12, 2>, #strata.tail<13, 2>, #strata.tail<14, 2>, #strata.tail<15, 2>]
// Padded rows: 0, 2 + 1 + 0, 11 + 10 + ... + 1 = 66: 69.
// REMARK: [Analysis] tails | Category:strata-pad-tail-chunks
// REMARK: [Analysis] tails | Category:strata-pad-tail-chunks | PaddedRows=69, Remainders=15
strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 0 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 1 : i64, max_rows = 16 : i64,
    devices = ["cpu:x86-64-v3"], 
    buckets = array<i64: 1, 1, 4, 1, 16, 1>, after = "select-kernels"} {
}

// -----

// A chunk of one row leaves no remainder.
// CHECK-LABEL: strata.model
// CHECK-SAME: tails = []
strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 0 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 1 : i64, max_rows = 1 : i64,
    devices = ["cpu:x86-64-v3"], after = "select-kernels"} {
}
