"""A model cut into stages computes what it computes whole, bit for bit, wherever it is cut."""

import itertools
import json
import os
import unittest

import numpy as np

from make_checkpoint import FAMILIES, Shape, make_folder, make_gguf
from tools import FULL, USAGE, EndToEnd, check, data, run

LAYERS = 3
OPTIONS = ("--kv", "f32", "--max-context", 128)


def splits(layers, stages):
    """Every way to give `layers` to `stages` in order. The first stage may have none (embedding
    alone) and so may the last (head alone), but not one between them."""
    for cuts in itertools.combinations_with_replacement(range(layers + 1), stages - 1):
        bounds = (0, *cuts, layers)
        split = [end - begin for begin, end in zip(bounds, bounds[1:])]
        if all(split[1:-1]):
            yield split


def placed(split):
    return ("--devices", ",".join(["cpu"] * len(split)), "--split", ",".join(map(str, split)))


class Stages(EndToEnd):
    def answers(self, plan, trace):
        """What `plan` gives; when it gives it differs, since several steps are under way at once."""
        steps = ("first_step", "finished_step")
        return [
            {key: value for key, value in outcome.items() if key not in steps}
            for outcome in self.replay(plan, trace)
        ]

    def check_splits(self, model, layers, ids, stage_counts=(2, 3)):
        whole = self.plan(model, *OPTIONS)
        expected = self.logits(whole, ids)
        request = {"prompt": ids[:20], "max_tokens": 12, "ignore_eos": True}
        generated = self.answers(whole, [request])
        for stages in stage_counts:
            for split in splits(layers, stages):
                with self.subTest(model=model, split=split):
                    plan = self.plan(model, *OPTIONS, *placed(split))
                    self.assert_same_bits(self.logits(plan, ids), expected)
                    self.assertEqual(self.answers(plan, [request]), generated)

    def test_every_split(self):
        ids = np.random.default_rng(5).integers(3, 320, 100).tolist()
        for family in FAMILIES if FULL else ("smollm2", "qwen2", "qwen3"):
            path = self.path(f"{family}.gguf")
            make_gguf(Shape(family, layers=LAYERS), path, "q8_0", seed=2)
            self.check_splits(path, LAYERS, ids)

    def test_windows(self):
        """The first layer sees everything, the others a window: groups of state are cut too."""
        ids = np.random.default_rng(6).integers(3, 320, 100).tolist()
        path = self.path("windows")
        make_folder(Shape("qwen3", layers=LAYERS, window=9), path, "bf16", seed=2)
        self.check_splits(path, LAYERS, ids)

    def test_stories(self):
        with open(data("stories260K/golden.json")) as file:
            case = json.load(file)["cases"][0]
        ids = case["prompt_ids"] + case["greedy_ids"]
        stages = (2, 3, 4, 5, 6, 7) if FULL else (2,)
        self.check_splits(data("stories260K/stories260K.gguf"), 5, ids, stages)

    def test_threads_are_of_each_stage(self):
        """And the cores are shared out among the stages where no number is asked for."""
        model = data("stories260K/stories260K.gguf")
        plan = self.plan(model, *OPTIONS, *placed((2, 3)))

        def threads(*options):
            flags = ("--prompt", 8, "--generate", 4, "--repeat", 1, "--json")
            return json.loads(check("strata-run", "bench", plan, *flags, *options))["threads"]

        self.assertEqual(threads(), max(1, os.cpu_count() // 2))
        self.assertEqual(threads("--threads", 3), 3)
        for command in ("bench", "perplexity"):
            described = " ".join(check("strata-run", command, "--help").split())
            self.assertIn("Worker threads of each stage on a CPU; 0: the cores, shared out",
                          described)

    def test_requests_side_by_side(self):
        """A batch of prompts and answers passes through three stages as through one."""
        path = self.path("side.gguf")
        make_gguf(Shape("smollm2", layers=LAYERS), path, "q4_1", "q8_0", seed=3)
        random = np.random.default_rng(7)
        trace = [
            {
                "arrival": i,
                "prompt": random.integers(3, 320, int(random.integers(1, 60))).tolist(),
                "max_tokens": int(random.integers(1, 30)),
                "ignore_eos": True,
            }
            for i in range(30)
        ]
        expected = self.answers(self.plan(path, *OPTIONS), trace)
        split = self.plan(path, *OPTIONS, *placed([1, 1, 1]))
        self.assertEqual(self.answers(split, trace), expected)

    def test_the_split_asked_for(self):
        """`explain` names the stages with their layers."""
        path = self.path("asked.gguf")
        make_gguf(Shape("llama", layers=LAYERS), path)
        table = check("strata-run", "explain", self.plan(path, *OPTIONS, *placed([2, 0, 1][::2])))
        self.assertIn("layers 0..2, embedding", table)
        self.assertIn("layers 2..3, head", table)

    def test_splits_that_are_none(self):
        path = self.path("none.gguf")
        make_gguf(Shape("llama", layers=LAYERS), path)
        for split in ([1, 1], [2, 2], [1, 1, 1, 1]):
            with self.subTest(split):
                done = run("strata-compile", path, "-o", self.path("none.strata"), *placed(split))
                self.assertGreater(done.returncode, 0)
                self.assertIn(str(sum(split)), done.stderr)
                self.assertIn(str(LAYERS), done.stderr)
        devices = ("--devices", "cpu,cpu", "--split", "1,1,1")
        done = run("strata-compile", path, "-o", self.path("none.strata"), *devices)
        self.assertGreater(done.returncode, 0)


if __name__ == "__main__":
    unittest.main()
