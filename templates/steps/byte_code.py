"""Compiles the modules of distributions, one fresh Python process for each; nothing of them runs, nothing is imported.

Reads /envforge/sources, writes stdout. Both hold for each distribution a line `D <files>` and for each file a line
`F <bytes of its path> <bytes of its content>`, path and content. Files that do not compile are left out of the answer:
templates and modules for other versions, which fail at import too. Runs with -I -S: no site, no `.pth`, no environment.
"""
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import cache_from_source


def read_frames(stream):
    """The files of the next distribution as (path, content); None at the end."""
    head = stream.readline().split()
    if not head:
        return None
    files = []
    for _ in range(int(head[1])):
        _, path, content = stream.readline().split()
        files.append((stream.read(int(path)), stream.read(int(content))))
    return files


def frames(files):
    parts = [b"D %d\n" % len(files)]
    for path, content in files:
        parts += [b"F %d %d\n" % (len(path), len(content)), path, content]
    return b"".join(parts)


def one_distribution():
    done = []
    for path, content in read_frames(sys.stdin.buffer):
        try:
            done.append((os.fsencode(cache_from_source(os.fsdecode(path))), compiled(path, content)))
        except NOT_COMPILED:
            pass
    sys.stdout.buffer.write(frames(done))


def in_a_process(files):
    options, env = (["-I", "-S"], {}) if HAS_STEADY_REFERENCES else (["-S", "-s"], {"PYTHONHASHSEED": "0"})
    return subprocess.run(
        [sys.executable, *options, __file__, "one"], input=frames(files), stdout=subprocess.PIPE, check=True, env=env
    ).stdout


def main():
    with open("/envforge/sources", "rb") as stream, ThreadPoolExecutor(os.cpu_count()) as pool:
        for answer in pool.map(in_a_process, iter(lambda: read_frames(stream), None)):
            sys.stdout.buffer.write(answer)


if sys.argv[1:] == ["one"]:
    one_distribution()
else:
    main()
