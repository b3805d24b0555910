// Which value may overwrite which is decided here, and a wrong answer is fluent wrong text. Each layer
// below is one way to get it wrong; the tensor values are renamed, so that CHECK lines can say which memory
// is read after it was reused.
//
// RUN: strata-opt %s --pass-pipeline='builtin.module(strata.model(strata-select-kernels))' | FileCheck %s

strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 12 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 1 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3"], after = "choose-layouts"} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 12 embedding {
    strata.weight @table : tensor<32x16xf32> from "t" unit "u" layout "rows"
    strata.weight @norm : tensor<16xf32> from "n" unit "u" layout "rows"
    strata.weight @heads : tensor<8xf32> from "h" unit "u" layout "rows"
    strata.weight @w : tensor<16x16xf32> from "w" unit "u" layout "rows"
    strata.weight @rope : tensor<4xf32> computed #strata.rope_frequencies<width = 8, theta = 1.0e4>
        unit "u" layout "rows"
    strata.state @kv paged block_tokens 4 components [#strata.component<"k", "f32", 16>,
        #strata.component<"v", "f32", 16>] layers [9, 10]
    strata.forward @r4s1(%step) rows 4 sequences 1 body {
      // What leaves the embedding is made at offset 0.
      // CHECK: %[[X:.*]] = strata.invoke @cpu.embed.f32() {{.*}} tied [-1] "embedding embed table" layer -1 carries
      %e = strata.layer embedding 0 () : () -> tensor<4x16xf32> {
        %r = strata.embed @table[%step] : tensor<4x16xf32>
        strata.yield %r : tensor<4x16xf32>
      }

      // The common block: the product adds onto the residual, which stays where it is.
      // CHECK-NEXT: %[[N:.*]] = strata.invoke @cpu.rms_norm(%[[X:.*]]) {{.*}} tied [-1]
      // CHECK-NEXT: %[[X1:.*]] = strata.invoke @cpu.linear.f32(%[[N]], %[[X]]) {{.*}} #strata.const<1 : i64>] items <constant = 1> tied [1]
      %b0 = strata.layer decoder 0 (%x = %e) : (tensor<4x16xf32>) -> tensor<4x16xf32> {
        %n = strata.rms_norm %x, @norm {epsilon = 1.0e-5 : f64} : tensor<4x16xf32>
        %o = strata.linear %n, @w : tensor<4x16xf32> -> tensor<4x16xf32>
        %y = strata.add %x, %o : tensor<4x16xf32>
        strata.yield %y : tensor<4x16xf32>
      }

      // The other side of the addition, and two in a row.
      // CHECK-NEXT: %[[N:.*]] = strata.invoke @cpu.rms_norm(%[[X1]])
      // CHECK-NEXT: %[[S:.*]] = strata.invoke @cpu.linear.f32(%[[N]], %[[X1]]) {{.*}} tied [1]
      // CHECK-NEXT: %[[X2:.*]] = strata.invoke @cpu.linear.f32(%[[N]], %[[S]]) {{.*}} tied [1]
      %b1 = strata.layer decoder 1 (%x = %b0) : (tensor<4x16xf32>) -> tensor<4x16xf32> {
        %n = strata.rms_norm %x, @norm {epsilon = 1.0e-5 : f64} : tensor<4x16xf32>
        %a = strata.linear %n, @w : tensor<4x16xf32> -> tensor<4x16xf32>
        %b = strata.linear %n, @w : tensor<4x16xf32> -> tensor<4x16xf32>
        %s = strata.add %a, %x : tensor<4x16xf32>
        %y = strata.add %s, %b : tensor<4x16xf32>
        strata.yield %y : tensor<4x16xf32>
      }

      // The residual is read once more behind the sum: the product must not add onto it. The last addition may.
      // CHECK-NEXT: %[[N:.*]] = strata.invoke @cpu.rms_norm(%[[X2]])
      // CHECK-NEXT: %[[O:.*]] = strata.invoke @cpu.linear.f32(%[[N]]) {{.*}} #strata.const<0 : i64>] items <constant = 1> tied [-1]
      // CHECK-NEXT: %[[S:.*]] = strata.invoke @cpu.add(%[[X2]], %[[O]]) {{.*}} tied [1]
      // CHECK-NEXT: %[[X3:.*]] = strata.invoke @cpu.add(%[[S]], %[[X2]]) {{.*}} tied [1]
      %b2 = strata.layer decoder 2 (%x = %b1) : (tensor<4x16xf32>) -> tensor<4x16xf32> {
        %n = strata.rms_norm %x, @norm {epsilon = 1.0e-5 : f64} : tensor<4x16xf32>
        %o = strata.linear %n, @w : tensor<4x16xf32> -> tensor<4x16xf32>
        %s = strata.add %x, %o : tensor<4x16xf32>
        %y = strata.add %s, %x : tensor<4x16xf32>
        strata.yield %y : tensor<4x16xf32>
      }

      // A product of the residual itself reads it whole while it adds: never fused.
      // CHECK-NEXT: %[[O:.*]] = strata.invoke @cpu.linear.f32(%[[X3]]) {{.*}} tied [-1]
      // CHECK-NEXT: %[[X4:.*]] = strata.invoke @cpu.add(%[[X3]], %[[O]]) {{.*}} tied [0]
      %b3 = strata.layer decoder 3 (%x = %b2) : (tensor<4x16xf32>) -> tensor<4x16xf32> {
        %o = strata.linear %x, @w : tensor<4x16xf32> -> tensor<4x16xf32>
        %y = strata.add %x, %o : tensor<4x16xf32>
        strata.yield %y : tensor<4x16xf32>
      }

      // A product that is used twice is made once.
      // CHECK-NEXT: %[[N:.*]] = strata.invoke @cpu.rms_norm(%[[X4]])
      // CHECK-NEXT: %[[O:.*]] = strata.invoke @cpu.linear.f32(%[[N]]) {{.*}} tied [-1]
      // CHECK-NEXT: %[[S:.*]] = strata.invoke @cpu.add(%[[X4]], %[[O]]) {{.*}} tied [0]
      // CHECK-NEXT: %[[X5:.*]] = strata.invoke @cpu.gated.silu(%[[S]], %[[O]]) {{.*}} tied [0]
      %b4 = strata.layer decoder 4 (%x = %b3) : (tensor<4x16xf32>) -> tensor<4x16xf32> {
        %n = strata.rms_norm %x, @norm {epsilon = 1.0e-5 : f64} : tensor<4x16xf32>
        %o = strata.linear %n, @w : tensor<4x16xf32> -> tensor<4x16xf32>
        %s = strata.add %x, %o : tensor<4x16xf32>
        %y = strata.gated silu %s, %o : tensor<4x16xf32>
        strata.yield %y : tensor<4x16xf32>
      }

      // One value twice: x + x and f(x) * x update it where it lies.
      // CHECK-NEXT: %[[S:.*]] = strata.invoke @cpu.add(%[[X5]], %[[X5]]) {{.*}} tied [0]
      // CHECK-NEXT: %[[X6:.*]] = strata.invoke @cpu.gated.silu(%[[S]], %[[S]]) {{.*}} tied [0]
      %b5 = strata.layer decoder 5 (%x = %b4) : (tensor<4x16xf32>) -> tensor<4x16xf32> {
        %s = strata.add %x, %x : tensor<4x16xf32>
        %y = strata.gated silu %s, %s : tensor<4x16xf32>
        strata.yield %y : tensor<4x16xf32>
      }

      // Rope works in place; its input is read again, so it works on a copy. The sum dies into the residual.
      // CHECK-NEXT: %[[C:.*]] = strata.invoke @cpu.copy_rows(%[[X6]]) {{.*}} tied [-1]
      // CHECK-NEXT: %[[R:.*]] = strata.invoke @cpu.rope(%[[C]]) {{.*}} tied [0]
      // CHECK-NEXT: %[[X7:.*]] = strata.invoke @cpu.add(%[[R]], %[[X6]]) {{.*}} tied [1]
      %b6 = strata.layer decoder 6 (%x = %b5) : (tensor<4x16xf32>) -> tensor<4x16xf32> {
        %r = strata.rope %x, @rope[%step] half {heads = 2 : i64, rotary_width = 8 : i64} : tensor<4x16xf32>
        %y = strata.add %r, %x : tensor<4x16xf32>
        strata.yield %y : tensor<4x16xf32>
      }

      // As do norms of heads; where the input dies there is no copy.
      // CHECK-NEXT: %[[R:.*]] = strata.invoke @cpu.rms_norm_heads(%[[X7]]) {{.*}} tied [0]
      // CHECK-NEXT: %[[X8:.*]] = strata.invoke @cpu.rope(%[[R]]) {{.*}} tied [0]
      %b7 = strata.layer decoder 7 (%x = %b6) : (tensor<4x16xf32>) -> tensor<4x16xf32> {
        %r = strata.rms_norm %x, @heads {epsilon = 1.0e-5 : f64, heads = 2 : i64} : tensor<4x16xf32>
        %y = strata.rope %r, @rope[%step] interleaved {heads = 2 : i64, rotary_width = 8 : i64} : tensor<4x16xf32>
        strata.yield %y : tensor<4x16xf32>
      }

      // The residual dies before what leaves is made: it is made in the residual's place right away (carries).
      // CHECK-NEXT: %[[N:.*]] = strata.invoke @cpu.rms_norm(%[[X8]])
      // CHECK-NEXT: %[[X9:.*]] = strata.invoke @cpu.linear.f32(%[[N]]) {{.*}} tied [-1] "layer 8 linear w" layer 8 carries
      %b8 = strata.layer decoder 8 (%x = %b7) : (tensor<4x16xf32>) -> tensor<4x16xf32> {
        %n = strata.rms_norm %x, @norm {epsilon = 1.0e-5 : f64} : tensor<4x16xf32>
        %y = strata.linear %n, @w : tensor<4x16xf32> -> tensor<4x16xf32>
        strata.yield %y : tensor<4x16xf32>
      }

      // The residual lives on behind it: made elsewhere, moved at the end.
      // CHECK-NEXT: %[[Y:.*]] = strata.invoke @cpu.rms_norm(%[[X9]]) {{.*}} tied [-1] "layer 9 rms_norm norm" layer 9 :
      // CHECK-NEXT: strata.invoke @cpu.kv_write.f32(%[[X9]]) {{.*}}#strata.state<@kv, "k", 9>
      // CHECK-NEXT: strata.invoke @cpu.kv_write.f32(%[[X9]]) {{.*}}#strata.state<@kv, "v", 9>
      // CHECK-NEXT: %[[X10:.*]] = strata.invoke @cpu.copy_rows(%[[Y]]) {{.*}} tied [-1] "layer 9 yield" layer 9 carries
      %b9 = strata.layer decoder 9 (%x = %b8) : (tensor<4x16xf32>) -> tensor<4x16xf32> {
        %y = strata.rms_norm %x, @norm {epsilon = 1.0e-5 : f64} : tensor<4x16xf32>
        strata.kv_write %x, %x, @kv[%step] layer 9 : tensor<4x16xf32>, tensor<4x16xf32>
        strata.yield %y : tensor<4x16xf32>
      }

      // A layer that yields what it takes moves nothing, and nothing in it may overwrite that.
      // CHECK-NEXT: %[[N:.*]] = strata.invoke @cpu.activation.relu2(%[[X10]]) {{.*}} tied [-1]
      // CHECK-NEXT: strata.invoke @cpu.kv_write.f32(%[[N]])
      // CHECK-NEXT: strata.invoke @cpu.kv_write.f32(%[[N]])
      %b10 = strata.layer decoder 10 (%x = %b9) : (tensor<4x16xf32>) -> tensor<4x16xf32> {
        %n = strata.activation relu2 %x : tensor<4x16xf32>
        strata.kv_write %n, %n, @kv[%step] layer 10 : tensor<4x16xf32>, tensor<4x16xf32>
        strata.yield %x : tensor<4x16xf32>
      }

      // Side by side: both read the same rows and both add onto what skips them, one after the other.
      // CHECK-NEXT: %[[N:.*]] = strata.invoke @cpu.rms_norm(%[[X10]])
      // CHECK-NEXT: %[[A:.*]] = strata.invoke @cpu.linear.f32(%[[N]]) {{.*}} tied [-1]
      // CHECK-NEXT: %[[B:.*]] = strata.invoke @cpu.linear.f32(%[[A]]) {{.*}} tied [-1]
      // CHECK-NEXT: %[[S:.*]] = strata.invoke @cpu.linear.f32(%[[N]], %[[B]]) {{.*}} tied [1]
      // CHECK-NEXT: %[[X11:.*]] = strata.invoke @cpu.add(%[[X10]], %[[S]]) {{.*}} tied [0]
      %b11 = strata.layer decoder 11 (%x = %b10) : (tensor<4x16xf32>) -> tensor<4x16xf32> {
        %n = strata.rms_norm %x, @norm {epsilon = 1.0e-5 : f64} : tensor<4x16xf32>
        %a = strata.linear %n, @w : tensor<4x16xf32> -> tensor<4x16xf32>
        %b = strata.linear %a, @w : tensor<4x16xf32> -> tensor<4x16xf32>
        %c = strata.linear %n, @w : tensor<4x16xf32> -> tensor<4x16xf32>
        %s = strata.add %b, %c : tensor<4x16xf32>
        %y = strata.add %x, %s : tensor<4x16xf32>
        strata.yield %y : tensor<4x16xf32>
      }
    }
  }
}
