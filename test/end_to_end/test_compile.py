"""What a compilation leaves on disk."""

import os
import signal
import subprocess
import time
import unittest

from make_checkpoint import Shape, make_folder, make_gguf
from tools import TOOLS, EndToEnd, check, run


def read(path):
    with open(path, "rb") as file:
        return file.read()


class Compile(EndToEnd):
    def compile(self, model, name, *options):
        path = self.path(name)
        check("strata-compile", model, "-o", path, *options)
        return read(path)

    def test_same_bytes_again(self):
        """On repetition, with one thread and two, and from another folder."""
        model = self.path("tiny")
        make_folder(Shape("qwen2", layers=3), model, "bf16", seed=3)
        first = self.compile(model, "a.strata", "--threads", 1)
        self.assertEqual(first, self.compile(model, "b.strata", "--threads", 1))
        self.assertEqual(first, self.compile(model, "c.strata", "--threads", 2))
        moved = self.path("elsewhere")
        os.mkdir(moved)
        os.rename(model, os.path.join(moved, "tiny"))
        self.assertEqual(first, self.compile(os.path.join(moved, "tiny"), "d.strata"))

    def test_other_weights_other_bytes(self):
        """The comparison above can fail: another seed makes another plan."""
        plans = []
        for seed in (1, 2):
            make_gguf(Shape("llama"), self.path("tiny.gguf"), seed=seed)
            plans.append(self.compile(self.path("tiny.gguf"), "e.strata"))
        self.assertNotEqual(*plans)

    def test_remarks(self):
        """Those asked for, and no others: what the planner measured is said once a forward."""
        model = self.path("remarks.gguf")
        make_gguf(Shape("llama"), model)
        options = ("--buckets", "r1s1,r4s1", "--remarks-filter", "strata-plan-memory")
        done = run("strata-compile", model, "-o", self.path("remarks.strata"), *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = [line for line in done.stderr.splitlines() if "Category:" in line]
        self.assertTrue(all("strata-plan-memory" in line for line in said), done.stderr)
        for forward in ("r1s1", "r4s1", "h1"):
            peaks = [line for line in said if f"Forward={forward}," in line]
            self.assertEqual(len(peaks), 1, done.stderr)
            self.assertIn("PeakBytes=", peaks[0])

    def test_killed_on_the_way(self):
        """At the output's name there is the old plan or the new one, never a part."""
        model, output = self.path("large.gguf"), self.path("killed.strata")
        # About 60 MB of weights, so that writing takes a while.
        make_gguf(Shape("llama", layers=6, hidden=512, heads=32, kv_heads=8, ffn=2048), model)
        before = time.monotonic()
        whole = self.compile(model, "whole.strata")
        seconds = time.monotonic() - before
        interrupted = 0
        for old in (None, b"an older plan"):
            for share in (0.2, 0.5, 0.7, 0.8, 0.9, 0.95):
                if old:
                    with open(output, "wb") as file:
                        file.write(old)
                elif os.path.exists(output):
                    os.remove(output)
                process = subprocess.Popen(
                    [TOOLS["strata-compile"], model, "-o", output],
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
                time.sleep(seconds * share)
                process.send_signal(signal.SIGKILL)
                interrupted += process.wait() == -signal.SIGKILL
                left = read(output) if os.path.exists(output) else None
                self.assertIn(left, (old, whole))
        self.assertGreater(interrupted, 0)

    def test_store_keeps_its_segments(self):
        """Another context, other buckets: the plan changes and no weight segment is written."""
        model, store = self.path("stored.gguf"), self.path("weights")
        make_gguf(Shape("smollm2"), model, "q4_1", seed=2)
        plans, listings = [], []
        for options in (("--max-context", 64), ("--max-context", 128), ("--buckets", "r1s1,r8s1")):
            plans.append(self.compile(model, "stored.strata", "--weights", store, *options))
            entries = list(os.scandir(store))
            listings.append({e.name: (e.inode(), e.stat().st_mtime_ns) for e in entries})
        self.assertEqual(len(set(plans)), 3)
        self.assertGreater(len(listings[0]), 3)  # embedding, two layers, head
        self.assertEqual(listings[0], listings[1])
        self.assertEqual(listings[0], listings[2])

    def test_store_gives_the_same_logits(self):
        model = self.path("apart.gguf")
        make_gguf(Shape("qwen3"), model, "q8_0", seed=2)
        ids = [5, 300, 271, 9, 260]
        inside = self.logits(self.plan(model), ids)
        apart = self.logits(self.plan(model, "--weights", self.path("apart")), ids)
        self.assert_same_bits(apart, inside)


if __name__ == "__main__":
    unittest.main()
