// Ops that one kernel runs where few rows are bound by the weights' bytes: a norm and what reads it.
//
// RUN: strata-opt %s --pass-pipeline='builtin.module(strata.model(strata-select-kernels))' | FileCheck %s

strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 1 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 2 : i64, max_rows = 20 : i64,
    devices = ["cuda:sm_90"], after = "choose-layouts"} {
  strata.stage @s0 on "cuda:sm_90" layers 0 to 1 {
    strata.weight @n : tensor<16xf32> from "n" unit "layer 0" layout "rows"
    strata.weight @rope : tensor<2xf32> from "r" unit "layer 0" layout "rows"
    strata.weight @q : tensor<16x16xbf16> from "q" unit "layer 0" layout "rows"
    strata.weight @k : tensor<8x16xbf16> from "k" unit "layer 0" layout "rows"
    strata.weight @v : tensor<8x16xbf16> from "v" unit "layer 0" layout "rows"
    strata.weight @v8 : tensor<8x16xf16> from "v8" unit "layer 0" layout "rows"
    strata.weight @gate : tensor<24x16xbf16> from "g" unit "layer 0" layout "rows"
    strata.weight @up : tensor<24x16xbf16> from "u" unit "layer 0" layout "rows"
    strata.weight @down : tensor<16x24xbf16> from "d" unit "layer 0" layout "rows"
    strata.state @kv paged block_tokens 16 components [#strata.component<"k", "f16", 8>, #strata.component<"v", "f16", 8>] layers [0]
    strata.port @in input width 16

    // Every op of the layer but attention is part of a fusion, which stands where its last op stood.
    // CHECK-LABEL: strata.forward @few
    // CHECK: strata.invoke @cuda.copy_rows
    // CHECK-NEXT: strata.invoke @cuda.norm_qkv.bf16.f16.f16({{.*}} "layer 0 norm_qkv q"
    // CHECK-NEXT: strata.invoke @cuda.attention.f16.f16
    // CHECK-NEXT: strata.invoke @cuda.linear.bf16({{.*}} tied [1]
    // CHECK-NEXT: strata.invoke @cuda.norm_gated.silu.bf16({{.*}} "layer 0 norm_gated gate"
    // CHECK-NEXT: strata.invoke @cuda.linear.bf16({{.*}} tied [1]
    // CHECK-NEXT: }
    strata.forward @few(%step) rows 2 sequences 2 body {
      %0 = strata.receive @in : tensor<2x16xf32>
      %1 = strata.layer decoder 0 (%x = %0) : (tensor<2x16xf32>) -> tensor<2x16xf32> {
        %n = strata.rms_norm %x, @n {epsilon = 1.0e-05 : f64} : tensor<2x16xf32>
        %q = strata.linear %n, @q : tensor<2x16xf32> -> tensor<2x16xf32>
        %k = strata.linear %n, @k : tensor<2x16xf32> -> tensor<2x8xf32>
        %v = strata.linear %n, @v : tensor<2x16xf32> -> tensor<2x8xf32>
        %rq = strata.rope %q, @rope[%step] half {heads = 4 : i64, rotary_width = 4 : i64} : tensor<2x16xf32>
        %rk = strata.rope %k, @rope[%step] half {heads = 2 : i64, rotary_width = 4 : i64} : tensor<2x8xf32>
        strata.kv_write %rk, %v, @kv[%step] layer 0 : tensor<2x8xf32>, tensor<2x8xf32>
        %a = strata.attention %rq, @kv[%step] layer 0 {kv_heads = 2 : i64, query_heads = 4 : i64, scale = 0.5 : f64} : tensor<2x16xf32> -> tensor<2x16xf32>
        %o = strata.linear %a, @q : tensor<2x16xf32> -> tensor<2x16xf32>
        %s = strata.add %x, %o : tensor<2x16xf32>
        %m = strata.rms_norm %s, @n {epsilon = 1.0e-05 : f64} : tensor<2x16xf32>
        %g = strata.linear %m, @gate : tensor<2x16xf32> -> tensor<2x24xf32>
        %u = strata.linear %m, @up : tensor<2x16xf32> -> tensor<2x24xf32>
        %h = strata.gated silu %g, %u : tensor<2x24xf32>
        %d = strata.linear %h, @down : tensor<2x24xf32> -> tensor<2x16xf32>
        %y = strata.add %s, %d : tensor<2x16xf32>
        strata.yield %y : tensor<2x16xf32>
      }
    }

    // Many rows are bound by arithmetic: the library multiplies gate and up at once
    // (select-gemm.mlir). Weights of two types have no kernel together.
    // CHECK-LABEL: strata.forward @many
    // CHECK: strata.invoke @cuda.rms_norm.bf16(
    // CHECK-NEXT: strata.invoke @cuda.gemm.bf16.bf16(
    // CHECK-NEXT: strata.invoke @cuda.gated_pair.silu.bf16(
    // CHECK-NEXT: strata.invoke @cuda.gemm.bf16(
    // CHECK-NEXT: }
    // CHECK-LABEL: strata.forward @mixed
    // CHECK: strata.invoke @cuda.rms_norm(
    // CHECK-NOT: norm_qkv
    strata.forward @many(%step) rows 20 sequences 2 body {
      %0 = strata.receive @in : tensor<20x16xf32>
      %1 = strata.layer decoder 0 (%x = %0) : (tensor<20x16xf32>) -> tensor<20x16xf32> {
        %m = strata.rms_norm %x, @n {epsilon = 1.0e-05 : f64} : tensor<20x16xf32>
        %g = strata.linear %m, @gate : tensor<20x16xf32> -> tensor<20x24xf32>
        %u = strata.linear %m, @up : tensor<20x16xf32> -> tensor<20x24xf32>
        %h = strata.gated silu %g, %u : tensor<20x24xf32>
        %y = strata.linear %h, @down : tensor<20x24xf32> -> tensor<20x16xf32>
        strata.yield %y : tensor<20x16xf32>
      }
    }
    strata.forward @mixed(%step) rows 2 sequences 2 body {
      %0 = strata.receive @in : tensor<2x16xf32>
      %1 = strata.layer decoder 0 (%x = %0) : (tensor<2x16xf32>) -> tensor<2x16xf32> {
        %n = strata.rms_norm %x, @n {epsilon = 1.0e-05 : f64} : tensor<2x16xf32>
        %q = strata.linear %n, @q : tensor<2x16xf32> -> tensor<2x16xf32>
        %k = strata.linear %n, @k : tensor<2x16xf32> -> tensor<2x8xf32>
        %v = strata.linear %n, @v8 : tensor<2x16xf32> -> tensor<2x8xf32>
        %rq = strata.rope %q, @rope[%step] half {heads = 4 : i64, rotary_width = 4 : i64} : tensor<2x16xf32>
        %rk = strata.rope %k, @rope[%step] half {heads = 2 : i64, rotary_width = 4 : i64} : tensor<2x8xf32>
        strata.kv_write %rk, %v, @kv[%step] layer 0 : tensor<2x8xf32>, tensor<2x8xf32>
        %a = strata.attention %rq, @kv[%step] layer 0 {kv_heads = 2 : i64, query_heads = 4 : i64, scale = 0.5 : f64} : tensor<2x16xf32> -> tensor<2x16xf32>
        strata.yield %a : tensor<2x16xf32>
      }
    }

    // A norm that another op reads too stays alone.
    // CHECK-LABEL: strata.forward @shared
    // CHECK: strata.invoke @cuda.rms_norm(
    // CHECK: strata.invoke @cuda.linear.bf16(
    strata.forward @shared(%step) rows 2 sequences 2 body {
      %0 = strata.receive @in : tensor<2x16xf32>
      %1 = strata.layer decoder 0 (%x = %0) : (tensor<2x16xf32>) -> tensor<2x16xf32> {
        %n = strata.rms_norm %x, @n {epsilon = 1.0e-05 : f64} : tensor<2x16xf32>
        %q = strata.linear %n, @q : tensor<2x16xf32> -> tensor<2x16xf32>
        %y = strata.add %n, %q : tensor<2x16xf32>
        strata.yield %y : tensor<2x16xf32>
      }
    }
  }
}
