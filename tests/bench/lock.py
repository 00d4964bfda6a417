#!/usr/bin/env python3
"""Measures `lock` of a project with one package more or less beside `uv pip compile` of the same requirements, in one run.

    cargo build --release && python3 tests/bench/lock.py        # needs a container engine, and uv on PATH (or UV)

Both have warm caches: the first lock and the first resolution do not count. Prints Markdown for docs/src/benchmarks.md. Its own folder is removed;
caches of envforge, its engine and uv stay.
"""
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
ENVFORGE = pathlib.Path(os.environ.get("ENVFORGE", ROOT / "target" / "release" / "envforge"))
UV = os.environ.get("UV", "uv")
SPEC = "pytorch-cuda:2.8-cu128"
PACKAGES = ("transformers datasets accelerate pandas scikit-learn matplotlib wandb rich typer fastapi uvicorn").split()
MORE = ["humanize", "tabulate", "iniconfig", "docutils", "toolz", "more-itertools", "colorlog"]


def seconds(command, folder):
    start = time.monotonic()
    subprocess.run(command, check=True, capture_output=True, cwd=folder)
    return time.monotonic() - start


def project(folder, packages):
    text = f'schema = 1\nname = "bench"\nspec = "{SPEC}"\n[packages]\npython = {packages}\n'
    (folder / "envforge.toml").write_text(text.replace("'", '"'))
    (folder / "wanted.in").write_text("\n".join(["torch==2.8.0", "torchvision==0.23.0", "torchaudio==2.8.0", "jupyterlab", *packages]) + "\n")


def main():
    with tempfile.TemporaryDirectory(prefix="envforge-bench-") as name:
        folder = pathlib.Path(name)
        lock = [ENVFORGE, "lock"]
        compile_ = [UV, "pip", "compile", "wanted.in", "--generate-hashes", "--quiet", "--output-file", "wanted.txt"]
        project(folder, PACKAGES)
        first = seconds(lock, folder)
        seconds(compile_, folder)
        times = []
        for package in MORE:
            project(folder, [*PACKAGES, package])
            times.append((seconds(lock, folder), seconds(compile_, folder)))
        ours, theirs = (statistics.median(column) for column in zip(*times))
        wheels = (folder / "envforge.lock").read_text().count(", index = ")
    print(f"| {wheels} wheels, one package another | {ours:.1f} s | {theirs:.1f} s | {ours / theirs:.1f} | 3 s |")
    print(f"first lock, the base and what indexes said there: {first:.1f} s")


if __name__ == "__main__":
    main()
