#!/usr/bin/env python3
"""The matrix against the live package index: random questions that uv answers too, and random rows against the wheels themselves.

    python3 tests/live/draws.py --program target/debug/envforge [--seed N] [--draws 200] [--rows 40] [--record docs/live-check.json]

A draw is a product, one of its releases, a Python and a processor. The program's `plan` says yes, no or not known; uv resolves what the row
installs for that Python, that processor and the glibc of the base, wheels only. A yes that uv refuses is a false yes, a no that uv resolves with
CUDA is a false no, but for a wheel for every Python whose publisher does not name this one: that is not known. A row is compared with the tags and
METADATA of its wheels. Prints the seed first: the same seed asks the same questions of the same rows. Ends with 1 if an answer is false, a row
differs, more than a tenth is not known, or uv leaves more than a twentieth undecided; with 3 if the index fails. uv is taken from PATH, or installed
by pip into a folder that is removed. After `--record`, `maintain docs docs/src/reference` writes the page that shows it.
"""
import argparse
import concurrent.futures
import datetime
import io
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import urllib.error
import urllib.parse
import urllib.request
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MACHINES = {"x86_64": "linux/amd64", "aarch64": "linux/arm64"}
# uv's names of platforms end here.
NEWEST_GLIBC = 40
TAIL = 256 << 10
# A resolver that goes back through every release of a package takes minutes.
PATIENCE = 300
VERSION = re.compile(r"(\d+(?:\.\d+)*)(?:\.post(\d+))?$")


class IndexFails(Exception):
    """The index gave no answer: nothing is known of the matrix."""


def key(version):
    """The order of releases; `None` for a preview and for a local variant."""
    found = VERSION.match(version)
    if not found:
        return None
    numbers = [int(part) for part in found.group(1).split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return numbers, int(found.group(2) or -1)


class Rows:
    """The rows of the folder `compat`."""

    def __init__(self, folder):
        self.products, self.variants, self.bases, self.reasons = {}, [], {}, []
        for path in sorted(folder.glob("*.toml")):
            table = tomllib.loads(path.read_text())
            for product in table.get("product", []):
                if product.get("rows") and product.get("package"):
                    self.products[product["framework"]] = product
            self.variants += [row for row in table.get("variant", []) if row["channel"] == "default" and row["verified"]]
            self.bases.update({base["python"]: base["glibc"] for base in table.get("base", [])})
            self.reasons += table.get("known_version", [])

    def package(self, row):
        return row.get("package") or self.products[row["framework"]]["package"]

    def install(self, row):
        return row.get("install") or [f"{self.package(row)}=={row['version']}"]

    def of(self, framework, version):
        return [row for row in self.variants if row["framework"] == framework and row["version"] == version]

    def has_reason(self, framework, version):
        """Whether a row says why the release has none."""
        own = [row for row in self.reasons if row["framework"] == framework]
        return any(key(row["version"]) <= key(version) <= key(row.get("last", row["version"])) for row in own)

    def like(self, framework, version):
        """Rows of the release before it, for its own requirement alone: `vllm==0.3.1`."""
        older = [row for row in self.variants if row["framework"] == framework and key(row["version"]) < key(version)]
        last = max((key(row["version"]) for row in older), default=None)
        near = [row for row in older if key(row["version"]) == last]
        return [{**row, "version": version, "install": [re.split("==", self.install(row)[0])[0] + f"=={version}"]} for row in near]


class Index:
    """The package index that pip asks on this machine."""

    def __init__(self):
        address = os.environ.get("ENVFORGE_INDEX") or os.environ.get("PIP_INDEX_URL")
        self.set = address
        if not address:
            code = "from pip._internal.models.index import PyPI; print(PyPI.simple_url)"
            address = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()
        self.address = address.rstrip("/") + "/"
        self.pages, self.texts, self.names = {}, {}, {}

    def ask(self, address, headers):
        try:
            with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=120) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise IndexFails(f"status {error.code}") from error
        except OSError as error:
            raise IndexFails(str(error)) from error

    def wheels(self, package):
        """The wheels of a package that were not yanked: name, address, size."""
        if package not in self.pages:
            kind = {"Accept": "application/vnd.pypi.simple.v1+json"}
            page = self.ask(f"{self.address}{package}/", kind)
            files = json.loads(page)["files"] if page else []
            base = f"{self.address}{package}/"
            self.pages[package] = [
                (file["filename"], urllib.parse.urljoin(base, file["url"]), file.get("size"))
                for file in files
                if file["filename"].endswith(".whl") and not file.get("yanked")
            ]
        return self.pages[package]

    def releases(self, package):
        versions = {name.split("-")[1] for name, _, _ in self.wheels(package)}
        return {version for version in versions if key(version)}

    def archive(self, wheel):
        name, address, size = wheel
        if size is None:
            raise IndexFails("the page lists no sizes")
        return zipfile.ZipFile(Ranges(self, address, size))

    def metadata(self, wheel):
        name = wheel[0]
        if name not in self.texts:
            with self.archive(wheel) as archive:
                inside = archive.namelist()
                path = next(one for one in inside if one.endswith(".dist-info/METADATA"))
                self.names[name] = inside
                self.texts[name] = archive.read(path).decode("utf-8", "replace").split("\n\n")[0]
        return self.texts[name]


