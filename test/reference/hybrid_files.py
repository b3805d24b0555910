"""Writes a Hybrid as a Hugging Face folder or a GGUF file, under the names of its family."""

import json
import os

import numpy as np

from gguf import interleave_heads, write_gguf
from hybrid import EPSILON, THETA
from safetensors import write_folder
from weight_types import BY_NAME


def rounded(model, weight_type):
    """The model with every matrix as `weight_type` stores it; what is no whole number of blocks, and
    vectors, stay float32. In place."""
    kind = BY_NAME[weight_type]
    for tensors in (model.outer, *model.mixers):
        for name, values in tensors.items():
            if is_stored_as(name, values, kind):
                tensors[name] = kind.dequantise(kind.quantise(values), values.shape)
    return model


def is_stored_as(name, values, kind):
    return (
        values.ndim > 1
        and name not in ("conv", "router", "shared_weight", "labels")
        and values.shape[-1] % kind.block_elements == 0
    )


def _stacked(prefix, part, values):
    return [(f"{prefix}experts.{e}.{part}_proj.weight", v) for e, v in enumerate(values)]


_ATTENTION = {
    "q": "q_proj.weight",
    "k": "k_proj.weight",
    "v": "v_proj.weight",
    "o": "o_proj.weight",
    "q_bias": "q_proj.bias",
    "k_bias": "k_proj.bias",
    "v_bias": "v_proj.bias",
    "k_norm": "k_norm.weight",
    "q_a": "q_a_proj.weight",
    "q_b": "q_b_proj.weight",
    "kv_a": "kv_a_proj_with_mqa.weight",
    "kv_b": "kv_b_proj.weight",
    "kv_norm": "kv_a_layernorm.weight",
}
_MAMBA = {
    "in": "in_proj.weight",
    "conv": "conv1d.weight",
    "conv_bias": "conv1d.bias",
    "a_log": "A_log",
    "d": "D",
    "dt_bias": "dt_bias",
    "inner_norm": "norm.weight",
    "out": "out_proj.weight",
}
_EXPERTS = {
    "router": "gate.weight",
    "router_bias": "gate.e_score_correction_bias",
    "latent_down": "fc1_latent_proj.weight",
    "latent_up": "fc2_latent_proj.weight",
    "labels": "labels",
    "shared_weight": "shared_expert_gate.weight",
}


def _folder_mixer(shape, kind, tensors, prefix, fused):
    found = []
    shared = "shared_expert" if shape.family in ("qwen2_moe", "grouped_latent") else "shared_experts"
    for name, values in tensors.items():
        if name == "norm" or (shape.latent_groups and name in ("latent_down", "latent_up")):
            continue
        if kind == "*":
            norm = "q_a_layernorm.weight" if shape.is_latent_attention else "q_norm.weight"
            found.append((prefix + (norm if name == "q_norm" else _ATTENTION[name]), values))
        elif kind == "M":
            values = values[:, None, :] if name == "conv" else values
            found.append((prefix + _MAMBA[name], values))
        elif name.startswith("experts_"):
            part = name.removeprefix("experts_")
            if not fused:
                found += _stacked(prefix, part, values)
            elif part == "up" and shape.gated:
                both = np.concatenate([tensors["experts_gate"], values], axis=1)
                found.append((f"{prefix}experts.gate_up_proj", both))
            elif part != "gate":
                found.append((f"{prefix}experts.{part}_proj", values))
        elif name.startswith("shared_") and name != "shared_weight":
            part = name.removeprefix("shared_")
            found.append((f"{prefix}{shared}.{part}_proj.weight", values))
        elif name in _EXPERTS:
            values = values[0] if name.startswith("latent") else values
            found.append((prefix + _EXPERTS[name], values))
        else:
            found.append((f"{prefix}{name}_proj.weight", values))
    return found


