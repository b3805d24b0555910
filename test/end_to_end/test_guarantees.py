"""What must be impossible (docs/guarantees.md), on the side of the compiler: a test's name carries its row.

The model is the text of parallel_block.mlir, which needs no checkpoint.
"""

import json
import os
import re
import unittest

import hybrid
from hybrid_files import write_hybrid_folder
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
        # and 3 * 64 * 160 of the MLP, a norm of 64 floats; the rope table of 8 floats is on both,
        # and every weight begins at a multiple of 64 bytes.
        layer = 34 * (64 * 192 + 3 * 64 * 160) // 32 + 4 * 64
        table = 34 * 320 * 64 // 32
        first, second = self.explain(self.text("two", self.on(2, "1, 1")))["stages"]
        weights = [next(m["bytes"] for m in stage["memory"] if m["name"] == "weights")
                   for stage in (first, second)]
        self.assertEqual(weights[0], table + 64 + layer)
        self.assertEqual(weights[1], 4 * 64 + table + 64 + layer)
        self.assertGreater(len(first["forwards"]), 5, "all forwards share them")

    def latent_tables(self, layers, split):
        """Of each stage the layers and bytes of D and U: 8 groups of width 1792, at 4.5 bits a weight."""
        folder = self.path(f"latent-{layers}")
        os.makedirs(folder, exist_ok=True)
        config = {
            "architectures": ["GroupedLatentForCausalLM"], "model_type": "grouped_latent",
            "hidden_size": 2560, "num_hidden_layers": layers, "vocab_size": 4096,
            "max_position_embeddings": 1024, "num_attention_heads": 32, "num_key_value_heads": 4,
            "head_dim": 128, "num_experts": 512, "num_experts_per_tok": 10,
            "moe_intermediate_size": 640, "moe_latent_size": 1792, "moe_latent_groups": 8,
            "shared_expert_intermediate_size": 640, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
        }
        with open(os.path.join(folder, "config.json"), "w") as file:
            json.dump(config, file)
        cut = ["--split", ",".join(map(str, split))] if split else []
        table = check("strata-compile", os.path.join(folder, "config.json"), "--dry-run",
                      "--explain=json", "--weight-type", "q4_0", "--max-seqs", 1, "--buckets",
                      "r1s1,r8s1", "--devices", "cpu,cpu", *cut)
        return json.loads(table)["stages"]

    def test_row_03_and_04_a_table_is_held_once_and_trimmed(self):
        # A layer of D and one of U: 8 * 1792 * 2560 * 0.5625 bytes each.
        layer = 20643840
        for first, mebibytes in ((24, (945, 945)), (30, (1181.25, 708.75)), (48, (1890, 0))):
            stages = self.latent_tables(48, (first, 48 - first))
            for stage, expected in zip(stages, mebibytes, strict=True):
                held = sum(table["bytes"] for table in stage["tables"])
                self.assertEqual(held / (1 << 20), expected)
                for table in stage["tables"]:
                    self.assertEqual(table["first_layer"], stage["first_layer"])
                    self.assertEqual(table["end_layer"], stage["end_layer"])
                    self.assertEqual(table["offset"], table["first_layer"] * layer)
            # D and U are inside the stages' weights, not beside them.
            whole = sum(entry["bytes"] for stage in stages for entry in stage["memory"]
                        if entry["name"] == "weights")
            self.assertEqual(sum(table["bytes"] for stage in stages for table in stage["tables"]),
                             48 * 2 * layer)
            self.assertGreater(whole, 48 * 2 * layer)

    def test_row_04_another_stages_layer_is_an_error(self):
        folder = self.path("grouped")
        write_hybrid_folder(hybrid.make(hybrid.Shape("grouped_latent", latent=24, latent_groups=2, shared=16), 1),
                            folder)
        placed = check("strata-compile", folder, "--emit=placed", "--devices", "cpu,cpu", "--split",
                       "1,2")
        use = "@latent_down layer 1 "
        self.assertEqual(placed.count(use), 1)
        path = self.path("foreign.mlir")
        with open(path, "w") as file:
            file.write(placed.replace(use, "@latent_down layer 0 "))
        done = run("strata-opt", path)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("reads layer 0 of table @latent_down, of which layers 1 to 3 are held here",
                      done.stderr)
        self.assertIn("note: the weight is declared here", done.stderr)

    def test_row_05_tables_are_trimmed_alike(self):
        """An automatic split trims as the same split by name does."""
        automatic = self.latent_tables(6, None)
        split = [stage["end_layer"] - stage["first_layer"] for stage in automatic]
        self.assertEqual(automatic, self.latent_tables(6, split))
        self.assertTrue(all(split))

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


