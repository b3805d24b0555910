"""Random layers, compiled and evaluated: what shares memory must not change what is computed.

Fusing an addition into a product, updating rows in place and leaving a layer's result at the start
of the arena are decided op by op, by which values are still needed. Hand-made models have few of
the shapes in which such a decision goes wrong; here values are used twice, late, side by side or not
at all, and every graph's logits are compared with the evaluator's, which shares no memory.

    STRATA_GRAPHS=5000 STRATA_SEED=7 test_random_graphs.py     # by hand
"""

import os
import unittest

import numpy as np

import evaluator
import tiny_vocabulary
from gguf import write_gguf
from tools import FULL, EndToEnd, run

WIDTHS = {"hidden": 24, "inner": 40, "key": 12}  # no multiple of a vector's width among them
VOCABULARY = 320
ROTARY = 4
FUNCTIONS = ("silu", "gelu_tanh", "relu2", "sigmoid")
GATES = ("silu", "gelu_tanh")
TOLERANCE = 1e-3  # of logits with a spread of 4; a value overwritten too early moves them by units


def tensor_type(space):
    return f"tensor<?x{WIDTHS[space]}xf32, #strata.space<{space}>>"


def weights():
    """(symbol, shape) of the pool that all graphs draw from."""
    found = []
    for space, width in WIDTHS.items():
        found += [(f"norm.{space}", (width,)), (f"head_norm.{space}", (width // 2,))]
        for other, columns in WIDTHS.items():
            for variant in "ab":
                found.append((f"{variant}.{other}.{space}", (width, columns)))
        found.append((f"bias.{space}", (width,)))
    found.append(("embedding", (VOCABULARY, WIDTHS["hidden"])))
    found.append(("head", (VOCABULARY, WIDTHS["hidden"])))
    return found


def make_checkpoint(path):
    random = np.random.default_rng(11)
    tensors = []
    for name, shape in weights():
        if name.startswith(("norm", "head_norm")):
            values = random.uniform(0.5, 1.5, shape)
        else:
            gain = {"embedding": 1.0, "head": 4 / np.sqrt(shape[-1])}.get(name)
            values = random.standard_normal(shape) * (gain or 1 / np.sqrt(shape[-1]))
        tensors.append((name, "f32", values.astype(np.float32)))
    metadata = [("general.architecture", "string", "llama")]
    words = tiny_vocabulary.sentencepiece(VOCABULARY)
    write_gguf(path, metadata + tiny_vocabulary.gguf_metadata(words), tensors)


class Body:
    """The ops of one layer, each over values made before it."""

    def __init__(self, random, layer, argument):
        self.random, self.layer = random, layer
        self.values = [(argument, "hidden")] if argument else []
        self.lines, self.used, self.written = [], set(), set()

    def pick(self, space=None):
        """A value: the residual, one that nothing has used yet, or any."""
        found = [value for value in self.values if space in (None, value[1])]
        if not found:
            return None
        unused = [value for value in found if value not in self.used]
        roll = self.random.random()
        value = found[self.random.integers(len(found))]
        if roll < 0.25:
            value = found[0]
        elif roll < 0.7 and unused:
            value = unused[self.random.integers(len(unused))]
        self.used.add(value)
        return value

    def emit(self, space, text):
        name = f"%v{len(self.lines)}"
        self.lines.append(f"{name} = strata.{text}")
        self.values.append((name, space))
        return name, space

    def linear(self, value, space):
        variant = self.random.choice(["a", "b"])
        bias = f" bias @bias.{space}" if self.random.random() < 0.2 else ""
        return self.emit(
            space,
            f"linear {value[0]}, @{variant}.{value[1]}.{space}{bias} : "
            f"{tensor_type(value[1])} -> {tensor_type(space)}",
        )

    def add(self, one, other):
        if self.random.random() < 0.5:
            one, other = other, one
        return self.emit(one[1], f"add {one[0]}, {other[0]} : {tensor_type(one[1])}")

    def norm(self, value):
        name, space = value
        if self.random.random() < 0.3:
            return self.emit(
                space,
                f"rms_norm {name}, @head_norm.{space} {{epsilon = 1.0e-03 : f64, "
                f"heads = 2 : i64}} : {tensor_type(space)}",
            )
        return self.emit(
            space,
            f"rms_norm {name}, @norm.{space} {{epsilon = 1.0e-03 : f64}} : {tensor_type(space)}",
        )

    def random_op(self, positions):
        """Appends one op; `positions`: rows have one, so that rope and attention have a meaning."""
        value = self.pick()
        name, space = value
        kinds = ["linear"] * 4 + ["add"] * 4 + ["norm"] * 3 + ["activation", "gated", "fused"]
        if positions:
            kinds += ["rope", "rope", "attend", "attend"]
        kind = self.random.choice(kinds)
        if kind == "linear":
            self.linear(value, self.random.choice(list(WIDTHS)))
        elif kind == "add":
            self.add(value, self.pick(space))
        elif kind == "fused":  # the pattern that select-kernels looks for
            self.add(self.linear(value, "hidden"), self.pick("hidden"))
        elif kind == "norm":
            self.norm(value)
        elif kind == "activation":
            function = self.random.choice(FUNCTIONS)
            self.emit(space, f"activation {function} {name} : {tensor_type(space)}")
        elif kind == "gated":
            other = self.pick(space)
            function = self.random.choice(GATES)
            self.emit(space, f"gated {function} {name}, {other[0]} : {tensor_type(space)}")
        elif kind == "rope":
            pairs = self.random.choice(["half", "interleaved"])
            self.emit(
                space,
                f"rope {name}, @rope[%step] {pairs} {{heads = 2 : i64, "
                f"rotary_width = {ROTARY} : i64}} : {tensor_type(space)}",
            )
        else:
            self.attend()

    def attend(self):
        """Keys and values are written once a layer, and read as often as one likes."""
        if "kv" not in self.written:
            rows = [self.pick("key") or self.linear(self.pick(), "key") for _ in range(2)]
            key = self.norm(rows[0]) if self.random.random() < 0.5 else rows[0]
            self.lines.append(
                f"strata.kv_write {key[0]}, {rows[1][0]}, @kv[%step] layer {self.layer} : "
                f"{tensor_type('key')}, {tensor_type('key')}"
            )
            self.written.add("kv")
        query = self.norm(self.pick("hidden") or self.linear(self.pick(), "hidden"))
        window = ", window = 3 : i64" if self.random.random() < 0.3 else ""
        self.emit(
            "hidden",
            f"attention {query[0]}, @kv[%step] layer {self.layer} {{query_heads = 2 : i64, "
            f"kv_heads = 1 : i64, scale = 0.3 : f64{window}}} : "
            f"{tensor_type('hidden')} -> {tensor_type('hidden')}",
        )

    def leaving(self):
        """The value that leaves: often a sum over what would else be of no use."""
        value = self.pick("hidden")
        if self.random.random() < 0.3:
            return value
        for unused in [value for value in self.values if value not in self.used]:
            if unused[1] != "hidden":
                unused = self.linear(unused, "hidden")
            self.used |= {unused, value}
            value = self.add(value, unused)
            if self.random.random() < 0.2:
                break
        return value

    def text(self, ends):
        return "".join(f"      {line}\n" for line in [*self.lines, *ends])


def make_graph(seed):
    """(text, ids): a model of random layers and a sequence to read."""
    random = np.random.default_rng(seed)
    hidden = tensor_type("hidden")
    layers = int(random.integers(1, 4))
    stages = int(random.integers(1, 3))
    units = []
    for position in range(layers + 1):
        layer = position - 1
        body = Body(random, layer, "%x" if position else None)
        if not position:
            body.emit("hidden", f"embed @embedding[%step] : {hidden}")
        for _ in range(int(random.integers(0, 13 if position else 4))):
            body.random_op(positions=position > 0)
        leaves = body.leaving()
        kind = f"decoder {layer} (%x = %u{layer})" if position else "embedding 0 ()"
        types = f"({hidden if position else ''}) -> {hidden}"
        ends = [f"strata.yield {leaves[0]} : {hidden}"]
        units.append(
            f"    %u{position} = strata.layer {kind} : {types} {{\n{body.text(ends)}    }}\n"
        )
    body = Body(random, layers, "%x")
    body.values = [body.emit("hidden", f"gather_rows %x[%step] : {hidden} -> {hidden}")]
    for _ in range(int(random.integers(0, 6))):
        body.random_op(positions=False)
    last = body.norm(body.leaving())
    logits = f"tensor<?x{VOCABULARY}xf32, #strata.space<vocabulary>>"
    ends = [f"%logits = strata.logits {last[0]}, @head : {hidden} -> {logits}"]
    sampled = "%logits"
    if random.random() < 0.3:
        ends.append(f"%squashed = strata.activation gelu_tanh %logits : {logits}")
        sampled = "%squashed"
    ends += [f"strata.sample {sampled}[%step] : {logits}", "strata.yield"]
    units.append(
        f"    strata.layer head 0 (%x = %u{layers}) : ({hidden}) -> () {{\n"
        f"{body.text(ends)}    }}\n"
    )
    declared = "".join(
        f'  strata.weight @{name} : tensor<{"x".join(map(str, shape))}xf32> from "{name}" '
        'unit "shared"\n'
        for name, shape in weights()
    )
    rope = f'#strata.rope_frequencies<theta = 1.0e+02, width = {ROTARY}, scaling = "none">'
    attending = [i for i in range(layers) if f"@kv[%step] layer {i} :" in units[i + 1]]
    state = (
        "  strata.state @kv paged block_tokens 4 components [#strata.component<"
        f'"k", "f32", 12>, #strata.component<"v", "f32", 12>] layers {attending}\n'
    )
    devices = ", ".join(['"cpu"'] * stages)
    text = (
        f'strata.model @random attributes {{family = "none", hidden = 24 : i64, '
        f"layers = {layers} : i64, vocabulary = {VOCABULARY} : i64, max_context = 32 : i64, "
        f"max_sequences = {random.integers(1, 4)} : i64, "
        f"max_rows = {random.choice([1, 4, 6])} : i64, "
        f"devices = [{devices}]}} {{\n{declared}"
        f'  strata.weight @rope : tensor<{ROTARY // 2}xf32> computed {rope} unit "shared"\n'
        f"{state if attending else ''}  strata.forward @body(%step) {{\n{''.join(units)}  }}\n}}\n"
    )
    return text, random.integers(3, VOCABULARY, int(random.integers(1, 14))).tolist()


class RandomGraphs(EndToEnd):
    def test_logits(self):
        checkpoint = self.path("pool.gguf")
        make_checkpoint(checkpoint)
        count = int(os.environ.get("STRATA_GRAPHS", 5000 if FULL else 100))
        first = int(os.environ.get("STRATA_SEED", 0))
        for seed in range(first, first + count):
            with self.subTest(seed=seed):
                text, ids = make_graph(seed)
                path, plan = self.path("graph.mlir"), self.path("graph.strata")
                with open(path, "w") as file:
                    file.write(text)
                done = run("strata-compile", path, "--checkpoint", checkpoint, "-o", plan)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assert_close(
                    self.logits(plan, ids), evaluator.logits(text, checkpoint, ids), TOLERANCE
                )


if __name__ == "__main__":
    unittest.main()
