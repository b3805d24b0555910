// Routing, experts, latent space and recurrences survive their text in every form.
//
// RUN: strata-opt %s | strata-opt | FileCheck %s
// RUN: strata-opt %s --mlir-print-op-generic | strata-opt | FileCheck %s
// RUN: strata-opt %s --emit-bytecode | strata-opt | FileCheck %s
// RUN: strata-opt %s --verify-roundtrip -o /dev/null

strata.model @tiny attributes {family = "tiny", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v4"]} {
  // CHECK: strata.weight @l0.experts_up : tensor<8x48x64xf32> from "layers.0.experts.*.up.weight" stack 8 unit "layer 0"
  strata.weight @l0.experts_up : tensor<8x48x64xf32> from "layers.0.experts.*.up.weight" stack 8
      unit "layer 0"
  // CHECK: strata.weight @l0.dt : tensor<8x64xf32> from "layers.0.in_proj.weight" part <320, 328> unit "layer 0"
  strata.weight @l0.dt : tensor<8x64xf32> from "layers.0.in_proj.weight" part <320, 328> unit "layer 0"
  // CHECK: strata.weight @l0.joined : tensor<64x48xf32> from "up" part <0, 1024> join 2 unit "layer 0"
  strata.weight @l0.joined : tensor<64x48xf32> from "up" part <0, 1024> join 2 unit "layer 0"
  // CHECK: strata.weight @latent_up : tensor<2x64x48xf32> from "latent_up" join 2 layers <0, 2, 2> unit "latent_up"
  strata.weight @latent_up : tensor<2x64x48xf32> from "latent_up" join 2 layers <0, 2, 2> unit "latent_up"
  // CHECK: strata.weight @latent_down : tensor<1x48x64xf32> from "latent_down" layers <1, 2, 2> unit "latent_down"
  strata.weight @latent_down : tensor<1x48x64xf32> from "latent_down" layers <1, 2, 2> unit "latent_down"
  // CHECK: strata.weight @l0.a : tensor<8xf32> from "A_log" map "neg_exp" unit "layer 0"
  strata.weight @l0.a : tensor<8xf32> from "A_log" map "neg_exp" unit "layer 0"
  // CHECK: strata.weight @l0.slots : tensor<8xf32> computed #strata.identity<8> unit "shared"
  strata.weight @l0.slots : tensor<8xf32> computed #strata.identity<8> unit "shared"
  strata.weight @l0.labels : tensor<8xf32> from "labels" unit "layer 0"
  strata.weight @l0.gate : tensor<8x48x64xf32> from "gate" unit "layer 0"
  strata.weight @l0.up : tensor<8x48x64xf32> from "up" unit "layer 0"
  strata.weight @l0.down : tensor<8x64x48xf32> from "down" unit "layer 0"
  strata.weight @l1.router_bias : tensor<128xf32> from "bias" unit "layer 1"
  strata.weight @l1.latent_down : tensor<24x64xf32> from "latent_down" unit "layer 1"
  strata.weight @l1.latent_up : tensor<64x24xf32> from "latent_up" unit "layer 1"
  strata.weight @l0.k_up : tensor<4x16x16xf32> from "k_up" unit "layer 0"
  strata.weight @l0.conv : tensor<192x4xf32> from "conv" unit "layer 0"
  strata.weight @l0.conv_bias : tensor<192xf32> from "conv_bias" unit "layer 0"
  strata.weight @l0.d : tensor<8xf32> from "d" unit "layer 0"
  strata.weight @l0.dt_bias : tensor<8xf32> from "dt_bias" unit "layer 0"
  strata.weight @l0.inner_norm : tensor<128xf32> from "norm" unit "layer 0"
  // CHECK: strata.state @recurrent slot block_tokens 1 components [
  strata.state @recurrent slot block_tokens 1 components [#strata.component<"conv", "f32", 576>,
      #strata.component<"ssm", "f32", 2048>] layers [0, 2]
  strata.state @kv paged block_tokens 16 components [#strata.component<"k", "f16", 8>,
      #strata.component<"v", "f16", 16>] layers [0]

  // CHECK-LABEL: strata.forward @model_level
  strata.forward @model_level(%step) {
    %n = builtin.unrealized_conversion_cast to tensor<?x64xf32, #strata.space<hidden>>
    %l = builtin.unrealized_conversion_cast to tensor<?x128xf32, #strata.space<experts>>
    // CHECK: strata.router sigmoid %{{.*}} bias @l1.router_bias {normalise, scale = 2.500000e+00 : f64, used = 6 : i64}
    %r = strata.router sigmoid %l bias @l1.router_bias {used = 6 : i64, normalise, scale = 2.5 : f64}
        : tensor<?x128xf32, #strata.space<experts>> -> tensor<?x12xf32, #strata.space<routing>>
    %l8 = builtin.unrealized_conversion_cast to tensor<?x8xf32>
    // CHECK: %[[R:.*]] = strata.router softmax %{{.*}} {group_top = 2 : i64, groups = 2 : i64, used = 2 : i64}
    %r8 = strata.router softmax %l8 {used = 2 : i64, groups = 2 : i64, group_top = 2 : i64}
        : tensor<?x8xf32> -> tensor<?x4xf32, #strata.space<routing>>
  }

  // CHECK-LABEL: strata.forward @experts
  strata.forward @experts(%step) {
    %n = builtin.unrealized_conversion_cast to tensor<?x64xf32, #strata.space<hidden>>
    %r = builtin.unrealized_conversion_cast to tensor<?x4xf32, #strata.space<routing>>
    // CHECK: strata.experts silu %{{.*}}, %{{.*}} gate @l0.gate up @l0.up down @l0.down slots @l0.slots : tensor<?x64xf32
    %y = strata.experts silu %n, %r gate @l0.gate up @l0.up down @l0.down slots @l0.slots
        : tensor<?x64xf32, #strata.space<hidden>>, tensor<?x4xf32, #strata.space<routing>>
    %wide = builtin.unrealized_conversion_cast to tensor<?x192xf32, #strata.space<latent>>
    // CHECK: strata.experts relu2 %{{.*}} up @l0.up down @l0.down slots @l0.slots labels @l0.labels
    %z = strata.experts relu2 %wide, %r up @l0.up down @l0.down slots @l0.slots labels @l0.labels
        : tensor<?x192xf32, #strata.space<latent>>, tensor<?x4xf32, #strata.space<routing>>
  }

  // CHECK-LABEL: strata.forward @latent
  strata.forward @latent(%step) {
    %n = builtin.unrealized_conversion_cast to tensor<?x64xf32, #strata.space<hidden>>
    // CHECK: strata.latent_down %{{.*}}, @l1.latent_down {groups = 1 : i64}
    %a = strata.latent_down %n, @l1.latent_down {groups = 1 : i64}
        : tensor<?x64xf32, #strata.space<hidden>> -> tensor<?x24xf32, #strata.space<latent>>
    // CHECK: strata.latent_down %{{.*}}, @latent_down layer 1 {groups = 2 : i64}
    %b = strata.latent_down %n, @latent_down layer 1 {groups = 2 : i64}
        : tensor<?x64xf32, #strata.space<hidden>> -> tensor<?x48xf32, #strata.space<latent>>
    // CHECK: strata.latent_up %{{.*}}, @latent_up layer 0 {groups = 2 : i64}
    %z = strata.latent_up %b, @latent_up layer 0 {groups = 2 : i64}
        : tensor<?x48xf32, #strata.space<latent>> -> tensor<?x64xf32, #strata.space<hidden>>
    // CHECK: strata.latent_up %{{.*}}, @l1.latent_up {groups = 1 : i64}
    %y = strata.latent_up %a, @l1.latent_up {groups = 1 : i64}
        : tensor<?x24xf32, #strata.space<latent>> -> tensor<?x64xf32, #strata.space<hidden>>
    %g = builtin.unrealized_conversion_cast to tensor<?x1xf32>
    %x = builtin.unrealized_conversion_cast to tensor<?x64xf32>
    // CHECK: strata.row_gated sigmoid %{{.*}}, %{{.*}} : tensor<?x1xf32>, tensor<?x64xf32>
    %s = strata.row_gated sigmoid %g, %x : tensor<?x1xf32>, tensor<?x64xf32>
  }

  // CHECK-LABEL: strata.forward @expanded
  strata.forward @expanded(%step) {
    %n = builtin.unrealized_conversion_cast to tensor<4x64xf32>
    %r = builtin.unrealized_conversion_cast to tensor<4x4xf32, #strata.space<routing>>
    // 2 * 8 + 2 words and 2 for each of 4 rows' 2 experts: 34.
    // CHECK: strata.expert_lists %{{.*}}[%{{.*}}] {experts = 8 : i64}
    %l = strata.expert_lists %r[%step] {experts = 8 : i64} : tensor<4x4xf32, #strata.space<routing>>
        -> tensor<1x34xf32>
    // CHECK: %[[G:.*]] = strata.expert_up %{{.*}}, @l0.gate slots @l0.slots[%{{.*}}] {count = 8
    %g = strata.expert_up %n, %l, @l0.gate slots @l0.slots[%step] {first = 0 : i64, count = 8 : i64, used = 2 : i64}
        : tensor<4x64xf32>, tensor<1x34xf32> -> tensor<8x48xf32>
    // CHECK: strata.expert_up {{.*}} gated %[[G]] : tensor<8x48xf32> {
    %m = strata.expert_up %n, %l, @l0.up slots @l0.slots[%step] gated %g : tensor<8x48xf32> {first = 0 : i64, count = 8 : i64,
        used = 2 : i64, function = #strata<function silu>} : tensor<4x64xf32>, tensor<1x34xf32> -> tensor<8x48xf32>
    // CHECK: %[[Y:.*]] = strata.expert_down %{{.*}}, @l0.down slots @l0.slots[
    %y = strata.expert_down %m, %l, @l0.down slots @l0.slots[%step] {first = 0 : i64, count = 8 : i64, used = 2 : i64}
        : tensor<8x48xf32>, tensor<1x34xf32> -> tensor<4x64xf32>
    // CHECK: strata.expert_down {{.*}} onto %[[Y]] : tensor<4x64xf32> {
    %z = strata.expert_down %m, %l, @l0.down slots @l0.slots[%step] onto %y : tensor<4x64xf32> {first = 0 : i64,
        count = 8 : i64, used = 2 : i64} : tensor<8x48xf32>, tensor<1x34xf32> -> tensor<4x64xf32>
  }

  // CHECK-LABEL: strata.forward @recurrent_ops
  strata.forward @recurrent_ops(%step) {
    %x = builtin.unrealized_conversion_cast to tensor<?x192xf32>
    // CHECK: strata.conv %{{.*}}, @l0.conv bias @l0.conv_bias, @recurrent[%{{.*}}] layer 0 : tensor<?x192xf32>
    %y = strata.conv %x, @l0.conv bias @l0.conv_bias, @recurrent[%step] layer 0 : tensor<?x192xf32>
  }

  // CHECK-LABEL: strata.forward @scan
  strata.forward @scan(%step) {
    %x = builtin.unrealized_conversion_cast to tensor<?x192xf32>
    %dt = builtin.unrealized_conversion_cast to tensor<?x8xf32>
    %c = strata.conv %x, @l0.conv, @recurrent[%step] layer 2 : tensor<?x192xf32>
    // CHECK: strata.ssm_scan %{{.*}}, %{{.*}}, @l0.a skip @l0.d dt_bias @l0.dt_bias, @recurrent
    %y = strata.ssm_scan %c, %dt, @l0.a skip @l0.d dt_bias @l0.dt_bias, @recurrent[%step] layer 0
        {heads = 8 : i64, groups = 2 : i64, state_width = 16 : i64}
        : tensor<?x192xf32>, tensor<?x8xf32> -> tensor<?x128xf32>
    // CHECK: strata.rms_norm {{.*}} grouped, heads = 2 : i64}
    %n = strata.rms_norm %y, @l0.inner_norm {epsilon = 1.0e-05 : f64, heads = 2 : i64, grouped} : tensor<?x128xf32>
  }

  // CHECK-LABEL: strata.forward @latent_attention
  strata.forward @latent_attention(%step) {
    %p = builtin.unrealized_conversion_cast to tensor<?x96xf32>
    // CHECK: strata.head_linear %{{.*}}, @l0.k_up {tail = 8 : i64, transposed} : tensor<?x96xf32> -> tensor<?x96xf32>
    %q = strata.head_linear %p, @l0.k_up {tail = 8 : i64, transposed} : tensor<?x96xf32> -> tensor<?x96xf32>
    // A query head is 16 of the value and 8 of the key.
    // CHECK: strata.attention {{.*}} latent, query_heads = 4
    %a = strata.attention %q, @kv[%step] layer 0 {query_heads = 4 : i64, kv_heads = 1 : i64, scale = 0.5 : f64,
        latent} : tensor<?x96xf32> -> tensor<?x64xf32>
  }
}
