"""stories260K, a real trained model, against the text that float64 arithmetic gives."""

import json
import unittest

import numpy as np

from tools import FULL, INSTRUMENTED, EndToEnd, data

GGUF, FOLDER = "stories260K/stories260K.gguf", "stories260K-hf"
CONTEXT = ("--kv", "f32", "--max-context", 512)


def golden():
    with open(data("stories260K/golden.json")) as file:
        return json.load(file)["cases"]


def long_prompt(length):
    """A story of `length` ids: the first golden case, told over and over."""
    case = golden()[0]
    return (case["prompt_ids"] + (case["greedy_ids"] * (length // 64 + 1)))[:length]


class Golden(EndToEnd):
    def check_form(self, form):
        plan = self.plan(data(form), *CONTEXT)
        for case in golden():
            with self.subTest(prompt=case["prompt"]):
                ids = self.generate(plan, case["prompt_ids"], len(case["greedy_ids"]))["ids"]
                self.assertEqual(ids, case["greedy_ids"])
                last = self.logits(plan, case["prompt_ids"])[-1]
                self.assert_close(last, np.array(case["last_prompt_logits"]), 1e-4)

    def test_gguf(self):
        self.check_form(GGUF)

    def test_folder(self):
        self.check_form(FOLDER)

    def test_text(self):
        """The prompt as text, by the vocabulary in the file."""
        plan = self.plan(data(GGUF), *CONTEXT)
        for case in golden():
            done = self.generate_text(plan, case["prompt"], len(case["greedy_ids"]))
            self.assertEqual(done["prompt_ids"], case["prompt_ids"])
            self.assertEqual(done["text"], case["greedy_text"])


class Buckets(EndToEnd):
    """A row's result does not depend on what else was computed beside it: bit for bit."""

    SHAPES = "r1s1 r2s1 r2s2 r4s4 r8s8 r16s1 r16s8 r32s1 r32s8 r64s1 r64s8 r128s1 r128s8".split()

    def forced(self, shape):
        """A plan with this bucket, and single rows for what it leaves; `default`: with all."""
        options = ()
        if shape != "default":
            options = ("--buckets", "r1s1" if shape == "r1s1" else f"r1s1,{shape}")
        return self.plan(data(GGUF), *CONTEXT, "--max-seqs", 8, *options)

    def test_every_bucket_gives_the_same_bits(self):
        ids = long_prompt(200)
        expected = self.logits(self.forced("r1s1"), ids)
        for shape in (*self.SHAPES, "default"):
            for threads in (1, 2, 3) if FULL else (2,):
                with self.subTest(bucket=shape, threads=threads):
                    found = self.logits(self.forced(shape), ids, "--threads", threads)
                    self.assert_same_bits(found, expected)

    def test_the_bucket_asked_for_ran(self):
        """`forwards` lists every launch: 200 rows are 200 of r1s1, or 12 of r16s1 and a rest."""
        ids = long_prompt(200)
        for shape in self.SHAPES:
            with self.subTest(shape):
                ran = self.generate(self.forced(shape), ids, 1)["forwards"]
                rows = int(shape[1:].split("s")[0])
                bodies = [forward for forward in ran if forward.startswith("r")]
                self.assertLessEqual(set(bodies), {shape, "r1s1"})
                self.assertGreaterEqual(bodies.count(shape), 200 // rows)

    def test_every_prompt_length(self):
        """Lengths 1..200, each by itself, through plans that cut prompts differently."""
        ids, lengths = long_prompt(200), range(1, 201, 10 if INSTRUMENTED else 1)
        trace = [
            {"arrival": 1000 * n, "prompt": ids[:n], "max_tokens": 3, "ignore_eos": True}
            for n in lengths
        ]
        # One thread: these are some twenty thousand launches of very little work each.
        expected = self.replay(self.forced("r1s1"), trace, "--threads", 1)
        for shape in ("r16s1", "r128s1", "default"):
            found = self.replay(self.forced(shape), trace, "--threads", 1)
            for n, ours, other in zip(lengths, found, expected, strict=True):
                with self.subTest(bucket=shape, length=n):
                    self.assertEqual(ours["ids"], other["ids"])
                    self.assertEqual(ours["log_probabilities"], other["log_probabilities"])

    def test_logits_of_some_lengths(self):
        """The same at every position, and the last is what the lengths above rest on."""
        ids = long_prompt(200)
        expected = self.logits(self.forced("r1s1"), ids)
        for shape in ("r16s1", "default"):
            for length in range(1, 201) if FULL else (1, 2, 15, 17, 33, 63, 127, 129):
                with self.subTest(bucket=shape, length=length):
                    found = self.logits(self.forced(shape), ids[:length])
                    self.assert_same_bits(found, expected[:length])


if __name__ == "__main__":
    unittest.main()
