// The buckets are the shapes in which a step can run, and the only ones: a shape that is missing stalls a
// request, a body bucket with room for more heads than its head buffers writes past them.
//
// RUN: split-file %s %t
// RUN: strata-opt %t/default.mlir --pass-pipeline='builtin.module(strata.model(strata-instantiate-buckets))' \
// RUN:     | FileCheck %t/default.mlir --check-prefixes=NAMES
// RUN: strata-opt %t/default.mlir --pass-pipeline='builtin.module(strata.model(strata-instantiate-buckets))' \
// RUN:     | FileCheck %t/default.mlir --check-prefixes=ROWS
// RUN: strata-opt %t/asked.mlir --pass-pipeline='builtin.module(strata.model(strata-instantiate-buckets))' \
// RUN:     | FileCheck %t/asked.mlir
// RUN: strata-opt %t/stages.mlir --pass-pipeline='builtin.module(strata.model(strata-instantiate-buckets))' \
// RUN:     | FileCheck %t/stages.mlir

//--- default.mlir
// Rows 1, 2, 4, ... 64; sequences min(rows, 4), from 32 rows on also 1. Up to 4 rows body and head are one.
// NAMES-NOT: @body
// NAMES: strata.forward @r1s1(%{{.*}}) rows 1 sequences 1 body head {
// NAMES: strata.forward @r2s2(%{{.*}}) rows 2 sequences 2 body head {
// NAMES: strata.forward @r4s4(%{{.*}}) rows 4 sequences 4 body head {
// NAMES: strata.forward @r8s4(%{{.*}}) rows 8 sequences 4 body {
// NAMES: strata.forward @r16s4(%{{.*}}) rows 16 sequences 4 body {
// NAMES: strata.forward @r32s1(%{{.*}}) rows 32 sequences 1 body {
// NAMES: strata.forward @r32s4(%{{.*}}) rows 32 sequences 4 body {
// NAMES: strata.forward @r64s1(%{{.*}}) rows 64 sequences 1 body {
// NAMES: strata.forward @r64s4(%{{.*}}) rows 64 sequences 4 body {
// NAMES: strata.forward @h1(%{{.*}}) rows 1 sequences 1 head {
// NAMES: strata.forward @h2(%{{.*}}) rows 2 sequences 2 head {
// NAMES: strata.forward @h4(%{{.*}}) rows 4 sequences 4 head {
// NAMES-NOT: strata.forward

// A body of 8 rows has no head.
// ROWS-LABEL: strata.forward @r4s4
// ROWS: strata.embed @table[%{{.*}}] : tensor<4x16xf32>
// ROWS: strata.gather_rows %{{.*}} : tensor<4x16xf32> -> tensor<4x16xf32>
// ROWS: strata.logits %{{.*}} : tensor<4x16xf32> -> tensor<4x32xf32>
// ROWS-LABEL: strata.forward @r8s4
// ROWS: strata.embed @table[%{{.*}}] : tensor<8x16xf32>
// ROWS-NOT: strata.gather_rows
// ROWS-LABEL: strata.forward @h1
// A head of its own gathers 2 of the largest body's 64 rows.
// ROWS-LABEL: strata.forward @h2
// ROWS-NEXT: %[[C:.*]] = strata.carried : tensor<64x16xf32>
// ROWS-NEXT: strata.layer head 0 (%[[X:.*]] = %[[C]]) : (tensor<64x16xf32>) -> ()
// ROWS-NEXT: strata.gather_rows %[[X]][%{{.*}}] : tensor<64x16xf32> -> tensor<2x16xf32>
// ROWS-NEXT: strata.activation silu %{{.*}} : tensor<2x16xf32>
// ROWS-NEXT: strata.logits %{{.*}} : tensor<2x16xf32> -> tensor<2x32xf32>
// ROWS-NEXT: strata.sample %{{.*}} : tensor<2x32xf32>
strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 0 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 4 : i64, max_rows = 64 : i64,
    devices = ["cpu:x86-64-v3"], after = "verify-placement"} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 0 embedding head {
    strata.weight @table : tensor<32x16xf32> from "t" unit "u"
    strata.forward @body(%step) {
      %0 = strata.layer embedding 0 () : () -> tensor<?x16xf32> {
        %e = strata.embed @table[%step] : tensor<?x16xf32>
        strata.yield %e : tensor<?x16xf32>
      }
      strata.layer head 0 (%x = %0) : (tensor<?x16xf32>) -> () {
        %g = strata.gather_rows %x[%step] : tensor<?x16xf32> -> tensor<?x16xf32>
        %a = strata.activation silu %g : tensor<?x16xf32>
        %l = strata.logits %a, @table : tensor<?x16xf32> -> tensor<?x32xf32>
        strata.sample %l[%step] : tensor<?x32xf32>
        strata.yield
      }
    }
  }
}

