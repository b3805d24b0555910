// Weights, states, forwards and layers carry every decision between passes as attributes; what an
// earlier pass wrote must be there, digit for digit, when the next one reads the text.
//
// RUN: strata-opt %s | strata-opt | FileCheck %s
// RUN: strata-opt %s --mlir-print-op-generic | strata-opt | FileCheck %s
// RUN: strata-opt %s --emit-bytecode | strata-opt | FileCheck %s
// RUN: strata-opt %s --verify-roundtrip -o /dev/null

// CHECK-LABEL: strata.model @tiny attributes
// CHECK-SAME: devices = ["cpu:x86-64-v4"]
// CHECK-SAME: max_rows = 128 : i64
strata.model @tiny attributes {family = "tiny", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v4"]} {
  // CHECK: strata.weight @l0.q : tensor<64x64x!strata.quant<q4_1>> from "blk.0.attn_q.weight" unit "layer 0"
  strata.weight @l0.q : tensor<64x64x!strata.quant<q4_1>> from "blk.0.attn_q.weight" unit "layer 0"
  // CHECK: strata.weight @rope : tensor<4xf32> computed #strata.rope_frequencies<width = 8, theta = 1.000000e+04, scaling = "none"> unit "shared"
  strata.weight @rope : tensor<4xf32> computed #strata.rope_frequencies<theta = 10000.0, width = 8,
      scaling = "none"> unit "shared"
  // CHECK: strata.weight @head : tensor<512x64xbf16> from "output.weight" unit "head" stages [0, 2] layout "rows"
  strata.weight @head : tensor<512x64xbf16> from "output.weight" unit "head" stages [0, 2] layout "rows"
  // CHECK: strata.weight @half : tensor<4x4xf16> from "h" unit "head"
  strata.weight @half : tensor<4x4xf16> from "h" unit "head"
  // Divisors beside a computation: both are kept.
  // CHECK: strata.weight @stretched : tensor<4xf32> from "rope_freqs.weight" computed #strata.rope_frequencies<width = 8, theta = 1.000000e+04, scaling = "none"> unit "shared"
  strata.weight @stretched : tensor<4xf32> from "rope_freqs.weight"
      computed #strata.rope_frequencies<theta = 10000.0, width = 8> unit "shared"

  // CHECK: strata.state @kv paged block_tokens 16 components [#strata.component<"k", "f16", 32>, #strata.component<"v", "f16", 32>] layers [0, 1]
  strata.state @kv paged block_tokens 16 components [#strata.component<"k", "f16", 32>,
      #strata.component<"v", "f16", 32>] layers [0, 1]
  // CHECK: strata.state @local window 4096 block_tokens 16 components [#strata.component<"k", "f32", 32>] layers [0, 1]
  strata.state @local window 4096 block_tokens 16 components [#strata.component<"k", "f32", 32>]
      layers [0, 1]

  // CHECK: strata.forward @body(%{{.*}}) {
  strata.forward @body(%step) {
    // CHECK: %[[E:.*]] = strata.layer embedding 0 () attributes {stage = 0 : i64} : () -> tensor<?x64xf32, #strata.space<hidden>> {
    %0 = strata.layer embedding 0 () attributes {stage = 0 : i64}
        : () -> tensor<?x64xf32, #strata.space<hidden>> {
      %y = builtin.unrealized_conversion_cast to tensor<?x64xf32, #strata.space<hidden>>
      strata.yield %y : tensor<?x64xf32, #strata.space<hidden>>
    }
    // CHECK: strata.layer decoder 0 (%[[H:.*]] = %[[E]]) : (tensor<?x64xf32, #strata.space<hidden>>) -> tensor<?x64xf32, #strata.space<hidden>> {
    %1 = strata.layer decoder 0 (%h = %0) : (tensor<?x64xf32, #strata.space<hidden>>)
        -> tensor<?x64xf32, #strata.space<hidden>> {
      // CHECK: %[[Y:.*]] = strata.add %[[H]], %[[H]]
      %y = strata.add %h, %h : tensor<?x64xf32, #strata.space<hidden>>
      // CHECK: strata.yield %[[Y]] : tensor<?x64xf32, #strata.space<hidden>>
      strata.yield %y : tensor<?x64xf32, #strata.space<hidden>>
    }
    // Two values enter: the text binds each by name.
    // CHECK: strata.layer decoder 1 (%{{.*}} = %{{.*}}, %{{.*}} = %[[E]])
    // CHECK-SAME: cost = #strata.unit_cost<weight_bytes = 1, state_bytes = 2, arena_bytes = 3, commands = 4, decode_nanoseconds = 5, prefill_nanoseconds = 5>
    %2 = strata.layer decoder 1 (%h = %1, %first = %0) attributes {
        cost = #strata.unit_cost<weight_bytes = 1, state_bytes = 2, arena_bytes = 3, commands = 4,
        decode_nanoseconds = 5, prefill_nanoseconds = 5>} : (tensor<?x64xf32, #strata.space<hidden>>,
        tensor<?x64xf32, #strata.space<hidden>>) -> tensor<?x64xf32, #strata.space<hidden>> {
      strata.yield %first : tensor<?x64xf32, #strata.space<hidden>>
    }
    // CHECK: strata.layer head 0 (%{{.*}} = %{{.*}}) : (tensor<?x64xf32, #strata.space<hidden>>) -> () {
    strata.layer head 0 (%h = %2) : (tensor<?x64xf32, #strata.space<hidden>>) -> () {
      // CHECK: strata.yield
      strata.yield
    }
  }
  // CHECK: strata.forward @r8s4(%{{.*}}) rows 8 sequences 4 body head {
  strata.forward @r8s4(%step) rows 8 sequences 4 body head {
  }
}

// Every optional attribute of a model.
// CHECK-LABEL: strata.model @full attributes
// CHECK-SAME: after = "pad-tail-chunks"
// CHECK-SAME: buckets = array<i64: 1, 1, 4, 2>
// CHECK-SAME: device_bytes = array<i64: 1048576, 0>
// CHECK-SAME: end_of_generation = array<i64: 2, 7>
// CHECK-SAME: split = array<i64: 1, 1>
// CHECK-SAME: tails = [#strata.tail<1, 0>, #strata.tail<3, 1, 0>]
strata.model @full attributes {family = "tiny", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 4 : i64, devices = ["cpu:x86-64-v4", "cpu:x86-64-v3"],
    after = "pad-tail-chunks", buckets = array<i64: 1, 1, 4, 2>,
    device_bytes = array<i64: 1048576, 0>, end_of_generation = array<i64: 2, 7>,
    split = array<i64: 1, 1>, tails = [#strata.tail<1, 0>, #strata.tail<3, 1, 0>]} {
}

// Rope parameters keep every bit: 1.0e6 + 1/3 has no short decimal form, and the numbers of a scaling
// are printed where there is one.
// CHECK-LABEL: strata.model @ropes
strata.model @ropes attributes {family = "tiny", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 4 : i64, devices = ["cpu:x86-64-v4"]} {
  // CHECK: @exact {{.*}}<width = 4, theta = 1000000.3333333334, scaling = "none">
  strata.weight @exact : tensor<2xf32> computed #strata.rope_frequencies<width = 4,
      theta = 1000000.3333333334> unit "shared"
  // CHECK: @llama3 {{.*}} scaling = "llama3", factor = 8.000000e+00, low_frequency_factor = 1.000000e+00, high_frequency_factor = 4.000000e+00, original_context = 8.192000e+03,
  strata.weight @llama3 : tensor<2xf32> computed #strata.rope_frequencies<width = 4,
      theta = 5.0e5, scaling = "llama3", factor = 8.0, low_frequency_factor = 1.0,
      high_frequency_factor = 4.0, original_context = 8192.0> unit "shared"
  // CHECK: @yarn {{.*}} beta_fast = 3.200000e+01, beta_slow = 1.000000e+00>
  strata.weight @yarn : tensor<2xf32> computed #strata.rope_frequencies<width = 4,
      theta = 5.0e5, scaling = "yarn", factor = 4.0, original_context = 4096.0> unit "shared"
  // CHECK: @linear {{.*}} scaling = "linear", factor = 2.000000e+00
  strata.weight @linear : tensor<2xf32> computed #strata.rope_frequencies<width = 4,
      theta = 5.0e5, scaling = "linear", factor = 2.0> unit "shared"
}
