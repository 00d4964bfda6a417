#!/usr/bin/env python3
"""How long the agent's level static takes beyond the import of the framework, in a tree as an image has it; without an engine.

    python3 -m venv ENV && ENV/bin/pip install torch==2.8.0 && python3 tests/bench/static.py AGENT ENV torch

AGENT: target/*/build/envforge-*/out/agent. The tree is made beside ENV, of hard links to it and to this machine's libraries, and
removed. Import and level static alternate, so that both meet the same machine. Prints medians, and what the checks found: run as root
in a tree without a user, `user` fails.
"""
import collections
import json
import os
import pathlib
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time

RUNS = 7
LIBRARIES = pathlib.Path(f"/usr/lib/{platform.machine()}-linux-gnu")


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def timed(command, **options):
    """Seconds by the clock and of the processor, and what came."""
    start, used = time.monotonic(), processor_seconds()
    done = subprocess.run(command, capture_output=True, text=True, **options)
    return (time.monotonic() - start, processor_seconds() - used), done


def main():
    agent, env, module = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3]
    python = env / "bin/python"
    versions = ("import re; from importlib.metadata import distributions as d; "
                "print(*sorted(f'{re.sub(r\"[-_.]+\", \"-\", x.name).lower()}=={x.version}' for x in d()), sep='\\n')")
    expected = subprocess.run([python, "-c", versions], capture_output=True, text=True, check=True).stdout
    with tempfile.TemporaryDirectory(dir=env.parent) as folder:
        root = pathlib.Path(folder, "root")
        (root / "opt").mkdir(parents=True)
        (root / "usr/lib").mkdir(parents=True)
        for source, target in ((env, root / "opt/env"), (LIBRARIES, root / "usr/lib" / LIBRARIES.name)):
            subprocess.run(["cp", "-al", source, target], check=True)
        for name in ("lib", "lib64"):
            (root / name).symlink_to("usr/lib")
        expect = pathlib.Path(folder, "expect")
        expect.write_text(f"framework={module}\n" + "".join(f"distribution={line}\n" for line in expected.splitlines()))
        command = [agent, "static", "--root", root, "--expect", expect, "--json"]
        imports, levels = [], []
        for _ in range(RUNS + 1):  # The first of each finds cold files.
            imports.append(timed([root / "opt/env/bin/python", "-c", f"import {module}"])[0])
            seconds, done = timed(command, env={"PATH": os.environ["PATH"]})
            levels.append(seconds)
        outcomes = collections.Counter()
        for line in map(json.loads, done.stdout.splitlines()):
            if "id" in line:
                outcomes[line["outcome"]] += 1
                if line["outcome"] not in ("passed", "skipped"):
                    print(f"  {line['id']} {line['outcome']}: {line['detail'][:100]}", file=sys.stderr)
    for at, unit in enumerate(("by the clock", "of the processor")):
        one, all_ = (sorted(run[at] for run in runs[1:]) for runs in (imports, levels))
        apart = statistics.median(all_) - statistics.median(one)
        print(f"{unit}: import {module} {statistics.median(one):.2f} s ({one[0]:.1f} to {one[-1]:.1f}), level static "
              f"{statistics.median(all_):.2f} s ({all_[0]:.1f} to {all_[-1]:.1f}), beyond the import {apart:+.2f} s")
    print(f"bound: 1 s by the clock, alone on the machine; agent {agent.stat().st_size} bytes (bound 1500000); checks {dict(outcomes)}")


main()
