"""Random models with experts, Mamba-2 layers and latent attention against a float64 reference, and the
same bits however their sequences, layers and batches are cut."""

import json
import os
import unittest

import numpy as np

import evaluator
import hybrid
from hybrid import Shape
from hybrid_files import rounded, write_hybrid_folder, write_hybrid_gguf
from tools import FULL, INVALID_DATA, EndToEnd, check, data, run

LENGTH, GENERATED, TOLERANCE = 37, 12, 3e-4
OPTIONS = ("--kv", "f32", "--max-context", 64)

# What each family's shapes are spread over: odd widths, one group and many, one expert, all experts,
# ties, no shared expert, no attention, no recurrence.
SHAPES = {
    "qwen3": Shape("qwen3_moe"),
    "qwen3-one-expert": Shape("qwen3_moe", experts=1, used=1, inner=17),
    "qwen3-all-experts": Shape("qwen3_moe", experts=5, used=5, hidden=36, inner=9),
    "qwen3-ties": Shape("qwen3_moe", tie_router=True, used=3),
    "qwen2": Shape("qwen2_moe", shared=24, normalise=False),
    "mamba2": Shape("mamba2"),
    "mamba2-odd": Shape("mamba2", hidden=36, mamba_heads=6, mamba_width=12, states=5, taps=2),
    "mamba2-one-group": Shape("mamba2", mamba_groups=1, conv_bias=False),
    "mamba2-limits": Shape("mamba2", kinds="MM", time_limit=(0.01, 0.4)),
    "nemotron": Shape("nemotron_h", shared=40, scale=2.5),
    "nemotron-latent": Shape("nemotron_h", latent=32, shared=40, used=3, scale=2.5),
    "nemotron-groups": Shape("nemotron_h", kinds="EM*E", experts=12, groups=4, groups_used=2, used=3),
    "nemotron-dense": Shape("nemotron_h", kinds="M-M*-M", head_width=24, taps=5, mamba_groups=4),
    "nemotron-recurrent": Shape("nemotron_h", kinds="MM-", states=24, mamba_groups=1),
    "nemotron-attention": Shape("nemotron_h", kinds="*-*", tied=True),
    "nemotron-ties": Shape("nemotron_h", kinds="E*E", tie_router=True, used=3, shared=8),
    "deepseek": Shape("deepseek_v3", shared=32, groups=4, groups_used=2, used=3, scale=2.5),
    "deepseek-direct": Shape("deepseek_v3", query_rank=0, dense_layers=0, rank=40, value=12),
    "deepseek-v2": Shape("deepseek_v2", shared=64, normalise=False, scale=4.0),
    "deepseek-v2-groups": Shape("deepseek_v2", groups=4, groups_used=2, normalise=False, used=3),
    "grouped": Shape("grouped_latent", latent=24, latent_groups=8, shared=32, used=4, experts=16),
    "grouped-one": Shape("grouped_latent", latent=64, latent_groups=1, shared=16),
}


# What a GGUF file cannot say.
FOLDER_ONLY = ("grouped", "grouped-one", "mamba2-limits")


def prompt_of(length=LENGTH, seed=1):
    return np.random.default_rng(seed).integers(3, 320, length).tolist()


class Files(EndToEnd):
    def written(self, name, form="folder", weight_type="f32", **how):
        """(path, model) of one of SHAPES."""
        model = rounded(hybrid.make(SHAPES[name], len(name)), weight_type)
        path = self.path(f"{name}-{form}-{weight_type}" + (".gguf" if form == "gguf" else ""))
        write = write_hybrid_gguf if form == "gguf" else write_hybrid_folder
        write(model, path, weight_type, **how)
        return path, model


