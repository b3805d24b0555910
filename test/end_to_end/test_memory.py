"""Memory is what the plan says: nothing is taken after READY, and the peak is the plan's table."""

import json
import os
import re
import subprocess
import unittest

import numpy as np

from make_checkpoint import Shape, make_folder, make_gguf
from tools import ROOT, TOOLS, EndToEnd, cached_model, check, data, id_list

PROBES = os.environ.get("STRATA_PROBES", os.path.join(ROOT, "build/release/test-bin"))
STACK_BYTES = 256 << 10
# Of a process beside what the plan computes: code, libraries, vocabulary, schedule, output.
CONSTANT_BYTES = 32 << 20


def probe(name, *arguments):
    command = [os.path.join(PROBES, name), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}\nexit code {done.returncode}\n{done.stderr}")
    return done.stdout


class Allocations(EndToEnd):
    """malloc and mmap are counted in the whole process while steps run."""

    def counted(self, plan, threads, sequences, ids, *options):
        return json.loads(
            probe("AllocationProbe", plan, threads, sequences, 40, id_list(ids), *options)
        )

    def check_nothing(self, plan, ids, sequences=6):
        for threads in (1, 2, 3):
            with self.subTest(threads=threads):
                found = self.counted(plan, threads, sequences, ids)
                self.assertEqual(found["tokens"], 40 * sequences)
                self.assertEqual((found["allocations"], found["mappings"]), (0, 0), found)
                self.assertTrue(found["stack_bytes"])
                self.assertEqual(set(found["stack_bytes"]), {STACK_BYTES})

    def ids(self):
        return np.random.default_rng(3).integers(3, 320, 150).tolist()

    def test_one_stage(self):
        path = self.path("tiny.gguf")
        make_gguf(Shape("smollm2"), path, "q4_1", "q8_0", seed=1)
        self.check_nothing(self.plan(path, "--max-context", 256), self.ids())

    def test_stages_and_windows(self):
        path = self.path("windows")
        make_folder(Shape("qwen3", layers=3, window=9), path, "bf16", seed=1)
        options = "--devices cpu,cpu --split 1,2 --max-context 256".split()
        self.check_nothing(self.plan(path, *options), self.ids())

    def test_stories(self):
        plan = self.plan(data("stories260K/stories260K.gguf"))
        self.check_nothing(plan, [1] + self.ids())

    def test_the_probe_counts(self):
        """One byte taken after each step is one allocation a step."""
        path = self.path("counted.gguf")
        make_gguf(Shape("llama"), path, seed=1)
        found = self.counted(self.plan(path), 2, 1, [5, 6], "--allocate")
        self.assertGreaterEqual(found["allocations"], found["steps"])
        self.assertGreater(found["steps"], 30)


class Peak(EndToEnd):
    """Peak resident memory of `strata-run generate` against the plan's table, for one sequence of
    the whole context, so that the table is what is taken."""

    def check_peak(self, model, context, prompt, max_tokens):
        plan = self.plan(model, "--max-seqs", 1, "--max-context", context, "--kv", "f32")
        table = check("strata-run", "explain", plan)
        planned = int(re.search(r"total +computed +(\d+)", table).group(1))
        weights = int(re.search(r"computed +weights +(\d+)", table).group(1))
        options = ("--ids", id_list(prompt), "--max-tokens", max_tokens, "--temperature", 0)
        output = probe("PeakMemory", TOOLS["strata-run"], "generate", plan, *options)
        peak = int(output.splitlines()[-1])
        self.assertGreater(peak, weights)  # every weight was read
        self.assertLessEqual(peak, planned + CONSTANT_BYTES, table)

    def test_stories(self):
        with open(data("stories260K/golden.json")) as file:
            case = json.load(file)["cases"][0]
        self.check_peak(data("stories260K/stories260K.gguf"), 512, case["prompt_ids"], 600)

    def test_smollm2(self):
        ids = [1, *range(1000, 1255)]
        self.check_peak(cached_model("SmolLM2-135M-Instruct.Q4_1.gguf"), 320, ids, 64)


if __name__ == "__main__":
    unittest.main()
