// Scratch for experts is ordinary buffers of explicit ops, bounded by running the experts in groups: a
// second estimate of it could be wrong, and all experts at once would not fit.
//
// RUN: strata-opt %s --pass-pipeline='builtin.module(strata.model(strata-expand-experts))' | FileCheck %s
// RUN: strata-opt %s --pass-pipeline='builtin.module(strata.model(strata-expand-experts))' \
// RUN:     --remarks-filter='strata-.*' --remark-format=emitRemark 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK: remark: {{.*}}grouped{{.*}}r32s1{{.*}}Groups=32

strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 1 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 1 : i64, max_rows = 32 : i64,
    devices = ["cpu:x86-64-v3"], after = "instantiate-buckets"} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 1 embedding head {
    strata.weight @gate : tensor<64x8192x16xf32> from "g" unit "u"
    strata.weight @up : tensor<64x8192x16xf32> from "u" unit "u"
    strata.weight @down : tensor<64x16x8192xf32> from "d" unit "u"
    strata.weight @slots : tensor<64xf32> computed #strata.identity<64> unit "u"
    // One row uses 4 of 64 experts: one group of all, 4 rows inside. Lists: 2 * 64 + 2 + 2 * 4 words.
    // CHECK-LABEL: strata.forward @r1s1
    // CHECK: %[[L:.*]] = strata.expert_lists %{{.*}}[%{{.*}}] {experts = 64 : i64} : {{.*}} -> tensor<1x138xf32>
    // CHECK-NEXT: %[[G:.*]] = strata.expert_up %{{.*}}, %[[L]], @gate slots @slots[%{{.*}}] {count = 64 : i64, first = 0 : i64, used = 4 : i64} : {{.*}} -> tensor<4x8192xf32>
    // CHECK-NEXT: %[[M:.*]] = strata.expert_up %{{.*}}, %[[L]], @up slots @slots[%{{.*}}] gated %[[G]]
    // CHECK-SAME: function = #strata<function silu>
    // CHECK-NEXT: strata.expert_down %[[M]], %[[L]], @down
    // CHECK-NOT: strata.experts
    strata.forward @r1s1(%step) rows 1 sequences 1 body {
      %n = builtin.unrealized_conversion_cast to tensor<1x16xf32, #strata.space<hidden>>
      %r = builtin.unrealized_conversion_cast to tensor<1x8xf32, #strata.space<routing>>
      %y = strata.experts silu %n, %r gate @gate up @up down @down slots @slots
          : tensor<1x16xf32, #strata.space<hidden>>, tensor<1x8xf32, #strata.space<routing>>
    }
    // 32 rows of which all may choose the same: 16384 values a row are room for 2 experts of 8192, so 32
    // groups of 2, each onto the sum of those before.
    // CHECK-LABEL: strata.forward @r32s1
    // CHECK: strata.expert_up {{.*}}@gate {{.*}}count = 2 : i64, first = 0 : i64{{.*}} -> tensor<64x8192xf32>
    // CHECK-NEXT: strata.expert_up {{.*}}@up {{.*}}count = 2 : i64, first = 0 : i64
    // CHECK-NEXT: %[[FIRST:.*]] = strata.expert_down
    // CHECK: strata.expert_up {{.*}}@gate {{.*}}first = 2 : i64
    // CHECK-NEXT: strata.expert_up {{.*}}first = 2 : i64
    // CHECK-NEXT: strata.expert_down {{.*}} onto %[[FIRST]]
    // CHECK: strata.expert_down {{.*}}first = 62 : i64
    // CHECK-NOT: strata.expert_down
    strata.forward @r32s1(%step) rows 32 sequences 1 body {
      %n = builtin.unrealized_conversion_cast to tensor<32x16xf32, #strata.space<hidden>>
      %r = builtin.unrealized_conversion_cast to tensor<32x8xf32, #strata.space<routing>>
      %y = strata.experts silu %n, %r gate @gate up @up down @down slots @slots
          : tensor<32x16xf32, #strata.space<hidden>>, tensor<32x8xf32, #strata.space<routing>>
    }
  }
}
