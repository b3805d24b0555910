"""Tiny random models with mixers of every kind: experts, latent experts, Mamba-2, latent attention.

A Hybrid holds its tensors as float32 arrays under this file's own names and computes logits in
float64 from the families' equations (mixers.py, forward.py), not from what a family's definition
builds. hybrid_files.py writes one as a checkpoint.
"""

from dataclasses import dataclass, field

import numpy as np

from forward import attend, rms_norm, rotate, silu, Rope
from mixers import convolve, route, scan, sigmoid
import rope as ropes

EPSILON, THETA = 1e-5, 10000.0


def relu2(x):
    return np.maximum(x, 0) ** 2


@dataclass
class Shape:
    """`kinds` has one letter a mixer: M Mamba-2, * attention, - feed-forward, E experts, and a layer
    of some families is two of them (`pairs`): attention, then feed-forward or experts."""

    family: str  # qwen3_moe, qwen2_moe, mamba2, nemotron_h, deepseek_v3, deepseek_v2, grouped_latent
    kinds: str = ""
    hidden: int = 64
    vocabulary: int = 320
    heads: int = 4
    kv_heads: int = 2
    head_width: int = 16
    ffn: int = 96
    experts: int = 8
    used: int = 2
    inner: int = 32
    latent: int = 0
    latent_groups: int = 0
    shared: int = 0
    groups: int = 1
    groups_used: int = 1
    normalise: bool = True
    scale: float = 1.0
    tie_router: bool = False  # pairs of experts with equal rows: every choice is a tie
    mamba_heads: int = 8
    mamba_width: int = 16
    mamba_groups: int = 2
    states: int = 16
    taps: int = 4
    conv_bias: bool = True
    time_limit: tuple = (0.0, np.inf)
    query_rank: int = 24
    rank: int = 32
    plain: int = 16
    rotary: int = 8
    value: int = 16
    dense_layers: int = 1
    context: int = 512
    tied: bool = False

    def __post_init__(self):
        if not self.kinds:
            self.kinds = {"mamba2": "MMM", "nemotron_h": "ME*E-M"}.get(self.family, "*E*E*E")
        if self.family.startswith("deepseek"):
            letters = list(self.kinds)
            letters[1 : 2 * self.dense_layers : 2] = "-" * self.dense_layers
            self.kinds = "".join(letters)

    @property
    def pairs(self):
        return self.family not in ("mamba2", "nemotron_h")

    @property
    def layers(self):
        return len(self.kinds) // 2 if self.pairs else len(self.kinds)

    @property
    def gated(self):
        return self.family != "nemotron_h"

    @property
    def bias(self):
        return self.family in ("nemotron_h", "deepseek_v3")

    @property
    def is_latent_attention(self):
        return self.family.startswith("deepseek")

    @property
    def mamba_inner(self):
        return self.mamba_heads * self.mamba_width

    @property
    def conv_width(self):
        return self.mamba_inner + 2 * self.mamba_groups * self.states


@dataclass
class Hybrid:
    shape: Shape
    outer: dict = field(default_factory=dict)  # embedding, norm, head
    mixers: list = field(default_factory=list)  # one dict a letter of shape.kinds