def _config(shape):
    family = shape.family
    config = {
        "model_type": family,
        "hidden_size": shape.hidden,
        "vocab_size": shape.vocabulary,
        "tie_word_embeddings": shape.tied,
        "dtype": "float32",
        "eos_token_id": 2,
    }
    limit = [v if np.isfinite(v) else {"__float__": "Infinity"} for v in shape.time_limit]
    if family == "mamba2":
        return config | {
            "num_hidden_layers": shape.layers,
            "num_heads": shape.mamba_heads,
            "head_dim": shape.mamba_width,
            "state_size": shape.states,
            "n_groups": shape.mamba_groups,
            "conv_kernel": shape.taps,
            "expand": shape.mamba_inner // shape.hidden,
            "use_conv_bias": shape.conv_bias,
            "layer_norm_epsilon": EPSILON,
            "time_step_limit": limit,
        }
    config |= {
        "max_position_embeddings": shape.context,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "num_experts_per_tok": shape.used,
        "moe_intermediate_size": shape.inner,
        "norm_topk_prob": shape.normalise,
        "intermediate_size": shape.ffn,
    }
    if family == "nemotron_h":
        return config | {
            "hybrid_override_pattern": shape.kinds,
            "num_hidden_layers": shape.layers,
            "head_dim": shape.head_width,
            "layer_norm_epsilon": EPSILON,
            "mamba_num_heads": shape.mamba_heads,
            "mamba_head_dim": shape.mamba_width,
            "ssm_state_size": shape.states,
            "n_groups": shape.mamba_groups,
            "conv_kernel": shape.taps,
            "use_conv_bias": shape.conv_bias,
            "time_step_limit": limit,
            "n_routed_experts": shape.experts,
            "n_shared_experts": 1 if shape.shared else 0,
            "moe_shared_expert_intermediate_size": shape.shared or 1,
            "moe_latent_size": shape.latent or None,
            "n_group": shape.groups,
            "topk_group": shape.groups_used,
            "routed_scaling_factor": shape.scale,
        }
    config |= {
        "num_hidden_layers": shape.layers,
        "rms_norm_eps": EPSILON,
        "rope_parameters": {"rope_type": "default", "rope_theta": THETA},
    }
    if family.startswith("deepseek"):
        grouped = {"n_group": shape.groups, "topk_group": shape.groups_used}
        if family == "deepseek_v2":
            method = "group_limited_greedy" if shape.groups > 1 else "greedy"
            grouped |= {"topk_method": method}
        return config | grouped | {
            "first_k_dense_replace": shape.dense_layers,
            "n_routed_experts": shape.experts,
            "n_shared_experts": shape.shared // shape.inner,
            "routed_scaling_factor": shape.scale,
            "q_lora_rank": shape.query_rank or None,
            "kv_lora_rank": shape.rank,
            "qk_nope_head_dim": shape.plain,
            "qk_rope_head_dim": shape.rotary,
            "v_head_dim": shape.value,
        }
    config |= {"num_experts": shape.experts, "head_dim": shape.head_width}
    if shape.shared:
        config["shared_expert_intermediate_size"] = shape.shared
    if family == "grouped_latent":
        config |= {"moe_latent_size": shape.latent, "moe_latent_groups": shape.latent_groups}
        del config["norm_topk_prob"], config["intermediate_size"]
    if family == "qwen2_moe":
        del config["head_dim"]
    return config


def write_hybrid_folder(model, path, weight_type="f32", fused=False, surplus=()):
    """`fused`: one tensor for all experts; `surplus`: names of further tensors."""
    shape, found = model.shape, []
    root = "model." if shape.pairs else "backbone."
    table = "embed_tokens.weight" if shape.pairs else "embeddings.weight"
    found.append((root + table, "embedding", model.outer["embedding"]))
    for i, (kind, tensors) in enumerate(zip(shape.kinds, model.mixers)):
        layer = f"{root}layers.{i // 2 if shape.pairs else i}."
        if shape.pairs:
            norm = "input_layernorm" if kind == "*" else "post_attention_layernorm"
            prefix = layer + ("self_attn." if kind == "*" else "mlp.")
        else:
            norm, prefix = "norm", layer + "mixer."
        found.append((f"{layer}{norm}.weight", "norm", tensors["norm"]))
        for name, values in _folder_mixer(shape, kind, tensors, prefix, fused):
            own = "conv" if "conv1d.weight" in name else "router" if ".gate.weight" in name else ""
            own = own or ("shared_weight" if "shared_expert_gate" in name else "")
            found.append((name, own, values))
    if shape.latent_groups:
        for name in ("latent_down", "latent_up"):
            tables = [m[name] for k, m in zip(shape.kinds, model.mixers) if k == "E"]
            found.append((f"model.{name}", name, np.stack(tables)))
    found.append((root + ("norm.weight" if shape.pairs else "norm_f.weight"), "", model.outer["norm"]))
    if not shape.tied:
        found.append(("lm_head.weight", "head", model.outer["head"]))
    found += [(name, "", np.zeros((2, 2), np.float32)) for name in surplus]
    kind = BY_NAME[weight_type]
    os.makedirs(path, exist_ok=True)
    with open(os.path.join(path, "config.json"), "w") as file:
        json.dump(_config(shape), file, indent=1)
    write_folder(
        path,
        [(n, weight_type if is_stored_as(own, v, kind) else "f32", v) for n, own, v in found],
    )


