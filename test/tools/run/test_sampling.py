"""How `strata-run generate` draws: penalties, bias, allowed ids, stop strings; and perplexity.

Each is done again in Python, from the logits that `strata-run logits` writes.
"""

import json
import math
import os
import sys
import unittest

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../end_to_end"))

from make_checkpoint import Shape, make_gguf
from tools import USAGE, EndToEnd, check, data, run


class Sampling(EndToEnd):
    PROMPT = [5, 6, 7, 6]

    def setUp(self):
        gguf = self.path("tiny.gguf")
        if not os.path.exists(gguf):
            make_gguf(Shape("smollm2"), gguf, seed=2)
        self.tiny = self.plan(gguf, "--max-context", 256)

    def greedy(self, count, change):
        """`count` ids, each the largest of the last logits after change(logits, ids)."""
        ids = list(self.PROMPT)
        for _ in range(count):
            logits = self.logits(self.tiny, ids)[-1].astype(np.float32)
            ids.append(int(np.argmax(change(logits, ids))))
        return ids[len(self.PROMPT) :]

    def check_greedy(self, change, *options):
        found = self.generate(self.tiny, self.PROMPT, 6, *options)["ids"]
        self.assertEqual(found, self.greedy(len(found), change))

    def test_penalties(self):
        def penalised(logits, ids):
            for token in set(ids[-3:]):
                value = logits[token]
                logits[token] = value * 1.4 if value <= 0 else value / 1.4
                logits[token] -= 0.5 + 0.25 * ids[-3:].count(token)
            return logits

        options = ("--repetition-penalty", 1.4, "--presence-penalty", 0.5)
        options += ("--frequency-penalty", 0.25, "--penalty-window", 3)
        self.check_greedy(penalised, *options)

    def test_bias_and_allowed_ids(self):
        def biased(logits, ids):
            logits[40] += 2
            logits[41] = -np.inf
            kept = np.full_like(logits, -np.inf)
            kept[[30, 40, 41, 45]] = logits[[30, 40, 41, 45]]
            return kept

        options = ("--logit-bias", "40=2", "--logit-bias", "41=-inf", "--allow-ids", "45,41,30,40")
        self.check_greedy(biased, *options)

    def test_one_forbidden_token_never_comes(self):
        first = self.generate(self.tiny, self.PROMPT, 1)["ids"][0]
        other = self.generate(self.tiny, self.PROMPT, 1, "--logit-bias", f"{first}=-inf")["ids"][0]
        self.assertNotEqual(first, other)

    def test_values_out_of_range(self):
        for parts, *options in (
            (("--repetition-penalty",), "--repetition-penalty", 0),
            (("--presence-penalty",), "--presence-penalty", 2.5),
            (("--frequency-penalty",), "--frequency-penalty", -3),
            (("--penalty-window",), "--penalty-window", -1),
            (("--min-p",), "--min-p", 1.5),
            (("'7' is not ID=VALUE",), "--logit-bias", "7"),
            (("'7=' is not ID=VALUE",), "--logit-bias", "7="),
            (("'x=1' is not ID=VALUE",), "--logit-bias", "x=1"),
            (("id 7 is nan", "-inf"), "--logit-bias", "7=nan"),
            (("id 99999999 is outside the vocabulary",), "--logit-bias", "99999999=1"),
            (("id 99999999 of --allow-ids",), "--allow-ids", "99999999"),
            (("'a' is not a token id",), "--allow-ids", "a"),
            (("--seed", "'-1' is not a whole number of 0 to 18446744073709551615"), "--seed", -1),
            (("--seed",), "--seed", "18446744073709551616"),
            (("--seed",), "--seed", "1.5"),
            (("a stop string has 0 bytes",), "--stop", ""),
        ):
            with self.subTest(options):
                done = run("strata-run", "generate", self.tiny, "--ids", "5", *options)
                self.assert_refused(done, USAGE, *parts)
        largest = ("--seed", "18446744073709551615", "--max-tokens", 1)
        check("strata-run", "generate", self.tiny, "--ids", "5", *largest)

    def drawn(self, *options):
        """The JSON object of 30 ids drawn at temperature 1."""
        flags = ("--ids", "5,6,7,6", "--max-tokens", 30, "--temperature", 1, "--seed", 3, "--json")
        return json.loads(check("strata-run", "generate", self.tiny, *flags, *options))

    def test_stop_strings(self):
        whole = self.drawn()
        text = whole["text"]
        self.assertGreater(len(text), 8)
        for stop in (text[3:7], text[-3:], text[:2]):
            done = self.drawn("--stop", "@@@@", "--stop", stop)
            with self.subTest(stop=stop):
                self.assertEqual(done["text"], text[: text.index(stop)])
                self.assertEqual(done["finish_reason"], "stop")
                self.assertEqual(done["ids"], whole["ids"][: len(done["ids"])])
        # A beginning that is held back, and given back at the end.
        done = self.drawn("--stop", text[-1] + "@@@@")
        self.assertEqual(done["text"], text)
        self.assertEqual(done["finish_reason"], whole["finish_reason"])


