// Products of more rows than eight, on a GPU: the vendor's library multiplies, and the kernels beside it
// store what it reads in the type of its weights, where nothing else reads it.
//
// RUN: strata-opt %s --pass-pipeline='builtin.module(strata.model(strata-select-kernels))' | FileCheck %s

strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 1 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 2 : i64, max_rows = 20 : i64,
    devices = ["cuda:sm_90"], after = "choose-layouts"} {
  strata.stage @s0 on "cuda:sm_90" layers 0 to 1 {
    strata.weight @n : tensor<64xf32> from "n" unit "layer 0" layout "rows"
    strata.weight @rope : tensor<8xf32> from "r" unit "layer 0" layout "rows"
    strata.weight @q : tensor<64x64xbf16> from "q" unit "layer 0" layout "rows"
    strata.weight @k : tensor<32x64xbf16> from "k" unit "layer 0" layout "rows"
    strata.weight @v : tensor<32x64xbf16> from "v" unit "layer 0" layout "rows"
    strata.weight @b : tensor<32xf32> from "b" unit "layer 0" layout "rows"
    strata.weight @w : tensor<64x64xf32> from "w" unit "layer 0" layout "rows"
    strata.weight @odd : tensor<66x64xf32> from "o" unit "layer 0" layout "rows"
    strata.weight @packed : tensor<64x64x!strata.quant<q8_0>> from "p" unit "layer 0" layout "rows"
    strata.state @kv paged block_tokens 16 components [#strata.component<"k", "bf16", 32>, #strata.component<"v", "bf16", 32>] layers [0]
    strata.state @wide paged block_tokens 16 components [#strata.component<"k", "f32", 32>, #strata.component<"v", "f32", 32>] layers [0]
    strata.port @in input width 64

    // Queries, keys and values are one product: their weights lie one behind the other. 64 + 2 * 32
    // outputs. The attention is that of a prompt, 20 rows of one sequence, and the sum with the residual
    // is the product's own.
    // CHECK-LABEL: strata.forward @layer
    // CHECK: strata.invoke @cuda.rms_norm.bf16(
    // CHECK-NEXT: strata.invoke @cuda.gemm.bf16(%{{.*}}) slots [#strata.buffer<0>, #strata.weight<@q>, #strata.weight<@k>, #strata.weight<@v>, #strata.const<0 : i64>, #strata.buffer<1>, #strata.buffer<2>, #strata.const<20 : i64>, #strata.const<64 : i64>, #strata.const<128 : i64>, #strata.const<0 : i64>] items <constant = 1> tied [-1, -1]
    // CHECK-SAME: (tensor<20x64xbf16>) -> (tensor<20x128xf32>, tensor<33554432xi8>)
    // CHECK-NEXT: strata.invoke @cuda.qkv_rope.bf16.bf16(%{{.*}}#0)
    // CHECK-SAME: grid [20, 1]
    // CHECK-NEXT: strata.invoke @cuda.attention_prompt.bf16.bf16(
    // CHECK-SAME: grid [2, 1] "layer 0 attention"
    // CHECK-NEXT: strata.invoke @cuda.gemm.bf16(%{{.*}}, %{{.*}}) slots {{.*}} #strata.const<1 : i64>] items <constant = 1> tied [1, -1]
    // CHECK-NEXT: }
    strata.forward @layer(%step) rows 20 sequences 1 body {
      %0 = strata.receive @in : tensor<20x64xf32>
      %1 = strata.layer decoder 0 (%x = %0) : (tensor<20x64xf32>) -> tensor<20x64xf32> {
        %n = strata.rms_norm %x, @n {epsilon = 1.0e-05 : f64} : tensor<20x64xf32>
        %q = strata.linear %n, @q : tensor<20x64xf32> -> tensor<20x64xf32>
        %k = strata.linear %n, @k : tensor<20x64xf32> -> tensor<20x32xf32>
        %v = strata.linear %n, @v : tensor<20x64xf32> -> tensor<20x32xf32>
        %rq = strata.rope %q, @rope[%step] half {heads = 4 : i64, rotary_width = 16 : i64} : tensor<20x64xf32>
        %rk = strata.rope %k, @rope[%step] half {heads = 2 : i64, rotary_width = 16 : i64} : tensor<20x32xf32>
        strata.kv_write %rk, %v, @kv[%step] layer 0 : tensor<20x32xf32>, tensor<20x32xf32>
        %a = strata.attention %rq, @kv[%step] layer 0 {kv_heads = 2 : i64, query_heads = 4 : i64, scale = 0.25 : f64} : tensor<20x64xf32> -> tensor<20x64xf32>
        %o = strata.linear %a, @q : tensor<20x64xf32> -> tensor<20x64xf32>
        %s = strata.add %x, %o : tensor<20x64xf32>
        strata.yield %s : tensor<20x64xf32>
      }
    }

    // What a product of F32 reads too stays F32 and is converted for the others; a bias is the product's own.
    // CHECK-LABEL: strata.forward @apart
    // CHECK: strata.invoke @cuda.rms_norm(
    // CHECK: strata.invoke @cuda.convert.bf16(
    // CHECK-NEXT: strata.invoke @cuda.gemm.bf16({{.*}} #strata.weight<@v>, #strata.const<0 : i64>, #strata.const<0 : i64>, #strata.weight<@b>,
    // CHECK: strata.invoke @cuda.gemm.f32({{.*}} #strata.weight<@w>
    // Outputs that the library would read four bytes at a time, and quantised weights, stay as they are.
    // CHECK: strata.invoke @cuda.linear.f32({{.*}} #strata.weight<@odd>
    // CHECK: strata.invoke @cuda.linear.q8_0({{.*}} #strata.weight<@packed>
    strata.forward @apart(%step) rows 20 sequences 1 body {
      %0 = strata.receive @in : tensor<20x64xf32>
      %1 = strata.layer decoder 0 (%x = %0) : (tensor<20x64xf32>) -> tensor<20x64xf32> {
        %n = strata.rms_norm %x, @n {epsilon = 1.0e-05 : f64} : tensor<20x64xf32>
        %v = strata.linear %n, @v bias @b : tensor<20x64xf32> -> tensor<20x32xf32>
        strata.kv_write %v, %v, @wide[%step] layer 0 : tensor<20x32xf32>, tensor<20x32xf32>
        %w = strata.linear %n, @w : tensor<20x64xf32> -> tensor<20x64xf32>
        %a = strata.attention %w, @wide[%step] layer 0 {kv_heads = 2 : i64, query_heads = 4 : i64, scale = 0.25 : f64} : tensor<20x64xf32> -> tensor<20x64xf32>
        %o = strata.linear %a, @odd : tensor<20x64xf32> -> tensor<20x66xf32>
        %p = strata.linear %a, @packed : tensor<20x64xf32> -> tensor<20x64xf32>
        strata.yield %p : tensor<20x64xf32>
      }
    }
  }
}
