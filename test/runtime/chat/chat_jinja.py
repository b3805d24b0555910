"""Jinja2 as transformers configures it for chat templates, and our renderer beside it."""

import datetime
import functools
import json
import os
import re
import subprocess
import unittest
import warnings

try:
    import jinja2
    import jinja2.ext
    import jinja2.nodes
    import jinja2.sandbox
except ImportError:
    jinja2 = None

NOW = 1753142400  # 2025-07-22, a Tuesday
BOS, EOS = "<s>", "</s>"

needs_jinja2 = unittest.skipIf(jinja2 is None, "Jinja2 is not installed")


def environment():
    class Generation(jinja2.ext.Extension):
        """`{% generation %}` as a call block, whose body has a scope of its own."""

        tags = {"generation"}

        def parse(self, parser):
            line = next(parser.stream).lineno
            body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
            call = self.call_method("render")
            return jinja2.nodes.CallBlock(call, [], [], body).set_lineno(line)

        @staticmethod
        def render(caller):
            return caller()

    def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                          sort_keys=sort_keys)

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def strftime_now(form):
        now = datetime.datetime.fromtimestamp(NOW, datetime.timezone.utc)
        return now.strftime(form)

    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = strftime_now
    return env


@functools.lru_cache(maxsize=8)
def compiled(env, template):
    return env.from_string(template)


class Failure(str):
    """The message of a template that was refused."""


def expected(env, template, variables):
    """What Jinja2 makes of a template: the text, or a Failure."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            text = compiled(env, template).render(**variables, bos_token=BOS, eos_token=EOS)
        text.encode()
        # Objects printed with their addresses or insides; nothing that a prompt can want.
        unprintable = re.search(r" at 0x[0-9a-f]{6}|<(LoopContext|Macro|Namespace|class) ", text)
        return Failure(f"prints {unprintable[0]!r}") if unprintable else text
    except Exception as error:  # Jinja2 lets every error of Python through.
        return Failure(f"{type(error).__name__}: {error}")


class Case:
    """A template with its variables, and what both renderers make of it."""

    def __init__(self, template, variables=None, label=None):
        self.template, self.variables = template, variables or {}
        self.label = label or template

    def request(self):
        return json.dumps({"template": self.template, "variables": self.variables, "now": NOW,
                           "template_texts": {"bos_token": BOS, "eos_token": EOS}})


def answers(cases):
    """Our renderer's answer to each case."""
    path = os.path.join(os.environ["STRATA_BIN"], "chat-render-json")
    lines = "\n".join(case.request() for case in cases) + "\n"
    run = subprocess.run([path], input=lines.encode(), stdout=subprocess.PIPE, check=False)
    out = run.stdout.splitlines()
    if run.returncode or len(out) != len(cases):
        raise AssertionError(f"the renderer died with {run.returncode} on {cases[len(out)].label!r}: "
                             f"{cases[len(out)].request()}")
    return [json.loads(line) for line in out]


def rendered(answer):
    """The text, or a Failure."""
    if "error" in answer:
        return Failure(answer["error"])
    return "".join(text for text, _ in answer["spans"])


def difference(want, have):
    """None where both are the same text or both are refusals, else words for it."""
    if isinstance(want, Failure):
        return None if isinstance(have, Failure) else f"gives {have!r}; Jinja2 refuses: {want}"
    if isinstance(have, Failure):
        return f"is refused: {have}; Jinja2 gives {want!r}"
    return None if have == want else f"gives\n{have!r}; Jinja2 gives\n{want!r}"


@needs_jinja2
class ComparedWithJinja2(unittest.TestCase):
    def compare(self, cases):
        """All cases render the same or are refused by both. Gives how many rendered."""
        env = environment()
        count, differences = 0, []
        for case, answer in zip(cases, answers(cases)):
            have = rendered(answer)
            count += not isinstance(have, Failure)
            words = difference(expected(env, case.template, case.variables), have)
            if words:
                differences.append(f"{case.label!r} {words}")
        self.assertFalse(differences, f"{len(differences)} of {len(cases)} differ:\n"
                         + "\n".join(differences[:10]))
        return count
