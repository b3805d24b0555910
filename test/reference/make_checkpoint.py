"""Makes a tiny random checkpoint: the same bytes for the same arguments.

    make_checkpoint.py llama gguf --type q4_1 --seed 3 -o tiny.gguf
    make_checkpoint.py qwen3 folder --type bf16 --shards 2 -o tiny-qwen3

Scales are chosen so that every part matters (attention is far from uniform, norm weights far from
one) and logits spread by several units. The rows of control tokens are small, so that a greedy
choice never falls on one unless --eos names an ordinary token as the end.
"""

import argparse
import json
import os
from dataclasses import dataclass

import numpy as np

import rope
import tiny_vocabulary
from gguf import interleave_heads, write_gguf
from safetensors import write_folder

FAMILIES = {
    # model type, GGUF architecture, hidden, heads, kv heads, head width, tied, theta, epsilon,
    # vocabulary
    "llama": ("llama", "llama", 64, 4, 2, 16, False, 10000.0, 1e-5, "sentencepiece"),
    "mistral": ("mistral", "llama", 64, 4, 1, 16, False, 10000.0, 1e-5, "sentencepiece"),
    "smollm2": ("llama", "llama", 96, 6, 2, 16, True, 100000.0, 1e-5, "bytes"),
    "qwen2": ("qwen2", "qwen2", 64, 4, 2, 16, False, 1000000.0, 1e-6, "bytes"),
    "qwen3": ("qwen3", "qwen3", 64, 4, 2, 32, True, 1000000.0, 1e-6, "bytes"),
}
VOCABULARIES = {"sentencepiece": tiny_vocabulary.sentencepiece, "bytes": tiny_vocabulary.byte_level}
FILE_TYPES = {"f32": 0, "f16": 1, "q4_0": 2, "q4_1": 3, "q8_0": 7, "bf16": 32}
ORIGINAL_CONTEXT = 64  # of a stretched rope, before the stretching

# Names inside a layer: (GGUF, Hugging Face).
NAMES = {
    "attention_norm": ("attn_norm", "input_layernorm"),
    "q": ("attn_q", "self_attn.q_proj"),
    "k": ("attn_k", "self_attn.k_proj"),
    "v": ("attn_v", "self_attn.v_proj"),
    "q_norm": ("attn_q_norm", "self_attn.q_norm"),
    "k_norm": ("attn_k_norm", "self_attn.k_norm"),
    "output": ("attn_output", "self_attn.o_proj"),
    "ffn_norm": ("ffn_norm", "post_attention_layernorm"),
    "gate": ("ffn_gate", "mlp.gate_proj"),
    "up": ("ffn_up", "mlp.up_proj"),
    "down": ("ffn_down", "mlp.down_proj"),
}
OUTER_NAMES = {
    "embedding": ("token_embd", "model.embed_tokens"),
    "output_norm": ("output_norm", "model.norm"),
    "head": ("output", "lm_head"),
}


@dataclass
class Shape:
    """What a checkpoint is to be; `--help` says what the options mean."""

    family: str
    layers: int = 2
    hidden: int = 0
    heads: int = 0
    kv_heads: int = 0
    head_width: int = 0
    ffn: int = 160
    vocabulary: int = 320
    context: int = 512
    tied: bool = None
    window: int = 0
    bias: bool = False
    scaling: str = "default"
    factor: float = 8.0
    eos: int = None

    def __post_init__(self):
        family = FAMILIES[self.family]
        self.model_type, self.architecture = family[:2]
        self.hidden = self.hidden or family[2]
        self.heads = self.heads or family[3]
        self.kv_heads = self.kv_heads or family[4]
        self.head_width = self.head_width or family[5]
        self.tied = family[6] if self.tied is None else self.tied
        self.theta, self.epsilon = family[7:9]
        if self.model_type == "qwen2" and self.head_width * self.heads != self.hidden:
            raise ValueError("a qwen2 configuration cannot say a head's width")
        self.words = VOCABULARIES[family[9]](self.vocabulary)
        if self.eos is not None:
            self.words.eos = self.eos


