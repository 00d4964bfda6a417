#!/usr/bin/env python3
"""Measures `envforge push` beside `docker push` of the same image into empty registries on loopback, in one run.

    cargo build --release && tests/bench/overlay2.sh python3 tests/bench/push.py pytorch-cuda:2.8-cu128

The image is on the engine and the wheels are in the cache. The first push begins without digests of packed layers, the
second goes to another registry and knows them. The sibling has one small package more and goes to the first registry. Needs Docker, Debian's
docker-registry and about 25 GB of disk; removes what it made. Prints a Markdown table.

With `--ten` it measures ten images of a family instead, each by `build --push` into one empty registry: the spec alone, and with one package or
a project more. Their wheels are in the cache, their layers are not; the first alone is the plain one.
"""
import argparse
import os
import pathlib
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

from family import PROJECT
from measure import DOCKER, ENVFORGE, PURE, envforge_build, forget_layers, project_build, record_folders, run

# Packages of each of the ten.
TEN = [[], [PURE], PROJECT, *([package] for package in PROJECT[:7])]


class Registry:
    """An empty registry on loopback, below a folder."""

    def __init__(self, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.host = f"127.0.0.1:{free.getsockname()[1]}"
        self.folder = folder / self.host.replace(":", "-")
        self.folder.mkdir()
        settings = self.folder / "config.yml"
        settings.write_text(
            f"version: 0.1\nlog:\n  level: error\nstorage:\n  filesystem:\n    rootdirectory: {self.folder}/data\nhttp:\n  addr: {self.host}\n"
        )
        program = shutil.which("docker-registry") or sys.exit("docker-registry is missing: apt install docker-registry")
        self.process = subprocess.Popen([program, "serve", settings], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(100):
            try:
                urllib.request.urlopen(f"http://{self.host}/v2/").close()
                return
            except OSError:
                time.sleep(0.1)
        sys.exit("the registry does not answer")

    def bytes(self):
        return sum(file.stat().st_size for file in self.folder.rglob("*") if file.is_file())

    def end(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder)


def forget_packed():
    """Empties the cache of digests of packed layers."""
    for folder in record_folders():
        shutil.rmtree(folder / "packed", ignore_errors=True)


def peak_memory():
    """The most memory of a program that has ended, in bytes."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


def remove(images):
    for image in dict.fromkeys(images):
        subprocess.run([DOCKER, "rmi", "-f", image], capture_output=True)


def beside_docker(spec, temp):
    """Rows of pushes of one image beside Docker's."""
    made = []
    first = Registry(temp)
    try:
        image = envforge_build(spec, temp / "envforge.lock")[1]["image"]
        made.append(image)
        forget_packed()
        cold, _ = run([ENVFORGE, "push", image, f"{first.host}/team/torch:1"])
        sent = first.bytes()
        second = Registry(temp)
        warm, _ = run([ENVFORGE, "push", image, f"{second.host}/team/torch:1"])
        second.end()
        third = Registry(temp)
        tag = f"{third.host}/team/torch:1"
        run([DOCKER, "tag", image, tag])
        docker, _ = run([DOCKER, "push", tag])
        docker_sent = third.bytes()
        run([DOCKER, "rmi", tag])
        third.end()
        project = temp / "project"
        project.mkdir()
        sibling = project_build(project, spec, [PURE])[1]["image"]
        made.append(sibling)
        more, _ = run([ENVFORGE, "push", sibling, f"{first.host}/team/torch:2"])
        added = first.bytes() - sent
        return [
            ("push, digests of packed layers unknown", f"{cold:.0f} s", f"{docker:.0f} s", f"{cold / docker:.2f}", "60 s, 0.15"),
            ("push to another registry, known", f"{warm:.0f} s", f"{docker:.0f} s", f"{warm / docker:.2f}", "30 s, 0.15"),
            ("bytes in the registry", f"{sent / 1e9:.2f} GB", f"{docker_sent / 1e9:.2f} GB", f"{sent / docker_sent:.2f}", ""),
            ("push of a sibling, one small package more", f"{more:.1f} s", "", "", "5 s"),
            ("bytes it adds", f"{added / 1e6:.1f} MB", "", "", "50 MB"),
            ("memory of envforge at most, builds included", f"{peak_memory() / 1e6:.0f} MB", "", "", "500 MB"),
        ]
    finally:
        first.end()
        remove(made)


def with_packages(packages):
    """The options that add packages to a spec."""
    return [word for package in packages for word in ("--with", package)]


def download_wheels(spec, temp):
    """Downloads the wheels of all ten by a build with every package; its image and the layers in the cache are removed."""
    image = envforge_build(spec, temp / "all.lock", *with_packages([PURE, *PROJECT]))[1]["image"]
    remove([image])
    forget_layers()
    forget_packed()


def family_row(name, seconds, sent, memory):
    """A row of the ten, from the seconds of each."""
    alone, everything = seconds[0], sum(seconds)
    return (name, f"{alone:.0f} s", f"{everything:.0f} s", f"{everything / alone:.2f}", f"{sent / 1e9:.2f} GB", f"{memory / 1e6:.0f} MB", "2.5, 500 MB")


def ten(spec, temp):
    """Rows of ten images of a family into one empty registry."""
    download_wheels(spec, temp)
    whole, images, made = [], [], []
    registry = Registry(temp)
    try:
        for number, packages in enumerate(TEN):
            push = ("--tag", f"{registry.host}/team/torch:{number}", "--push")
            took, built = envforge_build(spec, temp / f"{number}.lock", *with_packages(packages), *push)
            made.append(built["image"])
            whole.append(took)
            images.append(built["seconds"]["build"] + built["seconds"]["push"])
            print(f"{len(packages)} packages more: {took:.0f} s, {registry.bytes() / 1e9:.2f} GB in the registry", flush=True)
        sent, memory = registry.bytes(), peak_memory()
        return [
            family_row("ten specs of a family, `build --push`", whole, sent, memory),
            family_row("the same without locks and checks", images, sent, memory),
        ]
    finally:
        registry.end()
        remove(made)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("spec")
    arguments.add_argument("--ten", action="store_true", help="ten images of a family by `build --push` instead")
    arguments = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="envforge-bench-") as temp:
        rows = (ten if arguments.ten else beside_docker)(arguments.spec, pathlib.Path(temp))
    if arguments.ten:
        header = ("measurement", "first alone", "all ten", "ratio", "in the registry", "memory at most", "bound")
    else:
        header = ("measurement", "envforge", "docker", "ratio", "bound")
    for row in (header, ["---"] * len(header), *rows):
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
