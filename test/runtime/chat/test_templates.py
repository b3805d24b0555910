"""Templates of real models, and templates that use what others use, against Jinja2."""

import glob
import itertools
import os
import unittest

from conversations import CONVERSATIONS, DOCUMENTS, TOOLS
from families import FAMILIES
from chat_jinja import Case, ComparedWithJinja2


def real_templates():
    here = os.path.dirname(os.path.abspath(__file__))
    data = os.environ.get("STRATA_TEST_DATA") or os.path.join(here, "../../../../shared/data")
    return sorted(glob.glob(os.path.join(data, "chat-templates", "*.jinja")))


OPTIONS = [
    {},
    {"add_generation_prompt": True},
    {"add_generation_prompt": True, "enable_thinking": False},
    {"enable_thinking": True, "tools": TOOLS},
    {"add_generation_prompt": True, "thinking": True, "tools": TOOLS, "documents": DOCUMENTS},
    {"tools": None, "date_string": "26 Jul 2024", "tools_in_user_message": False},
    {"tools": TOOLS, "tools_in_user_message": False, "builtin_tools": ["brave_search", "wolfram"]},
    {"tools": [], "documents": DOCUMENTS, "truncate_history_thinking": False},
]


def cases(template, name):
    """Every conversation under all options."""
    return [Case(template, {"messages": messages, **options}, f"{name}, {conversation}, {options}")
            for (conversation, messages), options in itertools.product(CONVERSATIONS.items(), OPTIONS)]


class Templates(ComparedWithJinja2):
    def test_real(self):
        paths = real_templates()
        if not paths:
            self.skipTest("the folder chat-templates is absent")
        for path in paths:
            with self.subTest(template=os.path.basename(path)), open(path) as file:
                self.assertGreater(self.compare(cases(file.read(), path)), 40)

    def test_families(self):
        for name, template in FAMILIES.items():
            with self.subTest(family=name):
                self.assertGreater(self.compare(cases(template, name)), 40)


if __name__ == "__main__":
    unittest.main()
