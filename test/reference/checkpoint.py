"""A checkpoint as a reference Model: names and configuration keys of both file forms."""

import json
import os

import numpy as np

import rope
from forward import Layer, Model, Projection, Rope
from gguf import GgufFile
from safetensors import read_folder

END_TOKENS = {
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "<|eom_id|>",
    "<|end_of_text|>",
}


def load(path):
    """The model at `path`: a GGUF file or a Hugging Face folder."""
    return load_folder(path) if os.path.isdir(path) else load_gguf(path)


class _Tensors:
    """Looks tensors up by name as float64 and notices the ones that nobody asked for."""

    def __init__(self, names, read):
        self.unused, self.read = set(names), read

    def __call__(self, name):
        self.unused.discard(name)
        return self.read(name).astype(np.float64)

    def optional(self, name):
        return self(name) if name in self.unused else None

    def projection(self, name):
        return Projection(self(name + ".weight"), self.optional(name + ".bias"))

    def finish(self):
        if self.unused:
            raise ValueError(f"tensors that the reference does not use: {sorted(self.unused)}")


# Field of Layer -> (GGUF suffix after `blk.N.`, Hugging Face suffix after `model.layers.N.`).
_PROJECTIONS = {
    "q": ("attn_q", "self_attn.q_proj"),
    "k": ("attn_k", "self_attn.k_proj"),
    "v": ("attn_v", "self_attn.v_proj"),
    "output": ("attn_output", "self_attn.o_proj"),
    "gate": ("ffn_gate", "mlp.gate_proj"),
    "up": ("ffn_up", "mlp.up_proj"),
    "down": ("ffn_down", "mlp.down_proj"),
}
_NORMS = {
    "attention_norm": ("attn_norm", "input_layernorm"),
    "ffn_norm": ("ffn_norm", "post_attention_layernorm"),
}
_HEAD_NORMS = {
    "q_norm": ("attn_q_norm", "self_attn.q_norm"),
    "k_norm": ("attn_k_norm", "self_attn.k_norm"),
}


def _layer(tensors, prefix, form, window):
    fields = {f: tensors.projection(prefix + names[form]) for f, names in _PROJECTIONS.items()}
    fields |= {f: tensors(prefix + names[form] + ".weight") for f, names in _NORMS.items()}
    fields |= {
        f: tensors.optional(prefix + names[form] + ".weight") for f, names in _HEAD_NORMS.items()
    }
    return Layer(**fields, window=window)


