#!/usr/bin/env python3
"""Loads every library of the chosen wheels after `import torch`, and writes what the loader says.

    dlopen.py wheels FOLDER TABLES OUT     downloads the wheels of wheels.txt; TABLES (a program: SITE LIBRARY... to lines) reads
                                           the symbols of their libraries; further words: those packages alone
    dlopen.py install TORCH FOLDER         a virtual environment with that torch and its libraries, below FOLDER
    dlopen.py outcomes FOLDER TABLES OUT   the loader's answers for each library, and the symbols of what they meet
    dlopen.py remove FOLDER

No GPU: a stub of libcuda exports the functions that the libraries ask the driver for. One torch is installed and one wheel
unpacked at a time.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile

HERE = pathlib.Path(__file__).parent
DRIVER = re.compile(r"^cu[A-Z]\w+$")


def run(*command, **more):
    return subprocess.run([str(word) for word in command], check=True, **more)


def pip(python, *words):
    run(python, "-m", "pip", "--quiet", "--disable-pip-version-check", *words)


def install(torch, folder):
    folder = pathlib.Path(folder)
    run(sys.executable, "-m", "venv", folder)
    python = folder / "bin/python"
    report = subprocess.run(
        [python, "-m", "pip", "--quiet", "install", "--dry-run", "--ignore-installed", "--report", "-", f"torch=={torch}", "numpy"],
        check=True, capture_output=True, text=True,
    )
    # One by one: pip would hold every download of 3 GB next to the unpacked files.
    for item in json.loads(report.stdout)["install"]:
        name, version = item["metadata"]["name"], item["metadata"]["version"]
        # Compilers are not loaded by `import torch`.
        if name not in ("triton", "setuptools"):
            pip(python, "install", "--no-deps", "--no-cache-dir", "--no-compile", f"{name}=={version}")


def is_library(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF" and ".so" in path.name


def libraries(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink() and is_library(path))


def unpacked(wheel, site):
    """Unpacks the libraries of a wheel; gives all files, and those that are libraries."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".so" in pathlib.PurePath(name).name]
        archive.extractall(site, names)
    files = [site / name for name in names]
    return files, [file for file in files if is_library(file)]


def packed(files, site, before):
    for file in files:
        file.unlink()
    for new in set(site.iterdir()) - before:
        shutil.rmtree(new)


def wheels(folder, tables, out, packages):
    folder, out = pathlib.Path(folder), pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    site = folder / "unpacked"
    site.mkdir(parents=True, exist_ok=True)
    for line in (HERE / "wheels.txt").read_text().splitlines():
        if not line or line.startswith("#") or (packages and line.split("==")[0] not in packages):
            continue
        downloads = folder / "new"
        pip(sys.executable, "download", "--no-deps", "--no-cache-dir", "--only-binary", ":all:", "-d", downloads, line.split()[0])
        (wheel,) = downloads.iterdir()
        wheel = wheel.rename(folder / wheel.name)
        files, own = unpacked(wheel, site)
        with open(out / f"{wheel.name}.tables", "w") as file:
            run(tables, site, *own, stdout=file)
        packed(files, site, set())
        print(wheel.name, len(own), flush=True)


def stub(folder, out, met):
    """A libcuda that exports whatever any library asks for."""
    names = set()
    for file in [met, *out.glob("*.tables")]:
        lines = (line.removeprefix("- ") for line in file.read_text().splitlines() if line.startswith("- "))
        names |= {name for name in lines if DRIVER.match(name)}
    source = "".join(f"int {name}(void) {{ return 100; }}\n" for name in sorted(names))
    folder.mkdir(exist_ok=True)
    run("gcc", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-x", "c", "-", "-o", folder / "libcuda.so.1", input=source.encode())


# Loads each library whose path comes in, in a process of its own that has torch already.
LOAD = """
import ctypes, json, os, sys
import torch
for line in sys.stdin:
    path = line.rstrip()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            ctypes.CDLL(path, mode=os.RTLD_NOW)
            said = ""
        except OSError as error:
            said = str(error)
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    said = b""
    while part := os.read(read, 65536):
        said += part
    os.close(read)
    status = os.waitpid(child, 0)[1]
    print(json.dumps(said.decode() if status == 0 else f"status {status}"), flush=True)
"""


def outcomes(folder, tables, out):
    folder, out = pathlib.Path(folder), pathlib.Path(out)
    python = folder / "bin/python"
    asked = "import sys, sysconfig; print(sysconfig.get_path('purelib')); print(sys._base_executable)"
    said = run(python, "-c", asked, capture_output=True, text=True).stdout.split()
    site, interpreter = pathlib.Path(said[0]), pathlib.Path(said[1]).resolve()
    out.mkdir(parents=True, exist_ok=True)
    # What every library meets: torch and its libraries, the interpreter, the C and C++ libraries of this machine.
    met = out / "met.tables"
    with open(met, "w") as file:
        run(tables, site, *libraries(site), interpreter, *system(), stdout=file)
    stub(folder / "stub", out.parent / "out-wheels", met)
    environment = dict(os.environ, LD_LIBRARY_PATH=str(folder / "stub"))
    loader = subprocess.Popen([python, "-c", LOAD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

    def loaded(file):
        loader.stdin.write(f"{file}\n")
        loader.stdin.flush()
        return json.loads(loader.stdout.readline())

    answers, before = {}, set(site.iterdir())
    for wheel in sorted((out.parent / "wheels").glob("*.whl")):
        files, own = unpacked(wheel, site)
        said = {str(file.relative_to(site)): loaded(file) for file in own}
        answers[wheel.name] = said
        packed(files, site, before)
        print(wheel.name, sum(1 for text in said.values() if text), "of", len(said), "fail", flush=True)
    loader.stdin.close()
    loader.wait()
    (out / "outcomes.json").write_text(json.dumps(answers, indent=1, sort_keys=True))


def system():
    """The libraries of the loader's own folders."""
    folder = pathlib.Path("/usr/lib") / sysconfig.get_config_var("MULTIARCH")
    return [path for path in sorted(folder.glob("*.so*")) if path.is_file() and is_library(path)]


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["wheels", folder, tables, out, *packages]:
            wheels(folder, tables, out, packages)
        case ["install", torch, folder]:
            install(torch, folder)
        case ["outcomes", folder, tables, out]:
            outcomes(folder, tables, out)
        case ["remove", folder]:
            shutil.rmtree(folder)
        case _:
            sys.exit(__doc__)