class Hybrids(Files):
    def check_model(self, name, form="folder", weight_type="f32", **how):
        with self.subTest(name, form=form, weight_type=weight_type):
            path, model = self.written(name, form, weight_type, **how)
            groups = model.shape.mamba_groups if form == "gguf" else 1
            plan = self.plan(path, *OPTIONS)
            for seed in range(100):
                prompt = prompt_of(seed=seed)
                ids, gap = hybrid.greedy(model, prompt, GENERATED, groups)
                if gap > 20 * TOLERANCE:
                    break
            expected = hybrid.logits(model, prompt, groups)
            self.assert_close(self.logits(plan, prompt), expected, TOLERANCE)
            request = {"prompt": prompt, "max_tokens": GENERATED, "ignore_eos": True}
            self.assertEqual(self.replay(plan, [request])[0]["ids"], ids)

    def test_folders(self):
        for name in SHAPES:
            self.check_model(name)

    def test_ggufs(self):
        for name in SHAPES:
            if name not in FOLDER_ONLY:
                self.check_model(name, "gguf")

    def test_types(self):
        for name in ("qwen3", "nemotron-latent", "deepseek"):
            for weight_type in ("bf16", "q8_0", "q4_1"):
                self.check_model(name, "gguf", weight_type, split=False)
        for name in ("grouped", "mamba2"):
            self.check_model(name, "folder", "bf16")

    def test_one_tensor_for_all_experts(self):
        for name in ("qwen3", "nemotron-latent"):
            self.check_model(name, fused=True)

    def test_the_definition_says_the_equations(self):
        """What a family builds, evaluated without kernels."""
        prompt = prompt_of(24)
        for name in SHAPES:
            for form in ("folder", "gguf"):
                if form == "gguf" and name in FOLDER_ONLY:
                    continue
                with self.subTest(name, form=form):
                    path, model = self.written(name, form)
                    text = check("strata-compile", path, "--emit=model", *OPTIONS)
                    found = evaluator.logits(text, path, prompt)
                    groups = model.shape.mamba_groups if form == "gguf" else 1
                    self.assert_close(found, hybrid.logits(model, prompt, groups), 1e-6)


