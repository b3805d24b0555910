"""Writes UnicodeTables.cpp: what Python's str methods know of Unicode, as sorted ranges.

python3 unicode_tables.py > UnicodeTables.cpp && clang-format -i UnicodeTables.cpp
"""

import sys
import unicodedata

POINTS = [c for c in range(0x80, 0x110000) if not 0xD800 <= c <= 0xDFFF]


def ranges(holds):
    out = []
    for point in POINTS:
        if holds(chr(point)):
            if out and out[-1][1] == point - 1:
                out[-1][1] = point
            else:
                out.append([point, point])
    return out


def shifts(change):
    """[first, last, stride, delta]: neighbours or every second point that move by the same delta."""
    out = []
    for point in POINTS:
        changed = change(chr(point))
        if changed == chr(point) or len(changed) != 1:
            continue
        delta = ord(changed) - point
        last = out[-1] if out else None
        gap = point - last[1] if last else 0
        if last and last[3] == delta and (gap == last[2] or last[0] == last[1] and gap <= 2):
            last[1], last[2] = point, gap
        else:
            out.append([point, point, 1, delta])
    return out


def braces(rows):
    return ", ".join("{" + ", ".join(f"0x{x:X}" if x > 9 else str(x) for x in row) + "}" for row in rows)


def main():
    print(f"// Written by unicode_tables.py from Unicode {unicodedata.unidata_version}; ASCII is left out.")
    print('#include "runtime/chat/UnicodeTables.h"\n\nnamespace strata::chat {\n')
    for name, holds in (
        ("unprintableRanges", lambda c: not c.isprintable()),
        ("alphabeticRanges", str.isalpha),
        ("decimalRanges", str.isdecimal),
        ("digitRanges", str.isdigit),
        ("numericRanges", str.isnumeric),
    ):
        rows = ranges(holds)
        print(f"const std::array<CharacterRange, {len(rows)}> {name}{{{{{braces(rows)}}}}};\n")
    for name, change in (("upperShifts", str.upper), ("lowerShifts", str.lower), ("titleShifts", str.title)):
        rows = shifts(change)
        print(f"const std::array<CaseShift, {len(rows)}> {name}{{{{{braces(rows)}}}}};\n")
    for name, change in (("upperExpansions", str.upper), ("lowerExpansions", str.lower), ("titleExpansions", str.title)):
        rows = [(p, change(chr(p))) for p in POINTS if len(change(chr(p))) > 1]
        body = ", ".join("{0x%X, U\"%s\"}" % (p, "".join("\\U%08X" % ord(c) for c in text)) for p, text in rows)
        print(f"const std::array<CaseExpansion, {len(rows)}> {name}{{{{{body}}}}};\n")
    print("} // namespace strata::chat")


if __name__ == "__main__":
    sys.exit(main())
