"""The text of a model-level strata.model as a tree of operations.

A small reader for what `strata-compile --emit=model` prints and what a person writes. It knows no
op: it keeps an operation's values, symbols, words and attributes in the order of the text, and
leaves their meaning to evaluator.py.
"""

import re
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"""\s+|//[^\n]*
    |(?P<string>"(?:[^"\\]|\\.)*")
    |(?P<value>%[\w$.-]+(?:\#\d+)?(?::\d+(?=\s*=))?)
    |(?P<symbol>@(?:[\w$.-]+|"(?:[^"\\]|\\.)*"))
    |(?P<arrow>->)
    |(?P<number>-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)
    |(?P<word>[\#!^]?[A-Za-z_][\w.]*)
    |(?P<mark>[{}()\[\]<>,:=?*-])""",
    re.VERBOSE,
)
# Dimensions such as `?x64x!strata.quant<q4_1>` would fall apart; a type is one token.
_TYPE = re.compile(r"(?:tensor|!strata\.\w+)(?:<(?:[^<>]|<(?:[^<>]|<[^<>]*>)*>)*>)?")
_ATTRIBUTE = re.compile(r"#strata\.\w+<(?:[^<>]|<[^<>]*>)*>")
_ALIAS = re.compile(r"^([#!]\w+)\s*=\s*(.+)$", re.MULTILINE)


@dataclass
class Operation:
    name: str  # without `strata.`
    results: list = field(default_factory=list)  # "%q"
    operands: list = field(default_factory=list)
    arguments: list = field(default_factory=list)  # of the region: "%h"
    symbols: list = field(default_factory=list)  # without `@`
    words: list = field(default_factory=list)  # keywords and bare integers
    keyed: dict = field(default_factory=dict)  # a word -> the string, type or attribute behind it
    attributes: dict = field(default_factory=dict)
    region: list = field(default_factory=list)

    def after(self, word):
        """The word behind `word`: `layer 3`."""
        return self.words[self.words.index(word) + 1]


def _tokens(text):
    aliases = dict(_ALIAS.findall(text))
    text = _ALIAS.sub("", text)
    for name in sorted(aliases, key=len, reverse=True):
        text = re.sub(re.escape(name) + r"\b", lambda _: aliases[name], text)
    position, found = 0, []
    while position < len(text):
        for kind, pattern in (("type", _TYPE), ("attribute", _ATTRIBUTE), (None, _TOKEN)):
            match = pattern.match(text, position)
            if match:
                break
        else:
            raise ValueError(f"cannot read the model's text at: {text[position : position + 60]!r}")
        position = match.end()
        kind = kind or match.lastgroup
        if kind:
            found.append((kind, match.group()))
    return found


class _Reader:
    def __init__(self, text):
        self.tokens, self.position = _tokens(text), 0

    def peek(self, ahead=0):
        at = self.position + ahead
        return self.tokens[at] if at < len(self.tokens) else ("end", "")

    def take(self, expected=None):
        kind, text = self.peek()
        if expected and text != expected:
            raise ValueError(f"expected {expected!r} but found {text!r}")
        self.position += 1
        return kind, text

    def starts_operation(self):
        kind, text = self.peek()
        if kind == "word":
            return text.startswith("strata.") or text in ("module", "builtin.module")
        ahead = 1
        while kind == "value" and self.peek(ahead)[1] == "," and self.peek(ahead + 1)[0] == "value":
            ahead += 2
        return kind == "value" and self.peek(ahead)[1] == "="

    def attribute_value(self):
        kind, text = self.take()
        if kind == "string":
            return text[1:-1]
        if text == "[":
            items = []
            while self.peek()[1] != "]":
                items.append(self.attribute_value())
                if self.peek()[1] == ",":
                    self.take()
            self.take()
            return items
        if text == "array":  # array<i64: 1, 2>
            items = []
            while self.take()[1] != ">":
                if self.peek()[0] == "number":
                    items.append(int(self.peek()[1]))
            return items
        if kind == "number":
            if self.peek()[1] == ":":
                self.take()
                self.take()
            return float(text) if "." in text or "e" in text.lower() else int(text)
        return text

    def attributes(self):
        found = {}
        self.take("{")
        while self.peek()[1] != "}":
            key = self.take()[1]
            found[key] = True
            if self.peek()[1] == "=":
                self.take()
                found[key] = self.attribute_value()
            if self.peek()[1] == ",":
                self.take()
        self.take()
        return found

    def bracketed(self):
        """The rest of `<...>`, which holds no other such brackets."""
        parts = []
        while (part := self.take()[1]) != ">":
            parts.append(part)
        return " ".join(parts)

    def opens_attributes(self):
        return self.peek(1)[0] == "word" and self.peek(2)[1] in ("=", ",", "}")

    def operation(self):
        op = Operation("")
        while self.peek()[0] == "value":
            name, _, count = self.take()[1].partition(":")
            op.results += [f"{name}#{i}" for i in range(int(count))] if count else [name]
            if self.take()[1] == "=":
                break
        op.name = self.take()[1].removeprefix("strata.")
        last, depth = op.name, 0  # inside parentheses `%x = %y` begins no operation
        while depth or not self.starts_operation():
            kind, text = self.peek()
            if kind == "end" or text == "}":
                break
            if text == "{":
                if self.opens_attributes():
                    op.attributes |= self.attributes()
                    continue
                self.take()
                op.region = self.operations()
                self.take("}")
                break
            self.take()
            if text == "<":  # an attribute whose name the op's assembly leaves out
                kind, text = "attribute", self.bracketed()
            depth += (text == "(") - (text == ")")
            if kind == "value":
                entry = self.peek()[1] == "=" and op.name == "layer"
                isolated = op.name == "forward"  # its only value is its argument
                (op.arguments if entry or isolated else op.operands).append(text)
                if entry:
                    self.take()
            elif kind == "symbol":
                op.symbols.append(text[1:].strip('"'))
            elif kind in ("word", "number"):
                op.words.append(text)
                last = text
            elif kind == "string":
                op.keyed[last] = text[1:-1]
            elif kind in ("type", "attribute"):
                op.keyed.setdefault(last if kind == "attribute" else "type", text)
        return op

    def operations(self):
        found = []
        while self.starts_operation():
            found.append(self.operation())
        return found


def parse_model(text):
    """The one `strata.model` of `text`."""
    reader = _Reader(text)
    operations = reader.operations()
    if reader.peek()[0] != "end":
        raise ValueError(f"cannot read the model's text from {reader.peek()[1]!r} on")
    while operations and operations[0].name in ("module", "builtin.module"):
        operations = operations[0].region
    models = [op for op in operations if op.name == "model"]
    if len(models) != 1:
        raise ValueError(f"the text holds {len(models)} models; one is evaluated")
    return models[0]
