#!/usr/bin/env python3
"""Builds the packages that are used most beside torch, one at a time, each in an image of its own, and imports each there.

    cargo build --release && tests/bench/overlay2.sh python3 tests/bench/packages.py pytorch-cuda:2.8-cu128 [NAME …]

Each comes to one of three ends: built and imported; refused by name at `plan`, `lock` or `build`, with what envforge says; or not
reachable from this machine. Where the refusal names packages of the distribution or wheels of CUDA to add, they are added once, and
the table says so. The
image without any of them is built first and stays until the end: its layers are those of all others, so that one image more is on
the disk at a time. Needs Docker, an index of everything and about 40 GB; nothing runs on a GPU. Prints a Markdown table; the exit code
is 1 if a package is not built that docs/src/packages.md has as built beside this spec.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
ENVFORGE = os.environ.get("ENVFORGE_PROGRAM", ROOT / "target" / "release" / "envforge")
# What is requested, and the module that is imported.
PACKAGES = {
    "transformers": "transformers", "datasets": "datasets", "accelerate": "accelerate", "peft": "peft", "trl": "trl",
    "bitsandbytes": "bitsandbytes", "xformers": "xformers.ops", "flash-attn": "flash_attn", "torchvision": "torchvision",
    "torchaudio": "torchaudio", "timm": "timm", "lightning": "lightning", "deepspeed": "deepspeed", "vllm": "vllm",
    "sentence-transformers": "sentence_transformers", "opencv-python": "cv2", "onnx": "onnx",
    "onnxruntime-gpu": "onnxruntime", "diffusers": "diffusers", "gradio": "gradio", "wandb": "wandb", "mlflow": "mlflow",
    "ray": "ray", "tensorboard": "tensorboard", "triton": "triton", "torchmetrics": "torchmetrics",
    "albumentations": "albumentations", "pandas": "pandas", "scikit-learn": "sklearn", "spacy": "spacy",
}
PAGE = ROOT / "docs" / "src" / "packages.md"
BUILT = "built, imported"
# Published as source alone: building it is allowed by name.
SOURCES = {"deepspeed"}
APT = re.compile(r"`apt = \[([^\]]*)\]`")
WHEELS = re.compile(r"to add these libraries of CUDA: `envforge add ([^`]*)`")
FAILED_IMAGE = re.compile(r"docker rmi (sha256:[0-9a-f]+)")


def call(words, folder):
    """Exit code, stdout, stderr and seconds of envforge."""
    start = time.monotonic()
    done = subprocess.run([ENVFORGE, *words], cwd=folder, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr, time.monotonic() - start


def said(stderr):
    """The error with its reasons and the first hint, on one line."""
    lines = [line.strip() for line in stderr.splitlines()]
    at = next((at for at, line in enumerate(lines) if line.startswith(("error:", "impossible"))), None)
    text = " ".join(line for line in (lines[at:] if at is not None else lines[-3:]) if line)
    return text.replace("|", "\\|")[:400]


def missing(out, err):
    """The distribution packages that envforge says are missing, as they stand in envforge.toml."""
    found = APT.search(err)
    if found:
        return found.group(1)
    misfits = json.loads(out).get("misfits", []) if out.startswith("{") else []
    return ", ".join(f'"{name}"' for name in sorted({name for misfit in misfits for name in misfit["apt"]}))


def project(folder, spec, name, apt, wheels):
    python = ", ".join(f'"{package}"' for package in [name, *wheels])
    text = f'schema = 1\nname = "bench-packages"\nspec = "{spec}"\n[packages]\npython = [{python}]\n'
    text += f"apt = [{apt}]\n" if apt else ""
    text += f'allow-source = ["{name}"]\n' if name in SOURCES else ""
    pathlib.Path(folder, "envforge.toml").write_text(text)


def one(spec, name):
    """The end that a package comes to, as a row of the table."""
    apt, wheels, start = "", [], time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(2):
            project(folder, spec, name, apt, wheels)
            code, out, err, _ = call(["build", "--json"], folder)
            for image in FAILED_IMAGE.findall(err):
                subprocess.run(["docker", "rmi", "-f", image], capture_output=True)
            of_cuda = WHEELS.search(err)
            if code == 0 or apt or wheels or not (missing(out, err) or of_cuda):
                break
            apt, wheels = missing(out, err), of_cuda.group(1).split() if of_cuda else []
        seconds = round(time.monotonic() - start)
        if code != 0:
            end = "not reachable" if code == 3 else "refused"
            return name, "", end, said(err), seconds
        report = json.loads(out)
        lock = pathlib.Path(folder, "envforge.lock").read_text()
        version = re.search(rf'^    \{{ name = "{name}", version = "([^"]*)"', lock, re.M)
        command = f"import {PACKAGES.get(name, name.replace('-', '_'))}"
        code, _, err, _ = call(["run", "python", "-c", command], folder)
        subprocess.run(["docker", "rmi", "-f", *report["tags"]], capture_output=True)
        notes = " ".join(filter(None, [f"with `apt = [{apt}]`" if apt else "", f"with {', '.join(wheels)}" if wheels else ""]))
        if code != 0:
            lines = [line for line in err.splitlines() if line.strip()]
            notes = f"{notes} {lines[-1] if lines else ''}".strip().replace("|", "\\|")[:400]
        version = version.group(1) if version else ""
        return name, version, BUILT if code == 0 else "built, not imported", notes, seconds


def built_before(spec):
    """The packages that the page's table of a spec has as built; none if it has no such table."""
    _, found, section = PAGE.read_text().partition(f"`{spec}`)\n")
    rows = [line.split("|") for line in section.split("\n## ")[0].splitlines() if line.startswith("| ")]
    return {row[1].strip() for row in rows if found and row[3].strip() == BUILT}


def main():
    spec, names = sys.argv[1], sys.argv[2:] or list(PACKAGES)
    with tempfile.TemporaryDirectory() as folder:
        code, out, err, _ = call(["build", spec, "--json"], folder)
        if code != 0:
            sys.exit(err)
        tags = json.loads(out)["tags"]
    print(f"| package beside `{spec}` | version | end | notes | s |\n|---|---|---|---|---|", flush=True)
    ends = {}
    for name in names:
        row = one(spec, name)
        ends[name] = row[2]
        print("| " + " | ".join(map(str, row)) + " |", flush=True)
    subprocess.run(["docker", "rmi", "-f", *tags], capture_output=True)
    print(f"\n{list(ends.values()).count(BUILT)} of {len(ends)} built and imported.")
    gone = [name for name in sorted(built_before(spec)) if ends.get(name, BUILT) != BUILT]
    if gone:
        sys.exit(f"built beside {spec} when {PAGE.name} was written, and not now: {', '.join(gone)}")


if __name__ == "__main__":
    main()
