// Behind the gather there are head rows: a head that runs alone has no other valid rows, so an op that
// counts the body's computes nothing there. And the host reads the logits after the launch: nothing may be
// written over them, though no op of the head reads them any more.
//
// RUN: strata-opt %s --pass-pipeline='builtin.module(strata.model(strata-select-kernels))' | FileCheck %s

strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 1 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 2 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3"], after = "choose-layouts"} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 1 to 1 head {
    strata.weight @norm : tensor<16xf32> from "n" unit "u" layout "rows"
    strata.weight @w : tensor<16x16xf32> from "w" unit "u" layout "rows"
    strata.weight @head : tensor<32x16xf32> from "t" unit "u" layout "rows"
    // CHECK: strata.forward @h2
    strata.forward @h2(%step) rows 2 sequences 2 head {
      // CHECK-NEXT: %[[C:.*]] = strata.carried : tensor<4x16xf32>
      %c = strata.carried : tensor<4x16xf32>
      strata.layer head 0 (%x = %c) : (tensor<4x16xf32>) -> () {
        // CHECK-NEXT: %[[G:.*]] = strata.invoke @cpu.gather_rows(%[[C]]) {{.*}} items <head_row = 1> tied [-1] "head gather_rows" layer 1
        %g = strata.gather_rows %x[%step] : tensor<4x16xf32> -> tensor<2x16xf32>
        // CHECK-NEXT: %[[N:.*]] = strata.invoke @cpu.rms_norm(%[[G]]) {{.*}}#strata.step_field<"head_sequence">{{.*}} items <head_row = 1>
        %n = strata.rms_norm %g, @norm {epsilon = 1.0e-5 : f64} : tensor<2x16xf32>
        // Fused, and still head rows...
        // CHECK-NEXT: %[[S:.*]] = strata.invoke @cpu.linear.f32(%[[N]], %[[G]]) {{.*}}#strata.step_field<"valid_head_rows">{{.*}} tied [1]
        %o = strata.linear %n, @w : tensor<2x16xf32> -> tensor<2x16xf32>
        %s = strata.add %g, %o : tensor<2x16xf32>
        // ...and so is what follows the fused addition.
        // CHECK-NEXT: %[[A:.*]] = strata.invoke @cpu.activation.silu(%[[S]]) {{.*}} items <head_row = 1> tied [0]
        %a = strata.activation silu %s : tensor<2x16xf32>
        // CHECK-NEXT: %[[L:.*]] = strata.invoke @cpu.linear.f32(%[[A]]) {{.*}}#strata.step_field<"valid_head_rows">{{.*}} tied [-1] "head logits head" layer 1 logits
        %l = strata.logits %a, @head : tensor<2x16xf32> -> tensor<2x32xf32>
        // Dead but for the host: not tied.
        // CHECK-NEXT: %[[F:.*]] = strata.invoke @cpu.activation.sigmoid(%[[L]]) {{.*}} items <head_row = 1> tied [-1]
        %f = strata.activation sigmoid %l : tensor<2x32xf32>
        // CHECK-NEXT: strata.invoke @cpu.sample(%[[F]]) {{.*}} items <head_row = 1>
        strata.sample %f[%step] : tensor<2x32xf32>
        strata.yield
      }
    }
  }
}
