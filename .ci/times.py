#!/usr/bin/env python3
"""Copies the output of `cargo test`, or of several, and closes with the time of each test binary and of the slowest tests.

libtest measures no single test on the stable toolchain. The time of a test is therefore the time between its result and the one
before it in the same binary: exact where tests run one after the other, as those with the engine do, and less than the truth
where they run side by side.

`times.py LOG…` prints the slowest of all tests in such logs, which the log of a whole CI has in several places.
"""

import collections
import re
import sys
import time

SLOWEST = 25


def main(lines, now):
    binaries, tests = collections.defaultdict(lambda: [0, 0, ""]), []
    whole, binary, last = "?", "?", now()
    for line in lines:
        sys.stdout.write(line)
        sys.stdout.flush()
        moment = now()
        if found := re.match(r"\s+(?:Running (?:unittests )?(\S+)|Doc-tests (\S+))", line):
            whole, binary = line, found[1] or f"doc-tests of {found[2]}"
        elif re.match(r"running \d+ tests?$", line):
            last = moment
        elif found := re.match(r"test (.+?) \.\.\. (?:ok|FAILED)", line):
            tests.append((moment - last, binary, found[1]))
            last = moment
        elif found := re.match(r"test result: .* (\d+) passed; (\d+) failed; .* finished in ([\d.]+)s", line):
            sums = binaries[whole]
            sums[:] = sums[0] + float(found[3]), sums[1] + int(found[1]) + int(found[2]), binary
    print("\ntime of each test binary")
    for seconds, count, name in sorted(binaries.values(), reverse=True):
        print(f"{seconds:9.1f} s  {name} ({count} tests)")
    print(f"{sum(seconds for seconds, _, _ in binaries.values()):9.1f} s  all")
    print(f"the {SLOWEST} slowest tests (time since the result before)")
    for seconds, binary, name in sorted(tests, reverse=True)[:SLOWEST]:
        print(f"{seconds:9.1f} s  {name} ({binary})")


def slowest(paths):
    rows = set()
    for path in paths:
        for line in open(path, errors="replace"):
            if found := re.match(r" *(\d+\.\d) s  (\S+::\S+) \(.+\)$", line):
                rows.add((float(found[1]), found[2]))
    print("the slowest tests of all")
    for seconds, name in sorted(rows, reverse=True)[: SLOWEST // 2]:
        print(f"{seconds:9.1f} s  {name}")


if __name__ == "__main__":
    if sys.argv[1:]:
        slowest(sys.argv[1:])
    else:
        sys.stdin.reconfigure(errors="replace")
        main(sys.stdin, time.monotonic)
