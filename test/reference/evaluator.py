"""Evaluates a model-level strata.model in float64, op by op, with the tensors of its checkpoint.

    evaluator.py MODEL.mlir CHECKPOINT 1,2,3 [--greedy N]

The meaning of each op is taken from its description in `ir/`; the equations of attention, rope and
norms are those of forward.py. Every row is a head row, so logits come out at every position.
"""

import argparse
import os
import re

import numpy as np

import rope
from forward import Greedy, Rope, attend, rms_norm, rotate, silu
from gguf import GgufFile
from mixers import convolve, route, scan, sigmoid
from model_text import parse_model
from safetensors import read_folder

FUNCTIONS = {
    "silu": silu,
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "relu2": lambda x: np.maximum(x, 0) ** 2,
    "sigmoid": sigmoid,
}
EXPERT_WORDS = ("gate", "up", "down", "slots", "labels")  # of strata.experts, each with a symbol


def _read_tensor(checkpoint):
    """A function from a tensor's name to its values."""
    if not os.path.isdir(checkpoint):
        return GgufFile(checkpoint).tensor
    return read_folder(checkpoint).__getitem__


def _frequencies(attribute, divisors):
    """The values of `#strata.rope_frequencies<...>`, by divisors where the checkpoint has them."""
    given = {k: v.strip('"') for k, v in re.findall(r'(\w+) = ("[^"]*"|[^,>\s]+)', attribute)}
    number = {k: float(v) for k, v in given.items() if k != "scaling"}
    theta, width, scaling = number["theta"], int(number["width"]), given["scaling"]
    if divisors is not None:
        return rope.plain(theta, width) / divisors
    if scaling == "none":
        return rope.plain(theta, width)
    factor, context = number.get("factor", 1.0), number.get("original_context", 0.0)
    if scaling == "linear":
        return rope.linear(theta, width, factor)
    if scaling == "llama3":
        low, high = number.get("low_frequency_factor", 1.0), number.get(
            "high_frequency_factor", 1.0
        )
        return rope.llama3(theta, width, factor, low, high, context)
    if scaling == "yarn":
        fast, slow = number.get("beta_fast", 32.0), number.get("beta_slow", 1.0)
        return rope.yarn(theta, width, factor, context, fast, slow)[0]
    raise ValueError(f"rope scaling {scaling} has no equation here")


