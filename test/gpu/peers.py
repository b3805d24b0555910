#!/usr/bin/env python3
"""Decoding by compiled PyTorch, to be timed beside Strata on the same GPU.

A llama of random BF16 weights with a static cache, whose layer, of the same shapes for all layers, is
compiled once with max-autotune; a step, which feeds its ids and its position to the next, is one CUDA
graph. Reads lines from standard input and answers each with the seconds of one step, over all steps
of a run; ends with its input.
"""

import argparse
import json
import sys
import time

import torch
import torch.nn.functional as F


class Llama:
    """Sizes as in config.json. All sequences are at one position."""

    def __init__(self, shape, batch, length, dtype, device, seed=1):
        generator = torch.Generator(device).manual_seed(seed)
        self.layers, self.hidden = shape["num_hidden_layers"], shape["hidden_size"]
        self.heads, self.kv_heads = shape["num_attention_heads"], shape["num_key_value_heads"]
        self.width = self.hidden // self.heads
        self.epsilon = shape["rms_norm_eps"]

        def weight(rows, columns):
            numbers = torch.randn(rows, columns, generator=generator, device=device, dtype=torch.float32)
            return (numbers / columns**0.5).to(dtype)

        def norm():
            return torch.ones(self.hidden, device=device, dtype=dtype)

        inner, kv = shape["intermediate_size"], self.kv_heads * self.width
        self.table = weight(shape["vocab_size"], self.hidden)
        self.head = weight(shape["vocab_size"], self.hidden)
        self.last_norm = norm()
        self.weights = [
            (norm(), weight(self.hidden + 2 * kv, self.hidden), weight(self.hidden, self.hidden),
             norm(), weight(2 * inner, self.hidden), weight(self.hidden, inner))
            for _ in range(self.layers)
        ]
        cache = (batch, self.kv_heads, length, self.width)
        self.keys = [torch.zeros(cache, device=device, dtype=dtype) for _ in range(self.layers)]
        self.values = [torch.zeros(cache, device=device, dtype=dtype) for _ in range(self.layers)]
        exponents = torch.arange(0, self.width, 2, device=device, dtype=torch.float32) / self.width
        angles = torch.outer(torch.arange(length, device=device, dtype=torch.float32),
                             shape["rope_theta"] ** -exponents)
        self.cosines, self.sines = angles.cos(), angles.sin()
        self.places = torch.arange(length, device=device)

    def normalise(self, x, gain):
        return F.rms_norm(x, (self.hidden,), gain, self.epsilon)

    def rotate(self, x, cosine, sine):
        first, second = x.float().chunk(2, dim=-1)
        return torch.cat((first * cosine - second * sine, first * sine + second * cosine),
                         dim=-1).to(x.dtype)

    def layer(self, x, position, cosine, sine, seen, keys, values, norm, qkv, output, second_norm,
              gate_up, down):
        """The residual stream x [batch, hidden] behind a layer; writes into its cache."""
        batch = x.shape[0]
        query, key, value = F.linear(self.normalise(x, norm), qkv).split(
            (self.hidden, self.kv_heads * self.width, self.kv_heads * self.width), dim=-1)
        query = self.rotate(query.view(batch, self.heads, self.width), cosine, sine)
        key = self.rotate(key.view(batch, self.kv_heads, self.width), cosine, sine)
        keys.index_copy_(2, position, key[:, :, None])
        values.index_copy_(2, position, value.view(batch, self.kv_heads, 1, self.width))
        # The heads of a group are rows of one query: with a mask, few kernels take groups of heads.
        query = query.view(batch, self.kv_heads, self.heads // self.kv_heads, self.width)
        mixed = F.scaled_dot_product_attention(query, keys, values, attn_mask=seen)
        x = x + F.linear(mixed.reshape(batch, self.hidden), output)
        gate, up = F.linear(self.normalise(x, second_norm), gate_up).chunk(2, dim=-1)
        return x + F.linear(F.silu(gate) * up, down)

    def begin(self, ids, position):
        """What all layers are given."""
        seen = (self.places <= position)[None, None, None, :]
        return self.table[ids], self.cosines[position], self.sines[position], seen

    def end(self, x):
        return F.linear(self.normalise(x, self.last_norm), self.head)

    def compile(self):
        how = {"mode": "max-autotune-no-cudagraphs", "fullgraph": True}
        self.layer, self.begin, self.end = (
            torch.compile(part, **how) for part in (self.layer, self.begin, self.end))

    def step(self, ids, position):
        """Logits [batch, vocabulary] of the tokens `ids` [batch] at `position` [1]."""
        x, cosine, sine, seen = self.begin(ids, position)
        for keys, values, weights in zip(self.keys, self.values, self.weights):
            x = self.layer(x, position, cosine, sine, seen, keys, values, *weights)
        return self.end(x)

    def whole(self, ids):
        """The same of all tokens `ids` [tokens] of one sequence at once, without a cache."""
        count = len(ids)
        x = self.table[ids]
        cosine, sine = self.cosines[:count, None], self.sines[:count, None]
        group = self.heads // self.kv_heads
        for norm, qkv, output, second_norm, gate_up, down in self.weights:
            parts = F.linear(self.normalise(x, norm), qkv).view(count, -1, self.width)
            query = self.rotate(parts[:, : self.heads], cosine, sine)
            key = self.rotate(parts[:, self.heads : self.heads + self.kv_heads], cosine, sine)
            key = key.repeat_interleave(group, dim=1)
            value = parts[:, self.heads + self.kv_heads :].repeat_interleave(group, dim=1)
            scores = torch.einsum("qhd,khd->hqk", query, key) / self.width**0.5
            scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), float("-inf"))
            mixed = torch.einsum("hqk,khd->qhd", scores.softmax(-1), value)
            x = x + F.linear(mixed.reshape(count, self.hidden), output)
            gate, up = F.linear(self.normalise(x, second_norm), gate_up).chunk(2, dim=-1)
            x = x + F.linear(F.silu(gate) * up, down)
        return F.linear(self.normalise(x, self.last_norm), self.head)