class Cuts(EndToEnd):
    """The same bits, whatever is cut where."""

    NAMES = ("qwen3", "mamba2", "nemotron-latent", "deepseek", "grouped")

    def setUp(self):
        self.ids = prompt_of(LENGTH, 3)
        self.request = {"prompt": self.ids, "max_tokens": 8, "ignore_eos": True}

    def model(self, name):
        """(path, layers)"""
        path = self.path(name)
        if not os.path.exists(path):
            write_hybrid_folder(hybrid.make(SHAPES[name], 5), path)
        return path, SHAPES[name].layers

    def whole(self, name):
        path, _ = self.model(name)
        plan = self.plan(path, *OPTIONS)
        return path, self.logits(plan, self.ids), self.generated(plan)

    def generated(self, plan):
        return self.replay(plan, [self.request])[0]["ids"]

    def test_chunks(self):
        chunks = range(1, LENGTH + 1) if FULL else (1, 2, 3, 5, 16, 36)
        for name in self.NAMES:
            path, expected, generated = self.whole(name)
            for chunk in chunks:
                with self.subTest(name, chunk=chunk):
                    plan = self.plan(path, *OPTIONS, "--max-batch-tokens", chunk)
                    self.assert_same_bits(self.logits(plan, self.ids), expected)
                    self.assertEqual(self.generated(plan), generated)

    def test_buckets(self):
        """Each bucket forced, with single rows for what it leaves: they give what single rows give."""
        shapes = ("r2s1", "r2s2", "r4s4", "r8s1", "r8s4", "r16s1", "r16s4", "r32s1", "r32s4")
        for name in self.NAMES:
            path, expected, generated = self.whole(name)
            for shape in shapes if FULL else ("r2s2", "r8s1", "r16s4", "r32s1"):
                with self.subTest(name, bucket=shape):
                    buckets = ("--max-seqs", 4, "--buckets", f"r1s1,{shape}")
                    plan = self.plan(path, *OPTIONS, *buckets)
                    self.assert_same_bits(self.logits(plan, self.ids), expected)
                    self.assertEqual(self.generated(plan), generated)
                    ran = self.generate(plan, self.ids, 1)["forwards"]
                    rows = int(shape[1:].split("s")[0])
                    self.assertGreaterEqual(ran.count(shape), LENGTH // rows)
                    bodies = {forward for forward in ran if forward.startswith("r")}
                    self.assertLessEqual(bodies, {shape, "r1s1"})

    def test_stages(self):
        """Every split, one with a stage that has no attention among them."""
        for name in self.NAMES:
            path, expected, generated = self.whole(name)
            layers = self.model(name)[1]
            for first in range(layers + 1):
                for second in range(first + 1, layers + 1) if FULL else (None,):
                    split = [first, layers - first]
                    if second is not None:
                        split = [first, second - first, layers - second]
                    with self.subTest(name, split=split):
                        devices = ("--devices", ",".join(["cpu"] * len(split)))
                        cut = ("--split", ",".join(map(str, split)))
                        plan = self.plan(path, *OPTIONS, *devices, *cut)
                        self.assert_same_bits(self.logits(plan, self.ids), expected)
                        self.assertEqual(self.generated(plan), generated)

    def test_batches(self):
        """Sequences that join and leave, in slots that others used before, get what they get alone."""
        random = np.random.default_rng(7)
        trace = [
            {
                "arrival": i,
                "prompt": random.integers(3, 320, int(random.integers(1, 50))).tolist(),
                "max_tokens": int(random.integers(1, 12)),
                "ignore_eos": True,
            }
            for i in range(20)
        ]
        for name in self.NAMES:
            with self.subTest(name):
                path, _ = self.model(name)
                plan = self.plan(path, *OPTIONS, "--max-seqs", 3, "--max-batch-tokens", 16)
                together = self.replay(plan, trace)
                for request, answer in zip(trace, together):
                    alone = self.replay(plan, [request | {"arrival": 0}])[0]
                    self.assertEqual(answer["ids"], alone["ids"])


class FixtureCuts(Cuts):
    """The same of the models whose logits are known."""

    NAMES = ("qwen3-moe", "mamba2", "deepseek-v3", "nemotron-h-dense", "nemotron-h-moe",
             "nemotron-h-latent")

    def model(self, name):
        path = data(f"fixtures/{name}")
        with open(os.path.join(path, "config.json")) as file:
            config = json.load(file)
        return path, config.get("num_hidden_layers") or len(config["layers_block_type"])


class Moves(EndToEnd):
    """State of every kind moves between the blocks of its pool while sequences run: copied, and what
    it leaves cleared, so a slot that is used again is clean."""

    def test_compacting(self):
        random = np.random.default_rng(17)
        trace = [
            {
                "arrival": 2 * i,
                "prompt": random.integers(3, 320, int(random.integers(1, 40))).tolist(),
                "max_tokens": int(random.integers(1, 16)),
                "ignore_eos": True,
            }
            for i in range(24)
        ]
        for name in Cuts.NAMES:
            layers = SHAPES[name].layers
            for split in ([layers], [layers // 2, layers - layers // 2]):
                with self.subTest(name, split=split):
                    path = self.path(name)
                    if not os.path.exists(path):
                        write_hybrid_folder(hybrid.make(SHAPES[name], 5), path)
                    devices = ("--devices", ",".join(["cpu"] * len(split)))
                    cut = ("--split", ",".join(map(str, split)), "--max-seqs", 4)
                    plan = self.plan(path, *OPTIONS, *devices, *cut, "--max-batch-tokens", 16)
                    expected = self.replay(plan, trace)
                    for every in (1, 3):
                        moved = ("--shuffle-blocks", every, "--compact", every)
                        self.assertEqual(self.replay(plan, trace, *moved), expected)


class WithoutWeights(Files):
    """Random numbers stand for a checkpoint: what follows from the model alone they must not touch."""

    def test_tables_are_in_the_plan(self):
        for name in ("qwen3", "nemotron-latent", "deepseek", "grouped"):
            with self.subTest(name):
                shape = SHAPES[name]
                path, _ = self.written(name)
                config = os.path.join(path, "config.json")
                plan = self.plan(config, *OPTIONS, "--weights=none", "--weight-type", "f32")
                with open(plan, "rb") as file:
                    content = file.read()
                slots = np.arange(shape.experts, dtype="<f4")
                self.assertIn(slots.tobytes(), content)

    def test_rates_of_decay_are_below_zero(self):
        """Else a state grows beyond all numbers within some tokens."""
        for name in ("mamba2", "nemotron"):
            with self.subTest(name):
                path, _ = self.written(name)
                config = os.path.join(path, "config.json")
                options = ("--kv", "f32", "--max-context", 300, "--weights=none")
                plan = self.plan(config, *options, "--weight-type", "f32")
                flags = ("--prompt", 256, "--generate", 256, "--repeat", 1, "--random-weights", 3)
                check("strata-run", "bench", plan, *flags)


class OnAGpu(Files):
    def test_plans_are_made_and_loaded(self):
        """Every op has a kernel there, and the loader's checks of its slots and grids pass."""
        for name in ("nemotron-latent", "deepseek"):
            with self.subTest(name):
                path, _ = self.written(name)
                plan = self.path(f"{name}.cuda.strata")
                target = ("--devices", "cuda:sm_90", "--buckets", "r3s2")
                done = run("strata-compile", path, "-o", plan, *OPTIONS, *target, timeout=300)
                if "compiles no code for cuda" in done.stderr:
                    self.skipTest("strata-compile was built without CUDA")
                self.assertEqual(done.returncode, 0, done.stderr)
                check("strata-run", "verify", plan)


class Conversion(EndToEnd):
    def test_row_28_further_token_layers_are_left_out_and_said(self):
        """Their tensors are skipped, which is said."""
        for name, surplus in (
            ("nemotron", ["mtp.layers.0.norm.weight", "mtp.layers.1.mixer.gate.weight"]),
            ("deepseek", ["model.layers.3.enorm.weight"]),
        ):
            path = self.path(f"{name}-mtp")
            write_hybrid_folder(hybrid.make(SHAPES[name], 1), path, surplus=surplus)
            done = run("strata-compile", path, *OPTIONS, "-o", self.path("mtp.strata"))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"{len(surplus)} tensors ", done.stderr)
            self.assertIn("are left out", done.stderr)

    def test_row_28_of_a_gguf_too(self):
        """A converter appends them as one more block."""
        for name, block in (("nemotron", 6), ("deepseek", 3)):
            path = self.path(f"{name}-nextn.gguf")
            surplus = [f"blk.{block}.nextn.eh_proj.weight", f"blk.{block}.attn_norm.weight"]
            write_hybrid_gguf(hybrid.make(SHAPES[name], 1), path, surplus=surplus)
            done = run("strata-compile", path, *OPTIONS, "-o", self.path("nextn.strata"))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("2 tensors ", done.stderr)
            self.assertIn("are left out", done.stderr)

    def test_labels_outside_the_groups(self):
        model = hybrid.make(SHAPES["grouped"], 1)
        model.mixers[1]["labels"][3] = 8
        path = self.path("labels")
        write_hybrid_folder(model, path)
        done = run("strata-compile", path, "-o", self.path("labels.strata"))
        self.assert_refused(done, INVALID_DATA, "expert 3", "group 8", "0 to 7")

    def test_labels_that_are_too_few(self):
        model = hybrid.make(SHAPES["grouped"], 1)
        model.mixers[1]["labels"] = model.mixers[1]["labels"][:-1]
        path = self.path("few")
        write_hybrid_folder(model, path)
        done = run("strata-compile", path, "-o", self.path("few.strata"))
        self.assert_refused(done, INVALID_DATA, "model.layers.0.mlp.labels", "[15]", "[16]")


if __name__ == "__main__":
    unittest.main()