_GGUF = {
    "q": "attn_q.weight",
    "k": "attn_k.weight",
    "v": "attn_v.weight",
    "o": "attn_output.weight",
    "q_bias": "attn_q.bias",
    "k_bias": "attn_k.bias",
    "v_bias": "attn_v.bias",
    "k_norm": "attn_k_norm.weight",
    "q_a": "attn_q_a.weight",
    "q_b": "attn_q_b.weight",
    "kv_a": "attn_kv_a_mqa.weight",
    "kv_b": "attn_kv_b.weight",
    "kv_norm": "attn_kv_a_norm.weight",
    "in": "ssm_in.weight",
    "conv": "ssm_conv1d.weight",
    "conv_bias": "ssm_conv1d.bias",
    "a_log": "ssm_a",
    "d": "ssm_d",
    "dt_bias": "ssm_dt.bias",
    "inner_norm": "ssm_norm.weight",
    "out": "ssm_out.weight",
    "router": "ffn_gate_inp.weight",
    "router_bias": "exp_probs_b.bias",
    "latent_down": "ffn_latent_down.weight",
    "latent_up": "ffn_latent_up.weight",
    "shared_weight": "ffn_gate_inp_shexp.weight",
}


def _gguf_tensor(shape, kind, name, values):
    if name == "norm":
        is_first = not shape.pairs or kind == "*"
        return [("attn_norm.weight" if is_first else "ffn_norm.weight", values)]
    if name == "q_norm":
        return [("attn_q_a_norm.weight" if shape.is_latent_attention else "attn_q_norm.weight", values)]
    if name.startswith("experts_"):
        return [(f"ffn_{name.removeprefix('experts_')}_exps.weight", values)]
    if name == "shared_weight":
        return [(_GGUF[name], values[0])]
    if name.startswith("shared_"):
        return [(f"ffn_{name.removeprefix('shared_')}_shexp.weight", values)]
    if name in ("gate", "up", "down"):
        return [(f"ffn_{name}.weight", values)]
    if shape.family == "nemotron_h" and name in ("q", "k"):
        # Without a rotation nothing needs to undo it: products of queries and keys are the same.
        values = interleave_heads(values, shape.heads if name == "q" else shape.kv_heads)
    if name == "a_log":
        values = -np.exp(values.astype(np.float64)).astype(np.float32)
    if name in ("a_log", "d"):
        values = values[:, None]
    if name == "inner_norm":
        values = values.reshape(shape.mamba_groups, -1)
    if name.startswith("latent"):
        values = values[0]
    return [(_GGUF[name], values)]


def _split_kv(shape, values):
    """kv_b as its two halves: the key's transposed for each head."""
    heads = values.reshape(shape.heads, shape.plain + shape.value, shape.rank)
    key = np.ascontiguousarray(heads[:, : shape.plain].swapaxes(1, 2))
    return [("attn_k_b.weight", key), ("attn_v_b.weight", heads[:, shape.plain :])]


