"""A dense decoder (llama, mistral, smollm2, qwen2, qwen3) in float64, written from its equations.

Nothing here is shared with the compiler or the kernels. Speed does not matter: the models that are
compared with this are tiny.

    forward.py CHECKPOINT 1,2,3 [--greedy N]

prints the best logits at the last position, or N greedy ids.
"""

import argparse
from dataclasses import dataclass, field
from typing import Optional

import numpy as np


@dataclass
class Rope:
    """Angles are position * frequency; cosine and sine are multiplied by `magnitude`."""

    frequencies: np.ndarray  # [rotated width / 2]
    interleaved: bool = False  # pairs (2j, 2j+1); else (j, j + width / 2)
    magnitude: float = 1.0


@dataclass
class Projection:
    """y = weight x + bias."""

    weight: np.ndarray  # [out, in]
    bias: Optional[np.ndarray] = None

    def __call__(self, x):
        y = x @ self.weight.T
        return y if self.bias is None else y + self.bias


@dataclass
class Layer:
    attention_norm: np.ndarray
    q: Projection
    k: Projection
    v: Projection
    output: Projection
    ffn_norm: np.ndarray
    gate: Projection
    up: Projection
    down: Projection
    q_norm: Optional[np.ndarray] = None  # [head width], over each head before rope
    k_norm: Optional[np.ndarray] = None
    window: int = 0  # tokens visible, the query's own included; 0: all


@dataclass
class Model:
    embedding: np.ndarray  # [vocabulary, hidden]
    layers: list
    output_norm: np.ndarray
    head: np.ndarray  # [vocabulary, hidden]; the embedding where tied
    heads: int
    kv_heads: int
    head_width: int
    epsilon: float
    rope: Rope
    context: int
    end_of_generation: list = field(default_factory=list)


def rms_norm(x, weight, epsilon):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + epsilon) * weight


def silu(x):
    return x / (1 + np.exp(-x))


def rotate(x, positions, rope):
    """x: [tokens, heads, width]; elements past the rotated width pass unchanged."""
    half = len(rope.frequencies)
    angles = positions[:, None, None] * rope.frequencies
    cosine, sine = np.cos(angles) * rope.magnitude, np.sin(angles) * rope.magnitude
    y = x.copy()
    if rope.interleaved:
        first, second = slice(0, 2 * half, 2), slice(1, 2 * half, 2)
    else:
        first, second = slice(0, half), slice(half, 2 * half)
    u, v = x[..., first], x[..., second]
    y[..., first] = u * cosine - v * sine
    y[..., second] = u * sine + v * cosine
    return y


def attend(q, k, v, positions, window):
    """q: [tokens, heads, width] at `positions`; k, v: [length, kv heads, width] at 0, 1, ..."""
    shared = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, shared, axis=1), np.repeat(v, shared, axis=1)
    scores = np.einsum("thw,shw->hts", q, k) / np.sqrt(q.shape[-1])
    distance = positions[:, None] - np.arange(len(k))[None, :]
    visible = distance >= 0
    if window:
        visible &= distance < window
    scores = np.where(visible, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return np.einsum("hts,shw->thw", weights, v)


class Sequence:
    """One sequence of a model with the keys and values of what it has read."""

    def __init__(self, model):
        self.model = model
        empty = np.zeros((0, model.kv_heads, model.head_width))
        self.keys = [empty] * len(model.layers)
        self.values = [empty] * len(model.layers)

    def forward(self, ids):
        """Reads `ids` and returns the logits [len(ids), vocabulary] after each of them."""
        m = self.model
        start = len(self.keys[0])
        positions = np.arange(start, start + len(ids))
        x = m.embedding[np.asarray(ids)]
        for i, layer in enumerate(m.layers):
            n = rms_norm(x, layer.attention_norm, m.epsilon)
            q = layer.q(n).reshape(-1, m.heads, m.head_width)
            k = layer.k(n).reshape(-1, m.kv_heads, m.head_width)
            v = layer.v(n).reshape(-1, m.kv_heads, m.head_width)
            if layer.q_norm is not None:
                q = rms_norm(q, layer.q_norm, m.epsilon)
                k = rms_norm(k, layer.k_norm, m.epsilon)
            q, k = rotate(q, positions, m.rope), rotate(k, positions, m.rope)
            self.keys[i] = np.concatenate([self.keys[i], k])
            self.values[i] = np.concatenate([self.values[i], v])
            a = attend(q, self.keys[i], self.values[i], positions, layer.window)
            x = x + layer.output(a.reshape(len(ids), -1))
            n = rms_norm(x, layer.ffn_norm, m.epsilon)
            x = x + layer.down(silu(layer.gate(n)) * layer.up(n))
        return rms_norm(x, m.output_norm, m.epsilon) @ m.head.T


def logits(model, ids):
    """Logits [len(ids), vocabulary] at every position."""
    return Sequence(model).forward(ids)


@dataclass
class Greedy:
    ids: list  # an id of the model's end-of-generation set is the last one where it was drawn
    smallest_gap: float  # between the best and the second-best logit of any step


def greedy(model, prompt, count, stop=True):
    """Up to `count` ids after `prompt`; the smaller id wins a tie."""
    sequence, ids, gap = Sequence(model), [], np.inf
    row = sequence.forward(prompt)[-1]
    while True:
        best = int(row.argmax())
        gap = min(gap, row[best] - np.delete(row, best).max())
        ids.append(best)
        if len(ids) == count or (stop and best in model.end_of_generation):
            return Greedy(ids, float(gap))
        row = sequence.forward([best])[-1]


def main():
    from checkpoint import load

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkpoint")
    parser.add_argument("ids", type=lambda text: [int(i) for i in text.split(",")])
    parser.add_argument("--greedy", type=int, metavar="N")
    arguments = parser.parse_args()
    model = load(arguments.checkpoint)
    if arguments.greedy:
        result = greedy(model, arguments.ids, arguments.greedy)
        print(",".join(map(str, result.ids)), f"(smallest gap {result.smallest_gap:.4g})")
        return
    last = logits(model, arguments.ids)[-1]
    for token in np.argsort(-last)[:10]:
        print(f"{token:6} {last[token]:12.6f}")


if __name__ == "__main__":
    main()
