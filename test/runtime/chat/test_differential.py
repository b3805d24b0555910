"""Constructs one by one, then random templates made of them, against Jinja2."""

import os
import random
import unittest

from chat_jinja import Case, ComparedWithJinja2
from constructs import CONSTRUCTS, VARIABLES, WHITESPACE
from grammar import Grammar

# More by hand: STRATA_FUZZ_TEMPLATES=5000 STRATA_FUZZ_SEED=7.
COUNT = int(os.environ.get("STRATA_FUZZ_TEMPLATES", "300"))
SEED = int(os.environ.get("STRATA_FUZZ_SEED", "1"))


class Differential(ComparedWithJinja2):
    def test_constructs(self):
        self.compare([Case(template, VARIABLES) for template in CONSTRUCTS])

    def test_whitespace(self):
        rendered = self.compare([Case(template, VARIABLES) for template in WHITESPACE])
        self.assertEqual(rendered, len(WHITESPACE))

    def test_random(self):
        grammar = Grammar(random.Random(SEED))
        templates = [grammar.template() for _ in range(COUNT)]
        rendered = self.compare([Case(template, VARIABLES) for template in templates])
        self.assertGreater(rendered, COUNT / 4)


if __name__ == "__main__":
    unittest.main()
