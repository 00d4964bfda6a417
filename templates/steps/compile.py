"""Compiles Python files that have no byte code of this kind yet, the same bytes every time.

Arguments: folders, or `--since FILE` and the site-packages whose distributions, if installed after that file was made, are
all that is compiled: what one small package costs must not grow with the image.
Byte code is of the kind that is never checked against file times (PEP 552, unchecked hash).
The files are dealt to a fixed number of workers. Up to Python 3.10 the hash seed is the caller's.
"""
import csv
import os
import sys
from glob import glob
from importlib._bootstrap_external import _calc_mode, _write_atomic
from importlib.util import cache_from_source

WORKERS = 8


def is_compiled(path):
    """A few wheels ship byte code that is checked against file times: it counts as none."""
    try:
        with open(cache_from_source(path), "rb") as code:
            return code.read(8)[4:] == (1).to_bytes(4, "little")
    except FileNotFoundError:
        return False


def below(folders):
    for top in folders:
        for folder, names, files in os.walk(top):
            names.sort()
            for name in sorted(files):
                yield os.path.join(folder, name)


def installed_since(marker, packages):
    since = os.stat(marker).st_ctime_ns
    for record in sorted(glob(os.path.join(packages, "*.dist-info", "RECORD"))):
        if os.stat(record).st_ctime_ns >= since:
            with open(record, newline="", encoding="utf-8") as rows:
                # What lies above, scripts and data, is no module.
                for path in sorted(row[0] for row in csv.reader(rows) if row and not row[0].startswith(("../", "/"))):
                    yield os.path.join(packages, path)


def sources(arguments):
    paths = installed_since(*arguments[1:]) if arguments[0] == "--since" else below(arguments)
    for path in paths:
        if path.endswith(".py") and os.path.isfile(path) and not os.path.islink(path) and not is_compiled(path):
            yield path


def compile_all(paths):
    for path in paths:
        with open(path, "rb") as file:
            content = file.read()
        try:
            code = compiled(path, content)
        except NOT_COMPILED:
            continue
        target = cache_from_source(path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        _write_atomic(target, code, _calc_mode(path))


def main():
    paths = list(sources(sys.argv[1:]))
    running = 0
    limit = os.cpu_count() or 1
    failed = False
    for worker in range(WORKERS):
        if running == limit:
            failed |= os.wait()[1] != 0
            running -= 1
        if os.fork() == 0:
            compile_all(paths[worker::WORKERS])
            os._exit(0)
        running += 1
    for _ in range(running):
        failed |= os.wait()[1] != 0
    sys.exit(1 if failed else 0)


main()
