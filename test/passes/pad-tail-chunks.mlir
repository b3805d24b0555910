// How a prompt ends is written into the plan: the scheduler reads the table and decides nothing. A launch
// is worth 4 rows.
//
// RUN: strata-opt %s --split-input-file \
// RUN:     --pass-pipeline='builtin.module(strata.model(strata-pad-tail-chunks))' | FileCheck %s
// RUN: strata-opt %s --split-input-file -o /dev/null \
// RUN:     --pass-pipeline='builtin.module(strata.model(strata-pad-tail-chunks))' \
// RUN:     --remarks-filter='strata-.*' --remark-format=emitRemark 2>&1 | FileCheck %s --check-prefix=REMARK

// 547 = 4 * 128 + 35, and this is the table for 35: 32 + 4 rows and 2 launches cost 36 + 8 = 44; 32 + 2 + 1
// cost 35 + 12 = 47, 64 alone 64 + 4 = 68. Bodies in order are r1s1 r2s2 r4s4 r8s4 r16s4 r32s1 r32s4 ...
// (0 .. 6); of 32 rows the bucket of one sequence is taken.
// CHECK-LABEL: strata.model
// CHECK-SAME: #strata.tail<35, 5, 2>,
// 127 = 64 + 63: r64s1 (7), then 32 + 32 (r32s1 twice, 1 padded): 128 + 12 = 140; r128s1 (9): 132.
// CHECK-SAME: #strata.tail<127, 9>]
strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 0 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 4 : i64, max_rows = 128 : i64,
    devices = ["cpu:x86-64-v3"], after = "select-kernels"} {
}

// -----

// Buckets of 1, 4 and 16 rows: 3 rows in 4 (8) rather than three of 1 (15); 5 rows in 4 and 1 (8 + 5 = 13);
// 9 rows in 4, 4 and 1 (21) or in 16 (20): 16.
// CHECK-LABEL: strata.model
// CHECK-SAME: tails = [#strata.tail<1, 0>, #strata.tail<2, 1>, #strata.tail<3, 1>, #strata.tail<4, 1>, #strata.tail<5, 1, 0>, #strata.tail<6, 1, 1>, #strata.tail<7, 1, 1>, #strata.tail<8, 1, 1>, #strata.tail<9, 2>, #strata.tail<10, 2>, #strata.tail<11, 2>, #strata.tail<12, 2>, #strata.tail<13, 2>, #strata.tail<14, 2>, #strata.tail<15, 2>]
// Padded rows: 0 2 1 0, 0 2 1 0, 7 6 5 4 3 2 1 (the 2 for 2 rows is 4 - 2, for 6 rows 8 - 6): 34.
// REMARK: [Analysis] tails | Category:strata-pad-tail-chunks
// REMARK: [Analysis] tails | Category:strata-pad-tail-chunks | PaddedRows=34, Remainders=15
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
