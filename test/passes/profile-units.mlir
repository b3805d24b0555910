// What each unit costs is measured by planning it alone with the passes that plan the whole, so that the
// partition adds up numbers that will be true.
//
// RUN: strata-opt %s --pass-pipeline='builtin.module(strata.model(strata-profile-units))' | FileCheck %s
// RUN: sed 's/max_rows = 4/max_rows = 4096/' %s | strata-opt --pass-pipeline='builtin.module(strata.model(strata-profile-units))' | FileCheck %s --check-prefix=LONG

// The trial plan leaves nothing behind.
// CHECK: strata.model @m attributes {after = "profile-units"
// CHECK-NOT: strata.stage
strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 2 : i64,
    vocabulary = 32 : i64, max_context = 30 : i64, max_sequences = 2 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3"], after = "canonicalize"} {
  strata.weight @table : tensor<32x16xf32> from "table" unit "embedding"
  strata.weight @norm : tensor<16xf32> from "norm" unit "shared"
  strata.weight @w : tensor<16x16xf32> from "w" unit "layer 0"
  strata.state @kv paged block_tokens 4 components [#strata.component<"k", "f16", 16>,
      #strata.component<"v", "f32", 16>] layers [1]
  strata.forward @body(%step) {
    // Weights 32 * 16 * 4 = 2048; arena 4 rows * 16 * 4 = 256; commands: embed and send. A decode step reads a
    // row of 64 bytes for each of 2 sequences: 128 bytes at 20 GB/s are 6.4 ns; a full chunk has 4 rows.
    // CHECK: strata.layer embedding 0 () attributes {cost = #strata.unit_cost<weight_bytes = 2048, state_bytes = 0, arena_bytes = 256, commands = 2, decode_nanoseconds = 6, prefill_nanoseconds = 12>}
    %0 = strata.layer embedding 0 () : () -> tensor<?x16xf32> {
      %e = strata.embed @table[%step] : tensor<?x16xf32>
      strata.yield %e : tensor<?x16xf32>
    }
    // Weights 16 * 4 + 16 * 16 * 4 = 1088, 54.4 ns; arena the residual and the norm, 512; commands receive,
    // norm, product with addition, send.
    // CHECK: strata.layer decoder 0 {{.*}}cost = #strata.unit_cost<weight_bytes = 1088, state_bytes = 0, arena_bytes = 512, commands = 4, decode_nanoseconds = 54, prefill_nanoseconds = 54>
    // With 4,096 rows a chunk computes 2 * 4096 * 272 operations, at 60 a nanosecond.
    // LONG: strata.layer decoder 0 {{.*}}decode_nanoseconds = 54, prefill_nanoseconds = 37137>
    %1 = strata.layer decoder 0 (%x = %0) : (tensor<?x16xf32>) -> tensor<?x16xf32> {
      %n = strata.rms_norm %x, @norm {epsilon = 1.0e-5 : f64} : tensor<?x16xf32>
      %o = strata.linear %n, @w : tensor<?x16xf32> -> tensor<?x16xf32>
      %y = strata.add %x, %o : tensor<?x16xf32>
      strata.yield %y : tensor<?x16xf32>
    }
    // A block: K 16 * 2 * 4 = 128 and V 16 * 4 * 4 = 256 bytes. 30 tokens are 8 blocks, of 2 sequences 16:
    // 16 * 384 = 6144. Nothing but the state needs the writes.
    // CHECK: strata.layer decoder 1 {{.*}}cost = #strata.unit_cost<weight_bytes = 0, state_bytes = 6144, arena_bytes = 256, commands = 4, decode_nanoseconds = 0, prefill_nanoseconds = 0>
    %2 = strata.layer decoder 1 (%x = %1) : (tensor<?x16xf32>) -> tensor<?x16xf32> {
      strata.kv_write %x, %x, @kv[%step] layer 1 : tensor<?x16xf32>, tensor<?x16xf32>
      strata.yield %x : tensor<?x16xf32>
    }
    // The head's rows are at most max_sequences = 2: residual 256, gathered 2 * 64 = 128, logits 2 * 32 * 4 =
    // 256. All live together while the logits are made: 640. The weight is 2048 bytes: 102.4 ns.
    // CHECK: strata.layer head 0 {{.*}}cost = #strata.unit_cost<weight_bytes = 2048, state_bytes = 0, arena_bytes = 640, commands = 3, decode_nanoseconds = 102, prefill_nanoseconds = 102>
    strata.layer head 0 (%x = %2) : (tensor<?x16xf32>) -> () {
      %g = strata.gather_rows %x[%step] : tensor<?x16xf32> -> tensor<?x16xf32>
      %l = strata.logits %g, @table : tensor<?x16xf32> -> tensor<?x32xf32>
      strata.sample %l[%step] : tensor<?x32xf32>
      strata.yield
    }
  }
}