class Perplexity(EndToEnd):
    """As llama.cpp cuts its windows; a model with a BOS token."""

    def setUp(self):
        self.model = self.plan(data("stories260K/stories260K.gguf"), "--kv", "f32", "--max-context", 512)
        with open(data("stories260K/golden.json")) as file:
            stories = json.load(file)["cases"]
        self.text = self.path("stories.txt")
        with open(self.text, "w") as file:
            file.write("\n".join(case["greedy_text"] for case in stories) * 2)

    def reference(self, context):
        tokens = ("tokenize", self.model, "--text-file", self.text, "--json")
        ids = json.loads(check("strata-run", *tokens))["ids"]
        values = []
        for begin in range(0, len(ids) - context + 1, context):
            window = [ids[0]] + ids[begin + 1 : begin + context]
            logits = self.logits(self.model, window).astype(np.float64)
            for position in range(context // 2, context - 1):
                row = logits[position] - logits[position].max()
                values.append(math.log(np.exp(row).sum()) - row[window[position + 1]])
        mean = np.mean(values)
        error = math.sqrt((np.mean(np.square(values)) - mean**2) / (len(values) - 1))
        return math.exp(mean), error * math.exp(mean), len(values)

    def test_equals_the_reference(self):
        for context in (32, 45):
            options = ("--text-file", self.text, "--context", context, "--json")
            found = json.loads(check("strata-run", "perplexity", self.model, *options))
            value, error, count = self.reference(context)
            with self.subTest(context=context):
                self.assertEqual(found["tokens"], count)
                self.assertGreater(found["windows"], 1)
                self.assertEqual(found["context"], context)
                self.assertAlmostEqual(found["perplexity"] / value, 1, delta=1e-6)
                self.assertAlmostEqual(found["standard_error"] / error, 1, delta=1e-5)
                self.assertLess(found["perplexity"], 20)  # of 512 ids: the model knows its stories

    def test_text(self):
        options = ("--text-file", self.text, "--context", 32)
        line = check("strata-run", "perplexity", self.model, *options)
        self.assertRegex(line, r"^perplexity \d+\.\d{4} \+/- \d+\.\d{4}, \d+ tokens in \d+ windows of 32\n$")

    def test_refusals(self):
        def refused(*options):
            return run("strata-run", "perplexity", self.model, *options)

        text = ("--text-file", self.text)
        self.assert_refused(refused(), USAGE, "--text-file")
        self.assert_refused(refused(*text, "--context", 513), USAGE, "513", "4 to the plan's context of 512")
        self.assert_refused(refused(*text, "--context", 3), USAGE, "a window of 3 tokens")
        self.assertIn("absent", refused("--text-file", self.path("absent")).stderr)
        with open(self.path("short"), "w") as file:
            file.write("Once")
        self.assert_refused(refused("--text-file", self.path("short")), USAGE, "one window takes 512")


if __name__ == "__main__":
    unittest.main()
