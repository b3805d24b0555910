"""The reference against numbers that it did not make, and its parts against each other."""

import contextlib
import json
import os
import tempfile
import unittest

import numpy as np

import evaluator
import forward
from checkpoint import load
from make_checkpoint import FAMILIES, Shape, make_folder, make_gguf
from safetensors import read_safetensors
from weight_types import BY_NAME, WEIGHT_TYPES

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.environ.get("STRATA_TEST_DATA", os.path.join(HERE, "../../../shared/data"))
PROMPT = [1, 270, 261, 300, 275, 290, 262, 311]


def data(name):
    path = os.path.join(DATA, name)
    if not os.path.exists(path):
        raise unittest.SkipTest(f"{path} is absent")
    return path


class Goldens(unittest.TestCase):
    def test_stories(self):
        with open(data("stories260K/golden.json")) as file:
            cases = json.load(file)["cases"]
        for form in ("stories260K/stories260K.gguf", "stories260K-hf"):
            model = load(data(form))
            for case in cases:
                with self.subTest(form=form, prompt=case["prompt"]):
                    result = forward.greedy(model, case["prompt_ids"], len(case["greedy_ids"]))
                    self.assertEqual(result.ids, case["greedy_ids"])
                    last = forward.logits(model, case["prompt_ids"])[-1]
                    np.testing.assert_allclose(last, case["last_prompt_logits"], rtol=0, atol=1e-6)

    def test_fixtures(self):
        for name in ("llama-rope-llama3", "mistral-window", "qwen2-bias", "qwen3-qknorm"):
            with self.subTest(name):
                golden = read_safetensors(data(f"fixtures/{name}/golden.safetensors"))
                model, prompt = load(data(f"fixtures/{name}")), golden["prompt_ids"].tolist()
                ours = forward.logits(model, prompt)
                np.testing.assert_allclose(ours, golden["prompt_logits"], rtol=0, atol=2e-5)
                count = len(golden["greedy_ids"])
                result = forward.greedy(model, prompt, count, stop=False)
                self.assertEqual(result.ids, golden["greedy_ids"].tolist())


class WeightTypes(unittest.TestCase):
    def check(self, name, block, expected):
        values = BY_NAME[name].dequantise(bytes(block), [len(expected)])
        np.testing.assert_array_equal(values, np.array(expected, np.float32))

    def test_blocks(self):
        half = [0x00, 0x38]  # 0.5
        one = [0x00, 0x3C]
        nibbles = [i | (15 - i) << 4 for i in range(16)]  # 0..15, then 15..0
        rising, falling = list(range(16)), list(range(15, -1, -1))
        self.check("q4_0", half + nibbles, [0.5 * (n - 8) for n in rising + falling])
        self.check("q4_1", half + one + nibbles, [0.5 * n + 1 for n in rising + falling])
        signed = list(range(-16, 16))
        self.check("q8_0", half + [n & 255 for n in signed], [0.5 * n for n in signed])
        self.check("bf16", [0x80, 0x3F, 0x40, 0xC0], [1, -3])  # 0x3F80, 0xC040
        self.check("f16", half + [0x01, 0x00], [0.5, 2**-24])  # the second is subnormal

    def test_stored_values_are_stable(self):
        values = np.random.default_rng(0).standard_normal((5, 96)).astype(np.float32)
        for weight_type in WEIGHT_TYPES:
            with self.subTest(weight_type.name):
                stored = weight_type.quantise(values)
                self.assertEqual(len(stored), weight_type.byte_size(values.size))
                once = weight_type.dequantise(stored, values.shape)
                # Half of the widest step: 4 bits over a block's range of about +-4.
                np.testing.assert_allclose(once, values, rtol=0, atol=0.3)
                np.testing.assert_array_equal(
                    once, weight_type.dequantise(weight_type.quantise(once), values.shape)
                )

    def test_bf16_rounds_to_even(self):
        between = np.array([1 + 2**-8, 1 + 3 * 2**-8], np.float32)  # halfway between neighbours
        stored = BY_NAME["bf16"].dequantise(BY_NAME["bf16"].quantise(between), [2])
        self.assertEqual(stored.tolist(), [1, 1 + 2**-6])


