"""What must be impossible (docs/guarantees.md) when a plan is made and started: memory that is short,
devices that differ, state that is shared. A test's name carries its row."""

import filecmp
import json
import os
import re
import resource
import subprocess
import unittest

from tools import BIN, DOES_NOT_FIT, INSTRUMENTED, ROOT, TOOLS, EndToEnd, check, data, run

MIB = 1 << 20


def run_within(bytes, tool, *arguments):
    """The same process where no more than `bytes` of address space can be had."""
    return subprocess.run(
        [TOOLS[tool], *map(str, arguments)], capture_output=True, text=True, timeout=120,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (bytes, bytes)))


class Boot(EndToEnd):
    def setUp(self):
        if INSTRUMENTED:
            self.skipTest("a sanitizer's shadow takes all address space")
        self.model = data("stories260K/stories260K.gguf")

    def test_row_06_stages_share_no_state(self):
        """No writable global in the runtime: what two stages could meet in does not exist."""
        if not os.path.exists(os.path.join(ROOT, ".git")):
            self.skipTest("the rules of the sources need a checkout")
        done = subprocess.run([os.path.join(ROOT, ".ci/lint"), os.path.dirname(BIN)],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_row_08_the_path_does_not_follow_from_free_memory(self):
        plans = [self.path("free.strata"), self.path("short.strata")]
        check("strata-compile", self.model, "-o", plans[0])
        short = run_within(1500 * MIB, "strata-compile", self.model, "-o", plans[1])
        self.assertEqual(short.returncode, 0, short.stderr)
        self.assertTrue(filecmp.cmp(*plans, shallow=False))
        options = ("--ids", "1,403,407", "--max-tokens", 12, "--temperature", 0, "--json")
        free = run("strata-run", "generate", plans[0], *options)
        short = run_within(1500 * MIB, "strata-run", "generate", plans[0], *options)
        self.assertEqual(json.loads(free.stdout)["ids"], json.loads(short.stdout)["ids"])

    def test_row_18_a_gpus_plan_lists_what_its_driver_takes(self):
        """Each class has a line, and the caps together are no more than 256 MiB a stage."""
        for arch in ("sm_80", "sm_86", "sm_89", "sm_90", "sm_120"):
            for devices in (f"cuda:{arch}", f"cuda:{arch},cuda:{arch}"):
                done = check("strata-compile", self.model, "--dry-run", "--explain=json",
                             "--devices", devices)
                for stage in json.loads(done)["stages"]:
                    lines = {(line["class"], line["name"]) for line in stage["memory"]}
                    self.assertLessEqual(
                        {("reserved", "modules"), ("reserved", "libraries"), ("reserved", "graphs"),
                         ("reserved", "local memory"), ("measured", "context"), ("free", "floor")},
                        lines)
                    self.assertGreater(stage["totals"]["reserved"], 0)
                    self.assertLessEqual(stage["totals"]["reserved"], 256 * MIB)
        table = check("strata-compile", self.model, "--dry-run", "--devices", "cuda:sm_90")
        for line in (r"reserved +modules +\d+", r"reserved +graphs +\d+", r"total +reserved +\d+"):
            self.assertRegex(table, line)

    def test_row_19_what_fits_leaves_the_floor(self):
        """A GPU one byte too small for everything listed, the floor included, is refused."""
        def dry_run(bytes):
            return run("strata-compile", self.model, "--dry-run", "--explain=json", "--devices",
                       f"cuda:sm_90:{bytes}")

        stage = json.loads(dry_run(1 << 40).stdout)["stages"][0]
        needed = sum(stage["totals"].values())
        self.assertGreaterEqual(stage["totals"]["free"], 64 * MIB)
        for size in (needed, needed + 1, needed + 100 * MIB):
            self.assertEqual(dry_run(size).returncode, 0)
        for size in (needed - 1, needed - stage["totals"]["free"], 100 * MIB):
            refused = dry_run(size)
            self.assert_refused(refused, DOES_NOT_FIT, "short")

    def test_rows_23_and_24_a_boot_that_lacks_memory(self):
        """One attempt with a code of its own; the message has device, bytes and remedy."""
        plan = self.plan(self.model, "--max-seqs", 4096, "--kv", "f32")
        trace = self.path("empty.jsonl")
        open(trace, "w").close()
        needed = json.loads(check("strata-run", "explain", plan, "--json"))
        state = next(line["bytes"] for line in needed["stages"][0]["memory"]
                     if line["name"] == "state kv")
        self.assertGreater(state, 1 << 31)
        attempts = [run_within(500 * MIB, "strata-run", "replay", plan, trace) for _ in range(2)]
        for done in attempts:
            self.assert_refused(done, DOES_NOT_FIT, "device 'cpu'", "state 'kv'", str(state),
                                "--max-seqs", "--max-context")
            self.assertEqual(done.stderr.count("error:"), 1)
        self.assertEqual(attempts[0].stderr, attempts[1].stderr)

    def test_row_26_each_device_is_held_to_its_own_size(self):
        """Free memory is never read from another device: uneven ones get uneven stages."""
        def dry_run(first, second):
            return run("strata-compile", self.model, "--dry-run", "--explain=json", "--devices",
                       f"cpu:{first},cpu:{second}")

        whole = dry_run(1 << 30, 1 << 30)
        self.assertEqual(whole.returncode, 0, whole.stderr)
        sizes = [stage["totals"]["computed"] for stage in json.loads(whole.stdout)["stages"]]
        large = sum(sizes)
        layers = []
        for first, second in ((large * 2 // 5, large), (large, large * 2 // 5)):
            done = dry_run(first, second)
            self.assertEqual(done.returncode, 0, done.stderr)
            stages = json.loads(done.stdout)["stages"]
            for stage, size in zip(stages, (first, second), strict=True):
                self.assertLessEqual(stage["totals"]["computed"], size)
            layers.append([stage["end_layer"] - stage["first_layer"] for stage in stages])
        self.assertLess(layers[0][0], layers[0][1])
        self.assertGreater(layers[1][0], layers[1][1])
        for first, second, lacking in ((1, large, 0), (large, 1, 1)):
            done = dry_run(first, second)
            self.assertEqual(done.returncode, DOES_NOT_FIT)
            short = re.findall(r"^(\d) .* (\S+)$", done.stderr, re.MULTILINE)
            self.assertEqual([float(missing) > 0 for _, missing in short],
                             [stage == lacking for stage in range(2)], done.stderr)


if __name__ == "__main__":
    unittest.main()
