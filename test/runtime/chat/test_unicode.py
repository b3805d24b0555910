"""What str's methods say of every character that Python's Unicode knows."""

import sys
import unicodedata
import unittest

from chat_jinja import Case, ComparedWithJinja2

METHODS = (
    "isalpha isdecimal isdigit isnumeric islower isupper isspace upper lower title capitalize swapcase"
).split()
TEMPLATE = "{% for c in text %}" + "".join(f"{{{{ c.{m}() }}}}," for m in METHODS) + "{% endfor %}"

# Modifier letters that are lower case since Unicode 15, which ICU has before Python does.
NEWLY_LOWER = "\u10fc\ua7f2\ua7f3\ua7f4\uab69"


def assigned():
    """Characters that are: the interpreter's Unicode may know more of the others."""
    points = (chr(p) for p in range(sys.maxunicode + 1) if not 0xD800 <= p < 0xE000)
    return [c for c in points if unicodedata.category(c) not in ("Cn", "Co") and c not in NEWLY_LOWER]


class Unicode(ComparedWithJinja2):
    # Those whose case or kind is of interest, and a sample of the tens of thousands of ideographs.
    def test_methods(self):
        plain = [c for c in assigned() if unicodedata.category(c) == "Lo" and not unicodedata.numeric(c, 0)]
        of_interest = sorted(set(assigned()) - set(plain)) + plain[::50]
        size = 1000
        cases = [
            Case(TEMPLATE, {"text": "".join(of_interest[i : i + size])})
            for i in range(0, len(of_interest), size)
        ]
        self.assertEqual(self.compare(cases), len(cases))

    def test_repr(self):
        characters = assigned()[::7]
        size = 4000
        cases = [
            Case("{{ [text] }}", {"text": "".join(characters[i : i + size])})
            for i in range(0, len(characters), size)
        ]
        self.assertEqual(self.compare(cases), len(cases))


if __name__ == "__main__":
    unittest.main()
