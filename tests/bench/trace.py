#!/usr/bin/env python3
"""Shows where a build waits: what ran when, and who had the processor meanwhile.

    cargo build --release && tests/bench/overlay2.sh python3 tests/bench/trace.py pytorch-cuda:2.8-cu128 [--cold]

Builds once, so that downloads, base and system layer are known, takes the image and its layers away, with `--cold` the caches of layers
too, and builds again. Beside the steps of `--progress json` it prints, for each part of the time, the cores that this program, the engine
and its helpers, containers and everything else kept busy, and those that were idle or waited for a disk. Busy all the time: the sum is the
floor. Then a load of the same layers alone (`docker save`, `rmi`, `docker load`): what no builder that delivers to this engine goes below.
Needs Docker and about 30 GB of disk; removes the image. Alone on the machine: `others` says whether it was.
"""
import argparse
import json
import os
import pathlib
import subprocess
import tempfile
import threading
import time

from measure import ENVFORGE, envforge_build, forget_layers, run

TICK = os.sysconf("SC_CLK_TCK")
# The programs of an engine; what else runs in its control groups is a container.
ENGINE = ("dockerd", "containerd", "docker-", "fuse-overlayfs", "runc", "exe")
EVERY = 0.5
OWN = pathlib.Path("/proc/self/cgroup").read_text()


def name_and_seconds(pid):
    """The name of a process and its seconds of processor."""
    text = pathlib.Path("/proc", pid, "stat").read_text()
    name, rest = text[text.index("(") + 1:text.rindex(")")], text[text.rindex(")") + 2:].split()
    return name, sum(map(int, rest[11:13])) / TICK


def is_in_container(pid):
    text = pathlib.Path("/proc", pid, "cgroup").read_text()
    return "docker" in text and text != OWN


class Sampler(threading.Thread):
    """Notes who has the processor, until it is ended."""

    def __init__(self):
        super().__init__(daemon=True)
        self.samples, self.over, self.seen = [], threading.Event(), {}

    def run(self):
        before = self.now()
        while not self.over.wait(EVERY):
            after = self.now()
            self.samples.append((after["time"], {key: after[key] - before[key] for key in after}))
            before = after

    def now(self):
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                name, seconds = name_and_seconds(pid)
                if name == "envforge":
                    kind = "envforge"
                elif name.startswith(ENGINE):
                    kind = "engine"
                else:
                    kind = "containers" if is_in_container(pid) else "others"
            except OSError:
                continue
            # A process that has ended keeps what it had: its parent may be none of ours.
            self.seen[pid, name] = (kind, max(seconds, self.seen.get((pid, name), (kind, 0))[1]))
        found = dict.fromkeys(("envforge", "engine", "containers"), 0.0)
        for kind, seconds in self.seen.values():
            if kind in found:
                found[kind] += seconds
        user, nice, system, idle, wait, *interrupts = (int(word) / TICK for word in open("/proc/stat").readline().split()[1:])
        return {"time": time.monotonic(), "idle": idle, "waits": wait, "busy": user + nice + system + sum(interrupts[:3]), **found}


def traced(command, folder):
    """Runs a build; gives its steps with their times, the samples, and its answer."""
    sampler, began = Sampler(), time.monotonic()
    sampler.start()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder)
    steps, text = {}, {}
    answer = []
    reader = threading.Thread(target=lambda: answer.append(child.stdout.read()))
    reader.start()
    for line in child.stderr:
        try:
            event = json.loads(line)
        except ValueError:
            continue
        at, kind, name = time.monotonic() - began, event.get("event"), event.get("id")
        if kind == "step-started":
            text[name] = event.get("text", name)
            steps[name] = [at, None]
        elif kind in ("step-finished", "step-failed") and name in steps:
            steps[name][1] = at
    reader.join()
    if child.wait():
        raise SystemExit(f"the build failed: {answer[0][-2000:]}")
    sampler.over.set()
    sampler.join()
    ended = time.monotonic() - began
    rows = [(start, end or ended, text[name]) for name, (start, end) in steps.items()]
    samples = [(at - began, values) for at, values in sampler.samples]
    return sorted(rows), samples, json.loads(answer[0]), ended


def shown(rows, samples, ended, parts=12):
    print("| from | to | step |\n|---|---|---|")
    for start, end, text in rows:
        if end - start >= 0.5:
            print(f"| {start:.1f} s | {end:.1f} s | {text[:70]} |")
    print("\n| until | envforge | engine | containers | others | idle | waits for a disk |\n|---|---|---|---|---|---|---|")
    width = max(ended / parts, EVERY)
    for part in range(parts):
        inside = [values for at, values in samples if part * width <= at < (part + 1) * width]
        seconds = sum(values["time"] for values in inside)
        if not seconds:
            continue
        cores = {key: sum(values[key] for values in inside) / seconds for key in ("envforge", "engine", "containers", "busy", "idle", "waits")}
        others = max(cores["busy"] - cores["envforge"] - cores["engine"] - cores["containers"], 0)
        print(f"| {(part + 1) * width:.0f} s | {cores['envforge']:.2f} | {cores['engine']:.2f} | {cores['containers']:.2f} | {others:.2f} | "
              f"{cores['idle']:.2f} | {cores['waits']:.2f} |")
    total = {key: sum(values[key] for _, values in samples) for key in ("envforge", "engine", "containers", "busy")}
    cores = os.cpu_count()
    print(f"\nprocessor: envforge {total['envforge']:.0f} s, engine {total['engine']:.0f} s, containers {total['containers']:.0f} s, all "
          f"{total['busy']:.0f} s of {ended:.0f} s on {cores} cores; theirs alone would take {(total['envforge'] + total['engine'] + total['containers']) / cores:.0f} s")


def load_alone(image, folder):
    """Seconds of the clock in which the engine takes the same layers from an archive."""
    archive = folder / "image.tar"
    run(["docker", "save", "-o", archive, image])
    run(["docker", "rmi", "-f", image])
    return run(["docker", "load", "-i", archive])[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("spec")
    parser.add_argument("--cold", action="store_true", help="without the caches of digests, lists and byte code")
    parser.add_argument("--no-load", action="store_true", help="leave out the load of the same layers alone")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="envforge-bench-") as folder:
        folder = pathlib.Path(folder)
        lockfile = folder / "envforge.lock"
        image = None
        try:
            image = envforge_build(arguments.spec, lockfile)[1]["image"]
            run(["docker", "rmi", "-f", image])
            if arguments.cold:
                forget_layers()
            rows, samples, built, ended = traced(
                [ENVFORGE, "build", arguments.spec, "--lockfile", lockfile, "--json", "--progress", "json"], folder)
            assert built["image"] == image, "the lock must give the same configuration"
            shown(rows, samples, ended)
            print(f"\nits own clock: {json.dumps(built['seconds'])}")
            if not arguments.no_load:
                print(f"the engine's load of the same layers alone: {load_alone(image, folder):.0f} s")
        finally:
            if image:
                subprocess.run(["docker", "rmi", "-f", image], capture_output=True)


if __name__ == "__main__":
    main()
