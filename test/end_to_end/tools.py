"""Runs strata-compile and strata-run as a user does, and reads what they print and write.

Where the tools are: STRATA_BIN is the build under test. A runtime that was built alone takes the
compiler from STRATA_TEST_BIN.
"""

import json
import os
import subprocess
import tempfile
import unittest

import numpy as np

from safetensors import read_safetensors

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "../.."))
BIN = os.environ.get("STRATA_BIN", os.path.join(ROOT, "build/release/bin"))
TOOLS = {
    "strata-run": os.path.join(BIN, "strata-run"),
    "strata-compile": os.path.join(os.environ.get("STRATA_TEST_BIN") or BIN, "strata-compile"),
    "strata-opt": os.path.join(os.environ.get("STRATA_TEST_BIN") or BIN, "strata-opt"),
}
FULL = bool(os.environ.get("STRATA_FULL"))  # sweeps that take too long for every run
INSTRUMENTED = bool(os.environ.get("STRATA_TEST_BIN"))  # a runtime under sanitizers: shorter sweeps

USAGE, INVALID_DATA, DOES_NOT_FIT, NOT_SUPPORTED = 2, 3, 4, 5  # exit codes of docs/operations.md


def data(name):
    """A path in the shared test data; skips the test where it is absent."""
    root = os.environ.get("STRATA_TEST_DATA") or os.path.join(ROOT, "../shared/data")
    path = os.path.normpath(os.path.join(root, name))
    if not os.path.exists(path):
        raise unittest.SkipTest(f"{path} is absent")
    return path


def cached_model(name):
    """A real model that a script of the project fetched; skips the test where it is absent."""
    path = os.path.join(os.environ.get("STRATA_MODELS") or os.path.join(ROOT, "models-cache"), name)
    if not os.path.exists(path):
        raise unittest.SkipTest(f"{path} is absent; .ci/fetch-model gets it")
    return path


def run(tool, *arguments, timeout=120):
    """A finished process with its output as text, whatever its exit code."""
    command = [TOOLS[tool], *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout)


def check(tool, *arguments, timeout=120):
    """Standard output of a run that must succeed."""
    done = run(tool, *arguments, timeout=timeout)
    if done.returncode != 0:
        command = " ".join([tool, *map(str, arguments)])
        raise AssertionError(f"{command}\nexit code {done.returncode}\n{done.stderr}")
    return done.stdout


def id_list(ids):
    return ",".join(map(str, ids))


class EndToEnd(unittest.TestCase):
    """A test class with a folder of its own that is removed at the end, and plans compiled once."""

    @classmethod
    def setUpClass(cls):
        if not os.path.exists(TOOLS["strata-compile"]):
            raise unittest.SkipTest("strata-compile is not here; STRATA_TEST_BIN names its folder")
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls._plans = {}

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name)

    @classmethod
    def plan(cls, model, *options):
        """The plan of `model` compiled with `options`; the same call compiles once."""
        key = (model, *map(str, options))
        if key not in cls._plans:
            path = cls.path(f"{len(cls._plans)}.strata")
            check("strata-compile", model, "-o", path, *options, timeout=300)
            cls._plans[key] = path
        return cls._plans[key]

    def generate(self, plan, ids, max_tokens, *options):
        """The JSON object of one greedy completion."""
        greedy = ("--max-tokens", max_tokens, "--temperature", 0, "--json", *options)
        return json.loads(check("strata-run", "generate", plan, "--ids", id_list(ids), *greedy))

    def generate_text(self, plan, prompt, max_tokens, *options):
        """The same for a prompt that is text."""
        greedy = ("--max-tokens", max_tokens, "--temperature", 0, "--json", *options)
        return json.loads(check("strata-run", "generate", plan, prompt, *greedy))

    def logits(self, plan, ids, *options):
        """F32 [len(ids), vocabulary]."""
        path = self.path("logits.safetensors")
        check(
            "strata-run", "logits", plan, "--ids", id_list(ids), "-o", path, *options, timeout=600
        )
        return read_safetensors(path)["logits"]

    def replay(self, plan, requests, *options, timeout=300):
        """The outcome of each request of a replayed trace, in order."""
        path = self.path("trace.jsonl")
        with open(path, "w") as file:
            file.writelines(json.dumps(request) + "\n" for request in requests)
        lines = check("strata-run", "replay", plan, path, "--json", *options, timeout=timeout)
        return [json.loads(line) for line in lines.splitlines()]

    def assert_close(self, found, expected, tolerance):
        """Every logit within `tolerance`, and none missing."""
        self.assertEqual(found.shape, expected.shape)
        worst = np.abs(found.astype(np.float64) - expected).max()  # NaN fails the comparison
        self.assertLessEqual(worst, tolerance)

    def assert_same_bits(self, found, expected):
        self.assertEqual(found.shape, expected.shape)
        different = np.argwhere(found.view(np.uint32) != expected.view(np.uint32))
        self.assertEqual(len(different), 0, f"first difference at [position, id] {different[:1]}")

    def assert_refused(self, done, exit_code, *parts):
        """A run that ended with `exit_code` and one message that names every one of `parts`."""
        self.assertEqual(done.returncode, exit_code, done.stderr or done.stdout)
        for part in parts:
            self.assertIn(part, done.stderr)