def _make_tensors(shape, seed):
    """(layer or None, name, `weight` | `bias`, values), in the order in which files hold them."""
    random = np.random.default_rng(seed)

    def matrix(rows, columns, gain):
        return (random.standard_normal((rows, columns)) * gain / np.sqrt(columns)).astype(
            np.float32
        )

    def norm(width):
        return random.uniform(0.5, 1.5, width).astype(np.float32)

    def vocabulary_rows(spread):
        rows = random.standard_normal((shape.vocabulary, shape.hidden)) * spread
        rows[[i for i in shape.words.control if i != shape.eos]] *= 0.05
        return rows.astype(np.float32)

    h, f = shape.hidden, shape.ffn
    q, kv = shape.heads * shape.head_width, shape.kv_heads * shape.head_width
    # A tied table is scaled for the logits, about 4 units of spread; the residual grows from it.
    tensors = [
        (None, "embedding", "weight", vocabulary_rows(4 / np.sqrt(h) if shape.tied else 1.0))
    ]
    for i in range(shape.layers):
        tensors.append((i, "attention_norm", "weight", norm(h)))
        for name, width, gain in (("q", q, 1.3), ("k", kv, 1.3), ("v", kv, 1.0)):
            tensors.append((i, name, "weight", matrix(width, h, gain)))
            if shape.bias or shape.model_type == "qwen2":
                tensors.append(
                    (i, name, "bias", (0.5 * random.standard_normal(width)).astype(np.float32))
                )
        if shape.model_type == "qwen3":
            tensors += [
                (i, "q_norm", "weight", norm(shape.head_width)),
                (i, "k_norm", "weight", norm(shape.head_width)),
            ]
        tensors.append((i, "output", "weight", matrix(h, q, 1.0)))
        if shape.bias and shape.model_type != "qwen2":
            tensors.append(
                (i, "output", "bias", (0.2 * random.standard_normal(h)).astype(np.float32))
            )
        tensors.append((i, "ffn_norm", "weight", norm(h)))
        tensors += [
            (i, "gate", "weight", matrix(f, h, 1.5)),
            (i, "up", "weight", matrix(f, h, 1.5)),
        ]
        tensors.append((i, "down", "weight", matrix(h, f, 1.0)))
    tensors.append((None, "output_norm", "weight", norm(h)))
    if not shape.tied:
        tensors.append((None, "head", "weight", vocabulary_rows(4 / np.sqrt(h))))
    return tensors


