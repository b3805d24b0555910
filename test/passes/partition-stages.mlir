// Where the model is cut decides which device reads which bytes; a cut that is not the best one costs on
// every step, and one that does not fit must never reach a device.
//
// RUN: split-file %s %t
// RUN: strata-opt %t/automatic.mlir --pass-pipeline='builtin.module(strata.model(strata-partition-stages))' \
// RUN:     --remarks-filter='strata-.*' --remark-format=emitRemark 2>&1 | FileCheck %t/automatic.mlir
// RUN: strata-opt %t/split.mlir --pass-pipeline='builtin.module(strata.model(strata-partition-stages))' \
// RUN:     | FileCheck %t/split.mlir
// RUN: strata-opt %t/bytes.mlir --pass-pipeline='builtin.module(strata.model(strata-partition-stages))' \
// RUN:     | FileCheck %t/bytes.mlir
// RUN: strata-opt %t/ends.mlir --pass-pipeline='builtin.module(strata.model(strata-partition-stages))' \
// RUN:     | FileCheck %t/ends.mlir

//--- automatic.mlir
// Times 1 5 6 5 4: 1 + 5 + 6 = 12 and 5 + 4 = 9. Every other cut has a slower half: 6 and 15, 17 and 4.
// Weights of stage 0: table 16 * 8 * 4 = 512, norm 8 * 4 = 32, which takes 64, w1 8 * 8 * 4 = 256: 832. Of stage
// 1: norm and the tied table again, 576. Blocks: those of step, out, sequence table and the launches that
// are out; stage 1 has the sampler's table and the ring, 2 slots of 4 rows * 8 * 4 = 128 bytes. An arena is the maximum of its units, never their sum.
// CHECK: remark: [Passed] stage | Category:strata-partition-stages | ArenaBytes=384, BlockBytes=8608, FirstUnit=embedding, LastUnit="layer 1", ScratchBytes=0, Stage=0, StateBytes=4096, TotalBytes=13920, WeightBytes=832
// CHECK: remark: [Passed] stage | Category:strata-partition-stages | ArenaBytes=256, BlockBytes=17472, FirstUnit="layer 2", LastUnit=head, ScratchBytes=0, Stage=1, StateBytes=4096, TotalBytes=22400, WeightBytes=576
// CHECK: after = "partition-stages"
// CHECK: strata.layer embedding 0 {{.*}}stage = 0 : i64
// CHECK: strata.layer decoder 0 {{.*}}stage = 0 : i64
// CHECK: strata.layer decoder 1 {{.*}}stage = 0 : i64
// CHECK: strata.layer decoder 2 {{.*}}stage = 1 : i64
// CHECK: strata.layer head 0 {{.*}}stage = 1 : i64
strata.model @m attributes {family = "f", hidden = 8 : i64, layers = 3 : i64,
    vocabulary = 16 : i64, max_context = 32 : i64, max_sequences = 2 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"],
    after = "profile-units"} {
  strata.weight @table : tensor<16x8xf32> from "table" unit "embedding"
  strata.weight @norm : tensor<8xf32> from "norm" unit "shared"
  strata.weight @w1 : tensor<8x8xf32> from "w1" unit "layer 1"
  strata.state @kv paged block_tokens 4 components [#strata.component<"k", "f32", 8>,
      #strata.component<"v", "f32", 8>] layers [0, 2]
  strata.forward @body(%step) {
    %0 = strata.layer embedding 0 () attributes {cost = #strata.unit_cost<weight_bytes = 512,
        state_bytes = 0, arena_bytes = 128, commands = 1, decode_nanoseconds = 1, prefill_nanoseconds = 1>} : () -> tensor<?x8xf32> {
      %e = strata.embed @table[%step] : tensor<?x8xf32>
      strata.yield %e : tensor<?x8xf32>
    }
    %1 = strata.layer decoder 0 (%x = %0) attributes {cost = #strata.unit_cost<weight_bytes = 32,
        state_bytes = 4096, arena_bytes = 256, commands = 3, decode_nanoseconds = 5, prefill_nanoseconds = 5>}
        : (tensor<?x8xf32>) -> tensor<?x8xf32> {
      %n = strata.rms_norm %x, @norm {epsilon = 1.0e-5 : f64} : tensor<?x8xf32>
      strata.kv_write %n, %n, @kv[%step] layer 0 : tensor<?x8xf32>, tensor<?x8xf32>
      strata.yield %n : tensor<?x8xf32>
    }
    %2 = strata.layer decoder 1 (%x = %1) attributes {cost = #strata.unit_cost<weight_bytes = 256,
        state_bytes = 0, arena_bytes = 384, commands = 1, decode_nanoseconds = 6, prefill_nanoseconds = 6>}
        : (tensor<?x8xf32>) -> tensor<?x8xf32> {
      %n = strata.linear %x, @w1 : tensor<?x8xf32> -> tensor<?x8xf32>
      strata.yield %n : tensor<?x8xf32>
    }
    %3 = strata.layer decoder 2 (%x = %2) attributes {cost = #strata.unit_cost<weight_bytes = 32,
        state_bytes = 4096, arena_bytes = 256, commands = 3, decode_nanoseconds = 5, prefill_nanoseconds = 5>}
        : (tensor<?x8xf32>) -> tensor<?x8xf32> {
      %n = strata.rms_norm %x, @norm {epsilon = 1.0e-5 : f64} : tensor<?x8xf32>
      strata.kv_write %n, %n, @kv[%step] layer 2 : tensor<?x8xf32>, tensor<?x8xf32>
      strata.yield %n : tensor<?x8xf32>
    }
    strata.layer head 0 (%x = %3) attributes {cost = #strata.unit_cost<weight_bytes = 512,
        state_bytes = 0, arena_bytes = 192, commands = 3, decode_nanoseconds = 4, prefill_nanoseconds = 4>}
        : (tensor<?x8xf32>) -> () {
      %g = strata.gather_rows %x[%step] : tensor<?x8xf32> -> tensor<?x8xf32>
      %l = strata.logits %g, @table : tensor<?x8xf32> -> tensor<?x16xf32>
      strata.sample %l[%step] : tensor<?x16xf32>
      strata.yield
    }
  }
}

//--- split.mlir
// Asked for 1 and 2 layers: 6 and 15, slower, but asked for.
// CHECK: strata.layer embedding 0 {{.*}}stage = 0 : i64
// CHECK: strata.layer decoder 0 {{.*}}stage = 0 : i64
// CHECK: strata.layer decoder 1 {{.*}}stage = 1 : i64
// CHECK: strata.layer decoder 2 {{.*}}stage = 1 : i64
// CHECK: strata.layer head 0 {{.*}}stage = 1 : i64
strata.model @m attributes {family = "f", hidden = 8 : i64, layers = 3 : i64,
    vocabulary = 16 : i64, max_context = 32 : i64, max_sequences = 2 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"],
    split = array<i64: 1, 2>, after = "profile-units"} {
  strata.weight @table : tensor<16x8xf32> from "table" unit "embedding"
  strata.weight @norm : tensor<8xf32> from "norm" unit "shared"
  strata.weight @w1 : tensor<8x8xf32> from "w1" unit "layer 1"
  strata.state @kv paged block_tokens 4 components [#strata.component<"k", "f32", 8>,
      #strata.component<"v", "f32", 8>] layers [0, 2]
  strata.forward @body(%step) {
    %0 = strata.layer embedding 0 () attributes {cost = #strata.unit_cost<weight_bytes = 512,
        state_bytes = 0, arena_bytes = 128, commands = 1, decode_nanoseconds = 1, prefill_nanoseconds = 1>} : () -> tensor<?x8xf32> {
      %e = strata.embed @table[%step] : tensor<?x8xf32>
      strata.yield %e : tensor<?x8xf32>
    }
    %1 = strata.layer decoder 0 (%x = %0) attributes {cost = #strata.unit_cost<weight_bytes = 32,
        state_bytes = 4096, arena_bytes = 256, commands = 3, decode_nanoseconds = 5, prefill_nanoseconds = 5>}
        : (tensor<?x8xf32>) -> tensor<?x8xf32> {
      %n = strata.rms_norm %x, @norm {epsilon = 1.0e-5 : f64} : tensor<?x8xf32>
      strata.kv_write %n, %n, @kv[%step] layer 0 : tensor<?x8xf32>, tensor<?x8xf32>
      strata.yield %n : tensor<?x8xf32>
    }
    %2 = strata.layer decoder 1 (%x = %1) attributes {cost = #strata.unit_cost<weight_bytes = 256,
        state_bytes = 0, arena_bytes = 384, commands = 1, decode_nanoseconds = 6, prefill_nanoseconds = 6>}
        : (tensor<?x8xf32>) -> tensor<?x8xf32> {
      %n = strata.linear %x, @w1 : tensor<?x8xf32> -> tensor<?x8xf32>
      strata.yield %n : tensor<?x8xf32>
    }
    %3 = strata.layer decoder 2 (%x = %2) attributes {cost = #strata.unit_cost<weight_bytes = 32,
        state_bytes = 4096, arena_bytes = 256, commands = 3, decode_nanoseconds = 5, prefill_nanoseconds = 5>}
        : (tensor<?x8xf32>) -> tensor<?x8xf32> {
      %n = strata.rms_norm %x, @norm {epsilon = 1.0e-5 : f64} : tensor<?x8xf32>
      strata.kv_write %n, %n, @kv[%step] layer 2 : tensor<?x8xf32>, tensor<?x8xf32>
      strata.yield %n : tensor<?x8xf32>
    }
    strata.layer head 0 (%x = %3) attributes {cost = #strata.unit_cost<weight_bytes = 512,
        state_bytes = 0, arena_bytes = 192, commands = 3, decode_nanoseconds = 4, prefill_nanoseconds = 4>}
        : (tensor<?x8xf32>) -> () {
      %g = strata.gather_rows %x[%step] : tensor<?x8xf32> -> tensor<?x8xf32>
      %l = strata.logits %g, @table : tensor<?x8xf32> -> tensor<?x16xf32>
      strata.sample %l[%step] : tensor<?x16xf32>
      strata.yield
    }
  }
}

//--- bytes.mlir
// Beside blocks of 8608 the fast cut needs 832 + 4096 + 384 = 5312 on stage 0; 5000 bytes leave {embedding,
// layer 0}: 576 + 4096 + 256 = 4928. Stage 1 is not limited.
// CHECK: strata.layer embedding 0 {{.*}}stage = 0 : i64
// CHECK: strata.layer decoder 0 {{.*}}stage = 0 : i64
// CHECK: strata.layer decoder 1 {{.*}}stage = 1 : i64
// CHECK: strata.layer decoder 2 {{.*}}stage = 1 : i64
// CHECK: strata.layer head 0 {{.*}}stage = 1 : i64
strata.model @m attributes {family = "f", hidden = 8 : i64, layers = 3 : i64,
    vocabulary = 16 : i64, max_context = 32 : i64, max_sequences = 2 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"],
    device_bytes = array<i64: 13608, 0>, after = "profile-units"} {
  strata.weight @table : tensor<16x8xf32> from "table" unit "embedding"
  strata.weight @norm : tensor<8xf32> from "norm" unit "shared"
  strata.weight @w1 : tensor<8x8xf32> from "w1" unit "layer 1"
  strata.state @kv paged block_tokens 4 components [#strata.component<"k", "f32", 8>,
      #strata.component<"v", "f32", 8>] layers [0, 2]
  strata.forward @body(%step) {
    %0 = strata.layer embedding 0 () attributes {cost = #strata.unit_cost<weight_bytes = 512,
        state_bytes = 0, arena_bytes = 128, commands = 1, decode_nanoseconds = 1, prefill_nanoseconds = 1>} : () -> tensor<?x8xf32> {
      %e = strata.embed @table[%step] : tensor<?x8xf32>
      strata.yield %e : tensor<?x8xf32>
    }
    %1 = strata.layer decoder 0 (%x = %0) attributes {cost = #strata.unit_cost<weight_bytes = 32,
        state_bytes = 4096, arena_bytes = 256, commands = 3, decode_nanoseconds = 5, prefill_nanoseconds = 5>}
        : (tensor<?x8xf32>) -> tensor<?x8xf32> {
      %n = strata.rms_norm %x, @norm {epsilon = 1.0e-5 : f64} : tensor<?x8xf32>
      strata.kv_write %n, %n, @kv[%step] layer 0 : tensor<?x8xf32>, tensor<?x8xf32>
      strata.yield %n : tensor<?x8xf32>
    }
    %2 = strata.layer decoder 1 (%x = %1) attributes {cost = #strata.unit_cost<weight_bytes = 256,
        state_bytes = 0, arena_bytes = 384, commands = 1, decode_nanoseconds = 6, prefill_nanoseconds = 6>}
        : (tensor<?x8xf32>) -> tensor<?x8xf32> {
      %n = strata.linear %x, @w1 : tensor<?x8xf32> -> tensor<?x8xf32>
      strata.yield %n : tensor<?x8xf32>
    }
    %3 = strata.layer decoder 2 (%x = %2) attributes {cost = #strata.unit_cost<weight_bytes = 32,
        state_bytes = 4096, arena_bytes = 256, commands = 3, decode_nanoseconds = 5, prefill_nanoseconds = 5>}
        : (tensor<?x8xf32>) -> tensor<?x8xf32> {
      %n = strata.rms_norm %x, @norm {epsilon = 1.0e-5 : f64} : tensor<?x8xf32>
      strata.kv_write %n, %n, @kv[%step] layer 2 : tensor<?x8xf32>, tensor<?x8xf32>
      strata.yield %n : tensor<?x8xf32>
    }
    strata.layer head 0 (%x = %3) attributes {cost = #strata.unit_cost<weight_bytes = 512,
        state_bytes = 0, arena_bytes = 192, commands = 3, decode_nanoseconds = 4, prefill_nanoseconds = 4>}
        : (tensor<?x8xf32>) -> () {
      %g = strata.gather_rows %x[%step] : tensor<?x8xf32> -> tensor<?x8xf32>
      %l = strata.logits %g, @table : tensor<?x8xf32> -> tensor<?x16xf32>
      strata.sample %l[%step] : tensor<?x16xf32>
      strata.yield
    }
  }
}

//--- ends.mlir
// The ends may have no layers: they hold the embedding and the head.
// CHECK: strata.layer embedding 0 {{.*}}stage = 0 : i64
// CHECK: strata.layer decoder 0 {{.*}}stage = 1 : i64
// CHECK: strata.layer decoder 1 {{.*}}stage = 1 : i64
// CHECK: strata.layer decoder 2 {{.*}}stage = 1 : i64
// CHECK: strata.layer head 0 {{.*}}stage = 2 : i64
strata.model @m attributes {family = "f", hidden = 8 : i64, layers = 3 : i64,
    vocabulary = 16 : i64, max_context = 32 : i64, max_sequences = 2 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3", "cpu:x86-64-v3",
    "cpu:x86-64-v3"],
    split = array<i64: 0, 3, 0>, after = "profile-units"} {
  strata.weight @table : tensor<16x8xf32> from "table" unit "embedding"
  strata.weight @norm : tensor<8xf32> from "norm" unit "shared"
  strata.weight @w1 : tensor<8x8xf32> from "w1" unit "layer 1"
  strata.state @kv paged block_tokens 4 components [#strata.component<"k", "f32", 8>,
      #strata.component<"v", "f32", 8>] layers [0, 2]
  strata.forward @body(%step) {
    %0 = strata.layer embedding 0 () attributes {cost = #strata.unit_cost<weight_bytes = 512,
        state_bytes = 0, arena_bytes = 128, commands = 1, decode_nanoseconds = 1, prefill_nanoseconds = 1>} : () -> tensor<?x8xf32> {
      %e = strata.embed @table[%step] : tensor<?x8xf32>
      strata.yield %e : tensor<?x8xf32>
    }
    %1 = strata.layer decoder 0 (%x = %0) attributes {cost = #strata.unit_cost<weight_bytes = 32,
        state_bytes = 4096, arena_bytes = 256, commands = 3, decode_nanoseconds = 5, prefill_nanoseconds = 5>}
        : (tensor<?x8xf32>) -> tensor<?x8xf32> {
      %n = strata.rms_norm %x, @norm {epsilon = 1.0e-5 : f64} : tensor<?x8xf32>
      strata.kv_write %n, %n, @kv[%step] layer 0 : tensor<?x8xf32>, tensor<?x8xf32>
      strata.yield %n : tensor<?x8xf32>
    }
    %2 = strata.layer decoder 1 (%x = %1) attributes {cost = #strata.unit_cost<weight_bytes = 256,
        state_bytes = 0, arena_bytes = 384, commands = 1, decode_nanoseconds = 6, prefill_nanoseconds = 6>}
        : (tensor<?x8xf32>) -> tensor<?x8xf32> {
      %n = strata.linear %x, @w1 : tensor<?x8xf32> -> tensor<?x8xf32>
      strata.yield %n : tensor<?x8xf32>
    }
    %3 = strata.layer decoder 2 (%x = %2) attributes {cost = #strata.unit_cost<weight_bytes = 32,
        state_bytes = 4096, arena_bytes = 256, commands = 3, decode_nanoseconds = 5, prefill_nanoseconds = 5>}
        : (tensor<?x8xf32>) -> tensor<?x8xf32> {
      %n = strata.rms_norm %x, @norm {epsilon = 1.0e-5 : f64} : tensor<?x8xf32>
      strata.kv_write %n, %n, @kv[%step] layer 2 : tensor<?x8xf32>, tensor<?x8xf32>
      strata.yield %n : tensor<?x8xf32>
    }
    strata.layer head 0 (%x = %3) attributes {cost = #strata.unit_cost<weight_bytes = 512,
        state_bytes = 0, arena_bytes = 192, commands = 3, decode_nanoseconds = 4, prefill_nanoseconds = 4>}
        : (tensor<?x8xf32>) -> () {
      %g = strata.gather_rows %x[%step] : tensor<?x8xf32> -> tensor<?x8xf32>
      %l = strata.logits %g, @table : tensor<?x8xf32> -> tensor<?x16xf32>
      strata.sample %l[%step] : tensor<?x16xf32>
      strata.yield
    }
  }
}