class Checkpoints(unittest.TestCase):
    def setUp(self):
        folder = contextlib.ExitStack()
        self.addCleanup(folder.close)
        self.folder = folder.enter_context(tempfile.TemporaryDirectory())

    def path(self, name):
        return os.path.join(self.folder, name)

    def test_both_forms_agree(self):
        """GGUF holds a llama's q and k permuted and rotates other pairs; the logits are equal."""
        for family in FAMILIES:
            for scaling in ("default", "linear", "llama3", "yarn"):
                with self.subTest(family=family, scaling=scaling):
                    shape = Shape(family, scaling=scaling, bias=family == "llama")
                    make_gguf(shape, self.path("tiny.gguf"), seed=2)
                    make_folder(
                        shape, self.path("tiny"), seed=2, shards=3, old_rope=scaling == "yarn"
                    )
                    ours = [
                        forward.logits(load(self.path(p)), PROMPT) for p in ("tiny.gguf", "tiny")
                    ]
                    # GGUF keeps epsilon, theta and llama3's divisors in float32.
                    np.testing.assert_allclose(ours[0], ours[1], rtol=0, atol=1e-5)

    def test_same_arguments_same_bytes(self):
        contents = []
        for name in ("a.gguf", "b.gguf"):
            make_gguf(Shape("smollm2"), self.path(name), "q4_1", "q8_0", seed=5)
            with open(self.path(name), "rb") as file:
                contents.append(file.read())
        self.assertEqual(contents[0], contents[1])

    def test_parts_of_the_configuration_matter(self):
        """Each option moves the logits, so a compiler that ignored it would be seen."""
        plain = self.logits(Shape("mistral"))
        for change in (
            {"window": 4},
            {"scaling": "linear"},
            {"scaling": "llama3"},
            {"scaling": "yarn"},
        ):
            with self.subTest(change):
                self.assertGreater(
                    np.abs(self.logits(Shape("mistral", **change)) - plain).max(), 0.1
                )

    def logits(self, shape):
        make_folder(shape, self.path("model"), seed=3)
        return forward.logits(load(self.path("model")), PROMPT)

    def test_reading_in_parts(self):
        make_folder(Shape("qwen2", window=5, layers=3), self.path("model"), seed=4)
        model = load(self.path("model"))
        self.assertEqual([layer.window for layer in model.layers], [0, 5, 5])
        sequence = forward.Sequence(model)
        parts = np.concatenate([sequence.forward(PROMPT[:3]), sequence.forward(PROMPT[3:])])
        np.testing.assert_allclose(parts, forward.logits(model, PROMPT), rtol=0, atol=1e-9)


class Evaluator(unittest.TestCase):
    def test_parallel_block(self):
        """The hand-written model, against the same equations written out over the dense layers."""
        with open(os.path.join(HERE, "../end_to_end/parallel_block.mlir")) as file:
            text = file.read()
        with tempfile.TemporaryDirectory() as folder:
            checkpoint = os.path.join(folder, "tiny.gguf")
            make_gguf(Shape("llama"), checkpoint, "q8_0", seed=4)
            ours, model = evaluator.logits(text, checkpoint, PROMPT), load(checkpoint)
        positions = np.arange(len(PROMPT))
        x = model.embedding[PROMPT]
        for layer in model.layers:
            n = forward.rms_norm(x, layer.attention_norm, model.epsilon)
            q, k, v = (
                p(n).reshape(len(n), -1, model.head_width) for p in (layer.q, layer.k, layer.v)
            )
            q, k = (forward.rotate(part, positions, model.rope) for part in (q, k))
            attended = forward.attend(q, k, v, positions, 0).reshape(len(n), -1)
            x = x + n + layer.output(attended)
            x = x + layer.down(forward.silu(layer.gate(n)) * layer.up(n))
        x = forward.rms_norm(x, model.output_norm, model.epsilon)
        np.testing.assert_allclose(ours, x @ model.head.T, rtol=0, atol=1e-6)


if __name__ == "__main__":
    unittest.main()
