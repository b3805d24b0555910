"""Each example of the dialect's documentation stands word for word in a test.

    examples.py DIALECT_FOLDER TEST_FOLDER

Compares with white space and comments left out; `...` in an example stands for anything.
"""

import pathlib
import re
import sys


def plain(text):
    return re.sub(r"\s+", "", re.sub(r"//.*", "", text))


def examples(text):
    """The parts between `...` of each example, plain."""
    for block in re.findall(r"```mlir\n(.*?)```", text, re.DOTALL):
        for part in block.split("..."):
            if len(plain(part)) > 1:  # more than a closing bracket
                yield plain(part)


def main():
    dialect, tests = map(pathlib.Path, sys.argv[1:])
    tested = "\n".join(plain(path.read_text()) for path in sorted(tests.glob("*.mlir")))
    found, missing = 0, 0
    for path in sorted(dialect.glob("*.td")):
        for example in examples(path.read_text()):
            found += 1
            if example not in tested:
                missing += 1
                print(f"{path.name}: no test holds {example}")
    print(f"{found} examples, {missing} without a test")
    sys.exit(missing > 0 or found == 0)


if __name__ == "__main__":
    main()
