"""stories260K, a real trained model, against the text that float64 arithmetic gives."""

import json
import unittest

import numpy as np

from tools import FULL, EndToEnd, data

GGUF, FOLDER = "stories260K/stories260K.gguf", "stories260K-hf"
CONTEXT = ("--kv", "f32", "--max-context", 512)


def golden():
    with open(data("stories260K/golden.json")) as file:
        return json.load(file)["cases"]


def long_prompt(length):
    """A story of `length` ids: the first golden case, told over and over."""
    case = golden()[0]
    return (case["prompt_ids"] + (case["greedy_ids"] * (length // 64 + 1)))[:length]


def buckets(*shapes):
    return ("--buckets", ",".join(shapes))


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

    PLANS = {
        "r1s1": buckets("r1s1"),
        "r2s1": buckets("r1s1", "r2s1"),
        "r4s4": buckets("r1s1", "r4s4"),
        "r8s8": buckets("r1s1", "r8s8"),
        "r16s1": buckets("r1s1", "r16s1"),
        "r64s4": buckets("r1s1", "r64s4"),
        "r128s1": buckets("r1s1", "r128s1"),
        "default": (),
    }

    def test_every_bucket_gives_the_same_bits(self):
        ids = long_prompt(200)
        expected = self.logits(self.plan(data(GGUF), *CONTEXT, *self.PLANS["r1s1"]), ids)
        for name, options in self.PLANS.items():
            for threads in (1, 2, 3) if FULL else (2,):
                with self.subTest(buckets=name, threads=threads):
                    plan = self.plan(data(GGUF), *CONTEXT, *options)
                    found = self.logits(plan, ids, "--threads", threads)
                    self.assert_same_bits(found, expected)

    def test_the_bucket_asked_for_ran(self):
        """`forwards` lists every launch: 200 rows are 200 of r1s1 or 12 of r16s1 and a rest."""
        ids = long_prompt(200)
        for name in ("r1s1", "r2s1", "r16s1", "r128s1"):
            with self.subTest(name):
                plan = self.plan(data(GGUF), *CONTEXT, *self.PLANS[name])
                ran = self.generate(plan, ids, 1)["forwards"]
                rows = int(name[1:].split("s")[0])
                bodies = [forward for forward in ran if forward.startswith("r")]
                self.assertLessEqual(set(bodies), {name, "r1s1"})
                self.assertGreaterEqual(bodies.count(name), 200 // rows)

    def test_every_prompt_length(self):
        """Lengths 1..200 through plans with different chunks: the last row has the same bits."""
        ids = long_prompt(200)
        expected = self.logits(self.plan(data(GGUF), *CONTEXT, *self.PLANS["r1s1"]), ids)
        for name in ("r16s1", "default"):
            plan = self.plan(data(GGUF), *CONTEXT, *self.PLANS[name])
            for length in (
                range(1, 201) if FULL else (1, 2, 3, 15, 16, 17, 31, 33, 63, 65, 127, 129)
            ):
                with self.subTest(buckets=name, length=length):
                    found = self.logits(plan, ids[:length])
                    self.assert_same_bits(found, expected[:length])


if __name__ == "__main__":
    unittest.main()