TINY = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
        "intermediate_size": 96, "vocab_size": 50, "rms_norm_eps": 1e-5, "rope_theta": 10000.0}


def check(device):
    """That a small one decodes what it computes without a cache."""
    tiny = Llama(TINY, batch=1, length=12, dtype=torch.float32, device=device)
    ids = torch.arange(1, 11, device=device)
    wanted = tiny.whole(ids)
    for i in range(len(ids)):
        found = tiny.step(ids[i : i + 1], torch.tensor([i], device=device))[0]
        difference = float((found - wanted[i]).abs().max())
        if not difference < 1e-3:
            raise AssertionError(f"token {i} differs by {difference:.1e} from a forward without a cache")


class Decoder:
    """A compiled step as a graph: `run` decodes from `context` on."""

    def __init__(self, shape, batch, context, tokens):
        device = torch.device("cuda")
        self.context, self.tokens = context, tokens
        model = Llama(shape, batch, context + tokens + 8, torch.bfloat16, device)
        self.ids = torch.ones(batch, device=device, dtype=torch.int64)
        self.position = torch.zeros(1, device=device, dtype=torch.int64)

        model.compile()

        def advance():
            self.ids.copy_(model.step(self.ids, self.position).argmax(-1))
            self.position.add_(1)

        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(3):
                advance()
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            advance()

    def run(self):
        """Seconds a step, as the host sees them."""
        self.position.fill_(self.context)
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(self.tokens):
            self.graph.replay()
        torch.cuda.synchronize()
        return (time.perf_counter() - begin) / self.tokens


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("config", help="config.json of a llama")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--check", action="store_true", help="only check the model, on the CPU")
    options = parser.parse_args()
    with torch.no_grad():
        check("cpu")
        if options.check:
            return
        with open(options.config) as file:
            shape = json.load(file)
        decoder = Decoder(shape, options.batch, options.context, options.tokens)
        decoder.run()
        print(json.dumps({"torch": torch.__version__}), flush=True)
        for _ in sys.stdin:
            print(json.dumps({"seconds": decoder.run()}), flush=True)


if __name__ == "__main__":
    main()
