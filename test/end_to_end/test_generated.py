"""Tiny random checkpoints of every family, form and weight type against the float64 reference.

These need nothing from outside the repository.
"""

import unittest

import numpy as np

import forward
from checkpoint import load
from make_checkpoint import FAMILIES, Shape, make_folder, make_gguf
from tools import FULL, EndToEnd

PROMPT_LENGTH, GENERATED = 37, 16
TOLERANCE = 2e-4
HEALTHY_GAP = 20 * TOLERANCE  # between the two best logits, or a greedy choice shows nothing


def prompt_with_healthy_gaps(model):
    """Random ids whose greedy continuation is never a near tie, and that continuation."""
    for seed in range(100):
        random = np.random.default_rng(seed)
        prompt = random.integers(3, len(model.head), PROMPT_LENGTH).tolist()
        result = forward.greedy(model, prompt, GENERATED)
        if result.smallest_gap > HEALTHY_GAP:
            return prompt, result.ids
    raise AssertionError("no prompt of a hundred has healthy gaps: is the model degenerate?")


class Generated(EndToEnd):
    def check(self, path, *options):
        model = load(path)
        prompt, greedy = prompt_with_healthy_gaps(model)
        plan = self.plan(path, "--kv", "f32", "--max-context", 64, *options)
        self.assert_close(self.logits(plan, prompt), forward.logits(model, prompt), TOLERANCE)
        done = self.generate(plan, prompt, GENERATED)
        self.assertEqual((done["ids"], done["prompt_ids"]), (greedy, prompt))

    def check_gguf(self, name, shape, *types, options=()):
        with self.subTest(name):
            path = self.path(f"{name}.gguf")
            make_gguf(shape, path, *types, seed=1)
            self.check(path, *options)

    def check_folder(self, name, shape, weight_type="f32", **how):
        with self.subTest(name):
            path = self.path(name)
            make_folder(shape, path, weight_type, seed=1, **how)
            self.check(path)

    def test_gguf_types(self):
        for family in FAMILIES:
            for weight_type in ("f32", "f16", "bf16", "q8_0", "q4_0", "q4_1"):
                self.check_gguf(f"{family}-{weight_type}", Shape(family), weight_type)

    def test_gguf_mixed_types(self):
        """As quantisers write it: the embedding, which is the tied head too, in a wider type."""
        for matrices, embedding in (("q4_1", "q8_0"), ("q4_0", "f16"), ("q8_0", "f32")):
            self.check_gguf(f"mixed-{matrices}", Shape("smollm2"), matrices, embedding)

    def test_folder_types(self):
        for family in FAMILIES:
            for weight_type in ("f32", "f16", "bf16"):
                self.check_folder(f"{family}-{weight_type}", Shape(family), weight_type)

    def test_folder_forms(self):
        self.check_folder("shards", Shape("qwen3", layers=3), shards=3)
        self.check_folder("no-tokenizer", Shape("qwen2"), tokenizer=False)
        for family in FAMILIES:
            self.check_folder(f"old-{family}", Shape(family), old_rope=True)

    def test_rope_scaling(self):
        for scaling in ("linear", "llama3", "yarn"):
            shape = Shape("llama", scaling=scaling)
            self.check_folder(scaling, shape)
            self.check_folder(f"old-{scaling}", shape, old_rope=True)
            self.check_gguf(scaling, shape)
        self.check_gguf("yarn-qwen2", Shape("qwen2", scaling="yarn"))
        self.check_folder("yarn-qwen3", Shape("qwen3", scaling="yarn"))

    def test_windows(self):
        """A window within the prompt, of one token, and one that only later layers have."""
        for window in (1, 5, 16, 36):
            self.check_folder(f"mistral-{window}", Shape("mistral", window=window))
        self.check_folder("qwen2", Shape("qwen2", window=7, layers=3))
        self.check_folder("qwen3-old", Shape("qwen3", window=7, layers=3), old_rope=True)

    def test_widths(self):
        """Widths that are no multiple of a vector, a block or a tile; one head; one layer."""
        self.check_gguf("ffn-172", Shape("llama", ffn=172), "bf16")
        self.check_gguf("ffn-33", Shape("llama", ffn=33))
        self.check_gguf("hidden-96", Shape("qwen2", hidden=96, heads=6, kv_heads=2, ffn=96), "q4_1")
        self.check_gguf("one-head", Shape("llama", heads=1, kv_heads=1, head_width=32, layers=1))
        self.check_gguf("no-sharing", Shape("qwen3", heads=3, kv_heads=3, head_width=8))
        self.check_folder("narrow", Shape("llama", hidden=20, heads=2, kv_heads=1, head_width=10))
        self.check_folder("vocabulary", Shape("qwen3", vocabulary=331), "f16")

    def test_tied_and_biased(self):
        for tied in (True, False):
            for family in ("llama", "qwen2", "qwen3"):
                self.check_folder(f"{family}-tied-{tied}", Shape(family, tied=tied))
        self.check_folder("bias", Shape("llama", bias=True))
        self.check_gguf("bias", Shape("llama", bias=True), "q8_0")

    def test_many_seeds(self):
        for seed in range(50 if FULL else 2):
            for family in FAMILIES:
                with self.subTest(family=family, seed=seed):
                    path = self.path(f"{family}-{seed}.gguf")
                    make_gguf(Shape(family, layers=1 + seed % 3), path, "q4_1", "q8_0", seed=seed)
                    self.check(path)


class Ends(EndToEnd):
    """How a generation ends."""

    def setUp(self):
        path = self.path("plain.gguf")
        make_gguf(Shape("llama"), path, seed=6)
        self.prompt, self.greedy = prompt_with_healthy_gaps(load(path))
        self.model = path

    def test_end_token(self):
        """The sixth greedy id is declared the end: generation stops with it."""
        end = next(i for i in range(3, GENERATED) if self.greedy[i] not in self.greedy[:i])
        path = self.path("ending.gguf")
        make_gguf(Shape("llama", eos=self.greedy[end]), path, seed=6)
        done = self.generate(self.plan(path, "--kv", "f32"), self.prompt, GENERATED)
        self.assertEqual(done["ids"], self.greedy[: end + 1])
        self.assertEqual(done["finish_reason"], "stop")

    def test_most_tokens(self):
        done = self.generate(self.plan(self.model, "--kv", "f32"), self.prompt, 5)
        self.assertEqual((done["ids"], done["finish_reason"]), (self.greedy[:5], "length"))

    def test_context(self):
        """37 tokens of prompt in a context of 40 leave room for 3."""
        plan = self.plan(self.model, "--kv", "f32", "--max-context", PROMPT_LENGTH + 3)
        done = self.generate(plan, self.prompt, GENERATED)
        self.assertEqual((done["ids"], done["finish_reason"]), (self.greedy[:3], "length"))


if __name__ == "__main__":
    unittest.main()
