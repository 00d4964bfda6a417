#!/usr/bin/env python3
"""Measures `verify` at level static of an image that was built here, and of the same image as a stranger's.

    cargo build --release && python3 tests/bench/verify.py pytorch-cuda:2.8-cu128

The stranger's image is the same with one label more: envforge neither built nor knows it, so every check runs in the sandbox.
Three rounds of both in turns, the median of each. Needs Docker and room for the image; removes the images it made.
Prints a Markdown table for docs/src/benchmarks.md.
"""
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from measure import DOCKER, ENVFORGE, envforge_build, run

FOREIGN = "bench-foreign:1"


def verify(image, lock):
    """Seconds of the whole process; its checks must not fail."""
    start = time.monotonic()
    done = subprocess.run([ENVFORGE, "verify", image, "--level", "static", "--lock", lock, "--json"], capture_output=True, text=True)
    seconds = time.monotonic() - start
    report = json.loads(done.stdout)
    failed = [check["id"] for check in report["checks"] if check["outcome"] == "failed"]
    if failed:
        sys.exit(f"{image}: {', '.join(failed)} failed\n{done.stderr}")
    return seconds


def main():
    spec = sys.argv[1]
    with tempfile.TemporaryDirectory(prefix="envforge-bench-") as folder:
        lock, made = pathlib.Path(folder) / "envforge.lock", []
        try:
            _, built = envforge_build(spec, lock)
            made.append(built["image"])
            dockerfile = f"FROM {built['tags'][0]}\nLABEL bench=foreign\n"
            run([DOCKER, "build", "-q", "-t", FOREIGN, "-"], input=dockerfile)
            made.append(FOREIGN)
            rounds = [(verify(built["tags"][0], lock), verify(FOREIGN, lock)) for _ in range(3)]
        finally:
            for image in reversed(made):
                subprocess.run(["docker", "rmi", "-f", image], capture_output=True)
    ours, foreign = (statistics.median(times) for times in zip(*rounds))
    print("| `verify`, level static | seconds | ratio | bound |\n|---|---|---|---|")
    print(f"| built here | {ours:.1f} s | 1 | |\n| the same image as a stranger's, in the sandbox | {foreign:.1f} s | {foreign / ours:.2f} | 1.2 |")


if __name__ == "__main__":
    main()
