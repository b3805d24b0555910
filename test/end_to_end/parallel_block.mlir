// A model that no family has, over the tensors of a small llama: in each layer attention and MLP
// read the same normalised rows side by side, and these rows skip both and are added as well.
//
//   make_checkpoint.py llama gguf --type q8_0 --seed 4 -o tiny.gguf
//   strata-compile parallel_block.mlir --checkpoint tiny.gguf -o parallel.strata
!hidden = tensor<?x64xf32, #strata.space<hidden>>
!query = tensor<?x64xf32, #strata.space<query>>
!key = tensor<?x32xf32, #strata.space<key>>
!value = tensor<?x32xf32, #strata.space<value>>
!inner = tensor<?x160xf32, #strata.space<inner>>
!vocabulary = tensor<?x320xf32, #strata.space<vocabulary>>
!q8 = !strata.quant<q8_0>

strata.model @parallel attributes {family = "none", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 320 : i64, max_context = 256 : i64, max_sequences = 4 : i64,
    max_rows = 32 : i64, devices = ["cpu"]} {
  strata.weight @embedding : tensor<320x64x!q8> from "token_embd.weight"
      unit "embedding"
  strata.weight @rope : tensor<8xf32> computed #strata.rope_frequencies<theta = 10000.0,
      width = 16, scaling = "none"> unit "shared"
  strata.weight @l0.norm : tensor<64xf32> from "blk.0.attn_norm.weight" unit "layer 0"
  strata.weight @l0.q : tensor<64x64x!q8> from "blk.0.attn_q.weight" unit "layer 0"
  strata.weight @l0.k : tensor<32x64x!q8> from "blk.0.attn_k.weight" unit "layer 0"
  strata.weight @l0.v : tensor<32x64x!q8> from "blk.0.attn_v.weight" unit "layer 0"
  strata.weight @l0.output : tensor<64x64x!q8> from "blk.0.attn_output.weight" unit "layer 0"
  strata.weight @l0.gate : tensor<160x64x!q8> from "blk.0.ffn_gate.weight" unit "layer 0"
  strata.weight @l0.up : tensor<160x64x!q8> from "blk.0.ffn_up.weight" unit "layer 0"
  strata.weight @l0.down : tensor<64x160x!q8> from "blk.0.ffn_down.weight" unit "layer 0"
  strata.weight @l1.norm : tensor<64xf32> from "blk.1.attn_norm.weight" unit "layer 1"
  strata.weight @l1.q : tensor<64x64x!q8> from "blk.1.attn_q.weight" unit "layer 1"
  strata.weight @l1.k : tensor<32x64x!q8> from "blk.1.attn_k.weight" unit "layer 1"
  strata.weight @l1.v : tensor<32x64x!q8> from "blk.1.attn_v.weight" unit "layer 1"
  strata.weight @l1.output : tensor<64x64x!q8> from "blk.1.attn_output.weight" unit "layer 1"
  strata.weight @l1.gate : tensor<160x64x!q8> from "blk.1.ffn_gate.weight" unit "layer 1"
  strata.weight @l1.up : tensor<160x64x!q8> from "blk.1.ffn_up.weight" unit "layer 1"
  strata.weight @l1.down : tensor<64x160x!q8> from "blk.1.ffn_down.weight" unit "layer 1"
  strata.weight @output_norm : tensor<64xf32> from "output_norm.weight" unit "head"
  strata.weight @head : tensor<320x64x!q8> from "output.weight" unit "head"
  strata.state @kv paged block_tokens 16 components [#strata.component<"k", "f32", 32>,
      #strata.component<"v", "f32", 32>] layers [0, 1]
  strata.forward @body(%step) {
    %e = strata.layer embedding 0 () : () -> !hidden {
      %0 = strata.embed @embedding[%step] : !hidden
      strata.yield %0 : !hidden
    }
    %b0 = strata.layer decoder 0 (%x = %e) : (!hidden) -> !hidden {
      %n = strata.rms_norm %x, @l0.norm {epsilon = 1.0e-05 : f64} : !hidden
      %q = strata.linear %n, @l0.q : !hidden -> !query
      %k = strata.linear %n, @l0.k : !hidden -> !key
      %v = strata.linear %n, @l0.v : !hidden -> !value
      %qr = strata.rope %q, @rope[%step] interleaved {heads = 4 : i64,
          rotary_width = 16 : i64} : !query
      %kr = strata.rope %k, @rope[%step] interleaved {heads = 2 : i64,
          rotary_width = 16 : i64} : !key
      strata.kv_write %kr, %v, @kv[%step] layer 0 : !key, !value
      %a = strata.attention %qr, @kv[%step] layer 0 {query_heads = 4 : i64, kv_heads = 2 : i64,
          scale = 0.25 : f64} : !query -> !query
      %o = strata.linear %a, @l0.output : !query -> !hidden
      %gate = strata.linear %n, @l0.gate : !hidden -> !inner
      %up = strata.linear %n, @l0.up : !hidden -> !inner
      %m = strata.gated silu %gate, %up : !inner
      %down = strata.linear %m, @l0.down : !inner -> !hidden
      %side = strata.add %o, %down : !hidden
      %y = strata.add %x, %side : !hidden
      %z = strata.add %y, %n : !hidden
      strata.yield %z : !hidden
    }
    %b1 = strata.layer decoder 1 (%x = %b0) : (!hidden) -> !hidden {
      %n = strata.rms_norm %x, @l1.norm {epsilon = 1.0e-05 : f64} : !hidden
      %q = strata.linear %n, @l1.q : !hidden -> !query
      %k = strata.linear %n, @l1.k : !hidden -> !key
      %v = strata.linear %n, @l1.v : !hidden -> !value
      %qr = strata.rope %q, @rope[%step] interleaved {heads = 4 : i64,
          rotary_width = 16 : i64} : !query
      %kr = strata.rope %k, @rope[%step] interleaved {heads = 2 : i64,
          rotary_width = 16 : i64} : !key
      strata.kv_write %kr, %v, @kv[%step] layer 1 : !key, !value
      %a = strata.attention %qr, @kv[%step] layer 1 {query_heads = 4 : i64, kv_heads = 2 : i64,
          scale = 0.25 : f64} : !query -> !query
      %o = strata.linear %a, @l1.output : !query -> !hidden
      %gate = strata.linear %n, @l1.gate : !hidden -> !inner
      %up = strata.linear %n, @l1.up : !hidden -> !inner
      %m = strata.gated silu %gate, %up : !inner
      %down = strata.linear %m, @l1.down : !inner -> !hidden
      %side = strata.add %o, %down : !hidden
      %y = strata.add %x, %side : !hidden
      %z = strata.add %y, %n : !hidden
      strata.yield %z : !hidden
    }
    strata.layer head 0 (%x = %b1) : (!hidden) -> () {
      %g = strata.gather_rows %x[%step] : !hidden -> !hidden
      %n = strata.rms_norm %g, @output_norm {epsilon = 1.0e-05 : f64} : !hidden
      %l = strata.logits %n, @head : !hidden -> !vocabulary
      strata.sample %l[%step] : !vocabulary
      strata.yield
    }
  }
}