def make(shape, seed):
    random = np.random.default_rng(seed)

    def matrix(*size, gain=1.0):
        return (random.standard_normal(size) * gain / np.sqrt(size[-1])).astype(np.float32)

    def vector(width, low=0.5, high=1.5):
        return random.uniform(low, high, width).astype(np.float32)

    def attention(s):
        h, q, kv = s.hidden, s.heads * s.head_width, s.kv_heads * s.head_width
        if not s.is_latent_attention:
            t = {"q": matrix(q, h, gain=1.3), "k": matrix(kv, h, gain=1.3), "v": matrix(kv, h)}
            t["o"] = matrix(h, q)
            if s.family == "qwen3_moe":
                t |= {"q_norm": vector(s.head_width), "k_norm": vector(s.head_width)}
            if s.family == "qwen2_moe":
                t |= {f"{n}_bias": 0.5 * vector(len(t[n]), -1, 1) for n in "qkv"}
            return t
        width = s.heads * (s.plain + s.rotary)
        t = {"kv_a": matrix(s.rank + s.rotary, h), "kv_norm": vector(s.rank)}
        if s.query_rank:
            t |= {"q_a": matrix(s.query_rank, h), "q_norm": vector(s.query_rank)}
            t["q_b"] = matrix(width, s.query_rank, gain=1.5)
        else:
            t["q"] = matrix(width, h, gain=1.5)
        t["kv_b"] = matrix(s.heads * (s.plain + s.value), s.rank, gain=1.5)
        return t | {"o": matrix(h, s.heads * s.value)}

    def mlp(s, inner, prefix=""):
        t = {prefix + "gate": matrix(inner, s.hidden, gain=1.5)} if s.gated else {}
        t[prefix + "up"] = matrix(inner, s.hidden, gain=1.5)
        return t | {prefix + "down": matrix(s.hidden, inner)}

    def experts(s):
        width = s.latent or s.hidden
        t = {"router": matrix(s.experts, s.hidden, gain=2.0)}
        if s.tie_router:
            t["router"][1::2] = t["router"][: len(t["router"]) // 2 * 2 : 2]
        if s.bias:
            t["router_bias"] = vector(s.experts, -0.3, 0.3)
            if s.tie_router:
                t["router_bias"][1::2] = t["router_bias"][: s.experts // 2 * 2 : 2]
        if s.gated:
            t["experts_gate"] = matrix(s.experts, s.inner, width, gain=1.5)
        t["experts_up"] = matrix(s.experts, s.inner, width, gain=1.5)
        t["experts_down"] = matrix(s.experts, width, s.inner)
        groups = max(1, s.latent_groups)
        if s.latent:
            t["latent_down"] = matrix(groups, s.latent, s.hidden)
            t["latent_up"] = matrix(groups, s.hidden, s.latent)
        if s.latent_groups:
            t["labels"] = random.integers(0, groups, s.experts).astype(np.float32)
        if s.shared:
            t |= mlp(s, s.shared, "shared_")
        if s.family in ("qwen2_moe", "grouped_latent"):
            t["shared_weight"] = matrix(1, s.hidden)
        return t

    def mamba(s):
        rows = s.mamba_inner + s.conv_width + s.mamba_heads
        t = {"in": matrix(rows, s.hidden, gain=1.3), "conv": matrix(s.conv_width, s.taps, gain=1.5)}
        if s.conv_bias:
            t["conv_bias"] = 0.3 * vector(s.conv_width, -1, 1)
        t["a_log"] = np.log(vector(s.mamba_heads, 0.3, 4.0)).astype(np.float32)
        t |= {"d": vector(s.mamba_heads), "dt_bias": vector(s.mamba_heads, -3, 0.5)}
        return t | {"inner_norm": vector(s.mamba_inner), "out": matrix(s.hidden, s.mamba_inner)}

    makers = {"*": attention, "E": experts, "M": mamba, "-": lambda s: mlp(s, s.ffn)}
    model = Hybrid(shape)
    model.outer["embedding"] = random.standard_normal((shape.vocabulary, shape.hidden)).astype(
        np.float32
    )
    if shape.tied:
        model.outer["embedding"] *= np.float32(4 / np.sqrt(shape.hidden))
    for kind in shape.kinds:
        model.mixers.append({"norm": vector(shape.hidden)} | makers[kind](shape))
    model.outer["norm"] = vector(shape.hidden)
    if not shape.tied:
        model.outer["head"] = matrix(shape.vocabulary, shape.hidden, gain=4.0)
    return model


class Sequence:
    """One sequence of a Hybrid with all that it keeps."""

    def __init__(self, model):
        self.model, self.shape = model, model.shape
        self.mixers = [{k: v.astype(np.float64) for k, v in m.items()} for m in model.mixers]
        self.outer = {k: v.astype(np.float64) for k, v in model.outer.items()}
        self.kept = [None] * len(self.mixers)
        self.length = 0

    def forward(self, ids):
        """Logits [len(ids), vocabulary] after each of `ids`."""
        self.positions = np.arange(self.length, self.length + len(ids))
        self.length += len(ids)
        x = self.outer["embedding"][np.asarray(ids)]
        kinds = {"*": self._attention, "-": self._mlp, "E": self._experts, "M": self._mamba}
        for i, (kind, t) in enumerate(zip(self.shape.kinds, self.mixers)):
            x = x + kinds[kind](t, rms_norm(x, t["norm"], EPSILON), i)
        head = self.outer.get("head", self.outer["embedding"])
        return rms_norm(x, self.outer["norm"], EPSILON) @ head.T

    def _keep(self, i, *rows):
        before = self.kept[i] or [r[:0] for r in rows]
        self.kept[i] = [np.concatenate(pair) for pair in zip(before, rows)]
        return self.kept[i]

    def _attention(self, t, n, i):
        s = self.shape
        if s.is_latent_attention:
            return self._latent_attention(t, n, i)
        q, k, v = (n @ t[name].T + t.get(f"{name}_bias", 0.0) for name in "qkv")
        q, k, v = (p.reshape(len(n), -1, s.head_width) for p in (q, k, v))
        if "q_norm" in t:
            q, k = rms_norm(q, t["q_norm"], EPSILON), rms_norm(k, t["k_norm"], EPSILON)
        if s.family != "nemotron_h":
            turn = Rope(ropes.plain(THETA, s.head_width))
            q, k = rotate(q, self.positions, turn), rotate(k, self.positions, turn)
        k, v = self._keep(i, k, v)
        return attend(q, k, v, self.positions, 0).reshape(len(n), -1) @ t["o"].T

    def _latent_attention(self, t, n, i):
        """In its expanded form: keys and values of every head are made from what is kept."""
        s, turn = self.shape, Rope(ropes.plain(THETA, self.shape.rotary), interleaved=True)
        if "q" in t:
            q = n @ t["q"].T
        else:
            q = rms_norm(n @ t["q_a"].T, t["q_norm"], EPSILON) @ t["q_b"].T
        q = q.reshape(len(n), s.heads, -1)
        q[..., s.plain :] = rotate(q[..., s.plain :], self.positions, turn)
        kv = n @ t["kv_a"].T
        c = rms_norm(kv[:, : s.rank], t["kv_norm"], EPSILON)
        r = rotate(kv[:, None, s.rank :], self.positions, turn)
        c, r = self._keep(i, c, r)
        kv = (c @ t["kv_b"].T).reshape(len(c), s.heads, -1)
        k = np.concatenate([kv[..., : s.plain], np.repeat(r, s.heads, axis=1)], axis=2)
        a = attend(q, k, kv[..., s.plain :], self.positions, 0)
        return a.reshape(len(n), -1) @ t["o"].T

    def _mlp(self, t, n, i, prefix=""):
        up = n @ t[prefix + "up"].T
        inner = silu(n @ t[prefix + "gate"].T) * up if self.shape.gated else relu2(up)
        return inner @ t[prefix + "down"].T

    def _experts(self, t, n, i):
        s = self.shape
        size = s.experts // s.groups
        ids, weights = route(
            n @ t["router"].T,
            t.get("router_bias", 0.0),
            "sigmoid" if s.bias else "softmax",
            s.used,
            s.groups,
            s.groups_used,
            min(2, size) if s.bias else 1,
            s.normalise,
            2.0**-14 if s.latent_groups else 1e-20,
            s.scale,
        )
        y = np.zeros_like(n)
        for row in range(len(n)):
            for e, w in zip(ids[row], weights[row]):
                g = int(t["labels"][e]) if "labels" in t else 0
                x = t["latent_down"][g] @ n[row] if s.latent else n[row]
                up = t["experts_up"][e] @ x
                inner = silu(t["experts_gate"][e] @ x) * up if s.gated else relu2(up)
                made = t["experts_down"][e] @ inner
                y[row] += w * (t["latent_up"][g] @ made if s.latent else made)
        if s.shared:
            shared = self._mlp(t, n, i, "shared_")
            y += sigmoid(n @ t["shared_weight"].T) * shared if "shared_weight" in t else shared
        return y

    def _mamba(self, t, n, i):
        s, inner = self.shape, self.shape.mamba_inner
        u = n @ t["in"].T
        z, c, dt = np.split(u, [inner, inner + s.conv_width], axis=1)
        rows, state = self.kept[i] or (
            np.zeros((s.taps - 1, s.conv_width)),
            np.zeros((s.mamba_heads, s.mamba_width, s.states)),
        )
        c, rows = convolve(c, rows, t["conv"], t.get("conv_bias", 0.0))
        y, state = scan(
            silu(c), dt, state, -np.exp(t["a_log"]), t["d"], t["dt_bias"], s.mamba_groups, s.time_limit
        )
        self.kept[i] = rows, state
        groups = s.mamba_groups if s.family == "nemotron_h" else self.norm_groups
        y = (y * silu(z)).reshape(len(n), groups, -1)
        y = rms_norm(y, t["inner_norm"].reshape(groups, -1), EPSILON)
        return y.reshape(len(n), -1) @ t["out"].T

    norm_groups = 1  # mamba2: of a Hugging Face folder; GGUF files norm each group


def logits(model, ids, norm_groups=1):
    sequence = Sequence(model)
    sequence.norm_groups = norm_groups
    return sequence.forward(ids)


def greedy(model, prompt, count, norm_groups=1):
    """(ids, the smallest gap between the two best logits)"""
    sequence, ids, gap = Sequence(model), [], np.inf
    sequence.norm_groups = norm_groups
    row = sequence.forward(prompt)[-1]
    while True:
        best = int(row.argmax())
        gap = min(gap, row[best] - np.delete(row, best).max())
        ids.append(best)
        if len(ids) == count:
            return ids, float(gap)
        row = sequence.forward([best])[-1]