def load_gguf(path):
    file = GgufFile(path)
    architecture = file.metadata["general.architecture"]
    if architecture not in ("llama", "qwen2", "qwen3"):
        raise ValueError(f"{path}: architecture {architecture} is not one of the reference's")

    def key(name, default=None):
        return file.metadata.get(f"{architecture}.{name}", default)

    tensors = _Tensors(file.tensors, file.tensor)
    heads, hidden = key("attention.head_count"), key("embedding_length")
    width = key("attention.key_length", hidden // heads)
    rotated, theta = key("rope.dimension_count", width), key("rope.freq_base", 10000.0)
    kind, factor, magnitude = key("rope.scaling.type", "none"), key("rope.scaling.factor", 1.0), 1.0
    if kind == "yarn":
        frequencies, magnitude = rope.yarn(
            theta, rotated, factor, key("rope.scaling.original_context_length")
        )
    elif kind == "linear":
        frequencies = rope.linear(theta, rotated, factor)
    elif kind == "none":
        frequencies = rope.plain(theta, rotated)
    else:
        raise ValueError(f"{path}: rope scaling {kind} is not one of the reference's")
    divisors = tensors.optional("rope_freqs.weight")
    if divisors is not None:
        frequencies = frequencies / divisors
    embedding = tensors("token_embd.weight")
    head = tensors.optional("output.weight")
    texts = file.metadata.get("tokenizer.ggml.tokens", [])
    end = {
        file.metadata[k]
        for k in ("tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id")
        if k in file.metadata
    }
    model = Model(
        embedding=embedding,
        layers=[_layer(tensors, f"blk.{i}.", 0, 0) for i in range(key("block_count"))],
        output_norm=tensors("output_norm.weight"),
        head=embedding if head is None else head,
        heads=heads,
        kv_heads=key("attention.head_count_kv", heads),
        head_width=width,
        epsilon=key("attention.layer_norm_rms_epsilon"),
        rope=Rope(frequencies, architecture == "llama", magnitude),
        context=key("context_length"),
        end_of_generation=sorted(end | {i for i, text in enumerate(texts) if text in END_TOKENS}),
    )
    tensors.finish()
    return model


def _folder_rope(config, width):
    """Both spellings: transformers 5 keeps everything in `rope_parameters`, older ones kept
    `rope_theta` beside `rope_scaling`."""
    parameters = dict(config.get("rope_parameters") or config.get("rope_scaling") or {})
    theta = parameters.get("rope_theta", config.get("rope_theta", 10000.0))
    kind = parameters.get("rope_type", parameters.get("type", "default"))
    context = parameters.get("original_max_position_embeddings", config["max_position_embeddings"])
    if kind == "default":
        return Rope(rope.plain(theta, width))
    if kind == "linear":
        return Rope(rope.linear(theta, width, parameters["factor"]))
    if kind == "llama3":
        low, high = parameters["low_freq_factor"], parameters["high_freq_factor"]
        return Rope(rope.llama3(theta, width, parameters["factor"], low, high, context))
    if kind == "yarn":
        options = {
            k: parameters[k]
            for k in ("beta_fast", "beta_slow", "attention_factor")
            if parameters.get(k)
        }
        frequencies, magnitude = rope.yarn(theta, width, parameters["factor"], context, **options)
        return Rope(frequencies, magnitude=magnitude)
    raise ValueError(f"rope type {kind} is not one of the reference's")


def _folder_windows(config):
    """The window of each layer, 0 where it sees everything."""
    count = config["num_hidden_layers"]
    window = config.get("sliding_window") or 0
    if config["model_type"] == "mistral":
        return [window] * count
    if not config.get("use_sliding_window", False):
        return [0] * count
    kinds = config.get("layer_types") or [
        "full_attention" if i < config["max_window_layers"] else "sliding_attention"
        for i in range(count)
    ]
    return [window if kind == "sliding_attention" else 0 for kind in kinds]


def load_folder(path):
    with open(os.path.join(path, "config.json")) as file:
        config = json.load(file)
    if config["model_type"] not in ("llama", "mistral", "qwen2", "qwen3"):
        raise ValueError(f"{path}: model type {config['model_type']} is not one of the reference's")
    stored = read_folder(path)
    tensors = _Tensors(stored, stored.__getitem__)
    heads = config["num_attention_heads"]
    width = config.get("head_dim") or config["hidden_size"] // heads
    windows = _folder_windows(config)
    embedding = tensors("model.embed_tokens.weight")
    eos = config.get("eos_token_id")
    generation = os.path.join(path, "generation_config.json")
    if os.path.exists(generation):
        with open(generation) as file:
            eos = json.load(file).get("eos_token_id", eos)
    model = Model(
        embedding=embedding,
        layers=[
            _layer(tensors, f"model.layers.{i}.", 1, window) for i, window in enumerate(windows)
        ],
        output_norm=tensors("model.norm.weight"),
        head=embedding if config.get("tie_word_embeddings", False) else tensors("lm_head.weight"),
        heads=heads,
        kv_heads=config.get("num_key_value_heads") or heads,
        head_width=width,
        epsilon=config["rms_norm_eps"],
        rope=_folder_rope(config, width),
        context=config["max_position_embeddings"],
        end_of_generation=(
            sorted(eos) if isinstance(eos, list) else [eos] if eos is not None else []
        ),
    )
    tensors.optional("lm_head.weight")  # some tied checkpoints store the head all the same
    tensors.finish()
    return model
