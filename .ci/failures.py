#!/usr/bin/env python3
"""What the tests that failed or hang printed, from the output of `cargo test`: `failures.py LOG …`. Nothing when none did.

A whole log is longer than what most pages of a CI show. Of each test come the first and the last lines, LINES in all.
"""

import re
import sys

LINES = 40


def sections(path):
    """Yields the name of each test that failed and the lines that it printed."""
    name, lines, began = None, [], "?"
    for line in open(path, errors="replace"):
        line = line.rstrip("\n")
        # `.ci/limited` says that nothing ends, and the last test that began is the one.
        if found := re.match(r"test (\S+) \.\.\.", line):
            began = found[1]
        hangs = line.startswith("HANGS after") and f"HANGS {began}"
        found = re.match(r"---- (.+) (?:stdout|stderr) ----$", line)
        if hangs or found or line in ("failures:", "successes:") or line.startswith(("test result:", "     Running ")):
            if name:
                yield name, lines
            name, lines = hangs or found and f"FAILED {found[1]}", [line[:500]] if hangs else []
        elif name:
            lines.append(line[:500])
    if name:
        yield name, lines


for path in sys.argv[1:]:
    for name, lines in sections(path):
        lines = [line for line in lines if line]
        if len(lines) > LINES:
            lines[LINES // 2 : -LINES // 2] = [f"[{len(lines) - LINES} lines more in {path}]"]
        print(f"\n{name}", *lines, sep="\n  ")
