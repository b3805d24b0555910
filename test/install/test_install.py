"""Strata installed as a library: another project finds it, builds against it, and runs a plan."""

import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../end_to_end"))

from make_checkpoint import Shape, make_gguf
from tools import BIN, ROOT, EndToEnd, check


class Install(EndToEnd):
    def command(self, *arguments):
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=240)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_the_example(self):
        prefix, build = self.path("prefix"), self.path("embed")
        self.command("cmake", "--install", os.path.dirname(BIN), "--prefix", prefix)
        example = os.path.join(ROOT, "examples/embed")
        self.command(
            "cmake", "-S", example, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}"
        )
        self.command("cmake", "--build", build)

        model = self.path("tiny.gguf")
        make_gguf(Shape("smollm2"), model)
        plan = self.plan(model, "--max-context", 128)
        expected = json.loads(
            check("strata-run", "generate", plan, "a text", "--max-tokens", 32, "--json")
        )
        self.assertEqual(
            self.command(os.path.join(build, "embed"), plan, "a text"), expected["text"] + "\n"
        )
        installed = self.command(os.path.join(prefix, "bin/strata-run"), "--version")
        self.assertEqual(installed, check("strata-run", "--version"))


if __name__ == "__main__":
    unittest.main()
