#!/usr/bin/env python3
"""The ignored tests of a run of `cargo test`, read from its output: `ignored.py LOG`.

Without a further argument: how many there are for each reason. With the beginning of a reason, `ignored.py LOG needs`: the
arguments for cargo that run those tests, a line for each test binary. The reason of an ignored test begins with who runs it:
`needs …` is for .ci/run, `nightly: …` for .ci/nightly, `by hand: …` for a person, `inner: …` for another test.

`ignored.py LOG needs FOLDER` writes them as files for the lanes of .ci/lane, a list for each module of a test binary: the binary
itself and its arguments, since a call of cargo would wait for whatever compiles.
"""

import collections
import pathlib
import re
import sys

TARGETS = [
    (r"unittests src/lib\.rs .*/deps/envforge-", "--lib"),
    (r"unittests src/lib\.rs .*/deps/envforge_compat-", "--package=envforge-compat"),
    (r"tests/(\w+)/main\.rs .*", r"--test=\1"),
]

# One list: tests of the first two look for a free port of this machine and then use it, so no two do at once; the others build by the
# Dockerfile of one stack, which the second finds in its engine's build cache.
TOGETHER = {"shell_browser": "shell_services", "project_code": "project"}
# The first one makes base and layers, which the other lanes take over from it.
FIRST = ["small_build"]


def read(path):
    """Yields the target as cargo is told it, the binary, name and reason of each ignored test."""
    target = program = None
    for line in open(path, errors="replace"):
        if found := re.match(r"\s+Running (.+)", line):
            matches = (re.match(pattern, found[1]) and re.sub(pattern + ".*", to, found[1]) for pattern, to in TARGETS)
            target = next(filter(None, matches), None)
            program = re.search(r"\((\S+)\)$", found[1].strip())
        elif found := re.match(r"test (\S+) \.\.\. ignored, (.+)", line):
            if target is None:
                sys.exit(f"{found[1]} is ignored in a test binary that {sys.argv[0]} cannot name to cargo")
            yield target, program and program[1], found[1], found[2]


def write(folder, tests):
    lists = collections.defaultdict(list)
    for program, name in tests:
        module = name.split("::")[0]
        lists[program, TOGETHER.get(module, module)].append(name)
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True)
    order = sorted(lists.items(), key=lambda entry: (entry[0][1] not in FIRST, -len(entry[1]), entry[0]))
    for number, ((program, module), names) in enumerate(order):
        (folder / f"{number:02}-{module}").write_text(" ".join([program, "--exact", "--ignored", *names]) + "\n")


def main(path, beginning=None, folder=None):
    tests = list(read(path))
    if beginning is None:
        reasons = collections.Counter(reason.split(":")[0] if reason.startswith("needs") else reason for *_, reason in tests)
        for reason, count in sorted(reasons.items(), key=lambda entry: (-entry[1], entry[0])):
            print(f"{count:5}  {reason}")
        return
    chosen = [test for test in tests if test[3].startswith(beginning)]
    if folder is not None:
        write(folder, [(program, name) for _, program, name, _ in chosen])
        return
    targets = collections.defaultdict(list)
    for target, _, name, _ in chosen:
        targets[target].append(name)
    for target, names in targets.items():
        print(target, "--", "--exact", "--ignored", *names)


if __name__ == "__main__":
    main(*sys.argv[1:])
