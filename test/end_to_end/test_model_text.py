"""The IR is the compiler: what the text says is what runs, whoever wrote the text."""

import os
import re
import unittest

import numpy as np

import evaluator
import forward
from checkpoint import load
from make_checkpoint import FAMILIES, Shape, make_folder, make_gguf
from tools import HERE, EndToEnd, check

IDS = np.random.default_rng(3).integers(3, 320, 40).tolist()
OPTIONS = ("--kv", "f32", "--max-context", 64)
TOLERANCE = 2e-4


class ModelText(EndToEnd):
    def text_of(self, checkpoint):
        return check("strata-compile", checkpoint, "--emit=model", *OPTIONS)

    def plan_of(self, text, checkpoint):
        """The plan of a model-level text over a checkpoint's tensors."""
        path = self.path("model.mlir")
        with open(path, "w") as file:
            file.write(text)
        plan = self.path("text.strata")
        check("strata-compile", path, "--checkpoint", checkpoint, "-o", plan)
        return plan

    def checkpoint(self, family="llama", **shape):
        path = self.path(f"{family}.gguf")
        make_gguf(Shape(family, **shape), path, "q8_0", seed=4)
        return path

    def test_families_say_the_equations(self):
        """What a family's definition builds, evaluated, is what the reference computes: this looks
        at the definition alone, without kernels."""
        for family in FAMILIES:
            for scaling in ("default", "llama3", "yarn"):
                shape = Shape(family, scaling=scaling, layers=3)
                gguf, folder = self.path("model.gguf"), self.path("model")
                make_gguf(shape, gguf, seed=5)
                make_folder(shape, folder, seed=5)
                for path in (gguf, folder):
                    with self.subTest(family=family, scaling=scaling, path=os.path.basename(path)):
                        found = evaluator.logits(self.text_of(path), path, IDS)
                        self.assert_close(found, forward.logits(load(path), IDS), 1e-6)

    def test_windows_and_biases(self):
        for name, shape in (
            ("mistral", Shape("mistral", window=6)),
            ("qwen2", Shape("qwen2", window=6, layers=3)),
            ("llama", Shape("llama", bias=True)),
        ):
            with self.subTest(name):
                path = self.path(f"{name}-options")
                make_folder(shape, path, seed=5)
                found = evaluator.logits(self.text_of(path), path, IDS)
                self.assert_close(found, forward.logits(load(path), IDS), 1e-6)

    def test_text_makes_the_same_plan(self):
        checkpoint = self.checkpoint()
        direct = self.plan(checkpoint, *OPTIONS)
        through = self.plan_of(self.text_of(checkpoint), checkpoint)
        with open(direct, "rb") as one, open(through, "rb") as other:
            self.assertEqual(one.read(), other.read())

    def test_edited_ops(self):
        """Each edit moves the logits, to where the evaluator says."""
        checkpoint = self.checkpoint()
        text = self.text_of(checkpoint)
        before = self.logits(self.plan_of(text, checkpoint), IDS)
        for name, pattern, replacement in (
            ("function", r"\bsilu\b", "gelu_tanh"),
            ("pairs", r"\binterleaved\b", "half"),
            ("epsilon", r"epsilon = [-+.\deE]+", "epsilon = 5.0e-01"),
            ("scale", r"\bscale = [-+.\deE]+", "scale = 6.0e-01"),
            ("base", r"theta = [-+.\deE]+", "theta = 1.0e+02"),
            ("window", r"kv_heads = 2 : i64,", "kv_heads = 2 : i64, window = 5 : i64,"),
        ):
            with self.subTest(name):
                edited, count = re.subn(pattern, replacement, text)
                self.assertGreater(count, 0, f"nothing to edit in\n{text}")
                found = self.logits(self.plan_of(edited, checkpoint), IDS)
                self.assert_close(found, evaluator.logits(edited, checkpoint, IDS), TOLERANCE)
                self.assertGreater(np.abs(found - before).max(), 100 * TOLERANCE)

    def test_a_topology_that_no_family_has(self):
        checkpoint = self.checkpoint()
        with open(os.path.join(HERE, "parallel_block.mlir")) as file:
            text = file.read()
        plan = self.plan_of(text, checkpoint)
        self.assert_close(
            self.logits(plan, IDS), evaluator.logits(text, checkpoint, IDS), TOLERANCE
        )
        expected = evaluator.greedy(text, checkpoint, IDS, 16)
        self.assertGreater(expected.smallest_gap, 10 * TOLERANCE)
        request = {"prompt": IDS, "max_tokens": 16, "ignore_eos": True}
        self.assertEqual(self.replay(plan, [request])[0]["ids"], expected.ids)


if __name__ == "__main__":
    unittest.main()