class GroupedLatent(EndToEnd):
    """The same of a model with experts in 8 groups: stacked D and U, labels, slots of experts."""

    LAYERS = 3

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = cls.path("grouped")
        shape = hybrid.Shape("grouped_latent", latent=24, latent_groups=8, shared=32, used=4,
                             experts=16)
        assert shape.layers == cls.LAYERS
        write_hybrid_folder(hybrid.make(shape, 5), cls.model)

    def on(self, split=None):
        cut = ["--split", ",".join(map(str, split))] if split else []
        return ["--devices", "cpu,cpu", *cut]

    def emit(self, level, *options):
        return check("strata-compile", self.model, f"--emit={level}", *options)

    def test_row_01_a_stage_cannot_name_what_another_holds(self):
        placed = self.emit("placed", *self.on((1, 2)))
        second = placed.index("strata.stage @", placed.index("strata.stage @") + 1)
        for name in ("labels", "router", "experts_down"):
            with self.subTest(name):
                use = placed.index(f"@l1.{name}", placed.index("strata.forward", second))
                path = self.path("foreign.mlir")
                with open(path, "w") as file:
                    file.write(placed[:use] + "@l0." + placed[use + len("@l1."):])
                done = run("strata-opt", path)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(f"names @l0.{name}, which is not a strata.weight of its own stage",
                              done.stderr)
                self.assertIn("note: a symbol of that name is held here", done.stderr)

    def test_row_02_constants_follow_from_the_model_alone(self):
        def weights(*options):
            planned = self.emit("planned", *self.on((1, 2)), *options)
            return re.findall(r"strata\.weight @.*", planned)

        plain = weights()
        held = [re.match(r"strata\.weight @(\S+)", line)[1] for line in plain]
        # What all layers share is on both stages, what a layer has on one.
        for name in ("latent_down", "latent_up", "expert_slot", "rope"):
            self.assertEqual(held.count(name), 2, name)
        for layer in range(self.LAYERS):
            self.assertEqual(held.count(f"l{layer}.labels"), 1)
        for options in (("--max-context", 64), ("--max-seqs", 1), ("--max-batch-tokens", 2),
                        ("--kv", "f32"), ("--block-tokens", 32), ("--buckets", "r1s1,r8s1")):
            with self.subTest(options):
                self.assertEqual(weights(*options), plain)

    def test_row_03_one_buffer_a_constant_and_stage(self):
        parts = re.split(r"strata\.stage @\w+", self.emit("planned", *self.on((1, 2))))[1:]
        self.assertEqual(len(parts), 2)
        for stage in parts:
            held = re.findall(r"strata\.weight @(\S+)", stage)
            forwards = re.split(r"strata\.forward @\w+", stage)[1:]
            self.assertGreater(len(forwards), 5, "all forwards share them")
            self.assertEqual(len(held), len(set(held)))
            used = set(re.findall(r"@([\w.]+)", stage.split("strata.forward", 1)[1]))
            self.assertLessEqual(set(held), used, "a stage holds what it does not read")
        # Bytes of D and U: 8 groups of 24 x 64 floats a layer, once on the stage of that layer.
        layer = 8 * 24 * 64 * 4
        explained = check("strata-compile", self.model, "--dry-run", "--explain=json",
                          *self.on((1, 2)))
        for stage, layers in zip(json.loads(explained)["stages"], (1, 2), strict=True):
            self.assertEqual([table["bytes"] for table in stage["tables"]], [layers * layer] * 2)

    def test_row_05_automatic_and_named_split_are_one(self):
        plans = {}
        for name, split in (("automatic", None), *((f"{i}", (i, 3 - i)) for i in range(4))):
            path = self.path(f"{name}.strata")
            check("strata-compile", self.model, "-o", path, *self.on(split), "--name", "one")
            with open(path, "rb") as file:
                plans[name] = file.read()
        automatic = plans.pop("automatic")
        self.assertEqual(list(plans.values()).count(automatic), 1)

    def test_row_07_a_step_that_is_left_out_or_has_no_kernel_is_named(self):
        text = self.emit("model")
        down = re.search(r"(%\d+) = strata\.latent_down (%\d+), ", text)
        for name, old, new, message in (
            ("kernel", "strata.gated silu", "strata.gated relu2", "needs kernel 'gated.relu2'"),
            ("step", f"strata.experts silu {down[1]},", f"strata.experts silu {down[2]},",
             "expects different type than prior uses"),
        ):
            with self.subTest(name):
                self.assertIn(old, text)
                path = self.path(f"{name}.mlir")
                with open(path, "w") as file:
                    file.write(text.replace(old, new, 1))
                done = run("strata-compile", path, "--weights=none", "-o", self.path("x.strata"))
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(message, done.stderr)


if __name__ == "__main__":
    unittest.main()
