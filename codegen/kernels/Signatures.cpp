// What every kernel family takes, slot by slot. Activations are row-major [rows, width], F32 but
// where bufferType() says otherwise.
//
// Step fields that recur: `row_*` have one entry a row of the bucket, `head_*` one a gathered head
// row; `block_table` is [sequences, max_blocks] of block numbers. Token t of a sequence lies in
// block block_table[sequence][t / block_tokens], at row t % block_tokens; a block number times
// block_stride is its distance from the pool's base, which the state slot already adds to the
// component's offset.
//
// Numbers in the step, the tables and the out block are i32, but for `temperature`, `top_p`,
// `min_p`, the penalties, `bias_value` and the log-probabilities (f32), `seed` (u64), the counts of
// valid rows and `mask` (u32).
// `nonfinite_layer` is lowered as a u32, so that -1, which the stage writes before a step, stands
// above every layer. Norm weights, biases and rope frequencies are F32. `top_id` and
// `top_log_probability` have twenty entries a head row, likeliest first; past the vocabulary -1 and
// -infinity. An id outside the vocabulary makes its row of `embed` NaN.
#include "codegen/kernels/Signatures.h"

namespace strata {
namespace {

using fb::Access;
using enum fb::SlotKind;
constexpr Access R = Access::Read, W = Access::Write, RW = Access::ReadWrite, N = Access::None;

// y[row] = table[row_id[row]], or table[last_id[sequence_slot[row_sequence[row]]]] where row_id <
// 0.
constexpr SlotSpec embed[] = {
    {"table", Weight, R},       {"y", Buffer, W},
    {"row_id", Step, R},        {"row_sequence", Step, R},
    {"sequence_slot", Step, R}, {"last_id", Table, R},
    {"width", Constant, N},     {"vocabulary", Constant, N},
    {"scale", Constant, N}, // F64 bits; 1 for most families
};

// y = x * rsqrt(mean(x^2) + epsilon) * weight. A row whose mean square is not finite lowers
// nonfinite_layer[sequence] to `layer` (an atomic minimum).
constexpr SlotSpec rmsNorm[] = {
    {"x", Buffer, R},
    {"weight", Weight, R},
    {"y", Buffer, W},
    {"row_sequence", Step, R}, // head_sequence in the head
    {"nonfinite_layer", Out, RW},
    {"width", Constant, N},
    {"epsilon", Constant, N}, // F64 bits
    {"layer", Constant, N, false, false, true},
};

// As rms_norm over each of `heads` heads of `head_width` elements; in place.
constexpr SlotSpec rmsNormHeads[] = {
    {"x", Buffer, RW},
    {"weight", Weight, R},
    {"heads", Constant, N},
    {"head_width", Constant, N},
    {"epsilon", Constant, N},       // F64 bits
    {"weight_stride", Constant, N}, // 0: one weight for all heads; head_width: one for each
};

// y[row][o] (+)= dot(weight[o], x[row]) + bias[o]. One item is a tile of outputs for all rows: a
// weight row is dequantised once and used for every row.
constexpr SlotSpec linear[] = {
    {"x", Buffer, R},
    {"weight", Weight, R},
    {"bias", Weight, R, true},
    {"y", Buffer, RW},
    {"valid_rows", Step, R}, // valid_head_rows in the head
    {"scratch", Scratch, RW, true},
    {"scratch_stride", Constant, N},
    {"columns", Constant, N},
    {"outputs", Constant, N},
    {"accumulate", Constant, N}, // 1: adds to y (a residual), 0:
                                 // overwrites it
};

// y (+)= x weight^T + bias for all rows of the bucket, by the vendor's library. The name has the
// type of x and of the weights, then that of y where it is not F32. weight_2 and weight_3, where
// given, lie right behind weight; `outputs` counts the rows of all.
constexpr SlotSpec gemm[] = {
    {"x", Buffer, R},
    {"weight", Weight, R},
    {"weight_2", Weight, R, true},
    {"weight_3", Weight, R, true},
    {"bias", Weight, R, true},
    {"y", Buffer, RW},
    {"workspace", Buffer, W},
    {"rows", Constant, N},
    {"columns", Constant, N},
    {"outputs", Constant, N},
    {"accumulate", Constant, N}, // as in linear
};

// linear of x normalised as in rms_norm.
constexpr SlotSpec normLinear[] = {
    {"x", Buffer, R},
    {"norm", Weight, R},
    {"weight", Weight, R},
    {"bias", Weight, R, true},
    {"y", Buffer, W},
    {"row_sequence", Step, R}, // head_sequence in the head
    {"nonfinite_layer", Out, RW},
    {"columns", Constant, N},
    {"outputs", Constant, N},
    {"epsilon", Constant, N}, // F64 bits
    {"layer", Constant, N, false, false, true},
};

// y = f(gate n) * (up n) with n = x normalised as in rms_norm. The name has the function, then the
// weights' type.
constexpr SlotSpec normGated[] = {
    {"x", Buffer, R},
    {"norm", Weight, R},
    {"gate", Weight, R},
    {"up", Weight, R},
    {"y", Buffer, W},
    {"row_sequence", Step, R},
    {"nonfinite_layer", Out, RW},
    {"columns", Constant, N},
    {"outputs", Constant, N},
    {"epsilon", Constant, N}, // F64 bits
    {"layer", Constant, N, false, false, true},
};

// With n = x normalised as in rms_norm: y = rope(q_weight n), and k = rope(k_weight n) and v =
// v_weight n go into the sequence's block. The name has the type of the weights, then those of K
// and V. Heads are all of head_width elements, of which the first rotary_width rotate.
constexpr SlotSpec normQkv[] = {
    {"x", Buffer, R},
    {"norm", Weight, R},
    {"q_weight", Weight, R},
    {"k_weight", Weight, R},
    {"v_weight", Weight, R},
    {"q_bias", Weight, R, true},
    {"k_bias", Weight, R, true},
    {"v_bias", Weight, R, true},
    {"frequencies", Weight, R}, // F32 [rotary_width / 2]
    {"y", Buffer, W},
    {"k", State, W},
    {"v", State, W},
    {"block_table", Step, R},
    {"row_sequence", Step, R},
    {"row_position", Step, R},
    {"nonfinite_layer", Out, RW},
    {"columns", Constant, N},
    {"query_heads", Constant, N},
    {"kv_heads", Constant, N},
    {"head_width", Constant, N},
    {"rotary_width", Constant, N},
    {"interleaved", Constant, N}, // as in rope
    {"magnitude", Constant, N},   // F64 bits, as in rope
    {"epsilon", Constant, N},     // F64 bits
    {"layer", Constant, N, false, false, true},
    {"block_tokens", Constant, N},
    {"block_stride", Constant, N},
    {"max_blocks", Constant, N},
};

// What norm_qkv does with the products: x has rows of queries, keys and values, one behind the
// other. The name has the types of K and V.
constexpr SlotSpec qkvRope[] = {
    {"x", Buffer, R},
    {"q_bias", Weight, R, true},
    {"k_bias", Weight, R, true},
    {"v_bias", Weight, R, true},
    {"frequencies", Weight, R}, // F32 [rotary_width / 2]
    {"y", Buffer, W},
    {"k", State, W},
    {"v", State, W},
    {"block_table", Step, R},
    {"row_sequence", Step, R},
    {"row_position", Step, R},
    {"query_heads", Constant, N},
    {"kv_heads", Constant, N},
    {"head_width", Constant, N},
    {"rotary_width", Constant, N},
    {"interleaved", Constant, N}, // as in rope
    {"magnitude", Constant, N},   // F64 bits, as in rope
    {"block_tokens", Constant, N},
    {"block_stride", Constant, N},
    {"max_blocks", Constant, N},
};

// Rotates pairs of `rotary_width` elements of each head, from `first` on, by row_position *
// frequency; in place.
constexpr SlotSpec rope[] = {
    {"x", Buffer, RW},
    {"frequencies", Weight, R}, // F32 [rotary_width / 2]
    {"row_position", Step, R},
    {"heads", Constant, N},
    {"head_width", Constant, N},
    {"rotary_width", Constant, N},
    {"interleaved", Constant, N}, // 1: pairs (2j, 2j+1); 0: (j, j + rotary_width / 2)
    {"magnitude", Constant, N},   // F64 bits: cosine and sine are multiplied by it
    {"first", Constant, N},
};

// Writes one component (K or V) of each row into its block. The name's type is the stored one.
constexpr SlotSpec kvWrite[] = {
    {"x", Buffer, R},
    {"state", State, W},
    {"block_table", Step, R},
    {"row_sequence", Step, R},
    {"row_position", Step, R},
    {"width", Constant, N},
    {"block_tokens", Constant, N},
    {"block_stride", Constant, N},
    {"max_blocks", Constant, N},
};

// Causal attention of every row over its own sequence's blocks, named by the types of K and V.
// Query head h reads KV head h / (query_heads / kv_heads). In `attention_latent` a key is V
// followed by K, and a query head is as wide.
constexpr SlotSpec attention[] = {
    {"q", Buffer, R},
    {"k", State, R},
    {"v", State, R},
    {"y", Buffer, W},
    {"block_table", Step, R},
    {"row_sequence", Step, R},
    {"row_position", Step, R},
    {"query_heads", Constant, N},
    {"kv_heads", Constant, N},
    {"key_width", Constant, N},
    {"value_width", Constant, N},
    {"scale", Constant, N},  // F64 bits
    {"window", Constant, N}, // tokens visible, the query's own included; 0: all
    {"block_tokens", Constant, N},
    {"block_stride", Constant, N},
    {"max_blocks", Constant, N},
};

// attention of many rows of few sequences, named by the one type of K and V. Rows of sequence s are
// query_start[s] to query_start[s + 1]; the bucket has at most `sequences`.
constexpr SlotSpec attentionPrompt[] = {
    {"q", Buffer, R},
    {"k", State, R},
    {"v", State, R},
    {"y", Buffer, W},
    {"block_table", Step, R},
    {"query_start", Step, R},
    {"valid_sequences", Step, R},
    {"row_position", Step, R},
    {"sequences", Constant, N},
    {"query_heads", Constant, N},
    {"kv_heads", Constant, N},
    {"key_width", Constant, N},
    {"value_width", Constant, N},
    {"scale", Constant, N},  // F64 bits
    {"window", Constant, N}, // as in attention
    {"block_tokens", Constant, N},
    {"block_stride", Constant, N},
    {"max_blocks", Constant, N},
};

// y = f(gate) * up. The function is the name's suffix: silu, gelu_tanh.
constexpr SlotSpec gated[] = {
    {"gate", Buffer, R},
    {"up", Buffer, R},
    {"y", Buffer, W},
    {"width", Constant, N},
};

// gated of rows that are a gate and then what it gates, `width` elements each.
constexpr SlotSpec gatedPair[] = {
    {"x", Buffer, R},
    {"y", Buffer, W},
    {"width", Constant, N},
};

// y = x, in the type of the kernel's name.
constexpr SlotSpec convert[] = {
    {"x", Buffer, R},
    {"y", Buffer, W},
    {"width", Constant, N},
};

// y = f(x): silu, gelu_tanh, relu2, sigmoid.
constexpr SlotSpec activation[] = {
    {"x", Buffer, R},
    {"y", Buffer, W},
    {"width", Constant, N},
};

// y = a + b. y may be a or b.
constexpr SlotSpec add[] = {
    {"a", Buffer, R},
    {"b", Buffer, R},
    {"y", Buffer, W},
    {"width", Constant, N},
};

// y[row] = x[row]: into and out of a handoff's ring.
constexpr SlotSpec copyRows[] = {
    {"x", Buffer, R},
    {"y", Buffer, W},
    {"width", Constant, N},
};

// y[i] = x[head_row[i]] for the head's rows.
constexpr SlotSpec gatherRows[] = {
    {"x", Buffer, R},
    {"y", Buffer, W},
    {"head_row", Step, R},
    {"width", Constant, N},
};

// Draws one id a head row (runtime/sampling/Sampler.h is the specification), stores that of a
// sequence's last head row for its next step, and reports each with its log-probability and the
// twenty likeliest tokens. The position drawn for is sequence_length[sequence]. The tables have a
// row a sequence slot: `history` the id at each position of the context, to which the drawn one is
// added; `bias_id` and `bias_value` room for maxLogitBiases entries, of which bias_count are in
// use; `mask` a bit an id, of meaning where is_masked.
constexpr SlotSpec sample[] = {
    {"logits", Buffer, R},
    {"valid_head_rows", Step, R},
    {"head_sequence", Step, R},
    {"sequence_slot", Step, R},
    {"sequence_length", Step, R},
    {"temperature", Step, R},
    {"top_k", Step, R},
    {"top_p", Step, R},
    {"min_p", Step, R},
    {"seed", Step, R},
    {"repetition_penalty", Step, R},
    {"presence_penalty", Step, R},
    {"frequency_penalty", Step, R},
    {"penalty_window", Step, R},
    {"last_id", Table, W},
    {"history", Table, RW},
    {"bias_count", Table, R},
    {"bias_id", Table, R},
    {"bias_value", Table, R},
    {"is_masked", Table, R},
    {"mask", Table, R},
    {"id", Out, W},
    {"log_probability", Out, W},
    {"top_id", Out, W},
    {"top_log_probability", Out, W},
    {"scratch", Scratch, RW},
    {"scratch_stride", Constant, N},
    {"vocabulary", Constant, N},
    {"context", Constant, N},
};

// y = f(gate[row]) * x: sigmoid.
constexpr SlotSpec rowGated[] = {
    {"gate", Buffer, R}, // F32 [rows]
    {"x", Buffer, R},
    {"y", Buffer, W},
    {"width", Constant, N},
};

// y[row] = the numbers of the `used` experts with the largest p + bias, ties to the lower, then
// their weights: p / max(sum of the chosen p, least_sum) where normalised, times scale. p is the
// name's function of all logits. With several groups, only experts of the `groups_used` groups with
// the largest sum of their `group_top` best are candidates.
constexpr SlotSpec router[] = {
    {"logits", Buffer, R},
    {"bias", Weight, R, true}, // F32 [experts]
    {"y", Buffer, W},          // F32 [rows][2 * used]
    {"scratch", Scratch, RW, true},
    {"scratch_stride", Constant, N},
    {"experts", Constant, N},
    {"used", Constant, N},
    {"groups", Constant, N},
    {"groups_used", Constant, N},
    {"group_top", Constant, N},
    {"normalise", Constant, N},
    {"least_sum", Constant, N}, // F64 bits
    {"scale", Constant, N},     // F64 bits
};

// The router's choices by expert: the words that strata.expert_lists describes.
constexpr SlotSpec expertLists[] = {
    {"routing", Buffer, R},   {"lists", Buffer, W},  {"valid_rows", Step, R},
    {"experts", Constant, N}, {"used", Constant, N},
};

// y[place] = f(v) or, gated, f(y[place]) * v, with v[o] = dot(weight[expert_slot[e]][o], x[row])
// for every entry of the lists that is of an expert e in [first, first + count). Places count from
// the first such entry. x has rows of row_width; expert e reads those columns that begin at
// labels[e] * columns, or at 0.
constexpr SlotSpec expertUp[] = {
    {"x", Buffer, R},
    {"lists", Buffer, R},
    {"weight", Weight, R},       // [experts][outputs][columns] of the name's type
    {"expert_slot", Weight, R},  // F32 [experts], whole numbers
    {"labels", Weight, R, true}, // F32 [experts], whole numbers
    {"y", Buffer, RW},
    {"valid_rows", Step, R},
    {"scratch", Scratch, RW, true},
    {"scratch_stride", Constant, N},
    {"columns", Constant, N},
    {"outputs", Constant, N},
    {"row_width", Constant, N},
    {"experts", Constant, N},
    {"used", Constant, N},
    {"first", Constant, N},
    {"count", Constant, N},
    {"by_use", Constant,
     N}, // 1: item i is of the i / tiles-th expert used; 0: of first + i / tiles
    {"gated", Constant, N},
    {"function", Constant, N}, // silu, gelu_tanh, relu2, sigmoid; above: none
};

// y[row] += w * dot(weight[expert_slot[e]][o], x[place]) for the same entries, in order; y begins
// as zeros unless it accumulates. y has rows of row_width; expert e adds at labels[e] * outputs, or
// at 0.
constexpr SlotSpec expertDown[] = {
    {"x", Buffer, R},           {"lists", Buffer, R},           {"weight", Weight, R},
    {"expert_slot", Weight, R}, {"labels", Weight, R, true},    {"y", Buffer, RW},
    {"valid_rows", Step, R},    {"scratch", Scratch, RW, true}, {"scratch_stride", Constant, N},
    {"columns", Constant, N},   {"outputs", Constant, N},       {"row_width", Constant, N},
    {"experts", Constant, N},   {"used", Constant, N},          {"first", Constant, N},
    {"count", Constant, N},     {"accumulate", Constant, N},
};

// x[t][c] = bias[c] + sum_j weight[c][j] * x[t - (taps - 1) + j][c] along each sequence, in place;
// the state keeps the last taps - 1 rows of the old x. A sequence at position 0 begins with zeros.
constexpr SlotSpec conv[] = {
    {"x", Buffer, RW},         {"weight", Weight, R}, // F32 [width][taps]
    {"bias", Weight, R, true},                        // F32 [width]
    {"state", State, RW},                             // F32 [taps - 1][width]
    {"block_table", Step, R},  {"valid_sequences", Step, R},  {"query_start", Step, R},
    {"row_position", Step, R}, {"block_stride", Constant, N}, {"width", Constant, N},
    {"taps", Constant, N},
};

// Mamba-2's recurrence as strata.ssm_scan states it.
constexpr SlotSpec ssmScan[] = {
    {"x", Buffer, R},              // F32 [rows][heads * head_width + 2 * groups * state_width]
    {"dt", Buffer, R},             // F32 [rows][heads]
    {"a", Weight, R, false, true}, // F32 [heads], as the next two
    {"skip", Weight, R},
    {"dt_bias", Weight, R},
    {"y", Buffer, W},     // F32 [rows][heads * head_width]
    {"state", State, RW}, // F32 [heads][head_width][state_width]
    {"block_table", Step, R},
    {"valid_sequences", Step, R},
    {"query_start", Step, R},
    {"row_position", Step, R},
    {"block_stride", Constant, N},
    {"heads", Constant, N},
    {"head_width", Constant, N},
    {"groups", Constant, N},
    {"state_width", Constant, N},
    {"least_dt", Constant, N}, // F64 bits
    {"most_dt", Constant, N},  // F64 bits
};

// y_h = weight[h] x_h, or its transpose times x_h; then the last `tail` elements of head h of x.
constexpr SlotSpec headLinear[] = {
    {"x", Buffer, R},
    {"weight", Weight, R}, // [heads][weight_rows][columns] of the name's type
    {"y", Buffer, W},
    {"valid_rows", Step, R},
    {"scratch", Scratch, RW, true},
    {"scratch_stride", Constant, N},
    {"heads", Constant, N},
    {"weight_rows", Constant, N},
    {"columns", Constant, N},
    {"tail", Constant, N},
    {"transposed", Constant, N},
};

constexpr KernelSignature table[] = {
    {"embed", "a row", embed},
    {"rms_norm", "a row", rmsNorm},
    {"rms_norm_heads", "a row", rmsNormHeads},
    {"linear", "a tile of 16 outputs, for all rows", linear},
    {"gemm", "all rows", gemm},
    {"norm_linear", "a row", normLinear},
    {"norm_gated", "a row", normGated},
    {"norm_qkv", "a row", normQkv},
    {"qkv_rope", "a row", qkvRope},
    {"rope", "a row", rope},
    {"kv_write", "a row", kvWrite},
    {"attention", "a query head of a row", attention},
    {"attention_latent", "a query head of a row", attention},
    {"attention_prompt", "a query head of a row", attentionPrompt},
    {"head_linear", "a head, for all rows", headLinear},
    {"gated", "a row", gated},
    {"gated_pair", "a row", gatedPair},
    {"convert", "a row", convert},
    {"activation", "a row", activation},
    {"add", "a row", add},
    {"copy_rows", "a row", copyRows},
    {"gather_rows", "a head row", gatherRows},
    {"sample", "a head row", sample},
    {"row_gated", "a row", rowGated},
    {"router", "a row", router},
    {"expert_lists", "all rows", expertLists},
    {"expert_up", "a tile of 16 outputs of an expert, for all its rows", expertUp},
    {"expert_down", "a tile of 16 outputs, for all rows and experts", expertDown},
    {"conv", "16 channels, for all sequences", conv},
    {"ssm_scan", "a head, for all sequences", ssmScan},
};

} // namespace

std::span<const KernelSignature> signatures() { return table; }

std::string_view namePart(std::string_view kernel, uint32_t index) {
  for (; index > 0; --index) {
    size_t dot = kernel.find('.');
    if (dot == std::string_view::npos)
      return {};
    kernel.remove_prefix(dot + 1);
  }
  return kernel.substr(0, kernel.find('.'));
}

std::string_view bufferType(std::string_view kernel, std::string_view slot) {
  std::string_view family = namePart(kernel, 0), type;
  if (family == "gemm" && slot == "x")
    type = namePart(kernel, 1);
  else if (family == "gated_pair")
    type = namePart(kernel, 2);
  else if (slot == "y" && (family == "rms_norm" || family == "convert"))
    type = namePart(kernel, 1);
  else if (slot == "y" && (family == "gemm" || family == "gated" || family == "attention_prompt"))
    type = namePart(kernel, 2);
  else if (slot == "y" && family == "attention")
    type = namePart(kernel, 3);
  return type.empty() ? "f32" : type;
}

std::string_view weightType(std::string_view kernel, std::string_view slot) {
  std::string_view family = namePart(kernel, 0), type;
  if (family == "norm_gated" && (slot == "gate" || slot == "up"))
    type = namePart(kernel, 2);
  else if ((family == "embed" && slot == "table") ||
           (family == "norm_qkv" && slot.ends_with("_weight")) || slot.starts_with("weight"))
    type = namePart(kernel, 1); // of rms_norm, that of y
  bool isPlain = family.starts_with("rms_norm") || family == "conv";
  return type.empty() || isPlain ? "f32" : type;
}

std::string_view stateType(std::string_view kernel, std::string_view slot) {
  std::string_view family = namePart(kernel, 0);
  if (family == "conv" || family == "ssm_scan")
    return "f32";
  uint32_t first = family == "norm_qkv" ? 2 : 1; // the part of K's
  return namePart(kernel, slot == "v" && family != "attention_prompt" ? first + 1 : first);
}

const KernelSignature *findSignature(std::string_view kernel) {
  std::string_view family = kernel.substr(0, kernel.find('.'));
  for (const KernelSignature &signature : table)
    if (signature.family == family)
      return &signature;
  return nullptr;
}

} // namespace strata
