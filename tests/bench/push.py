#!/usr/bin/env python3
"""Measures `envforge push` beside `docker push` of the same image into empty registries on loopback, in one run.

    cargo build --release && tests/bench/overlay2.sh python3 tests/bench/push.py pytorch-cuda:2.8-cu128

The image is on the engine and the wheels are in the cache. The first push begins without digests of packed layers, the
second goes to another registry and knows them. The sibling has one small package more and goes to the first registry. Needs Docker, Debian's
docker-registry and about 25 GB of disk; removes what it made. Prints a Markdown table.
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

from measure import DOCKER, ENVFORGE, PURE, cache_folder, envforge_build, project_build, run


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


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("spec")
    spec = arguments.parse_args().spec
    with tempfile.TemporaryDirectory(prefix="envforge-bench-") as temp:
        temp = pathlib.Path(temp)
        made, rows = [], []
        first = Registry(temp)
        try:
            image = envforge_build(spec, temp / "envforge.lock")[1]["image"]
            made.append(image)
            shutil.rmtree(cache_folder() / "layers" / "packed", ignore_errors=True)
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
            memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
            rows = [
                ("push, digests of packed layers unknown", f"{cold:.0f} s", f"{docker:.0f} s", f"{cold / docker:.2f}", "60 s, 0.15"),
                ("push to another registry, known", f"{warm:.0f} s", f"{docker:.0f} s", f"{warm / docker:.2f}", "30 s, 0.15"),
                ("bytes in the registry", f"{sent / 1e9:.2f} GB", f"{docker_sent / 1e9:.2f} GB", f"{sent / docker_sent:.2f}", ""),
                ("push of a sibling, one small package more", f"{more:.1f} s", "", "", "5 s"),
                ("bytes it adds", f"{added / 1e6:.1f} MB", "", "", "50 MB"),
                ("memory of envforge at most, builds included", f"{memory / 1e6:.0f} MB", "", "", "500 MB"),
            ]
        finally:
            first.end()
            for image in dict.fromkeys(made):
                subprocess.run([DOCKER, "rmi", "-f", image], capture_output=True)
    print("| measurement | envforge | docker | ratio | bound |\n|---|---|---|---|---|")
    for row in rows:
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
