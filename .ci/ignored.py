#!/usr/bin/env python3
"""The ignored tests of a run of `cargo test`, read from its output: `ignored.py LOG`.

Without a further argument: how many there are for each reason. With the beginning of a reason, `ignored.py LOG needs`: the
arguments for cargo that run those tests, a line for each test binary. The reason of an ignored test begins with who runs it:
`needs …` is for .ci/run, `nightly: …` for .ci/nightly, `by hand: …` for a person, `inner: …` for another test.
"""

import collections
import re
import sys

TARGETS = [
    (r"unittests src/lib\.rs .*/deps/envforge-", "--lib"),
    (r"tests/(\w+)/main\.rs .*", r"--test=\1"),
]


def read(path):
    target = None
    for line in open(path, errors="replace"):
        if found := re.match(r"\s+Running (.+)", line):
            matches = (re.match(pattern, found[1]) and re.sub(pattern + ".*", to, found[1]) for pattern, to in TARGETS)
            target = next(filter(None, matches), None)
        elif found := re.match(r"test (\S+) \.\.\. ignored, (.+)", line):
            if target is None:
                sys.exit(f"{found[1]} is ignored in a test binary that {sys.argv[0]} cannot name to cargo")
            yield target, found[1], found[2]


def main(path, beginning=None):
    tests = list(read(path))
    if beginning is None:
        reasons = collections.Counter(reason.split(":")[0] if reason.startswith("needs") else reason for _, _, reason in tests)
        for reason, count in sorted(reasons.items(), key=lambda entry: (-entry[1], entry[0])):
            print(f"{count:5}  {reason}")
        return
    targets = collections.defaultdict(list)
    for target, name, reason in tests:
        if reason.startswith(beginning):
            targets[target].append(name)
    for target, names in targets.items():
        print(target, "--", "--exact", "--ignored", *names)


if __name__ == "__main__":
    main(*sys.argv[1:])