def make_gguf(shape, path, weight_type="f32", embedding_type=None, seed=0):
    if shape.window:
        raise ValueError("a GGUF of architecture `llama` cannot say that attention has a window")
    a = shape.architecture
    metadata = [
        ("general.architecture", "string", a),
        ("general.name", "string", f"tiny {shape.family}"),
        ("general.file_type", "u32", FILE_TYPES[weight_type]),
        ("general.quantization_version", "u32", 2),
        (f"{a}.block_count", "u32", shape.layers),
        (f"{a}.context_length", "u32", shape.context),
        (f"{a}.embedding_length", "u32", shape.hidden),
        (f"{a}.feed_forward_length", "u32", shape.ffn),
        (f"{a}.attention.head_count", "u32", shape.heads),
        (f"{a}.attention.head_count_kv", "u32", shape.kv_heads),
        (f"{a}.attention.key_length", "u32", shape.head_width),
        (f"{a}.attention.value_length", "u32", shape.head_width),
        (f"{a}.attention.layer_norm_rms_epsilon", "f32", shape.epsilon),
        (f"{a}.rope.freq_base", "f32", shape.theta),
    ]
    if a == "llama":
        metadata += [
            (f"{a}.vocab_size", "u32", shape.vocabulary),
            (f"{a}.rope.dimension_count", "u32", shape.head_width),
        ]
    tensors = []
    if shape.scaling in ("linear", "yarn"):
        metadata.append((f"{a}.rope.scaling.type", "string", shape.scaling))
        metadata.append((f"{a}.rope.scaling.factor", "f32", shape.factor))
        if shape.scaling == "yarn":
            metadata.append((f"{a}.rope.scaling.original_context_length", "u32", ORIGINAL_CONTEXT))
    elif shape.scaling == "llama3":
        plain = rope.plain(shape.theta, shape.head_width)
        stretched = rope.llama3(
            shape.theta, shape.head_width, shape.factor, 1.0, 4.0, ORIGINAL_CONTEXT
        )
        tensors.append(("rope_freqs.weight", "f32", (plain / stretched).astype(np.float32)))
    for layer, name, part, values in _make_tensors(shape, seed):
        prefix, names = ("", OUTER_NAMES) if layer is None else (f"blk.{layer}.", NAMES)
        if a == "llama" and name in ("q", "k"):
            values = interleave_heads(values, shape.heads if name == "q" else shape.kv_heads)
        stored = "f32" if values.ndim == 1 else weight_type
        if embedding_type and name in ("embedding", "head"):
            stored = embedding_type
        tensors.append((f"{prefix}{names[name][0]}.{part}", stored, values))
    write_gguf(path, metadata + tiny_vocabulary.gguf_metadata(shape.words), tensors)


