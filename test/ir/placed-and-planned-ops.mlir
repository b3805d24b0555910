// The two lower levels are texts as well: a plan can be stopped behind any pass and finished from there.
//
// RUN: strata-opt %s | strata-opt | FileCheck %s
// RUN: strata-opt %s --mlir-print-op-generic | strata-opt | FileCheck %s
// RUN: strata-opt %s --emit-bytecode | strata-opt | FileCheck %s
// RUN: strata-opt %s --verify-roundtrip -o /dev/null

strata.model @two attributes {family = "tiny", hidden = 64 : i64, layers = 24 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v4", "cpu:x86-64-v4"]} {
  // CHECK: strata.stage @s0 on "cpu:x86-64-v4" layers 0 to 24 embedding {
  strata.stage @s0 on "cpu:x86-64-v4" layers 0 to 24 embedding {
    // CHECK: strata.port @out output width 64
    strata.port @out output width 64
    // CHECK: strata.forward @body
    strata.forward @body(%step) {
      %h = builtin.unrealized_conversion_cast to tensor<?x64xf32, #strata.space<hidden>>
      // CHECK: strata.send %{{.*}}, @out : tensor<?x64xf32, #strata.space<hidden>>
      strata.send %h, @out : tensor<?x64xf32, #strata.space<hidden>>
    }
  }
  // CHECK: strata.stage @s1 on "cpu:x86-64-v4" layers 24 to 24 head scratch 256 {
  strata.stage @s1 on "cpu:x86-64-v4" layers 24 to 24 head scratch 256 {
    // CHECK: strata.kernel @cpu.rms_norm
    strata.kernel @cpu.rms_norm
    strata.kernel @cpu.add
    strata.kernel @cpu.probe
    // CHECK: strata.port @in input width 64
    strata.port @in input width 64
    strata.weight @l0.norm : tensor<64xf32> from "n" unit "layer 0"
    strata.state @kv paged block_tokens 16 components [#strata.component<"k", "f16", 32>]
        layers [24]
    strata.forward @body(%step) {
      // CHECK: strata.receive @in : tensor<?x64xf32, #strata.space<hidden>>
      %h = strata.receive @in : tensor<?x64xf32, #strata.space<hidden>>
    }
    strata.forward @r8s4(%step) rows 8 sequences 4 body {
      %0 = builtin.unrealized_conversion_cast to tensor<8x64xf32>
      // CHECK: strata.invoke @cpu.rms_norm(%{{.*}}) slots [#strata.buffer<0>, #strata.weight<@l0.norm>, #strata.buffer<1>, #strata.step_field<"row_sequence">, #strata.out_field<"nonfinite_layer">, #strata.const<64 : i64>, #strata.const<1.000000e-05 : f64>, #strata.const<0 : i64>] items <row = 1> tied [-1] "layer 0 rms_norm" layer 0 : (tensor<8x64xf32>) -> tensor<8x64xf32>
      %1 = strata.invoke @cpu.rms_norm(%0) slots [#strata.buffer<0>, #strata.weight<@l0.norm>,
          #strata.buffer<1>, #strata.step_field<"row_sequence">, #strata.out_field<"nonfinite_layer">,
          #strata.const<64 : i64>, #strata.const<1.0e-05 : f64>, #strata.const<0 : i64>]
          items <row = 1> tied [-1] "layer 0 rms_norm" layer 0
          : (tensor<8x64xf32>) -> tensor<8x64xf32>
      // CHECK: strata.invoke @cpu.add(%{{.*}}, %{{.*}}) slots {{.*}} items <head_row = 1, constant = 3> tied [0] "head add" layer 24 carries logits : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
      %2 = strata.invoke @cpu.add(%1, %0) slots [#strata.buffer<0>, #strata.buffer<1>,
          #strata.buffer<2>, #strata.const<64 : i64>] items <head_row = 1, constant = 3> tied [0]
          "head add" layer 24 carries logits
          : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
      // Every other kind of slot; no signature is asked for before verify-plan.
      // CHECK: slots [#strata.state<@kv, "k", 24>, #strata.state_constant<@kv, "block_stride">, #strata.table_field<"last_id">, #strata.port<@in>, #strata.scratch<256>, #strata.scratch_stride] items <sequence = 2> tied [] "probe" layer -1 : () -> ()
      strata.invoke @cpu.probe() slots [#strata.state<@kv, "k", 24>,
          #strata.state_constant<@kv, "block_stride">, #strata.table_field<"last_id">,
          #strata.port<@in>, #strata.scratch<256>, #strata.scratch_stride] items <sequence = 2>
          tied [] "probe" layer -1 : () -> ()
    }
    strata.forward @packed(%step) rows 8 sequences 4 body {
      // CHECK: %{{.*}}:2 = strata.pack [#strata.interval<"residual", 0, 3, 2048>, #strata.interval<"norm", 1, 3, 512>] carried : !strata.buffer<2048>, !strata.buffer<512>
      // [0, 3) 2048 and [1, 3) 512 live together: at least 2560 bytes.
      %b:2 = strata.pack [#strata.interval<"residual", 0, 3, 2048>,
                          #strata.interval<"norm", 1, 3, 512>] carried
          : !strata.buffer<2048>, !strata.buffer<512>
    }
    strata.forward @planned(%step) rows 8 sequences 4 body {
      // CHECK: %[[B:.*]]:2 = strata.arena [#strata.interval<"residual", 0, 3, 2048>, #strata.interval<"norm", 1, 3, 512>] offsets [0, 2048] peak 2560 lower_bound 2560 proven : !strata.buffer<2048>, !strata.buffer<512>
      %b:2 = strata.arena [#strata.interval<"residual", 0, 3, 2048>, #strata.interval<"norm", 1, 3, 512>]
          offsets [0, 2048] peak 2560 lower_bound 2560 proven
          : !strata.buffer<2048>, !strata.buffer<512>
      // CHECK: strata.dispatch @cpu.rms_norm(%[[B]]#0, %[[B]]#1) slots [#strata.buffer<0>, #strata.weight<@l0.norm>, #strata.buffer<1>] items <row = 1> "layer 0 rms_norm" layer 0 : !strata.buffer<2048>, !strata.buffer<512>
      strata.dispatch @cpu.rms_norm(%b#0, %b#1) slots [#strata.buffer<0>, #strata.weight<@l0.norm>,
          #strata.buffer<1>] items <row = 1> "layer 0 rms_norm" layer 0
          : !strata.buffer<2048>, !strata.buffer<512>
      // CHECK: strata.dispatch @cpu.probe() slots [] items <> "probe" layer -1 logits
      strata.dispatch @cpu.probe() slots [] items <> "probe" layer -1 logits
    }
  }
  // CHECK: strata.handoff @h0 : @s0::@out -> @s1::@in rows 128 slots 2
  strata.handoff @h0 : @s0::@out -> @s1::@in rows 128 slots 2
}
