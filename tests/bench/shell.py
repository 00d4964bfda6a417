#!/usr/bin/env python3
"""Measures `shell` and `ps` beside the docker client, in one run.

    cargo build --release && python3 tests/bench/shell.py IMAGE

IMAGE is one that envforge built. Prints a Markdown table for docs/src/benchmarks.md; removes the containers it made.
"""
import argparse
import os
import pathlib
import re
import statistics
import subprocess
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
ENVFORGE = ROOT / "target" / "release" / "envforge"


def seconds(command, **options):
    start = time.monotonic()
    subprocess.run(command, check=True, capture_output=True, **options)
    return time.monotonic() - start


def alternating(first, second, runs, **options):
    """Medians of two commands run in turns, so that what else the machine does meets both."""
    times = [(seconds(first, **options), seconds(second, **options)) for _ in range(runs)]
    return [statistics.median(column) for column in zip(*times)]


def jupyter(image, folder):
    """Seconds from the command to the first answer with the printed token."""
    start = time.monotonic()
    child = subprocess.Popen([ENVFORGE, "shell", image, "--jupyter"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        url = child.stdout.readline().strip()
        status = re.sub(r"/lab\?", "/api/status?", url)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        assert opener.open(status).status == 200
        return time.monotonic() - start
    finally:
        child.terminate()
        child.wait()


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("image")
    arguments.add_argument("--runs", type=int, default=9)
    arguments = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="envforge-bench-") as folder:
        shell = [ENVFORGE, "shell", arguments.image, "--", "true"]
        seconds(shell, cwd=folder)  # makes the volumes
        try:
            ours, docker = alternating(shell, ["docker", "run", "--rm", arguments.image, "true"], arguments.runs, cwd=folder)
            ps, docker_ps = alternating([ENVFORGE, "ps"], ["docker", "ps"], arguments.runs, cwd=folder)
            lab = statistics.median(jupyter(arguments.image, folder) for _ in range(3))
        finally:
            name = os.path.basename(folder)
            volumes = subprocess.run(["docker", "volume", "ls", "-q"], capture_output=True, text=True).stdout.split()
            for volume in volumes:
                if volume.startswith(f"envforge-home-{name}"):
                    subprocess.run(["docker", "volume", "rm", volume], capture_output=True)
    print("| measurement | envforge | docker | ratio | bound |\n|---|---|---|---|---|")
    print(f"| `shell -- true` | {ours:.2f} s | {docker:.2f} s | {ours / docker:.2f} | 1.3 |")
    print(f"| `ps` | {ps * 1000:.0f} ms | {docker_ps * 1000:.0f} ms | {ps / docker_ps:.2f} | 50 ms |")
    print(f"| Jupyter's first 200 | {lab:.1f} s |  |  | 3.5 s |")


if __name__ == "__main__":
    main()