class Ranges(io.RawIOBase):
    """A remote file that is read in ranges, its end first."""

    def __init__(self, index, address, size):
        super().__init__()
        self.index, self.address, self.size, self.at, self.parts = index, address, size, 0, []
        self.take(max(0, size - TAIL), size)

    def take(self, start, end):
        part = self.index.ask(self.address, {"Range": f"bytes={start}-{end - 1}"})
        if part is None:
            raise IndexFails("a wheel of the page is not there")
        self.parts.append((start, part))

    def seekable(self):
        return True

    def readable(self):
        return True

    def tell(self):
        return self.at

    def seek(self, offset, whence=0):
        self.at = offset + (0, self.at, self.size)[whence]
        return self.at

    def read(self, count=-1):
        count = min(self.size - self.at if count is None or count < 0 else count, self.size - self.at)
        if count <= 0:
            return b""
        for start, part in self.parts:
            if start <= self.at and self.at + count <= start + len(part):
                found = part[self.at - start:self.at - start + count]
                self.at += count
                return found
        self.take(self.at, min(self.size, self.at + max(count, TAIL)))
        return self.read(count)


def fits(name, python, machine):
    """Whether a wheel is for this Python and processor on Linux."""
    pythons, abis, platforms = name.removesuffix(".whl").split("-")[-3:]
    if platforms != "any" and not any(one.endswith(f"_{machine}") and "linux" in one and "musl" not in one for one in platforms.split(".")):
        return False
    minor = int(python.split(".")[1])
    if "abi3" in abis.split("."):
        return any(int(one[3:]) <= minor for one in pythons.split(".") if one.startswith("cp3"))
    own = f"cp3{minor}"
    if own in abis.split(".") or f"{own}m" in abis.split("."):
        return own in pythons.split(".")
    return "none" in abis.split(".") and any(one in pythons.split(".") for one in ("py3", own, f"py3{minor}"))


def glibc(name):
    """The glibc that a wheel's tags ask for: the least of them."""
    old = {"manylinux1": 5, "manylinux2010": 12, "manylinux2014": 17}
    found = []
    for one in name.removesuffix(".whl").split("-")[-1].split("."):
        word = re.match(r"manylinux_2_(\d+)_", one)
        found += [int(word.group(1))] if word else [minor for start, minor in old.items() if one.startswith(f"{start}_")]
    return min(found, default=0)


