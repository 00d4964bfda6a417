"""Compiles the Python files below the given folders that have no byte code of this kind yet, the same bytes every time.

Byte code is of the kind that is never checked against file times (PEP 552, unchecked hash). What a process compiled
before can show in what it compiles next, so the files are dealt to a fixed number of workers in a fixed order.
"""
import os
import py_compile
import sys
from importlib.util import cache_from_source

WORKERS = 8


def is_compiled(path):
    """A few wheels ship byte code that is checked against file times: it counts as none."""
    try:
        with open(cache_from_source(path), "rb") as code:
            return code.read(8)[4:] == (1).to_bytes(4, "little")
    except FileNotFoundError:
        return False


def sources(folders):
    for top in folders:
        for folder, names, files in os.walk(top):
            names.sort()
            for name in sorted(files):
                path = os.path.join(folder, name)
                if name.endswith(".py") and not os.path.islink(path) and not is_compiled(path):
                    yield path


def compile_all(paths):
    for path in paths:
        try:
            py_compile.compile(path, doraise=True, quiet=2, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
        except (py_compile.PyCompileError, SyntaxError, ValueError, UnicodeDecodeError):
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
