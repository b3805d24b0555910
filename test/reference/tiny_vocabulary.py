"""Vocabularies small enough to read, of both kinds, with the control tokens of chat templates."""

from dataclasses import dataclass, field

NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6

CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' }}"
    "{{ message['content'] + '<|im_end|>' + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

WORDS = (
    "the and was they said with once upon time little girl play day big red ball saw his her mom"
).split()


@dataclass
class TinyVocabulary:
    kind: str  # `sentencepiece` or `bytes`
    tokens: list
    types: list
    bos: int
    eos: int
    add_bos: bool
    scores: list = field(default_factory=list)
    merges: list = field(default_factory=list)

    @property
    def control(self):
        return [i for i, kind in enumerate(self.types) if kind in (CONTROL, UNKNOWN)]


def sentencepiece(size):
    """<unk> <s> </s>, 256 bytes, two chat tokens, then pieces of words with falling scores."""
    tokens = (
        ["<unk>", "<s>", "</s>"]
        + [f"<0x{b:02X}>" for b in range(256)]
        + ["<|im_start|>", "<|im_end|>"]
    )
    types = [UNKNOWN, CONTROL, CONTROL] + [BYTE] * 256 + [CONTROL] * 2
    pieces = ["\u2581"] + list("etaonishrdlu")
    for word in WORDS:
        spaced = "\u2581" + word
        pieces += [spaced[:end] for end in range(2, len(spaced) + 1)]
    pieces = list(dict.fromkeys(pieces))[: size - len(tokens)]
    scores = [0.0] * len(tokens) + [-float(i) for i in range(len(pieces))]
    tokens, types = tokens + pieces, types + [NORMAL] * len(pieces)
    return _padded(TinyVocabulary("sentencepiece", tokens, types, 1, 2, True, scores), size)


def printable_bytes():
    """The code point that byte-level BPE writes for each byte."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in kept]
    return {b: chr(b) for b in kept} | {b: chr(256 + i) for i, b in enumerate(others)}


def byte_level(size):
    """Three control tokens, 256 bytes, then merges that build words from their letters."""
    letters = printable_bytes()
    tokens = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"] + [letters[b] for b in range(256)]
    types, merges = [CONTROL] * 3 + [NORMAL] * 256, []
    for word in WORDS:
        symbols = [letters[b] for b in (" " + word).encode()]
        for end in range(2, len(symbols) + 1):
            merged = "".join(symbols[:end])
            if merged not in tokens and len(tokens) < size:
                merges.append("".join(symbols[: end - 1]) + " " + symbols[end - 1])
                tokens.append(merged)
                types.append(NORMAL)
    return _padded(TinyVocabulary("bytes", tokens, types, 1, 2, False, merges=merges), size)


def _padded(vocabulary, size):
    """Unused rows up to `size`, as real models have."""
    if len(vocabulary.tokens) > size:
        raise ValueError(
            f"a vocabulary of {size} cannot hold its {len(vocabulary.tokens)} basic tokens"
        )
    for i in range(len(vocabulary.tokens), size):
        vocabulary.tokens.append(f"<|unused_{i}|>")
        vocabulary.types.append(CONTROL)
        if vocabulary.scores:
            vocabulary.scores.append(0.0)
    return vocabulary


def gguf_metadata(vocabulary):
    """The tokenizer's (key, type, value) triples."""
    name = {"sentencepiece": "llama", "bytes": "gpt2"}[vocabulary.kind]
    triples = [
        ("model", "string", name),
        ("tokens", "[string]", vocabulary.tokens),
        ("token_type", "[i32]", vocabulary.types),
        ("bos_token_id", "u32", vocabulary.bos),
        ("eos_token_id", "u32", vocabulary.eos),
        ("add_bos_token", "bool", vocabulary.add_bos),
    ]
    if vocabulary.kind == "sentencepiece":
        triples += [
            ("scores", "[f32]", vocabulary.scores),
            ("unknown_token_id", "u32", 0),
            ("add_space_prefix", "bool", True),
        ]
    else:
        triples += [("pre", "string", "smollm"), ("merges", "[string]", vocabulary.merges)]
    prefixed = [(f"tokenizer.ggml.{key}", kind, value) for key, kind, value in triples]
    return prefixed + [("tokenizer.chat_template", "string", CHAT_TEMPLATE)]


QWEN2_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def tokenizer_json(vocabulary):
    """What the `tokenizers` library saves for a byte-level vocabulary."""
    split = {
        "type": "Split",
        "pattern": {"Regex": QWEN2_PATTERN},
        "behavior": "Isolated",
        "invert": False,
    }
    level = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": False,
        "use_regex": False,
    }
    added = [
        {
            "id": i,
            "content": vocabulary.tokens[i],
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for i in vocabulary.control
    ]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, level]},
        "post_processor": level,
        "decoder": level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {
                text: i for i, text in enumerate(vocabulary.tokens) if i not in vocabulary.control
            },
            "merges": vocabulary.merges,
        },
    }


def tokenizer_config(vocabulary):
    return {
        "add_bos_token": vocabulary.add_bos,
        "bos_token": None,
        "chat_template": CHAT_TEMPLATE,
        "clean_up_tokenization_spaces": False,
        "eos_token": vocabulary.tokens[vocabulary.eos],
        "model_max_length": 512,
        "tokenizer_class": "Qwen2Tokenizer",
    }