class Judge:
    """The program's answers and uv's."""

    def __init__(self, rows, index, program, uv):
        self.rows, self.index, self.program, self.uv = rows, index, program, uv

    def plan(self, draw):
        """yes, no or not known, and why."""
        framework, version, python, machine = draw
        spec = f"{self.rows.products[framework]['name']}:{version}-py{python}"
        run = subprocess.run(
            [self.program, "plan", spec, "--platform", MACHINES[machine], "--target", "any", "--no-source", "--json"],
            capture_output=True, text=True, cwd=tempfile.gettempdir(),
        )
        if run.returncode not in (0, 1):
            raise SystemExit(f"{spec}: {run.stderr}")
        said = json.loads(run.stdout)
        if run.returncode == 0:
            return ("yes" if said["verdict"] == "ok" else "not known"), said["name"], said["channel"]
        why = "; ".join(one["text"] for one in said["refusals"])
        rules = {one["rule"] for one in said["refusals"]}
        return ("not known" if rules & {"unknown-version", "unknown-gpu-code"} else "no"), why, None

    def resolved(self, requirements, python, machine):
        """What uv chooses, wheels only: a list of names with versions, or `None` and why."""
        minor = min(int(self.rows.bases[python].split(".")[1]), NEWEST_GLIBC)
        platform = f"{machine}-manylinux_2_{max(minor, 28)}"
        command = [self.uv, "pip", "compile", "-", "--quiet", "--no-header", "--no-annotate", "--no-config", "--only-binary", ":all:"]
        # Any interpreter will do: without one of that version, uv would fetch it.
        command += ["--python", sys.executable, "--no-python-downloads"]
        command += ["--python-version", python, "--python-platform", platform]
        command += ["--default-index", self.index.set] if self.index.set else []
        run = subprocess.run(command, input="\n".join(requirements) + "\n", capture_output=True, text=True, timeout=PATIENCE)
        if run.returncode == 0:
            return [line for line in run.stdout.split() if "==" in line], None
        if "No solution found" not in run.stderr and "no wheels" not in run.stderr.lower():
            raise IndexFails(run.stderr.strip()[-400:])
        return None, " ".join(run.stderr.split())[:400]

    def has_cuda(self, row, chosen, python, machine):
        """Whether the chosen packages have CUDA for the processor: libraries beside the framework, or its own wheel."""
        # TensorFlow without CUDA takes the libraries, too.
        if row["framework"] == "tensorflow":
            return self.build_info(row, python, machine)
        package = self.rows.package(row)
        # What runs in torch has the CUDA of torch, whatever else it brings.
        torch = next((one.split("==")[1] for one in chosen if one.startswith("torch==")), None)
        if torch and package != "torch":
            return self.has_library("torch", torch, python, machine)
        if any(re.match(r"(nvidia-(cuda-runtime|cublas)|cuda-toolkit|jax-cuda\d+-plugin)", one) for one in chosen):
            return True
        if package.endswith(("-gpu", "-cu11", "-cu12", "-cu13")) or re.search(r"-cuda\d", package):
            return True
        return self.has_library(package, row["version"], python, machine)

    def has_library(self, package, version, python, machine):
        """Whether a wheel has a library of CUDA kernels by its name."""
        wheel = self.wheel(package, version, python, machine)
        if wheel is None:
            return False
        self.index.metadata(wheel)
        return any(re.search(r"libtorch_cuda|libcudart|warp\.so", one) for one in self.index.names[wheel[0]])

    def build_info(self, row, python, machine):
        for package in (self.rows.package(row), "tensorflow-cpu-aws"):
            wheel = self.wheel(package, row["version"], python, machine)
            if wheel:
                with self.index.archive(wheel) as archive:
                    paths = [one for one in archive.namelist() if one.endswith("platform/build_info.py")]
                    return any(re.search(rb"is_cuda_build['\"]?[,:] *True", archive.read(path)) for path in paths)
        return False

    def wheel(self, package, version, python, machine):
        of = (one for one in self.index.wheels(package) if key(one[0].split("-")[1]) == key(version) and fits(one[0], python, machine))
        return next(of, None)

    def judged(self, draw):
        """The verdict on one draw: its column of the table, the draw, and why."""
        try:
            return self.verdict(draw)
        except subprocess.TimeoutExpired:
            return "undecided", " ".join(draw), f"uv gave no answer within {PATIENCE} s"

    def verdict(self, draw):
        framework, version, python, machine = draw
        answer, why, channel = self.plan(draw)
        label = f"{framework} {version} Python {python} {machine}"
        rows = self.rows.of(framework, version)
        if answer == "not known":
            # A reason for the lack of a row is an answer where uv refuses, too.
            has_reason = not rows and self.rows.has_reason(framework, version)
            return ("right" if has_reason and not self.goes(self.rows.like(framework, version), python, machine) else answer), label, why
        if answer == "yes":
            if channel != "default":
                return "elsewhere", label, why
            named = [row for row in rows if row["machine"] == machine and f"-{row['cuda']}-" in why]
            for row in named:
                chosen, refusal = self.resolved(self.rows.install(row), python, machine)
                if chosen is None:
                    return "false yes", label, refusal
                if not self.has_cuda(row, chosen, python, machine):
                    return "false yes", label, "what uv resolves has no CUDA"
            return ("right" if named else "false yes"), label, why
        goes = self.goes(rows, python, machine)
        if goes and all(self.is_undeclared(row, python, machine) for row in rows):
            return "not known", label, f"its publisher does not name this Python, and its wheel is for all; {why}"
        return ("false no", label, f"{why}; uv resolves {goes}") if goes else ("right", label, why)

    def is_undeclared(self, row, python, machine):
        """Whether a wheel for every Python lacks this one among those that its METADATA names: it installs, and nobody says that it runs."""
        wheel = self.wheel(self.rows.package(row), row["version"], python, machine)
        if wheel is None or not wheel[0].split("-")[-3:-1] == ["py3", "none"]:
            return False
        named = re.findall(r"^Classifier: Programming Language :: Python :: (3\.\d+)$", self.index.metadata(wheel), re.M)
        return bool(named) and python not in named

    def goes(self, rows, python, machine):
        """The first requirements of these rows that uv resolves with CUDA; `None`: it refuses all."""
        for install, row in {tuple(self.rows.install(row)): row for row in rows}.items():
            chosen, _ = self.resolved(install, python, machine)
            if chosen is not None and self.has_cuda(row, chosen, python, machine):
                return " ".join(install)
        return None


