"""What Strata does not do it refuses, by the name of the thing."""

import json
import os
import unittest

from gguf import write_gguf
from make_checkpoint import Shape, make_folder, make_gguf
from tools import INVALID_DATA, NOT_SUPPORTED, USAGE, EndToEnd, run


class Configurations(EndToEnd):
    """Changes to a good config.json."""

    def compile_with(self, changes, *options, family="llama"):
        model = self.path("model")
        make_folder(Shape(family), model)
        path = os.path.join(model, "config.json")
        with open(path) as file:
            config = json.load(file)
        for key, value in changes.items():
            inner, _, outer = key.rpartition("/")
            (config[inner] if inner else config)[outer] = value
        with open(path, "w") as file:
            json.dump(config, file)
        if os.path.exists(self.path("out.strata")):
            os.remove(self.path("out.strata"))
        output = self.path("out.strata")
        if os.path.exists(output):  # of a test before this one
            os.remove(output)
        return run("strata-compile", model, "-o", output, *options)

    def test_unknown_keys(self):
        for key in ("attention_temperature", "rope_parameters/mystery", "logit_scale"):
            with self.subTest(key):
                done = self.compile_with({key: 2.0})
                self.assert_refused(done, NOT_SUPPORTED, key.rpartition("/")[2])
                self.assertFalse(os.path.exists(self.path("out.strata")))

    def test_keys_that_say_nothing(self):
        harmless = {"attention_temperature": None, "use_magic": False, "_comment": "by hand"}
        done = self.compile_with(harmless)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_ignored_on_request(self):
        done = self.compile_with({"logit_scale": 2.0}, "--ignore-config", "logit_scale")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_unknown_values(self):
        for change, named in (
            ({"hidden_act": "gelu_new"}, "gelu_new"),
            ({"rope_parameters/rope_type": "dynamic"}, "dynamic"),
            ({"model_type": "mamba9"}, "mamba9"),
        ):
            with self.subTest(named):
                self.assert_refused(self.compile_with(change), NOT_SUPPORTED, named)

    def test_impossible_values(self):
        for change, named in (
            ({"num_attention_heads": 0}, "num_attention_heads"),
            ({"num_key_value_heads": 3}, "num_key_value_heads"),
            ({"hidden_size": -64}, "hidden_size"),
            ({"hidden_size": 2**62}, "hidden_size"),
            ({"rms_norm_eps": "small"}, "rms_norm_eps"),
            ({"num_hidden_layers": 3}, "layers.2."),
        ):
            with self.subTest(named):
                done = self.compile_with(change)
                self.assertNotEqual(done.returncode, 0)
                self.assertGreater(done.returncode, 0, "ended by a signal")
                self.assertIn(named, done.stderr)


class Tensors(EndToEnd):
    def test_missing_and_extra(self):
        """GGUF files whose tensor table is not the model's."""
        import gguf

        path = self.path("tiny.gguf")
        make_gguf(Shape("llama"), path)
        whole = gguf.GgufFile(path)
        kinds = {int: "u32", float: "f32", str: "string", bool: "bool"}
        pairs = []
        for key, value in whole.metadata.items():
            kind = kinds[type(value[0] if isinstance(value, list) else value)]
            if key == "tokenizer.ggml.token_type":
                kind = "i32"
            pairs.append((key, f"[{kind}]" if isinstance(value, list) else kind, value))
        tensors = {name: ("f32", whole.tensor(name)) for name in whole.tensors}
        down = "blk.1.ffn_down.weight"
        changes = {
            "missing": {down: None},
            "unknown": {"blk.1.ffn_sideways.weight": tensors[down]},
            "misshapen": {down: ("f32", tensors[down][1].T)},
        }
        for name, change in changes.items():
            with self.subTest(name):
                kept = {k: v for k, v in (tensors | change).items() if v}
                changed = self.path(f"{name}.gguf")
                write_gguf(changed, pairs, [(k, *v) for k, v in kept.items()])
                done = run("strata-compile", changed, "-o", self.path("out.strata"))
                self.assertGreater(done.returncode, 0)
                self.assertIn(next(iter(change)), done.stderr)

    def test_cut_short(self):
        path = self.path("short.gguf")
        make_gguf(Shape("llama"), path)
        size = os.path.getsize(path)
        for left in (0, 3, 24, 1000, size // 2, size - 40):
            with self.subTest(bytes=left):
                os.truncate(path, left) if left < os.path.getsize(path) else None
                done = run("strata-compile", path, "-o", self.path("out.strata"))
                self.assertGreater(done.returncode, 0)
                self.assertIn("short.gguf", done.stderr)
                make_gguf(Shape("llama"), path)


class Options(EndToEnd):
    def test_not_built_yet(self):
        """Options of the design that are not real in this build."""
        model = self.path("tiny.gguf")
        make_gguf(Shape("llama"), model)
        for options in (
            ("--kv", "int8"),
            ("--activations", "int8"),
        ):
            with self.subTest(options):
                done = run("strata-compile", model, "-o", self.path("out.strata"), *options)
                self.assert_refused(done, NOT_SUPPORTED, options[1])

    def test_nonsense(self):
        model = self.path("tiny.gguf")
        make_gguf(Shape("llama"), model)
        for options in (
            ("--kv", "f7"),
            ("--buckets", "r0s1"),
            ("--devices", "cuda:sm_75"),
            ("--buckets", "r4s8"),  # more sequences than rows
            ("--max-context", 0),
            ("--max-seqs", -1),
            ("--frobnicate",),
        ):
            with self.subTest(options):
                done = run("strata-compile", model, "-o", self.path("out.strata"), *options)
                self.assert_refused(done, USAGE)


class Prompts(EndToEnd):
    def setUp(self):
        model = self.path("tiny.gguf")
        make_gguf(Shape("llama"), model)
        self.tiny = self.plan(model, "--max-context", 32)

    def generate_with(self, ids):
        return run("strata-run", "generate", self.tiny, "--ids", ids, "--max-tokens", 4)

    def test_past_the_context(self):
        done = self.generate_with(",".join(["5"] * 50))
        self.assert_refused(done, USAGE, "50", "32")

    def test_ids_outside_the_vocabulary(self):
        self.assert_refused(self.generate_with("5,320"), USAGE, "320")
        self.assertEqual(self.generate_with("5,-7").returncode, USAGE)
        self.assertEqual(self.generate_with("5,six").returncode, USAGE)

    def test_no_plan(self):
        done = run("strata-run", "generate", self.path("absent.strata"), "--ids", "1")
        self.assert_refused(done, INVALID_DATA, "absent.strata")

    def test_server(self):
        self.assert_refused(run("strata-run", self.tiny), NOT_SUPPORTED, "server")


if __name__ == "__main__":
    unittest.main()
