"""What must be impossible (docs/guarantees.md), on the side of the compiler: a test's name carries its row.

The model is the text of parallel_block.mlir, which needs no checkpoint.
"""

import json
import os
import re
import unittest

from tools import DOES_NOT_FIT, HERE, NOT_SUPPORTED, EndToEnd, check, run


class Guarantees(EndToEnd):
    def text(self, name, *changes):
        """A file with the model's text after `changes`, pairs of old and new."""
        with open(os.path.join(HERE, "parallel_block.mlir")) as file:
            text = file.read()
        for old, new in changes:
            self.assertIn(old, text)
            text = text.replace(old, new)
        path = self.path(name + ".mlir")
        with open(path, "w") as file:
            file.write(text)
        return path

    def on(self, devices, split=None):
        words = ", ".join(['"cpu"'] * devices)
        attributes = f", split = array<i64: {split}>" if split else ""
        return ('devices = ["cpu"]', f"devices = [{words}]{attributes}")

    def emit(self, level, model):
        return check("strata-compile", model, f"--emit={level}")

    def explain(self, model):
        return json.loads(check("strata-compile", model, "--dry-run", "--explain=json"))

    def stages_of(self, text):
        """Stage name to its text."""
        parts = re.split(r"strata\.stage @(\w+)", text)
        return dict(zip(parts[1::2], parts[2::2], strict=True))

    def test_row_01_a_stage_cannot_name_what_another_holds(self):
        placed = self.emit("placed", self.text("two", self.on(2, "1, 1")))
        second = placed.index("strata.stage @", placed.index("strata.stage @") + 1)
        use = placed.index("@l1.q :", placed.index("strata.forward", second))
        path = self.path("foreign.mlir")
        with open(path, "w") as file:
            file.write(placed[:use] + "@l0.q :" + placed[use + len("@l1.q :"):])
        done = run("strata-opt", path)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("names @l0.q, which is not a strata.weight of its own stage", done.stderr)
        self.assertIn("note: a symbol of that name is held here", done.stderr)

    def test_row_02_constants_follow_from_the_model_alone(self):
        def weights(*changes):
            planned = self.emit("planned", self.text("options", self.on(2, "1, 1"), *changes))
            return re.findall(r"strata\.weight @.*", planned)

        plain = weights()
        # Embedding, norm, head, eight a layer, and the rope table on both stages.
        self.assertEqual(len(plain), 3 + 2 * 8 + 2)
        self.assertEqual(weights(("max_context = 256", "max_context = 64")), plain)
        self.assertEqual(weights(("max_sequences = 4", "max_sequences = 1")), plain)
        self.assertEqual(weights(("max_rows = 32", "max_rows = 2")), plain)
        self.assertEqual(weights(("block_tokens 16", "block_tokens 32")), plain)

    def test_row_03_one_buffer_a_constant_and_stage(self):
        placed = self.emit("placed", self.text("two", self.on(2, "1, 1")))
        for name, stage in self.stages_of(placed).items():
            held = re.findall(r"strata\.weight @(\S+)", stage)
            used = set(re.findall(r"@([\w.]+)", stage.split("strata.forward")[1]))
            self.assertEqual(len(held), len(set(held)), name)
            self.assertLessEqual(set(held), used, f"{name} holds what it does not read")
        # Bytes: q8_0 takes 34 bytes for 32 weights. Per layer 64 * (64 + 32 + 32 + 64) of attention
        # and 3 * 64 * 160 of the MLP, a norm of 64 floats; the rope table of 8 floats is on both.
        layer = 34 * (64 * 192 + 3 * 64 * 160) // 32 + 4 * 64
        table = 34 * 320 * 64 // 32
        aligned = lambda size: (size + 63) // 64 * 64
        first, second = self.explain(self.text("two", self.on(2, "1, 1")))["stages"]
        weights = [next(m["bytes"] for m in stage["memory"] if m["name"] == "weights")
                   for stage in (first, second)]
        self.assertEqual(weights[0], table + 32 + layer)
        self.assertEqual(weights[1], aligned(4 * 64) + table + 32 + layer)
        self.assertGreater(len(first["forwards"]), 5, "all forwards share them")

    def test_row_05_automatic_and_named_split_are_one(self):
        plans = []
        for split in (None, "1, 1"):
            path = self.path(f"{len(plans)}.row5.strata")
            check("strata-compile", self.text("split", self.on(2, split)), "--weights=none", "-o",
                  path)
            with open(path, "rb") as file:
                plans.append(file.read())
        self.assertEqual(plans[0], plans[1])

    def test_row_07_an_op_without_a_kernel_is_named(self):
        model = self.text("relu2", ("strata.gated silu", "strata.gated relu2"))
        done = run("strata-compile", model, "--weights=none", "-o", self.path("x.strata"))
        self.assert_refused(done, NOT_SUPPORTED, "'strata.gated' op needs kernel 'gated.relu2'")

    def test_row_09_every_remainder_has_its_buckets(self):
        # 547 = 4 * 128 + 35, and 35 rows run in one bucket of 64.
        planned = self.emit("planned", self.text("chunk", ("max_rows = 32", "max_rows = 128")))
        names = re.findall(r"strata\.forward @(r\d+s\d+|h\d+)", planned)
        rows = [int(re.match(r"[rh](\d+)", name)[1]) for name in names]
        tails = {}
        for row, buckets in re.findall(r"#strata\.tail<(\d+), ([\d, ]+)>", planned):
            tails[int(row)] = [int(bucket) for bucket in buckets.split(",")]
        self.assertEqual(sorted(tails), list(range(1, 128)))
        self.assertEqual([rows[bucket] for bucket in tails[547 % 128]], [64])
        for prompt in range(1, 4 * 128 + 1):
            run_in = [rows[bucket] for bucket in tails.get(prompt % 128, [])]
            self.assertGreaterEqual(sum(run_in), prompt % 128)
            # All are full but the last.
            self.assertLess(sum(run_in[:-1]), max(prompt % 128, 1))

    def test_row_16_the_peak_follows_the_model(self):
        # At the peak of the largest bucket, 32 rows, the gate's and the up's rows are alive at once.
        def peak(*changes):
            table = self.explain(self.text("peak", *changes))
            return max(forward["peak"] for forward in table["stages"][0]["forwards"]
                       if forward["bucket"].startswith("r"))

        wider = peak(("x160x", "x288x"), ("<160x", "<288x"))
        self.assertEqual(wider - peak(), 2 * (288 - 160) * 32 * 4)

    def test_row_25_what_does_not_fit_says_what_would(self):
        def on(size, *changes):
            limited = ('devices = ["cpu"]', f'devices = ["cpu"], device_bytes = array<i64: {size}>')
            model = self.text("small", limited, *changes)
            return run("strata-compile", model, "--dry-run")

        needs = on(1).stderr
        each = int(re.search(r"devices of (\d+) bytes each would fit", needs)[1])
        self.assertNotIn("does not fit its devices", on(each).stderr)
        done = on(each - 1)
        self.assert_refused(done, DOES_NOT_FIT, "does not fit its devices (MiB):", "weights",
                            "state", "arena", "short by")
        changes = {
            "max_context = 256": r"a context of (\d+) tokens instead of 256",
            "max_sequences = 4": r"(\d+) sequences instead of 4",
            "max_rows = 32": r"a chunk of (\d+) rows instead of 32",
        }
        for old, pattern in changes.items():
            with self.subTest(change=old):
                offered = re.search(pattern, done.stderr)[1]
                new = f"{old.split(' = ')[0]} = {offered}"
                self.assertNotIn("does not fit its devices", on(each - 1, (old, new)).stderr)


if __name__ == "__main__":
    unittest.main()