def _metadata(shape, architecture, split):
    def key(name, kind, value):
        return (f"{architecture}.{name}", kind, value)

    a = [
        ("general.architecture", "string", architecture),
        key("block_count", "u32", shape.layers),
        key("context_length", "u32", shape.context),
        key("embedding_length", "u32", shape.hidden),
        key("attention.layer_norm_rms_epsilon", "f32", EPSILON),
        key("vocab_size", "u32", shape.vocabulary),
    ]
    if "M" in shape.kinds:
        a += [
            key("ssm.conv_kernel", "u32", shape.taps),
            key("ssm.inner_size", "u32", shape.mamba_inner),
            key("ssm.state_size", "u32", shape.states),
            key("ssm.time_step_rank", "u32", shape.mamba_heads),
            key("ssm.group_count", "u32", shape.mamba_groups),
        ]
    if shape.family == "mamba2":
        return a
    if "E" in shape.kinds:
        a += [
            key("expert_count", "u32", shape.experts),
            key("expert_used_count", "u32", shape.used),
            key("expert_feed_forward_length", "u32", shape.inner),
        ]
        if shape.shared and not shape.is_latent_attention:
            a.append(key("expert_shared_feed_forward_length", "u32", shape.shared))
    if shape.family == "nemotron_h":
        inner = {"-": shape.ffn, "E": shape.inner}
        a += [
            key("attention.head_count", "u32", shape.heads),
            key("attention.key_length", "u32", shape.head_width),
            key("attention.value_length", "u32", shape.head_width),
            key(
                "attention.head_count_kv",
                "[i32]",
                [shape.kv_heads if k == "*" else 0 for k in shape.kinds],
            ),
            key("feed_forward_length", "[i32]", [inner.get(k, 0) for k in shape.kinds]),
            key("rope.dimension_count", "u32", 84),
        ]
        if "E" in shape.kinds:
            a += [
                key("expert_shared_count", "u32", 1),
                key("expert_weights_norm", "bool", shape.normalise),
                key("expert_weights_scale", "f32", shape.scale),
                key("expert_group_count", "u32", shape.groups),
                key("expert_group_used_count", "u32", shape.groups_used),
            ]
        return a
    a += [
        key("attention.head_count", "u32", shape.heads),
        key("feed_forward_length", "u32", shape.ffn),
        key("rope.freq_base", "f32", THETA),
    ]
    if not shape.is_latent_attention:
        return a + [
            key("attention.head_count_kv", "u32", shape.kv_heads),
            key("attention.key_length", "u32", shape.head_width),
            key("attention.value_length", "u32", shape.head_width),
        ]
    a += [
        key("attention.kv_lora_rank", "u32", shape.rank),
        key("rope.dimension_count", "u32", shape.rotary),
        key("leading_dense_block_count", "u32", shape.dense_layers),
        key("expert_shared_count", "u32", shape.shared // shape.inner),
        key("expert_weights_norm", "bool", shape.normalise),
        key("expert_weights_scale", "f32", shape.scale),
        key("expert_group_count", "u32", shape.groups),
        key("expert_group_used_count", "u32", shape.groups_used),
    ]
    if shape.query_rank:
        a.append(key("attention.q_lora_rank", "u32", shape.query_rank))
    if shape.bias:
        a.append(key("expert_gating_func", "u32", 2))
    widths = [shape.plain + shape.rotary, shape.value]
    if split:
        a += [
            key("attention.head_count_kv", "u32", 1),
            key("attention.key_length", "u32", shape.rank + shape.rotary),
            key("attention.value_length", "u32", shape.rank),
            key("attention.key_length_mla", "u32", widths[0]),
            key("attention.value_length_mla", "u32", widths[1]),
        ]
    else:
        a += [
            key("attention.head_count_kv", "u32", shape.heads),
            key("attention.key_length", "u32", widths[0]),
            key("attention.value_length", "u32", widths[1]),
        ]
    return a


def write_hybrid_gguf(model, path, weight_type="f32", split=True, surplus=()):
    """`split`: DeepSeek's kv_b as two tensors; `surplus`: names of further tensors."""
    shape, kind = model.shape, BY_NAME[weight_type]
    architecture = {"qwen3_moe": "qwen3moe", "qwen2_moe": "qwen2moe", "mamba2": "mamba2"}.get(
        shape.family, "deepseek2"
    )
    if shape.family == "nemotron_h":
        architecture = "nemotron_h_moe" if "E" in shape.kinds else "nemotron_h"
    found = [("token_embd.weight", "embedding", model.outer["embedding"])]
    for i, (letter, tensors) in enumerate(zip(shape.kinds, model.mixers)):
        block = f"blk.{i // 2 if shape.pairs else i}."
        for name, values in tensors.items():
            stored = _gguf_tensor(shape, letter, name, values)
            if name == "kv_b" and split:
                stored = _split_kv(shape, values)
            found += [(block + tensor, name, v) for tensor, v in stored]
    found.append(("output_norm.weight", "", model.outer["norm"]))
    if not shape.tied:
        found.append(("output.weight", "head", model.outer["head"]))
    found += [(name, "", np.zeros((2, 2), np.float32)) for name in surplus]

    def type_of(name, values):
        small = name in ("a_log", "d", "inner_norm")
        return weight_type if is_stored_as(name, values, kind) and not small else "f32"

    write_gguf(
        path,
        _metadata(shape, architecture, split),
        [(tensor, type_of(name, values), values) for tensor, name, values in found],
    )
