"""What strata-run's commands print and how they end."""

import json
import os
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../end_to_end"))

from make_checkpoint import Shape, make_folder, make_gguf
from tools import INVALID_DATA, NOT_SUPPORTED, TOOLS, USAGE, EndToEnd, check, run

INTERRUPTED = 130


def catches(process, number):
    """Whether it has a handler for this signal."""
    with open(f"/proc/{process.pid}/status") as file:
        caught = next(line for line in file if line.startswith("SigCgt:"))
    return int(caught.split()[1], 16) >> (number - 1) & 1


class WithoutAPlan(unittest.TestCase):
    def refused(self, exit_code, *arguments):
        """Exit code and the one line on standard error."""
        done = run("strata-run", *arguments)
        self.assertEqual(done.returncode, exit_code, done.stderr)
        lines = done.stderr.splitlines()
        self.assertTrue(lines[0].startswith("strata-run: error: "), done.stderr)
        self.assertEqual(done.stderr.count("error:"), 1, done.stderr)
        return done.stderr

    def test_version(self):
        self.assertRegex(check("strata-run", "--version"), r"^strata-run \d+\.\d+\.\d+ \(plan format \d+\)$")

    def test_help(self):
        commands = check("strata-run", "--help")
        for command in "generate chat logits perplexity tokenize replay bench explain verify devices".split():
            self.assertIn(command, commands)
            self.assertIn("--help", check("strata-run", command, "--help"))

    def test_no_arguments(self):
        self.assertEqual(run("strata-run").returncode, USAGE)

    def test_misspelt_command(self):
        self.assertIn("'generat'", self.refused(USAGE, "generat"))
        self.refused(USAGE, "generat", "model.strata", "Once")

    def test_bad_flags(self):
        for arguments in (
            ("generate",),
            ("generate", "p", "text", "--frobnicate"),
            ("generate", "p", "text", "--temperature", "-1"),
            ("generate", "p", "text", "--top-p", "1.5"),
            ("generate", "p", "text", "--max-tokens", "0"),
            ("generate", "p", "text", "--max-tokens", "99999999999"),
            ("generate", "p", "--ids", "1,x"),
            ("chat",),
            ("chat", "p", "--max-tokens", "0"),
            ("logits", "p", "--ids", "1"),
            ("tokenize", "f"),
            ("tokenize", "f", "--text", "a", "--text-file", "b"),
            ("bench", "p", "--repeat", "0"),
            ("bench", "p", "--random-weights", "-1"),
            ("replay", "p", "t", "--shuffle-blocks", "-1"),
        ):
            with self.subTest(arguments):
                self.refused(USAGE, *arguments)

    def test_absent_files(self):
        for arguments in (
            ("generate", "absent.strata", "text"),
            ("chat", "absent.strata"),
            ("logits", "absent.strata", "--ids", "1", "-o", "out"),
            ("tokenize", "absent.gguf", "--text", "a"),
            ("replay", "absent.strata", "trace"),
            ("bench", "absent.strata"),
            ("explain", "absent.strata"),
            ("verify", "absent.strata"),
        ):
            with self.subTest(arguments):
                self.assertIn("absent", self.refused(INVALID_DATA, *arguments))

    def test_devices(self):
        (cpu,) = json.loads(check("strata-run", "devices", "--json"))
        self.assertEqual(cpu["cores"], len(os.sched_getaffinity(0)))
        pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        self.assertEqual(cpu["memory_bytes"], pages)
        self.assertIn(cpu["isa"], check("strata-run", "devices"))