//--- asked.mlir
// As asked, sorted, without doubles, and with no more sequences than there are: s8 becomes s3. The head's
// own buckets end at max_sequences, though that is no power of two: 1, 2, 3.
// CHECK: strata.forward @r1s1(%{{.*}}) rows 1 sequences 1 body head {
// CHECK: strata.forward @r3s3(%{{.*}}) rows 3 sequences 3 body head {
// CHECK: strata.forward @r12s1(%{{.*}}) rows 12 sequences 1 body {
// CHECK: strata.forward @r12s3(%{{.*}}) rows 12 sequences 3 body {
// CHECK: strata.forward @h1(%{{.*}}) rows 1 sequences 1 head {
// CHECK: strata.forward @h2(%{{.*}}) rows 2 sequences 2 head {
// CHECK: strata.forward @h3(%{{.*}}) rows 3 sequences 3 head {
// CHECK-NOT: strata.forward
strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 0 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 3 : i64, max_rows = 12 : i64,
    devices = ["cpu:x86-64-v3"], 
    buckets = array<i64: 12, 8, 3, 3, 1, 1, 12, 1, 12, 3>, after = "verify-placement"} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 0 embedding head {
    strata.weight @table : tensor<32x16xf32> from "t" unit "u"
    strata.forward @body(%step) {
      %0 = strata.layer embedding 0 () : () -> tensor<?x16xf32> {
        %e = strata.embed @table[%step] : tensor<?x16xf32>
        strata.yield %e : tensor<?x16xf32>
      }
      strata.layer head 0 (%x = %0) : (tensor<?x16xf32>) -> () {
        %g = strata.gather_rows %x[%step] : tensor<?x16xf32> -> tensor<?x16xf32>
        %a = strata.activation silu %g : tensor<?x16xf32>
        %l = strata.logits %a, @table : tensor<?x16xf32> -> tensor<?x32xf32>
        strata.sample %l[%step] : tensor<?x32xf32>
        strata.yield
      }
    }
  }
}

//--- stages.mlir
// Without the head a stage has bodies alone, all of the same names; its ports carry a bucket's rows.
// CHECK: strata.stage @s0
// CHECK: strata.forward @r1s1(%{{.*}}) rows 1 sequences 1 body {
// CHECK: strata.send %{{.*}}, @out : tensor<1x16xf32>
// CHECK: strata.forward @r2s1(%{{.*}}) rows 2 sequences 1 body {
// CHECK: strata.send %{{.*}}, @out : tensor<2x16xf32>
// CHECK-NOT: strata.forward
// CHECK: strata.stage @s1
// CHECK: strata.forward @r1s1(%{{.*}}) rows 1 sequences 1 body head {
// CHECK: strata.receive @in : tensor<1x16xf32>
// CHECK: strata.forward @r2s1(%{{.*}}) rows 2 sequences 1 body {
// CHECK: strata.receive @in : tensor<2x16xf32>
// CHECK-NOT: strata.layer
// CHECK: strata.forward @h1(%{{.*}}) rows 1 sequences 1 head {
strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 0 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 1 : i64, max_rows = 2 : i64,
    devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"], after = "verify-placement"} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 0 embedding {
    strata.weight @table : tensor<32x16xf32> from "t" unit "u"
    strata.port @out output width 16
    strata.forward @body(%step) {
      %0 = strata.layer embedding 0 () : () -> tensor<?x16xf32> {
        %e = strata.embed @table[%step] : tensor<?x16xf32>
        strata.yield %e : tensor<?x16xf32>
      }
      strata.send %0, @out : tensor<?x16xf32>
    }
  }
  strata.stage @s1 on "cpu:x86-64-v3" layers 0 to 0 head {
    strata.weight @table : tensor<32x16xf32> from "t" unit "u"
    strata.port @in input width 16
    strata.forward @body(%step) {
      %0 = strata.receive @in : tensor<?x16xf32>
      strata.layer head 0 (%x = %0) : (tensor<?x16xf32>) -> () {
        %g = strata.gather_rows %x[%step] : tensor<?x16xf32> -> tensor<?x16xf32>
        %l = strata.logits %g, @table : tensor<?x16xf32> -> tensor<?x32xf32>
        strata.sample %l[%step] : tensor<?x32xf32>
        strata.yield
      }
    }
  }
  strata.handoff @h0_rows : @s0::@out -> @s1::@in rows 2 slots 2
}
