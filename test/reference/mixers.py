"""Routing, convolution and state-space scan in float64, from their equations, row by row."""

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def best(values, count):
    """Indices of the `count` largest, ties to the lower index, in order of falling value."""
    return np.argsort(-values, kind="stable")[:count]


def route(
    logits,
    bias,
    gate,
    used,
    groups=1,
    groups_used=1,
    group_top=1,
    normalise=False,
    least_sum=1e-20,
    scale=1.0,
):
    """(expert numbers [rows, used], weights [rows, used])"""
    probabilities = softmax(logits) if gate == "softmax" else sigmoid(logits)
    ids, weights = [], []
    for p in probabilities:
        s = p + bias
        if groups > 1:
            parts = s.reshape(groups, -1)
            score = np.array([part[best(part, group_top)].sum() for part in parts])
            kept = np.full(s.shape, -np.inf).reshape(groups, -1)
            for g in best(score, groups_used):
                kept[g] = parts[g]
            s = kept.reshape(-1)
        chosen = best(s, used)
        w = p[chosen]
        if normalise:
            w = w / max(w.sum(), least_sum)
        ids.append(chosen)
        weights.append(w * scale)
    return np.array(ids), np.array(weights)


def convolve(x, before, weight, bias):
    """Causal depthwise convolution: x [rows, channels], `before` the taps - 1 rows ahead of it,
    weight [channels, taps]. Returns the rows and what is to stand before the next."""
    taps = weight.shape[1]
    rows = np.concatenate([before, x])
    y = np.stack([(rows[t : t + taps].T * weight).sum(axis=1) + bias for t in range(len(x))])
    return y, rows[len(rows) - (taps - 1) :]


def scan(x, dt, state, a, skip, dt_bias, groups, limits=(0.0, np.inf)):
    """Mamba-2: x [rows, inner + 2 groups width] is x, B and C; state [heads, head width, width]."""
    heads, head_width, width = state.shape
    inner, y, state = heads * head_width, [], state.copy()
    for row, raw in zip(x, dt):
        d = np.clip(np.log1p(np.exp(raw + dt_bias)), *limits)
        v = row[:inner].reshape(heads, head_width)
        b, c = (
            np.repeat(part.reshape(groups, width), heads // groups, axis=0)
            for part in (row[inner : inner + groups * width], row[inner + groups * width :])
        )
        decay = np.exp(d * a)[:, None, None]
        state = decay * state + (d[:, None] * v)[:, :, None] * b[:, None, :]
        y.append(((state * c[:, None, :]).sum(axis=2) + skip[:, None] * v).reshape(-1))
    return np.array(y), state
