// The text is the compiler's whole state: an op that does not survive it, in its own assembly, in the
// generic form or as bytecode, makes another plan when a pipeline is stopped and finished later.
//
// RUN: strata-opt %s | strata-opt | FileCheck %s
// RUN: strata-opt %s --mlir-print-op-generic | strata-opt | FileCheck %s
// RUN: strata-opt %s --emit-bytecode | strata-opt | FileCheck %s
// RUN: strata-opt %s --verify-roundtrip -o /dev/null

strata.model @tiny attributes {family = "tiny", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v4"]} {
  strata.weight @embedding : tensor<512x64xf32> from "token_embd.weight" unit "embedding"
  strata.weight @l0.attention_norm : tensor<64xf32> from "blk.0.attn_norm.weight" unit "layer 0"
  strata.weight @l0.head_norm : tensor<8xf32> from "blk.0.attn_q_norm.weight" unit "layer 0"
  strata.weight @l0.q : tensor<64x64xf32> from "blk.0.attn_q.weight" unit "layer 0"
  strata.weight @l0.q_bias : tensor<64xf32> from "blk.0.attn_q.bias" unit "layer 0"
  strata.weight @rope : tensor<4xf32> computed #strata.rope_frequencies<theta = 10000.0, width = 8>
      unit "shared"
  strata.weight @head : tensor<512x64xf32> from "output.weight" unit "head"
  strata.weight @head_bias : tensor<512xf32> from "output.bias" unit "head"
  strata.state @kv paged block_tokens 16 components [#strata.component<"k", "f16", 32>,
      #strata.component<"v", "f16", 32>] layers [3]

  // CHECK-LABEL: strata.forward @embedding_ops(%{{.*}}) {
  strata.forward @embedding_ops(%step) {
    // CHECK: %[[E:.*]] = strata.embed @embedding[%[[STEP:.*]]] : tensor<?x64xf32, #strata.space<hidden>>
    %0 = strata.embed @embedding[%step] : tensor<?x64xf32, #strata.space<hidden>>
    // CHECK: strata.embed @embedding[%[[STEP]]] {scale = 8.000000e+00 : f64} : tensor<?x64xf32>
    %1 = strata.embed @embedding[%step] {scale = 8.0 : f64} : tensor<?x64xf32>
  }

  // CHECK-LABEL: strata.forward @norms
  strata.forward @norms(%step) {
    %0 = builtin.unrealized_conversion_cast to tensor<?x64xf32>
    // CHECK: strata.rms_norm %{{.*}}, @l0.attention_norm {epsilon = 1.000000e-05 : f64} : tensor<?x64xf32>
    %1 = strata.rms_norm %0, @l0.attention_norm {epsilon = 1.0e-05 : f64} : tensor<?x64xf32>
    // CHECK: strata.rms_norm %{{.*}}, @l0.head_norm {epsilon = 9.9999999999999995E-7 : f64, heads = 8 : i64} : tensor<?x64xf32>
    %2 = strata.rms_norm %0, @l0.head_norm {epsilon = 1.0e-06 : f64, heads = 8 : i64}
        : tensor<?x64xf32>
  }

  // CHECK-LABEL: strata.forward @products
  strata.forward @products(%step) {
    %n = builtin.unrealized_conversion_cast to tensor<?x64xf32, #strata.space<hidden>>
    // CHECK: strata.linear %{{.*}}, @l0.q bias @l0.q_bias : tensor<?x64xf32, #strata.space<hidden>> -> tensor<?x64xf32, #strata.space<query>>
    %q = strata.linear %n, @l0.q bias @l0.q_bias : tensor<?x64xf32, #strata.space<hidden>>
        -> tensor<?x64xf32, #strata.space<query>>
    // CHECK: strata.linear %{{.*}}, @l0.q : tensor<?x64xf32, #strata.space<hidden>> -> tensor<?x64xf32, #strata.space<hidden>>
    %o = strata.linear %n, @l0.q : tensor<?x64xf32, #strata.space<hidden>>
        -> tensor<?x64xf32, #strata.space<hidden>>
    // CHECK: %[[L:.*]] = strata.logits %{{.*}}, @head : tensor<?x64xf32, #strata.space<hidden>> -> tensor<?x512xf32, #strata.space<vocabulary>>
    %l = strata.logits %n, @head : tensor<?x64xf32, #strata.space<hidden>>
        -> tensor<?x512xf32, #strata.space<vocabulary>>
    // CHECK: strata.logits %{{.*}}, @head bias @head_bias : tensor<?x64xf32, #strata.space<hidden>>
    %biased = strata.logits %n, @head bias @head_bias : tensor<?x64xf32, #strata.space<hidden>>
        -> tensor<?x512xf32, #strata.space<vocabulary>>
    // CHECK: strata.sample %[[L]][%{{.*}}] : tensor<?x512xf32, #strata.space<vocabulary>>
    strata.sample %l[%step] : tensor<?x512xf32, #strata.space<vocabulary>>
  }

  // CHECK-LABEL: strata.forward @attend
  strata.forward @attend(%step) {
    %q, %k, %v = builtin.unrealized_conversion_cast to tensor<?x64xf32>, tensor<?x32xf32>,
        tensor<?x32xf32>
    // CHECK: strata.rope %{{.*}}, @rope[%{{.*}}] half {heads = 8 : i64, rotary_width = 8 : i64} : tensor<?x64xf32>
    %r = strata.rope %q, @rope[%step] half {heads = 8 : i64, rotary_width = 8 : i64} : tensor<?x64xf32>
    // CHECK: strata.rope %{{.*}}, @rope[%{{.*}}] interleaved {heads = 4 : i64, magnitude = 1.250000e+00 : f64, rotary_width = 8 : i64} : tensor<?x64xf32>
    %i = strata.rope %q, @rope[%step] interleaved {heads = 4 : i64, rotary_width = 8 : i64,
        magnitude = 1.25 : f64} : tensor<?x64xf32>
    // CHECK: strata.kv_write %{{.*}}, %{{.*}}, @kv[%{{.*}}] layer 3 : tensor<?x32xf32>, tensor<?x32xf32>
    strata.kv_write %k, %v, @kv[%step] layer 3 : tensor<?x32xf32>, tensor<?x32xf32>
    // CHECK: strata.attention %{{.*}}, @kv[%{{.*}}] layer 3 {kv_heads = 4 : i64, query_heads = 8 : i64, scale = 3.500000e-01 : f64} : tensor<?x64xf32> -> tensor<?x64xf32>
    %a = strata.attention %q, @kv[%step] layer 3 {query_heads = 8 : i64, kv_heads = 4 : i64,
        scale = 0.35 : f64} : tensor<?x64xf32> -> tensor<?x64xf32>
    // CHECK: strata.attention {{.*}} window = 128 : i64} : tensor<?x64xf32> -> tensor<?x64xf32>
    %w = strata.attention %q, @kv[%step] layer 3 {query_heads = 8 : i64, kv_heads = 4 : i64,
        scale = 0.35 : f64, window = 128 : i64} : tensor<?x64xf32> -> tensor<?x64xf32>
  }

  // CHECK-LABEL: strata.forward @pointwise
  strata.forward @pointwise(%step) {
    %gate, %up, %x, %h, %o = builtin.unrealized_conversion_cast to tensor<?x172xf32>,
        tensor<?x172xf32>, tensor<?x172xf32>, tensor<?x64xf32, #strata.space<hidden>>,
        tensor<?x64xf32, #strata.space<hidden>>
    // CHECK: strata.gated silu %{{.*}}, %{{.*}} : tensor<?x172xf32>
    %m = strata.gated silu %gate, %up : tensor<?x172xf32>
    // CHECK: strata.gated gelu_tanh %{{.*}}, %{{.*}} : tensor<?x172xf32>
    %n = strata.gated gelu_tanh %gate, %up : tensor<?x172xf32>
    // CHECK: strata.activation relu2 %{{.*}} : tensor<?x172xf32>
    %s = strata.activation relu2 %x : tensor<?x172xf32>
    // CHECK: strata.activation sigmoid %{{.*}} : tensor<?x172xf32>
    %t = strata.activation sigmoid %x : tensor<?x172xf32>
    // CHECK: strata.add %{{.*}}, %{{.*}} : tensor<?x64xf32, #strata.space<hidden>>
    %y = strata.add %h, %o : tensor<?x64xf32, #strata.space<hidden>>
  }

  // CHECK-LABEL: strata.forward @h4(%{{.*}}) rows 4 sequences 4 head {
  strata.forward @h4(%step) rows 4 sequences 4 head {
    // CHECK: strata.carried : tensor<128x64xf32, #strata.space<hidden>>
    %h = strata.carried : tensor<128x64xf32, #strata.space<hidden>>
  }

  // CHECK-LABEL: strata.forward @r128s4(%{{.*}}) rows 128 sequences 4 body head {
  strata.forward @r128s4(%step) rows 128 sequences 4 body head {
    %h = builtin.unrealized_conversion_cast to tensor<128x64xf32>
    // CHECK: strata.gather_rows %{{.*}}[%{{.*}}] : tensor<128x64xf32> -> tensor<4x64xf32>
    %g = strata.gather_rows %h[%step] : tensor<128x64xf32> -> tensor<4x64xf32>
  }
}
