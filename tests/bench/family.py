#!/usr/bin/env python3
"""Measures a family of images beside pip Dockerfiles of the same packages: what six of them take on disk, and how long.

    cargo build --release && python3 tests/bench/family.py

The family: pytorch-cuda:2.8-cu128 and 2.9-cu128, each plain, with one package more, and with a project of 20 packages.
Disk is the sum of the images' layers as the engine tells their sizes, each layer counted once. The six pip images are built one after the other on one
common image with the distribution's packages and removed at once, so the machine needs room for one of them at a time;
what they would share is counted once. Needs Docker with BuildKit and about 45 GB of disk; removes the images it made.
Prints a Markdown table for docs/src/benchmarks.md. With `--ours` the pip images are left out.
"""
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import tomllib

from measure import PIP_TAG, PURE, envforge_build, forget_pip_layers, pip_build, pip_dockerfile, run

SPECS = ["pytorch-cuda:2.8-cu128", "pytorch-cuda:2.9-cu128"]
PROJECT = """transformers datasets accelerate peft safetensors einops scikit-learn tensorboard hydra-core rich tqdm
pyarrow opencv-python-headless timm torchmetrics lightning evaluate sentencepiece albumentations polars""".split()
MEMBERS = {"plain": [], "one more": [PURE], "project of 20": PROJECT}
COMMON = "bench-common"


def ask(path):
    """What the engine answers to a GET."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://"))
    connection.sendall(f"GET {path} HTTP/1.0\r\nHost: docker\r\n\r\n".encode())
    answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    return json.loads(answer.split(b"\r\n\r\n", 1)[1])


def layers(image):
    """The image's layers: chain of diff ids to bytes."""
    ids = ask(f"/images/{image}/json")["RootFS"]["Layers"]
    makes_one = lambda step: not re.match(r"(/bin/sh -c #\(nop\) +)?(ENV|LABEL|USER|CMD|ENTRYPOINT|EXPOSE|SHELL|ARG|VOLUME|STOPSIGNAL)", step["CreatedBy"])
    sizes = [step["Size"] for step in reversed(ask(f"/images/{image}/history")) if makes_one(step)]
    assert len(sizes) == len(ids), f"{image}: {len(ids)} layers, {len(sizes)} steps"
    return {tuple(ids[: place + 1]): size for place, size in enumerate(sizes)}


def remove(*images):
    subprocess.run(["docker", "rmi", "-f", *images], capture_output=True)


def ours(folder):
    """Builds the six; gives seconds (checks apart), bytes, base, and the lock of each plain one."""
    seconds, made, found, locks, base = 0.0, [], {}, {}, None
    try:
        for spec in SPECS:
            for member, packages in MEMBERS.items():
                lock = folder / f"{spec.replace(':', '_')}-{len(packages)}.lock"
                added = [word for package in packages for word in ("--with", package)]
                took, built = envforge_build(spec, lock, *added)
                made.append(built["image"])
                found |= layers(built["image"])
                seconds += took - built["seconds"]["checks"]
                base = built["base"]
                locks[spec, member] = tomllib.loads(lock.read_text())
        return seconds, sum(found.values()), base, locks
    finally:
        remove(*dict.fromkeys(made))


def theirs(folder, base, locks):
    """Builds the six one by one on a common image; gives seconds and bytes."""
    context = folder / "pip"
    context.mkdir()
    try:
        pip_dockerfile(context, base, next(iter(locks.values())), [])
        head, system, _ = (context / "Dockerfile").read_text().split("\nRUN ")
        (context / "Dockerfile").write_text(f"{head}\nRUN {system}\n")
        seconds = pip_build(context, no_cache=True)
        run(["docker", "tag", PIP_TAG, COMMON])
        found = layers(PIP_TAG)
        for (spec, member), lock in locks.items():
            pip_dockerfile(context, base, lock, [])
            install = (context / "Dockerfile").read_text().split("\nRUN ")[2]
            (context / "Dockerfile").write_text(f"FROM {COMMON}\nRUN {install}")
            seconds += pip_build(context, no_cache=True)
            found |= layers(PIP_TAG)
            print(f"pip, {spec}, {member}: {seconds:.0f} s, {sum(found.values()) / 1e9:.2f} GB so far", flush=True)
            forget_pip_layers()
        return seconds, sum(found.values())
    finally:
        remove(PIP_TAG, COMMON)


def main():
    with tempfile.TemporaryDirectory(prefix="envforge-family-") as temp:
        folder = pathlib.Path(temp)
        our_seconds, our_bytes, base, locks = ours(folder)
        print(f"envforge: {our_seconds:.0f} s, {our_bytes / 1e9:.2f} GB", flush=True)
        if "--ours" in sys.argv[1:]:
            return
        pip_seconds, pip_bytes = theirs(folder, base, locks)
    print("| measurement | envforge | pip Dockerfiles | ratio | bound |\n|---|---|---|---|---|")
    print(f"| six images on disk | {our_bytes / 1e9:.1f} GB | {pip_bytes / 1e9:.1f} GB | {our_bytes / pip_bytes:.2f} | 0.35 |")
    print(f"| building all six, checks apart | {our_seconds:.0f} s | {pip_seconds:.0f} s | {our_seconds / pip_seconds:.2f} | |")


if __name__ == "__main__":
    main()
