"""Compiles Python files that have no byte code of this kind yet, the same bytes every time.

Arguments: folders, or `--since FILE` and the site-packages whose distributions, if installed after that file was made, are
all that is compiled: what one small package costs must not grow with the image.
Byte code is of the kind that is never checked against file times (PEP 552, unchecked hash). What a process compiled
before can show in what it compiles next, so the files are dealt to a fixed number of workers in a fixed order. Up to
Python 3.10 byte code is written without references for the same reason (see byte_code.py); the hash seed is the caller's.
"""
import csv
import marshal
import os
import py_compile
import sys
from glob import glob
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


def without_references(path):
    """Writes the code object of a file again in the form whose bytes do not show what the process did before."""
    with open(path, "r+b") as file:
        head = file.read(16)
        code = marshal.loads(file.read())
        file.seek(0)
        file.write(head + marshal.dumps(code, 2))
        file.truncate()


def compile_all(paths):
    for path in paths:
        try:
            made = py_compile.compile(path, quiet=2, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
            if made and sys.version_info < (3, 11):
                without_references(made)
        except (SyntaxError, ValueError, UnicodeDecodeError):
            pass  # templates and files of other Python versions: they fail at import too


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
