"""Real quantised models against a float64 forward over their dequantised weights."""

import json
import unittest

import numpy as np

from tools import EndToEnd, cached_model, data

EXACT = ("--kv", "f32", "--activations", "f32")


class Golden:
    """`model`, in the cache, against the cases of `golden`, in the test data."""

    def cases(self):
        with open(data(self.golden)) as file:
            for case in json.load(file)["cases"]:
                with self.subTest(text=case["text"][:40]):
                    yield case

    def exact_plan(self, *options):
        return self.plan(cached_model(self.model), *EXACT, *options)

    def test_logits(self):
        """The sixteen largest logits and the log-sum-exp at every position."""
        plan = self.exact_plan()
        for case in self.cases():
            found = self.logits(plan, case["ids"]).astype(np.float64)
            largest = found.max(axis=1)
            sums = largest + np.log(np.exp(found - largest[:, None]).sum(axis=1))
            self.assert_close(sums, np.array(case["logsumexp"]), 1e-3)
            for row, top in zip(found, case["top"], strict=True):
                ids, values = zip(*top)
                self.assert_close(row[list(ids)], np.array(values), 1e-3)

    def test_greedy(self):
        plan = self.exact_plan()
        for case in self.cases():
            done = self.generate(plan, case["prompt_ids"], len(case["greedy_ids"]))
            self.assertEqual(done["ids"], case["greedy_ids"])

    def test_prompt_as_text(self):
        plan = self.exact_plan()
        for case in self.cases():
            done = self.generate_text(plan, case["text"], 1, "--special")
            self.assertEqual(done["prompt_ids"], case["prompt_ids"])


class SmolLM2(Golden, EndToEnd):
    model = "SmolLM2-135M-Instruct.Q4_1.gguf"
    golden = "real/smollm2.json"

    def test_cut_of_a_long_prompt(self):
        """Past 4,000 tokens a result has the same bits however the prompt was cut."""
        ids = [token for case in self.cases() for token in case["ids"]]
        request = {"prompt": (ids * 4010)[:4010], "max_tokens": 2, "ignore_eos": True}
        found = []
        for buckets in ("r1s1,r128s1", "r1s1,r48s1"):
            plan = self.exact_plan("--max-context", 4096, "--max-seqs", 1, "--buckets", buckets)
            found.append(self.replay(plan, [request], timeout=600)[0])
        self.assertEqual(found[0]["ids"], found[1]["ids"])
        self.assertEqual(found[0]["log_probabilities"], found[1]["log_probabilities"])


class Gemma3(Golden, EndToEnd):
    model = "gemma-3-270m.Q4_K_M.gguf"
    golden = "real/gemma3-270m.json"


if __name__ == "__main__":
    unittest.main()