def _config(shape, weight_type, old_rope):
    """config.json as transformers saves it; `old_rope`: as it did before version 5."""
    scaling = {"rope_type": shape.scaling}
    if shape.scaling != "default":
        scaling["factor"] = shape.factor
    if shape.scaling == "llama3":
        scaling |= {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
    if shape.scaling in ("llama3", "yarn"):
        scaling["original_max_position_embeddings"] = ORIGINAL_CONTEXT
    name = {"llama": "Llama", "mistral": "Mistral", "qwen2": "Qwen2", "qwen3": "Qwen3"}[
        shape.model_type
    ]
    config = {
        "architectures": [f"{name}ForCausalLM"],
        "attention_dropout": 0.0,
        "bos_token_id": shape.words.bos,
        "eos_token_id": shape.words.eos,
        "head_dim": shape.head_width,
        "hidden_act": "silu",
        "hidden_size": shape.hidden,
        "initializer_range": 0.02,
        "intermediate_size": shape.ffn,
        "max_position_embeddings": shape.context,
        "model_type": shape.model_type,
        "num_attention_heads": shape.heads,
        "num_hidden_layers": shape.layers,
        "num_key_value_heads": shape.kv_heads,
        "rms_norm_eps": shape.epsilon,
        "tie_word_embeddings": shape.tied,
        "use_cache": True,
        "vocab_size": shape.vocabulary,
    }
    dtype = {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}[weight_type]
    if old_rope:
        config |= {
            "torch_dtype": dtype,
            "transformers_version": "4.46.0",
            "rope_theta": shape.theta,
        }
        config["rope_scaling"] = None if shape.scaling == "default" else scaling
    else:
        config |= {"dtype": dtype, "transformers_version": "5.17.0"}
        config["rope_parameters"] = scaling | {"rope_theta": shape.theta}
    if shape.model_type == "llama":
        config |= {"attention_bias": shape.bias, "mlp_bias": False, "pretraining_tp": 1}
    if shape.model_type == "mistral":
        config["sliding_window"] = shape.window or None
    if shape.model_type.startswith("qwen"):
        # The first layer sees everything, later ones the window.
        config |= {
            "use_sliding_window": bool(shape.window),
            "max_window_layers": 1 if shape.window else 28,
        }
        config["sliding_window"] = shape.window or None
        if not old_rope:
            windowed = [
                "sliding_attention" if shape.window and i >= 1 else "full_attention"
                for i in range(shape.layers)
            ]
            config["layer_types"] = windowed
    if shape.model_type == "qwen2":
        del config["head_dim"]
    if shape.model_type == "qwen3":
        config["attention_bias"] = False
    if shape.family == "smollm2" and old_rope:  # keys that its published configuration has
        config |= {"is_llama_config": True, "rope_interleaved": False}
        config["transformers.js_config"] = {
            "kv_cache_dtype": {"fp16": "float16", "q4f16": "float16"}
        }
    return dict(sorted(config.items()))


def make_folder(shape, path, weight_type="f32", seed=0, shards=1, old_rope=False, tokenizer=True):
    tensors = []
    for layer, name, part, values in _make_tensors(shape, seed):
        prefix, names = ("", OUTER_NAMES) if layer is None else (f"model.layers.{layer}.", NAMES)
        tensors.append((f"{prefix}{names[name][1]}.{part}", weight_type, values))
    os.makedirs(path, exist_ok=True)
    files = {
        "config.json": _config(shape, weight_type, old_rope),
        "generation_config.json": {
            "bos_token_id": shape.words.bos,
            "eos_token_id": [shape.words.eos],
            "transformers_version": "5.17.0",
        },
    }
    if tokenizer and shape.words.kind == "bytes":
        files["tokenizer.json"] = tiny_vocabulary.tokenizer_json(shape.words)
        files["tokenizer_config.json"] = tiny_vocabulary.tokenizer_config(shape.words)
    for name, content in files.items():
        with open(os.path.join(path, name), "w") as file:
            json.dump(content, file, indent=2, ensure_ascii=False)
    write_folder(path, tensors, shards)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("family", choices=FAMILIES)
    parser.add_argument("format", choices=("gguf", "folder"))
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument(
        "--type", default="f32", choices=FILE_TYPES, help="of matrices; a folder takes float types"
    )
    parser.add_argument(
        "--embedding-type", choices=FILE_TYPES, help="of the embedding and the head of a GGUF"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--tied", action=argparse.BooleanOptionalAction, help="the head is the embedding"
    )
    parser.add_argument(
        "--bias", action="store_true", help="q, k, v and output have biases (llama)"
    )
    parser.add_argument(
        "--window", type=int, default=0, help="tokens that attention sees (folders)"
    )
    parser.add_argument(
        "--scaling", default="default", choices=("default", "linear", "llama3", "yarn")
    )
    parser.add_argument("--shards", type=int, default=1, help="files of a folder")
    parser.add_argument(
        "--old-rope", action="store_true", help="config.json as before transformers 5"
    )
    parser.add_argument("--tokenizer", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--eos", type=int, help="the id that ends a generation")
    for name, what in (
        ("layers", "decoder layers"),
        ("hidden", "residual width"),
        ("heads", "query heads"),
        ("kv-heads", ""),
        ("head-width", ""),
        ("ffn", "width of the MLP"),
        ("vocabulary", "rows of the embedding"),
        ("context", "longest sequence"),
    ):
        parser.add_argument(f"--{name}", type=int, help=what)
    given = parser.parse_args()
    sizes = (
        "layers",
        "hidden",
        "heads",
        "kv_heads",
        "head_width",
        "ffn",
        "vocabulary",
        "context",
        "eos",
    )
    shape = Shape(
        given.family,
        tied=given.tied,
        window=given.window,
        bias=given.bias,
        scaling=given.scaling,
        **{size: getattr(given, size) for size in sizes if getattr(given, size) is not None},
    )
    if given.format == "gguf":
        make_gguf(shape, given.output, given.type, given.embedding_type, given.seed)
    else:
        make_folder(
            shape,
            given.output,
            given.type,
            given.seed,
            given.shards,
            given.old_rope,
            given.tokenizer,
        )


if __name__ == "__main__":
    main()
