"""The IR is the compiler: stopped after any pass, printed, parsed and finished, the plan is the
same to the byte, whichever tool runs the rest."""

import unittest

from make_checkpoint import Shape, make_folder, make_gguf
from tools import EndToEnd, check


def read(path):
    with open(path, "rb") as file:
        return file.read()


def passes():
    return check("strata-opt", "--list-passes").split()


class RoundTrip(EndToEnd):
    """A small model on one stage; the subclasses take others."""

    OPTIONS = ("--max-context", 64)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.checkpoint = cls.path("checkpoint")
        cls.make_checkpoint()
        cls.expected = read(cls.plan(cls.checkpoint, *cls.OPTIONS))

    @classmethod
    def make_checkpoint(cls):
        cls.checkpoint += ".gguf"
        make_gguf(Shape("smollm2"), cls.checkpoint, "q4_1", "q8_0", seed=4)

    def text_after(self, name):
        path = self.path(f"{name}.mlir")
        check(
            "strata-compile", self.checkpoint, f"--emit-after={name}", "-o", path, *self.OPTIONS
        )
        return path

    def opt(self, path, *options):
        """The path of what strata-opt made of a text."""
        output = self.path("opt.mlir")
        check("strata-opt", path, "-o", output, *options)
        return output

    def assert_finishes(self, text):
        """strata-compile, given the text, runs what is left of the pipeline and writes the plan."""
        plan = self.path("finished.strata")
        check("strata-compile", text, "--checkpoint", self.checkpoint, "-o", plan)
        self.assertTrue(read(plan) == self.expected, "the plan has other bytes")

    def test_after_every_pass(self):
        for name in passes():
            with self.subTest(after=name):
                text = self.text_after(name)
                self.assert_finishes(text)
                self.assert_finishes(
                    self.opt(text, f"--pass-pipeline=builtin.module(strata-pipeline{{after={name}}})")
                )

    def test_pass_by_pass(self):
        """One process a pass: each prints what strata-compile prints after it."""
        text = self.path("model.mlir")
        check("strata-compile", self.checkpoint, "--emit=model", "-o", text, *self.OPTIONS)
        self.assert_finishes(text)
        for name in passes():
            with self.subTest(name):
                alone = f"--pass-pipeline=builtin.module(strata.model(strata-{name}))"
                found = read(self.opt(text, alone))
                text = self.text_after(name)
                self.assertTrue(found == read(text), "another text")
        self.assert_finishes(text)

    def test_other_forms(self):
        """Generic text and bytecode say the same as the custom form."""
        for name in passes():
            with self.subTest(after=name):
                text = self.text_after(name)
                self.assert_finishes(self.opt(text, "--mlir-print-op-generic"))
                self.assert_finishes(self.opt(text, "--emit-bytecode"))

    def test_levels(self):
        for level in ("model", "placed", "planned"):
            with self.subTest(level):
                path = self.path("level.mlir")
                check(
                    "strata-compile",
                    self.checkpoint,
                    f"--emit={level}",
                    "-o",
                    path,
                    *self.OPTIONS,
                )
                self.assert_finishes(path)


class RoundTripStages(RoundTrip):
    """Three stages, the last with the head alone, a window and more options."""

    OPTIONS = "--devices cpu,cpu,cpu --split 1,2,0 --max-context 96 --max-seqs 3 --kv bf16".split()

    @classmethod
    def make_checkpoint(cls):
        make_folder(Shape("mistral", layers=3, window=20), cls.checkpoint, "bf16", seed=4)


if __name__ == "__main__":
    unittest.main()
