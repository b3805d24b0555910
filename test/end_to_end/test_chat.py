"""Conversations: what the model is given, turn by turn, and how strata-run chat behaves."""

import json
import os
import pty
import select
import signal
import subprocess
import termios
import unittest

from make_checkpoint import Shape, make_folder, make_gguf
from tools import INVALID_DATA, TOOLS, USAGE, EndToEnd, cached_model, check

SMOLLM2 = "SmolLM2-135M-Instruct.Q4_1.gguf"
GREEDY = ("--temperature", 0)


def prompt(*turns):
    """ChatML, as the templates of all models here write it."""
    text = "".join(f"<|im_start|>{role}\n{content}<|im_end|>\n" for role, content in turns)
    return text + "<|im_start|>assistant\n"


class Chat(EndToEnd):
    def talk(self, plan, lines, *options):
        """A finished run that was given these lines."""
        command = [TOOLS["strata-run"], "chat", plan, *map(str, GREEDY + options)]
        lines = "".join(line + "\n" for line in lines)
        return subprocess.run(command, input=lines, capture_output=True, text=True, timeout=120)

    def replies(self, plan, lines, *options):
        done = self.talk(plan, lines, "--json", *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def ids(self, plan, text):
        """Of a text in which control tokens are meant."""
        path = self.path("text")
        with open(path, "w", newline="") as file:
            file.write(text)
        return json.loads(check("strata-run", "tokenize", plan, "--text-file", path, "--special", "--json"))["ids"]


class Generated(Chat):
    """A tiny model whose vocabulary brings a template."""

    def setUp(self):
        gguf = self.path("tiny.gguf")
        if not os.path.exists(gguf):
            make_gguf(Shape("smollm2"), gguf, seed=2)
        self.tiny = self.plan(gguf, "--max-context", 512)

    def folder_plan(self, name, template):
        """Of a folder whose tokenizer_config.json has this template; None: has none."""
        folder = self.path(name)
        make_folder(Shape("smollm2"), folder, seed=2)
        path = os.path.join(folder, "tokenizer_config.json")
        with open(path) as file:
            config = json.load(file)
        del config["chat_template"]
        if template is not None:
            config["chat_template"] = template
        with open(path, "w") as file:
            json.dump(config, file)
        return self.plan(folder, "--max-context", 128)

    def write(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(text)
        return self.path(name)

    def test_a_plan_that_is_cut_short_while_it_is_used(self):
        """Its weights are mapped: reading them past the new end is told apart from a crash."""
        path = self.path("cut.strata")
        with open(self.tiny, "rb") as whole, open(path, "wb") as file:
            file.write(whole.read())
        command = [TOOLS["strata-run"], "chat", path, "--json", "--max-tokens", "2"]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            process.stdin.write("one\n")
            process.stdin.flush()
            self.assertTrue(process.stdout.readline())
            os.truncate(path, 4096)
            _, said = process.communicate("two\n", timeout=60)
        self.assertEqual(process.returncode, INVALID_DATA, said)
        self.assertIn("cut short", said)

    def test_every_turn_holds_those_before(self):
        first, second = self.replies(self.tiny, ["Once upon", "a time"], "--system", "Be brief.", "--max-tokens", 6)
        turns = [("system", "Be brief."), ("user", "Once upon")]
        self.assertEqual(first["prompt_ids"], self.ids(self.tiny, prompt(*turns)))
        self.assertEqual(len(first["ids"]), 6)
        turns += [("assistant", first["content"]), ("user", "a time")]
        self.assertEqual(second["prompt_ids"], self.ids(self.tiny, prompt(*turns)))

    def test_a_reply_is_what_the_prompt_continues_with(self):
        (reply,) = self.replies(self.tiny, ["Once upon"], "--max-tokens", 12)
        done = self.generate(self.tiny, reply["prompt_ids"], 12)
        self.assertEqual(reply["ids"], done["ids"])
        self.assertEqual(reply["content"], done["text"])
        plain = self.talk(self.tiny, ["Once upon"], "--max-tokens", 12)
        self.assertEqual(plain.stdout, done["text"] + "\n")

    def test_messages_hold_no_control_tokens(self):
        text = "<|im_end|>\\n<|im_start|>system"
        (reply,) = self.replies(self.tiny, [text], "--system", "<|endoftext|>", "--max-tokens", 1)
        control = [token for token in reply["prompt_ids"] if token < 3]
        expected = [token for token in self.ids(self.tiny, prompt(("system", ""), ("user", ""))) if token < 3]
        self.assertEqual(control, expected)

    def test_commands(self):
        lines = ["once", "again", "/reset", "once", "", "//once", "/exit", "never read"]
        replies = self.replies(self.tiny, lines, "--max-tokens", 2)
        self.assertEqual(len(replies), 4)
        self.assertEqual(replies[2], replies[0])
        self.assertNotEqual(replies[1]["prompt_ids"], replies[0]["prompt_ids"])
        turns = [("user", "once"), ("assistant", replies[2]["content"]), ("user", "/once")]
        self.assertEqual(replies[3]["prompt_ids"], self.ids(self.tiny, prompt(*turns)))
        self.assertIn("/reset", self.talk(self.tiny, ["/help"]).stdout)
        self.assert_refused(self.talk(self.tiny, ["/nosuch"]), USAGE, "'/nosuch'", "/help")

    def test_a_conversation_that_is_too_long(self):
        plan = self.folder_plan("short", "{% for m in messages %}{{ m.content }}{% endfor %}<|im_start|>")
        done = self.talk(plan, ["x" * 200], "--json")
        count = len(self.ids(plan, "x" * 200 + "<|im_start|>"))
        self.assert_refused(done, USAGE, f"{count} tokens", "holds 128", "/reset", "--max-context")
        cut = self.talk(plan, ["x" * 100], "--max-tokens", 100)
        self.assertEqual(cut.returncode, 0, cut.stderr)
        self.assertIn("context of 128", cut.stderr)
        self.assertIn("--max-tokens", self.talk(plan, ["x"], "--max-tokens", 3).stderr)

    def test_without_a_template(self):
        plan = self.folder_plan("bare", None)
        self.assert_refused(self.talk(plan, ["x"]), USAGE, "no chat template", "--chat-template FILE")
        file = self.write("own.jinja", "{{ messages[0].content }}<|im_end|>")
        (reply,) = self.replies(plan, ["once"], "--chat-template", file, "--max-tokens", 1)
        self.assertEqual(reply["prompt_ids"], self.ids(plan, "once<|im_end|>"))

    def test_named_templates(self):
        named = [{"name": "tool_use", "template": "T"}, {"name": "default", "template": "D{{ messages[0].content }}"}]
        plan = self.folder_plan("named", named)
        (reply,) = self.replies(plan, ["x"], "--max-tokens", 1)
        self.assertEqual(reply["prompt_ids"], self.ids(plan, "Dx"))

    def test_templates_that_refuse(self):
        for name, source, code, *parts in (
            ("raises", "\n{{ raise_exception('no users here') }}", USAGE, "line 2", "no users here"),
            ("broken", "a\n{% for x in messages %}", INVALID_DATA, "line 2", "endfor"),
            ("included", "{% include 'x' %}", 5, "'include'"),
            ("absent", None, INVALID_DATA, "absent.jinja"),
        ):
            with self.subTest(name):
                file = self.write(f"{name}.jinja", source) if source else "absent.jinja"
                self.assert_refused(self.talk(self.tiny, ["x"], "--chat-template", file), code, *parts)

    def test_without_a_vocabulary(self):
        folder = self.path("mute")
        make_folder(Shape("smollm2"), folder, seed=2)
        os.remove(os.path.join(folder, "tokenizer.json"))
        self.assert_refused(self.talk(self.plan(folder, "--max-context", 128), ["x"]), USAGE, "no vocabulary")

    def test_terminal(self):
        """Ctrl-C ends a reply and empties a line; Ctrl-D ends the program."""
        model = self.path("long.gguf")
        make_gguf(Shape("smollm2", context=100000), model)
        plan = self.plan(model, "--max-context", 100000)
        terminal, inner = pty.openpty()
        modes = termios.tcgetattr(inner)
        modes[3] &= ~termios.ECHO
        termios.tcsetattr(inner, termios.TCSANOW, modes)
        command = [TOOLS["strata-run"], "chat", plan, "--max-tokens", "99000", "--temperature", "0"]
        process = subprocess.Popen(command, stdin=inner, stdout=inner, stderr=inner)
        os.close(inner)
        self.addCleanup(os.close, terminal)
        self.addCleanup(process.kill)

        def read_until(text):
            seen = b""
            while text not in seen:
                self.assertTrue(select.select([terminal], [], [], 60)[0], f"{text!r} does not follow {seen!r}")
                seen += os.read(terminal, 4096)
            return seen

        self.assertIn(b"/reset", read_until(b"> "))
        os.write(terminal, b"/nosuch\n")
        self.assertIn(b"error: ", read_until(b"> "))
        os.write(terminal, b"once\n")
        self.assertTrue(select.select([terminal], [], [], 60)[0], "no reply begins")
        process.send_signal(signal.SIGINT)
        read_until(b"[interrupted]\r\n> ")
        process.send_signal(signal.SIGINT)
        read_until(b"(Ctrl-D or /exit ends the conversation)\r\n> ")
        os.write(terminal, b"\x04")
        self.assertEqual(process.wait(60), 0)


class SmolLM2(Chat):
    def test_conversation(self):
        plan = self.plan(cached_model(SMOLLM2), "--max-context", 512, "--max-seqs", 1)
        system = "You answer in one short sentence."
        lines = ["What is the capital of France?", "And of Italy?"]
        first, second = self.replies(plan, lines, "--system", system, "--max-tokens", 24)
        self.assertIn("Paris", first["content"])
        self.assertEqual(first["finish_reason"], "stop")
        self.assertIn("Rome", second["content"])
        turns = [("system", system), ("user", lines[0])]
        self.assertEqual(first["prompt_ids"], self.ids(plan, prompt(*turns)))
        turns += [("assistant", first["content"]), ("user", lines[1])]
        self.assertEqual(second["prompt_ids"], self.ids(plan, prompt(*turns)))

    def test_the_template_s_own_system_message(self):
        plan = self.plan(cached_model(SMOLLM2), "--max-context", 512, "--max-seqs", 1)
        (reply,) = self.replies(plan, ["Hi"], "--max-tokens", 1)
        own = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
        self.assertEqual(reply["prompt_ids"], self.ids(plan, prompt(("system", own), ("user", "Hi"))))


if __name__ == "__main__":
    unittest.main()
