"""Runs the unittest cases of one file for ctest: exit code 1 on a failure, 77 on a skip.

run_unittest.py FILE.py [TEST NAME...]
"""

import os
import sys
import unittest


def main():
    path, names = os.path.abspath(sys.argv[1]), sys.argv[2:]
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:0] = [os.path.dirname(path), here]
    module = os.path.splitext(os.path.basename(path))[0]
    loader = unittest.TestLoader()
    suite = loader.loadTestsFromNames([f"{module}.{name}" for name in names] or [module])
    if not suite.countTestCases():
        print(f"{path} holds no tests")
        return 1
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    for test, reason in result.skipped:
        print(f"SKIPPED {test}: {reason}")
    if not result.wasSuccessful():
        return 1
    return 77 if result.skipped else 0


if __name__ == "__main__":
    sys.exit(main())
