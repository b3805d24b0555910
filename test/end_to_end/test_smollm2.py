"""SmolLM2-135M-Instruct, quantised, against a float64 forward over its dequantised weights."""

import json
import unittest

import numpy as np

from tools import EndToEnd, cached_model, data

MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
EXACT = ("--kv", "f32", "--activations", "f32")


class SmolLM2(EndToEnd):
    def cases(self):
        with open(data("real/smollm2.json")) as file:
            return json.load(file)["cases"]

    def test_logits(self):
        """The sixteen largest logits and the log-sum-exp at every position."""
        plan = self.plan(cached_model(MODEL), *EXACT)
        for case in self.cases():
            with self.subTest(text=case["text"][:40]):
                found = self.logits(plan, case["ids"]).astype(np.float64)
                largest = found.max(axis=1)
                sums = largest + np.log(np.exp(found - largest[:, None]).sum(axis=1))
                self.assert_close(sums, np.array(case["logsumexp"]), 1e-3)
                for row, top in zip(found, case["top"], strict=True):
                    ids, values = zip(*top)
                    self.assert_close(row[list(ids)], np.array(values), 1e-3)

    def test_greedy(self):
        plan = self.plan(cached_model(MODEL), *EXACT)
        for case in self.cases():
            with self.subTest(text=case["text"][:40]):
                done = self.generate(plan, case["prompt_ids"], len(case["greedy_ids"]))
                self.assertEqual(done["ids"], case["greedy_ids"])

    def test_prompt_as_text(self):
        plan = self.plan(cached_model(MODEL), *EXACT)
        for case in self.cases():
            with self.subTest(text=case["text"][:40]):
                done = self.generate_text(plan, case["text"], 1, "--special")
                self.assertEqual(done["prompt_ids"], case["prompt_ids"])

    def test_cut_of_a_long_prompt(self):
        """Past 4,000 tokens a result has the same bits however the prompt was cut."""
        ids = [token for case in self.cases() for token in case["ids"]]
        request = {"prompt": (ids * 4010)[:4010], "max_tokens": 2, "ignore_eos": True}
        found = []
        for buckets in ("r1s1,r128s1", "r1s1,r48s1"):
            options = ("--max-context", 4096, "--max-seqs", 1, "--buckets", buckets)
            plan = self.plan(cached_model(MODEL), *EXACT, *options)
            found.append(self.replay(plan, [request], timeout=600)[0])
        self.assertEqual(found[0]["ids"], found[1]["ids"])
        self.assertEqual(found[0]["log_probabilities"], found[1]["log_probabilities"])


if __name__ == "__main__":
    unittest.main()