class Evaluator:
    """One sequence of the model. `forward` may be called again to read on."""

    def __init__(self, text, checkpoint):
        model = parse_model(text)
        read = _read_tensor(checkpoint)
        self.weights, self.shapes, self.states = {}, {}, {}
        for op in model.region:
            if op.name == "weight":
                self.weights[op.symbols[0]] = self._weight(op, read)
            elif op.name == "state":
                self.states[op.symbols[0]] = {}
        forwards = [op for op in model.region if op.name == "forward"]
        if len(forwards) != 1:
            raise ValueError(
                f"the model has {len(forwards)} forwards; at the model level it has one"
            )
        self.forward_op = forwards[0]
        self.length = 0

    @staticmethod
    def _weight(op, read):
        shape = tuple(
            int(n)
            for n in re.match(r"tensor<((?:\d+x)+)", op.keyed["type"]).group(1).split("x")[:-1]
        )
        computed = op.keyed.get("computed")
        if computed and "identity" in computed:
            return np.arange(shape[0], dtype=np.float64)
        source = op.keyed.get("from")
        names = [source] if source else []
        if "stack" in op.words:
            names = [source.replace("*", str(i)) for i in range(int(op.after("stack")))]
        stored = [read(name).astype(np.float64) for name in names]
        if computed:
            return _frequencies(computed, stored[0] if stored else None)
        join = int(op.after("join")) if "join" in op.words else 1
        if "layers" in op.keyed:  # a table: each layer is joined for itself
            layers = stored[0].reshape(shape[0], join, *shape[1:-1], shape[-1] // join)
            return np.moveaxis(layers, 1, -2).reshape(shape)
        if "part" in op.keyed:
            first, of = (int(n) for n in re.findall(r"\d+", op.keyed["part"]))
            width, taken = shape[-1] // join, shape[-2] * join
            groups = [s.reshape(-1, of, width)[:, first : first + taken] for s in stored]
            stored = [g.reshape(-1, width) for g in groups]
        if join > 1:
            stored = [s.reshape(join, shape[0], -1).swapaxes(0, 1) for s in stored]
            stored = [np.ascontiguousarray(s).reshape(shape) for s in stored]
        columns = shape[-1] if len(shape) > 1 else None
        for name, values in zip(names, stored):
            elements = np.prod(shape) // max(1, len(stored))
            if values.size != elements or (columns and values.shape[-1] != columns):
                raise ValueError(f"weight @{op.symbols[0]} is {shape} but tensor {name} is {values.shape}")
        weight = np.concatenate([s.reshape(-1) for s in stored]).reshape(shape)
        if "map" in op.keyed:
            if op.keyed["map"] != "neg_exp":
                raise ValueError(f"map {op.keyed['map']} has no equation here")
            weight = -np.exp(weight)
        return weight

    def forward(self, ids):
        """Logits [len(ids), vocabulary] after each id."""
        self.ids = np.asarray(ids)
        self.positions = np.arange(self.length, self.length + len(ids))
        self.length += len(ids)
        self.logits = None
        self._run(self.forward_op.region, {})
        return self.logits

    def _run(self, operations, outer):
        values = dict(outer)
        for op in operations:
            if op.name == "yield":
                return [values[name] for name in op.operands]
            inputs = [values[name] for name in op.operands if name in values]  # all but the step
            results = getattr(self, "_" + op.name)(op, inputs)
            values.update(zip(op.results, results if isinstance(results, list) else [results]))
        return []

    def _layer(self, op, inputs):
        return self._run(op.region, dict(zip(op.arguments, inputs)))

    def _embed(self, op, inputs):
        return self.weights[op.symbols[0]][self.ids] * op.attributes.get("scale", 1.0)

    def _rms_norm(self, op, inputs):
        (x,), heads = inputs, op.attributes.get("heads", 1)
        parts = x.reshape(len(x), heads, -1)
        weight = self.weights[op.symbols[0]]
        if "grouped" in op.attributes:
            weight = weight.reshape(heads, -1)
        normed = rms_norm(parts, weight, op.attributes["epsilon"])
        return normed.reshape(x.shape)

    def _linear(self, op, inputs):
        y = inputs[0] @ self.weights[op.symbols[0]].T
        return y + self.weights[op.symbols[1]] if len(op.symbols) > 1 else y

    def _logits(self, op, inputs):
        self.logits = self._linear(op, inputs)
        return self.logits

    def _rope(self, op, inputs):
        (x,), heads = inputs, op.attributes["heads"]
        frequencies = self.weights[op.symbols[0]]
        if 2 * len(frequencies) != op.attributes["rotary_width"]:
            raise ValueError(
                f"rope of width {op.attributes['rotary_width']} by {len(frequencies)} frequencies"
            )
        turn = Rope(frequencies, "interleaved" in op.words, op.attributes.get("magnitude", 1.0))
        y, first = x.reshape(len(x), heads, -1).copy(), op.attributes.get("first", 0)
        y[..., first:] = rotate(y[..., first:], self.positions, turn)
        return y.reshape(x.shape)

    def _head_linear(self, op, inputs):
        weight, tail = self.weights[op.symbols[0]], op.attributes.get("tail", 0)
        if "transposed" in op.attributes:
            weight = weight.swapaxes(1, 2)
        x = inputs[0].reshape(len(inputs[0]), len(weight), -1)
        kept = x.shape[2] - tail
        y = np.concatenate([np.einsum("hoi,thi->tho", weight, x[..., :kept]), x[..., kept:]], axis=2)
        return y.reshape(len(y), -1)

    def _kv_write(self, op, inputs):
        state, layer = self.states[op.symbols[0]], op.after("layer")
        before = state.get(layer, [np.zeros((0, x.shape[1])) for x in inputs])
        state[layer] = [np.concatenate(pair) for pair in zip(before, inputs)]
        return []

    def _attention(self, op, inputs):
        (q,), a = inputs, op.attributes
        keys, values = self.states[op.symbols[0]][op.after("layer")]
        q = q.reshape(len(q), a["query_heads"], -1)
        keys = keys.reshape(len(keys), a["kv_heads"], -1)
        values = values.reshape(len(values), a["kv_heads"], -1)
        if "latent" in a:
            keys = np.concatenate([values, keys], axis=-1)
        q = q * a["scale"] * np.sqrt(q.shape[-1])  # attend() divides by that root
        return attend(q, keys, values, self.positions, a.get("window", 0)).reshape(len(q), -1)

    def _row_gated(self, op, inputs):
        gate, x = inputs
        return FUNCTIONS[op.words[0]](gate) * x

    def _router(self, op, inputs):
        a = op.attributes
        bias = self.weights[op.symbols[0]] if op.symbols else 0.0
        ids, weights = route(
            inputs[0],
            bias,
            op.words[0],
            a["used"],
            a.get("groups", 1),
            a.get("groups_used", 1),
            a.get("group_top", 1),
            "normalise" in a,
            a.get("least_sum", 1e-20),
            a.get("scale", 1.0),
        )
        return np.concatenate([ids.astype(np.float64), weights], axis=1)

    def _experts(self, op, inputs):
        x, routing = inputs
        at = {w: self.weights[s] for w, s in zip([w for w in op.words if w in EXPERT_WORDS], op.symbols)}
        function, used = FUNCTIONS[op.words[0]], routing.shape[1] // 2
        width = at["up"].shape[2]
        y = np.zeros_like(x)
        for row in range(len(x)):
            for expert, weight in zip(routing[row, :used].astype(int), routing[row, used:]):
                slot = int(at["slots"][expert])
                group = int(at["labels"][expert]) * width if "labels" in at else 0
                part = slice(group, group + width)
                up = at["up"][slot] @ x[row, part]
                inner = function(at["gate"][slot] @ x[row, part]) * up if "gate" in at else function(up)
                y[row, part] += weight * (at["down"][slot] @ inner)
        return y

    def _latent_down(self, op, inputs):
        weight = self.weights[op.symbols[0]]
        if "layer" in op.words:
            weight = weight[int(op.after("layer"))]
        return inputs[0] @ weight.T

    _latent_up = _latent_down

    def _conv(self, op, inputs):
        (x,), weight, symbols = inputs, self.weights[op.symbols[0]], op.symbols
        bias = self.weights[symbols[1]] if "bias" in op.words else 0.0
        state, key = self.states[symbols[-1]], ("conv", op.after("layer"))
        before = state.get(key, np.zeros((weight.shape[1] - 1, x.shape[1])))
        y, state[key] = convolve(x, before, weight, bias)
        return y

    def _ssm_scan(self, op, inputs):
        x, dt = inputs
        a, skip, dt_bias = (self.weights[name] for name in op.symbols[:3])
        state, key, given = self.states[op.symbols[3]], ("ssm", op.after("layer")), op.attributes
        heads, groups, width = given["heads"], given["groups"], given["state_width"]
        inner = x.shape[1] - 2 * groups * width
        before = state.get(key, np.zeros((heads, inner // heads, width)))
        limits = given.get("least_dt", 0.0), given.get("most_dt", np.inf)
        y, state[key] = scan(x, dt, before, a, skip, dt_bias, groups, limits)
        return y

    def _gated(self, op, inputs):
        gate, up = inputs
        return FUNCTIONS[op.words[0]](gate) * up

    def _activation(self, op, inputs):
        return FUNCTIONS[op.words[0]](inputs[0])

    def _add(self, op, inputs):
        return inputs[0] + inputs[1]

    def _gather_rows(self, op, inputs):
        return inputs[0]

    def _sample(self, op, inputs):
        return []


def logits(text, checkpoint, ids):
    """Logits [len(ids), vocabulary] at every position."""
    return Evaluator(text, checkpoint).forward(ids)


def greedy(text, checkpoint, prompt, count):
    """`count` ids after `prompt`; the smaller id wins a tie."""
    evaluator, ids, gap = Evaluator(text, checkpoint), [], np.inf
    row = evaluator.forward(prompt)[-1]
    while True:
        best = int(row.argmax())
        gap = min(gap, row[best] - np.delete(row, best).max())
        ids.append(best)
        if len(ids) == count:
            return Greedy(ids, float(gap))
        row = evaluator.forward([best])[-1]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("checkpoint")
    parser.add_argument("ids", type=lambda text: [int(i) for i in text.split(",")])
    parser.add_argument("--greedy", type=int, metavar="N")
    given = parser.parse_args()
    with open(given.model) as file:
        text = file.read()
    if given.greedy:
        print(",".join(map(str, greedy(text, given.checkpoint, given.ids, given.greedy).ids)))
        return
    last = logits(text, given.checkpoint, given.ids)[-1]
    for token in np.argsort(-last)[:10]:
        print(f"{token:6} {last[token]:12.6f}")


if __name__ == "__main__":
    main()