def drawn(rows, index, chance, count):
    """Questions: releases that have rows, and those of the index after the oldest of them."""
    pool = {}
    for framework, product in sorted(rows.products.items()):
        own = [row for row in rows.variants if row["framework"] == framework]
        packages = {rows.package(row) for row in own}
        with_rows = {row["version"] for row in own}
        oldest = min(key(version) for version in with_rows)
        listed = {version for package in packages for version in index.releases(package) if key(version) >= oldest}
        known = {json.dumps(key(version)) for version in with_rows}
        pool[framework] = sorted(with_rows | {version for version in listed if json.dumps(key(version)) not in known})
    pythons = sorted(rows.bases, key=key)
    frameworks = sorted(pool)
    draws = set()
    while len(draws) < count:
        framework = chance.choice(frameworks)
        draws.add((framework, chance.choice(pool[framework]), chance.choice(pythons), chance.choice(sorted(MACHINES))))
    return sorted(draws)


def differences(rows, index, row):
    """What a row says against the tags and METADATA of its wheels."""
    package, machine, found = rows.package(row), row["machine"], []
    wheels = [one for one in index.wheels(package) if key(one[0].split("-")[1]) == key(row["version"])]
    if not wheels:
        return ["no such release"] if row["status"] != "unlisted" else []
    for python in row["python"]:
        if not any(fits(name, python, machine) for name, _, _ in wheels):
            found.append(f"python: no wheel for {python}")
    fitting = [one for one in wheels if any(fits(one[0], python, machine) for python in row["python"])]
    if not fitting:
        return found
    least = int(row["min_glibc"].split(".")[1])
    if glibc(fitting[0][0]) > least:
        found.append(f"min_glibc: {row['min_glibc']}, tag of {fitting[0][0]}")
    text = index.metadata(fitting[0])
    asked = re.search(r"^Requires-Python: *(.*)$", text, re.M)
    for python in row["python"]:
        if asked and not accepts(asked.group(1), f"{python}.99" if ">=" in asked.group(1) else python):
            found.append(f"python: {python}, METADATA {asked.group(1)}")
    inside = re.search(r"\[([^]]*)]", rows.install(row)[0])
    extras = inside.group(1).split(",") if inside else []
    for field, start in (("cudnn", "nvidia-cudnn-cu"), ("nccl", "nvidia-nccl-cu"), ("triton", "triton")):
        for line in re.findall(r"^Requires-Dist: *(.*)$", text, re.M):
            says = versions_of(line, start, machine, extras)
            if says and field in row and not accepts(says, row[field]):
                found.append(f"{field}: {row[field]}, METADATA {says}")
    return found


def versions_of(line, start, machine, extras):
    """The versions that a requirement accepts, if it is one on this library for this processor and these extras."""
    what, _, marker = line.partition(";")
    name = re.match(r"[A-Za-z0-9._-]+", what).group(0)
    if not (name == start or (start.endswith("-cu") and name.startswith(start))):
        return None
    marker = marker.replace("'", '"')
    extra = re.search(r'extra == "([^"]*)"', marker)
    other = {"x86_64": "aarch64", "aarch64": "x86_64"}[machine]
    if (extra and extra.group(1) not in extras) or f'platform_machine == "{other}"' in marker or 'sys_platform == "win32"' in marker:
        return None
    return what[len(name):].strip().strip("()").replace(" ", "")