class WithAPlan(EndToEnd):
    def setUp(self):
        self.gguf = self.path("tiny.gguf")
        if not os.path.exists(self.gguf):
            make_gguf(Shape("smollm2"), self.gguf, seed=2)
        self.tiny = self.plan(self.gguf, "--max-context", 256)

    def test_plain_text_is_the_json_text(self):
        flags = ("generate", self.tiny, "a text", "--max-tokens", 20)
        done = json.loads(check("strata-run", *flags, "--json"))
        plain = run("strata-run", *flags)
        self.assertEqual(plain.stdout, done["text"] + "\n")
        self.assertRegex(plain.stderr, r"^\[(stop|length): prompt \d+ tokens in ")
        self.assertLessEqual(len(done["ids"]), 20)
        for key in ("boot", "prompt", "generation"):
            self.assertGreaterEqual(done["timings"][f"{key}_seconds"], 0)

    def test_output_that_cannot_be_written(self):
        generate = ("generate", self.tiny, "a text")
        for arguments in (generate, (*generate, "--json"), ("--help",), ("--version",)):
            with self.subTest(arguments), open("/dev/full", "w") as full:
                command = [TOOLS["strata-run"], *arguments]
                done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("standard output cannot be written", done.stderr)

    def test_the_seed_decides(self):
        flags = ("generate", self.tiny, "--ids", "5,6", "--max-tokens", 20, "--temperature", 1, "--json")
        ids = [
            json.loads(check("strata-run", *flags, *more))["ids"]
            for more in (("--seed", 1), ("--seed", 1, "--threads", 1), ("--seed", 2))
        ]
        self.assertEqual(ids[0], ids[1])
        self.assertNotEqual(ids[0], ids[2])

    def test_prompt_forms(self):
        neither = run("strata-run", "generate", self.tiny)
        self.assert_refused(neither, USAGE, "--ids")
        both = run("strata-run", "generate", self.tiny, "text", "--ids", "1")
        self.assert_refused(both, USAGE, "--ids")

    def test_interrupted(self):
        """Ctrl-C between two tokens: the text so far, whole, and its own exit code."""
        model = self.path("long.gguf")
        make_gguf(Shape("smollm2", context=100000), model)
        plan = self.plan(model, "--max-context", 100000)
        for json_flag in ((), ("--json",)):
            with self.subTest(json_flag):
                command = [TOOLS["strata-run"], "generate", plan, "--ids", "5", *json_flag]
                command += ["--max-tokens", "99000"]
                process = subprocess.Popen(
                    command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
                )
                while not catches(process, signal.SIGINT):  # from READY on
                    time.sleep(0.01)
                process.send_signal(signal.SIGINT)
                out, err = process.communicate(timeout=60)
                self.assertEqual(process.returncode, INTERRUPTED, err)
                if json_flag:
                    self.assertEqual(json.loads(out)["finish_reason"], "interrupted")
                    self.assertEqual(err, "")
                else:
                    self.assertTrue(out.endswith("\n"))
                    self.assertTrue(err.startswith("[interrupted: "), err)

    def test_tokenize_agrees_between_forms(self):
        folder = self.path("folder")
        make_folder(Shape("smollm2"), folder, seed=2)
        text = "A text, with\nlines and 123 numbers."
        flags = ("--text", text, "--json")
        first = json.loads(check("strata-run", "tokenize", self.gguf, *flags))
        self.assertEqual(json.loads(check("strata-run", "tokenize", self.tiny, *flags)), first)
        self.assertEqual(len(first["ids"]), len(first["pieces"]))
        with open(self.path("text"), "w") as file:
            file.write(text)
        from_file = check("strata-run", "tokenize", self.gguf, "--text-file", self.path("text"), "--json")
        self.assertEqual(json.loads(from_file), first)
        lines = check("strata-run", "tokenize", self.gguf, "--text", text).splitlines()
        self.assertEqual([int(line.split()[0]) for line in lines], first["ids"])

    def test_verify(self):
        self.assertIn("sound", check("strata-run", "verify", self.tiny))
        with open(self.tiny, "rb") as file:
            content = bytearray(file.read())
        content[4096 + 100] ^= 1  # the first weight segment begins at the second page
        broken = self.path("broken.strata")
        with open(broken, "wb") as file:
            file.write(content)
        self.assert_refused(run("strata-run", "verify", broken), INVALID_DATA, "segment")

    def test_explain(self):
        table = check("strata-run", "explain", self.tiny)
        self.assertIn("arena", table)
        self.assertIsInstance(json.loads(check("strata-run", "explain", self.tiny, "--json")), dict)

    def test_bench(self):
        flags = ("--prompt", 16, "--generate", 8, "--batch", 2, "--repeat", 3)
        found = json.loads(check("strata-run", "bench", self.tiny, *flags, "--json"))
        for part, tokens in (("prompt", 16), ("generation", 8)):
            rates = found[part]["tokens_per_second"]
            self.assertEqual(found[part]["tokens"], tokens)
            self.assertTrue(0 < rates["min"] <= rates["median"] <= rates["max"], rates)
        self.assertGreater(found["weight_bytes_per_token"], 0)
        self.assertGreater(found["memory_gigabytes_per_second"], 0)
        self.assertGreater(found["fraction_of_memory"]["min"], 0)
        self.assertEqual(found["threads"], os.cpu_count())
        one = json.loads(check("strata-run", "bench", self.tiny, *flags, "--threads", 1, "--json"))
        self.assertEqual(one["threads"], 1)
        self.assertIn("generation", check("strata-run", "bench", self.tiny, *flags))
        done = run("strata-run", "bench", self.tiny, "--prompt", 256)
        self.assert_refused(done, USAGE, "256")
        done = run("strata-run", "bench", self.tiny, "--batch", 99)
        self.assert_refused(done, USAGE, "99", "--max-seqs")

    def test_weights_that_are_not_there(self):
        folder = self.path("bare")
        make_folder(Shape("smollm2"), folder)
        config = os.path.join(folder, "config.json")
        plan = self.plan(config, "--weights=none", "--weight-type", "q8_0", "--max-context", 256)
        flags = ("bench", plan, "--prompt", 8, "--generate", 4, "--repeat", 1)
        self.assertGreater(run("strata-run", *flags).returncode, 0)
        check("strata-run", *flags, "--random-weights", 7)
        done = run("strata-run", "bench", self.tiny, "--random-weights", 7)
        self.assert_refused(done, USAGE, "--random-weights", "has its own")

    def test_text_file_that_is_a_folder(self):
        done = run("strata-run", "tokenize", self.tiny, "--text-file", os.path.dirname(self.tiny))
        self.assert_refused(done, USAGE, "cannot read")

    def test_server(self):
        self.assert_refused(run("strata-run", self.tiny), NOT_SUPPORTED, "generate")
        folder = os.path.dirname(self.tiny)
        self.assert_refused(run("strata-run", folder), USAGE, folder, "is a folder")


if __name__ == "__main__":
    unittest.main()
