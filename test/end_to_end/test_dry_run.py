"""What a plan takes, asked before there are weights: --dry-run, --explain and the largest batch."""

import json
import os
import re
import unittest

import numpy as np

import hybrid
from hybrid_files import write_hybrid_folder
from tools import FULL, HERE, DOES_NOT_FIT, EndToEnd, check, data, run

FIXTURES = ["llama-rope-llama3", "mistral-window", "qwen2-bias", "qwen3-qknorm", "gemma3",
            "qwen3-moe", "mamba2", "deepseek-v3", "nemotron-h-dense", "nemotron-h-moe",
            "nemotron-h-latent"]
SHAPE = ["--max-context", 96, "--max-seqs", 3, "--max-batch-tokens", 24]


def arenas(page):
    """The data of a page that --html wrote."""
    with open(page) as file:
        inside = re.search(r'<script id="plan" type="application/json">(.*?)</script>', file.read(),
                           re.S)
    return json.loads(inside[1])


class DryRun(EndToEnd):
    def test_table_equals_the_real_plan(self):
        for name in FIXTURES:
            for devices in ("cpu", "cpu,cpu"):
                with self.subTest(name=name, devices=devices):
                    folder = data(f"fixtures/{name}")
                    options = [*SHAPE, "--devices", devices, "--name", name, "--kv", "f16"]
                    plan = self.plan(folder, *options)
                    real = json.loads(check("strata-run", "explain", plan, "--json"))
                    config = os.path.join(folder, "config.json")
                    dry = check("strata-compile", config, "--dry-run", "--explain=json",
                                "--weight-type", "f32", *options)
                    self.assertEqual(json.loads(dry), real)

    def test_writes_nothing(self):
        folder = data("fixtures/qwen2-bias")
        done = run("strata-compile", folder, "--dry-run", "-o", self.path("x.strata"))
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("--dry-run writes nothing", done.stderr)
        self.assertFalse(os.path.exists(self.path("x.strata")))

    def test_ops_without_kernels_are_named(self):
        with open(os.path.join(HERE, "parallel_block.mlir")) as file:
            text = file.read()
        self.assertIn("strata.gated silu", text)
        model = self.path("relu2.mlir")
        with open(model, "w") as file:
            file.write(text.replace("strata.gated silu", "strata.gated relu2"))
        refused = run("strata-compile", model, "--weights=none", "-o", self.path("x.strata"))
        self.assertIn("needs kernel 'gated.relu2'", refused.stderr)
        done = run("strata-compile", model, "--dry-run", "--explain=json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"have no kernel on cpu:\S+: 'gated\.relu2'")
        # Another activation, the same buffers.
        silu = check("strata-compile", os.path.join(HERE, "parallel_block.mlir"), "--dry-run",
                     "--explain=json")
        self.assertEqual(json.loads(done.stdout), json.loads(silu))


class LargestBatch(EndToEnd):
    def compile(self, rows, device):
        return run("strata-compile", data("fixtures/qwen2-bias/config.json"), "--dry-run",
                   "--weight-type", "f32", "--max-context", 128, "--max-seqs", 2, "--kv", "f32",
                   "--max-batch-tokens", rows, "--devices", device)

    def taken(self, rows):
        done = self.compile(rows, "cpu")
        self.assertEqual(done.returncode, 0, done.stderr)
        return int(re.search(r"total +computed +(\d+)", done.stdout)[1])

    def test_row_17_fits_and_the_next_does_not(self):
        for rows in (1, 9, 100):
            with self.subTest(rows=rows):
                # Every row more takes bytes here, so the device that holds `rows` to the byte
                # holds no other.
                device = f"cpu:{self.taken(rows)}"
                done = self.compile("auto", device)
                self.assertEqual(done.returncode, 0, done.stderr)
                found = int(re.search(r"--max-batch-tokens auto is (\d+) here", done.stderr)[1])
                self.assertGreaterEqual(found, rows)
                self.assertEqual(self.compile(found, device).returncode, 0)
                self.assertEqual(self.compile(found + 1, device).returncode, DOES_NOT_FIT)

    def test_row_17_stops_at_the_tokens_of_all_sequences(self):
        done = self.compile("auto", "cpu:1GiB")
        self.assertIn("--max-batch-tokens auto is 256 here", done.stderr)

    def test_not_even_one_row(self):
        done = self.compile("auto", f"cpu:{self.taken(1) - 1}")
        self.assertEqual(done.returncode, DOES_NOT_FIT, done.stderr)
        self.assertIn("short by", done.stderr)

    def test_devices_need_a_size(self):
        self.assertIn("each needs a size", self.compile("auto", "cpu").stderr)


class Partition(EndToEnd):
    """What partition-stages counts is what the finished plan takes, to the byte."""

    def grouped(self):
        folder = self.path("grouped")
        if not os.path.exists(folder):
            shape = hybrid.Shape("grouped_latent", latent=24, latent_groups=2, shared=16)
            write_hybrid_folder(hybrid.make(shape, 1), folder)
        return folder

    def models(self):
        # Two groups of state and a tied head; layers of three kinds; tables of layers.
        names = ("qwen2-bias", "gemma3", "nemotron-h-latent")
        return {**{name: data(f"fixtures/{name}") for name in names}, "grouped": self.grouped()}

    def compile(self, model, devices, *options):
        return run("strata-compile", model, "--dry-run", "--explain=json", *SHAPE, "--kv", "f32",
                   "--devices", ",".join(devices), *options)

    def test_every_split_is_counted_exactly(self):
        for name, model in self.models().items():
            whole = json.loads(self.compile(model, ["cpu"]).stdout)
            layers = whole["stages"][0]["end_layer"]
            for first in range(layers + 1):
                with self.subTest(name=name, first=first):
                    done = self.compile(model, ["cpu", "cpu"], "--split",
                                        f"{first},{layers - first}", "--remarks-filter",
                                        "strata-partition-stages")
                    self.assertEqual(done.returncode, 0, done.stderr)
                    counted = [int(n) for n in re.findall(r"TotalBytes=(\d+)", done.stderr)]
                    table = json.loads(done.stdout)
                    taken = [stage["totals"]["computed"] for stage in table["stages"]]
                    self.assertEqual(counted, taken)

    def test_a_gpus_split_is_counted_exactly_too(self):
        for name, model in self.models().items():
            with self.subTest(name=name):
                done = self.compile(model, ["cuda:sm_90", "cuda:sm_90"], "--split",
                                    self.halves(model), "--remarks-filter",
                                    "strata-partition-stages")
                self.assertEqual(done.returncode, 0, done.stderr)
                counted = [int(n) for n in re.findall(r"TotalBytes=(\d+)", done.stderr)]
                taken = [stage["totals"]["computed"] for stage in json.loads(done.stdout)["stages"]]
                self.assertEqual(counted, taken)

    def halves(self, model):
        layers = json.loads(self.compile(model, ["cpu"]).stdout)["stages"][0]["end_layer"]
        return f"{layers // 2},{layers - layers // 2}"

    def test_what_is_accepted_fits_and_what_fits_is_accepted(self):
        """On devices of random sizes, against the finished plans of all splits."""
        random = np.random.default_rng(11)
        for name, model in self.models().items():
            whole = json.loads(self.compile(model, ["cpu"]).stdout)
            layers = whole["stages"][0]["end_layer"]
            needs = []
            for first in range(layers + 1):
                done = self.compile(model, ["cpu", "cpu"], "--split", f"{first},{layers - first}")
                stages = json.loads(done.stdout)["stages"]
                needs.append([stage["totals"]["computed"] for stage in stages])
            sums = [sum(pair) for pair in needs]
            answers = set()
            for _ in range(24 if FULL else 8):
                # Near what some split takes: a few bytes decide.
                near = needs[random.integers(len(needs))]
                sizes = [int(need + random.integers(-2, 3)) for need in near]
                if random.integers(3) == 0:
                    sizes[1] = int(random.integers(1, max(sums)))
                with self.subTest(name=name, sizes=sizes):
                    done = self.compile(model, [f"cpu:{size}" for size in sizes])
                    fits = any(a <= sizes[0] and b <= sizes[1] for a, b in needs)
                    answers.add(fits)
                    self.assertEqual(done.returncode, 0 if fits else DOES_NOT_FIT, done.stderr)
                    if fits:
                        taken = [stage["totals"]["computed"]
                                 for stage in json.loads(done.stdout)["stages"]]
                        self.assertLessEqual(taken[0], sizes[0])
                        self.assertLessEqual(taken[1], sizes[1])
            self.assertEqual(answers, {True, False}, "the sizes decide nothing")

    def test_what_is_said_to_fit_fits_and_a_byte_less_does_not(self):
        for name, model in self.models().items():
            for stages in (1, 2, 3):
                with self.subTest(name=name, stages=stages):
                    refused = self.compile(model, ["cpu:1"] * stages)
                    self.assertEqual(refused.returncode, DOES_NOT_FIT, refused.stderr)
                    each = int(re.search(r"devices of (\d+) bytes each", refused.stderr)[1])
                    done = self.compile(model, [f"cpu:{each}"] * stages)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    taken = [stage["totals"]["computed"]
                             for stage in json.loads(done.stdout)["stages"]]
                    self.assertEqual(max(taken), each)
                    done = self.compile(model, [f"cpu:{each - 1}"] * stages)
                    self.assertEqual(done.returncode, DOES_NOT_FIT)
                    self.assertIn("does not fit its devices (MiB):", done.stderr)


class LargeArena(EndToEnd):
    def test_offsets_past_32_bits_survive_plan_and_loader(self):
        # 65536 rows of 12288 floats are 3 GiB, and the residual, the normalised rows, the gate's and
        # the up's are alive at once: 1 + 1 + 3 + 3 GiB.
        folder = self.path("large")
        os.makedirs(folder)
        with open(os.path.join(folder, "config.json"), "w") as file:
            json.dump({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
                       "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 1,
                       "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 512,
                       "rms_norm_eps": 1e-5, "max_position_embeddings": 65536,
                       "rope_theta": 10000.0, "hidden_act": "silu",
                       "tie_word_embeddings": False}, file)
        plan = self.plan(os.path.join(folder, "config.json"), "--weights=none", "--weight-type",
                         "q8_0", "--buckets", "r1s1,r65536s1", "--max-context", 65536,
                         "--max-seqs", 1)
        page = self.path("large.html")
        check("strata-run", "explain", plan, "--html", page)
        forward = next(forward for forward in arenas(page)["stages"][0]["forwards"]
                       if forward["name"] == "r65536s1")
        self.assertEqual(forward["peak"], 8 << 30)
        offsets = [offset for _, offset, size, _, _ in forward["buffers"] if size == 3 << 30]
        self.assertEqual(max(offsets), 5 << 30)


class Page(EndToEnd):
    def test_is_self_contained_and_holds_every_buffer(self):
        plan = self.plan(data("fixtures/qwen2-bias"), *SHAPE, "--devices", "cpu,cpu")
        page = self.path("page.html")
        check("strata-run", "explain", plan, "--html", page)
        with open(page) as file:
            html = file.read()
        self.assertNotRegex(html, r"(src|href)\s*=|https?://|@import|fetch\(")
        drawn = arenas(page)
        table = json.loads(check("strata-run", "explain", plan, "--json"))
        self.assertEqual(drawn["table"], table)
        for stage, described in zip(drawn["stages"], table["stages"], strict=True):
            for forward, row in zip(stage["forwards"], described["forwards"], strict=True):
                self.assertEqual(forward["name"], row["bucket"])
                self.assertEqual(len(forward["commands"]), row["commands"])
                tops = [offset + size for _, offset, size, _, _ in forward["buffers"]]
                self.assertEqual(max(tops), row["peak"])
                live = [sum(size for _, _, size, lower, upper in forward["buffers"]
                            if lower <= time < upper) for time in range(row["commands"])]
                self.assertEqual(max(live), row["lower_bound"])
        compiled = check("strata-compile", data("fixtures/qwen2-bias"), *SHAPE, "--devices",
                         "cpu,cpu", "--dry-run", "--explain=html")
        self.assertEqual(compiled, html)


if __name__ == "__main__":
    unittest.main()