def accepts(conditions, version):
    """Whether a version meets conditions such as `<3.15,>=3.11`."""
    numbers = [int(part) for part in re.findall(r"\d+", version.split(".post")[0])]
    for condition in filter(None, (one.strip() for one in conditions.split(","))):
        sign, text = re.match(r"([<>=!~]+)\s*(.*)", condition).groups()
        bound = [int(part) for part in re.findall(r"\d+", text.split(".post")[0])]
        left = numbers + [0] * (len(bound) - len(numbers))
        if text.endswith(".*") or sign == "~=":
            same = left[:len(bound) - (sign == "~=")] == bound[:len(bound) - (sign == "~=")]
            good = same == (sign != "!=") and (sign != "~=" or left >= bound)
        else:
            right = bound + [0] * (len(left) - len(bound))
            good = {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right,
                    "==": left == right, "===": left == right, "!=": left != right}[sign]
        if not good:
            return False
    return True


def with_uv(work):
    """uv of PATH, or one that pip installs into a folder of ours."""
    found = os.environ.get("UV") or shutil.which("uv")
    if found:
        return found
    subprocess.run([sys.executable, "-m", "venv", work / "venv"], check=True)
    subprocess.run([work / "venv" / "bin" / "pip", "install", "--quiet", "uv"], check=True)
    return str(work / "venv" / "bin" / "uv")


def asked(arguments, work):
    """Asks all, prints the table, and returns what is recorded."""
    rows, index = Rows(arguments.compat), Index()
    chance = random.Random(arguments.seed)
    judge = Judge(rows, index, arguments.program.resolve(), with_uv(work))
    draws = drawn(rows, index, chance, arguments.draws)
    chosen = chance.sample(rows.variants, min(arguments.rows, len(rows.variants)))
    chosen = [row for row in chosen if row["framework"] in rows.products]
    count = {name: 0 for name in ("right", "false yes", "false no", "not known", "elsewhere", "undecided")}
    with concurrent.futures.ThreadPoolExecutor(arguments.parallel) as pool:
        for future in concurrent.futures.as_completed([pool.submit(judge.judged, draw) for draw in draws]):
            kind, label, why = future.result()
            count[kind] += 1
            if kind in ("false yes", "false no", "undecided") or arguments.verbose:
                print(f"{kind}: {label}: {why[:400]}", flush=True)
        differing = 0
        for row, found in zip(chosen, pool.map(lambda row: differences(rows, index, row), chosen)):
            label = f"{row['framework']} {row['version']} {row['cuda']} {row['machine']}"
            differing += bool(found)
            for one in found:
                print(f"row differs: {label}: {one}", flush=True)
    print(f"\n| draws | right | false yes | false no | not known | on another index | uv undecided | rows | rows that differ |\n|{'---|' * 9}")
    numbers = [len(draws), *count.values(), len(chosen), differing]
    print("| " + " | ".join(str(number) for number in numbers) + " |")
    day = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    names = ("draws", "right", "false_yes", "false_no", "not_known", "on_another_index", "undecided", "rows", "rows_that_differ")
    return {"date": day, "seed": arguments.seed, **dict(zip(names, numbers))}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "target" / "debug" / "envforge")
    parser.add_argument("--compat", type=pathlib.Path, default=ROOT / "compat", help="the rows that the program was built with")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--rows", type=int, default=40)
    parser.add_argument("--parallel", type=int, default=4)
    parser.add_argument("--record", type=pathlib.Path, help="file of the last run, which the page of the matrix shows")
    parser.add_argument("--verbose", action="store_true", help="print every draw")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="envforge-draws-") as work:
        try:
            result = asked(arguments, pathlib.Path(work))
        except IndexFails as error:
            print(f"the index fails: {error}", file=sys.stderr)
            return 3
    if arguments.record:
        arguments.record.write_text(json.dumps(result, indent=2) + "\n")
    few = result["not_known"] * 10 <= result["draws"] and result["undecided"] * 20 <= result["draws"]
    return 0 if few and not (result["false_yes"] or result["false_no"] or result["rows_that_differ"]) else 1


if __name__ == "__main__":
    sys.exit(main())
