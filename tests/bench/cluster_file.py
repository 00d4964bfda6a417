#!/usr/bin/env python3
"""Measures `export squashfs` and `export sif` beside mksquashfs of the unpacked image, in one run.

    cargo build --release && envforge build pytorch-cuda:2.8-cu128 && python3 tests/bench/cluster_file.py pytorch-cuda:2.8-cu128

The image must be built by the envforge whose cache is used. mksquashfs (squashfs-tools) reads the same files from a folder that
`docker export` filled before, with the same compression and block size; unpacking is not counted. Each is run in turns, the page cache
warm, and the outputs are compared: two of ours by SHA-256, the SIF with the squashfs behind its front, and the kernel's mount (loop)
with the folder, path by path. Needs root for the mount and for the folder, and 25 GB of disk. Prints a Markdown table.
"""
import argparse
import hashlib
import os
import pathlib
import shutil
import stat
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
FRONT = 32_768
# What an engine makes in each container, and what is in the file for its runtimes.
OTHER = (".dockerenv", "dev", "etc/hostname", "etc/hosts", "etc/resolv.conf", "etc/mtab", ".singularity.d", "etc/environment",
         "etc/fstab", "etc/profile.d/zz-envforge.sh", "etc/rc", "etc/rc.local")


def run(command):
    """Seconds, processor seconds and the most memory (MiB) of a command."""
    start = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    error = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"{' '.join(map(str, command))} failed: {error.decode()[-2000:]}")
    return time.monotonic() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def sha256(path, start=0):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        file.seek(start)
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


def listing(folder):
    """Kind, mode, owner and content of each path that counts."""
    found = {}
    for here, folders, files in os.walk(folder):
        for name in folders + files:
            path = os.path.join(here, name)
            short = os.path.relpath(path, folder)
            if any(short == other or short.startswith(other + "/") for other in OTHER):
                continue
            data = os.lstat(path)
            if stat.S_ISLNK(data.st_mode):
                what = os.readlink(path)
            else:
                what = sha256(path) if stat.S_ISREG(data.st_mode) else ""
            found[short] = (stat.S_IFMT(data.st_mode), data.st_mode & 0o7777, data.st_uid, data.st_gid, what)
    return found


def unpack(image, folder):
    container = subprocess.run(["docker", "create", image, "true"], capture_output=True, text=True, check=True).stdout.strip()
    export = subprocess.Popen(["docker", "export", container], stdout=subprocess.PIPE)
    subprocess.run(["tar", "--numeric-owner", "-xpf", "-", "-C", folder], stdin=export.stdout, check=True)
    if export.wait():
        sys.exit("docker export failed")
    subprocess.run(["docker", "rm", container], capture_output=True, check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("image")
    parser.add_argument("--envforge", default=ROOT / "target" / "release" / "envforge", type=pathlib.Path)
    parser.add_argument("--folder", help="where the files are written")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--compression", default="zstd:1")
    args = parser.parse_args()
    name, _, level = args.compression.partition(":")
    algorithm = ["-comp", name] + (["-Xcompression-level", level] if level else [])
    with tempfile.TemporaryDirectory(dir=args.folder, prefix="envforge-bench-") as work:
        work = pathlib.Path(work)
        (work / "unpacked").mkdir()
        unpack(args.image, work / "unpacked")
        export = lambda kind, file: [args.envforge, "-q", "export", kind, args.image, file, "--force", "--compression", args.compression]
        commands = {
            "`export squashfs`": export("squashfs", work / "ours.sqsh"),
            "`export sif`": export("sif", work / "ours.sif"),
            "mksquashfs": ["mksquashfs", work / "unpacked", work / "theirs.sqsh", "-noappend", "-no-progress", "-processors",
                           str(os.cpu_count()), "-b", "1M", "-no-exports", *algorithm],
        }
        times = {label: [] for label in commands}
        hashes = set()
        for _ in range(args.rounds):
            for label, command in commands.items():
                times[label].append(run(command))
            hashes.add(sha256(work / "ours.sqsh"))
        hashes.add(sha256(work / "ours.sif", FRONT))
        one = {**os.environ}
        subprocess.run(["taskset", "-c", "0", *commands["`export squashfs`"]], check=True, stdout=subprocess.DEVNULL, env=one)
        hashes.add(sha256(work / "ours.sqsh"))
        (work / "mount").mkdir()
        subprocess.run(["mount", "-o", "loop,ro", work / "ours.sqsh", work / "mount"], check=True)
        try:
            ours, theirs = listing(work / "mount"), listing(work / "unpacked")
        finally:
            subprocess.run(["umount", work / "mount"], check=True)
        different = [path for path in sorted(ours.keys() | theirs.keys()) if ours.get(path) != theirs.get(path)]
        sizes = {label: (work / file).stat().st_size for label, file in zip(commands, ["ours.sqsh", "ours.sif", "theirs.sqsh"])}
        reference = statistics.median(seconds for seconds, _, _ in times["mksquashfs"])
        print(f"{os.cpu_count()} cores, {args.rounds} rounds, {args.compression}\n")
        print("| writer | seconds (median) | of mksquashfs | processor s | memory MiB | bytes |\n|---|---|---|---|---|---|")
        for label, found in times.items():
            seconds, processor, memory = (statistics.median(column) for column in zip(*found))
            print(f"| {label} | {seconds:.1f} | {seconds / reference:.2f} | {processor:.1f} | {memory:.0f} | {sizes[label]:,} |")
        print(f"\nbytes of all runs equal, one core too: {len(hashes) == 1}; paths that differ from the image: {len(different)} of {len(theirs)}")
        print(f"SIF = squashfs + 32,768: {sizes['`export sif`'] == sizes['`export squashfs`'] + FRONT}")
        if different:
            print(*different[:20], sep="\n")
        shutil.rmtree(work / "unpacked")


if __name__ == "__main__":
    main()
