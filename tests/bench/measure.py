#!/usr/bin/env python3
"""Measures envforge beside hand-written Dockerfiles with pip and with uv and the same packages, in one run, as ratios.

    cargo build --release && python3 tests/bench/measure.py pytorch-cuda:2.8-cu128

All images stand on the same present base, all downloads come from a warm cache, all hold bytecode; envforge's base and
system layer are known, and its checks are timed apart (its own `--json` says so), except in the last row: from a changed
envforge.toml to the new tag, its lock, its image, its checks and `import torch` among them. The caches of digests, file
lists and byte code are emptied before the first of its two full builds. The Dockerfiles of pip and uv install the
distribution's packages again, as `--no-cache` of one step cannot be had; their seconds without that step are printed too.
Needs Docker with BuildKit and about 25 GB of disk; removes the images it made. Prints a Markdown table.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
ENVFORGE = ROOT / "target" / "release" / "envforge"
# Debian's client builds with BuildKit by itself; newer ones need a plugin that may be missing.
DOCKER = "/usr/bin/docker" if os.path.exists("/usr/bin/docker") else "docker"
PIP_TAG = "bench-pip"  # a name that the Docker tests do not take for one of theirs
PURE = "humanize==4.15.0"
BEFORE = "tabulate"  # what the project had already


def run(command, **options):
    """Runs a command to its end; its output is shown only if it fails. Gives seconds and stdout."""
    start = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, **options)
    seconds = time.monotonic() - start
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed ({done.returncode}):\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return seconds, done.stdout


def plan_milliseconds(spec, runs=60):
    """Median of the whole process, host detection aside."""
    environment = {**os.environ, "ENVFORGE_DRIVER": "570.124.06", "ENVFORGE_GPU": "NVIDIA H100 80GB HBM3"}
    times = [run([ENVFORGE, "plan", spec], env=environment)[0] for _ in range(runs)]
    return statistics.median(times) * 1000


def large_plan_seconds(count=10_000):
    """`plan` of a project with that many requirements."""
    with tempfile.TemporaryDirectory() as folder:
        lines = "".join(f"package-{number} >= 1.{number}\n" for number in range(count))
        pathlib.Path(folder, "r.txt").write_text(lines)
        text = "schema = 1\nspec = 'pytorch-cuda:2.8-cu128'\npackages = { requirements = ['r.txt'] }\n"
        pathlib.Path(folder, "envforge.toml").write_text(text)
        return run([ENVFORGE, "plan", "--target", "any"], cwd=folder)[0]


def pip_dockerfile(folder, base, lock, extra):
    """What an experienced engineer writes by hand: apt in one RUN, pip with a cache mount in one RUN."""
    wheels = "\n".join(f"{wheel['name']}=={wheel['version']}" for wheel in lock["wheels"])
    (folder / "requirements.txt").write_text(wheels + "\n" + "".join(f"{name}\n" for name in extra))
    debs = " ".join(deb["name"] for deb in lock["system"])
    ca = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")
    shutil.copy(ca, folder / "ca.crt")
    (folder / "Dockerfile").write_text(f"""FROM {base}
RUN --mount=type=cache,target=/var/cache/apt,sharing=locked --mount=type=cache,target=/var/lib/apt,sharing=locked \\
    rm -f /etc/apt/apt.conf.d/docker-clean && apt-get update && \\
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends {debs} python3-venv
RUN --mount=type=cache,target=/root/.cache/pip \\
    --mount=type=bind,source=ca.crt,target=/etc/ssl/certs/ca-certificates.crt \\
    --mount=type=bind,source=requirements.txt,target=/requirements.txt \\
    python3 -m venv /opt/env && PIP_CERT=/etc/ssl/certs/ca-certificates.crt /opt/env/bin/pip install -r /requirements.txt
""")


def uv_dockerfile(folder, base, lock, extra):
    """The same with uv, whose cache mount holds unpacked wheels; it compiles byte code as pip does."""
    pip_dockerfile(folder, base, lock, extra)
    uv = next(wheel for wheel in lock["wheels"] if wheel["name"] == "uv")
    text = (folder / "Dockerfile").read_text().split("RUN --mount=type=cache,target=/root/.cache/pip")[0]
    # uv itself comes by pip in a step of its own, which is cached.
    (folder / "Dockerfile").write_text(f"""{text}RUN --mount=type=bind,source=ca.crt,target=/etc/ssl/certs/ca-certificates.crt \\
    python3 -m venv /opt/uv && PIP_CERT=/etc/ssl/certs/ca-certificates.crt /opt/uv/bin/pip install uv=={uv['version']}
RUN --mount=type=cache,target=/root/.cache/uv \\
    --mount=type=bind,source=ca.crt,target=/etc/ssl/certs/ca-certificates.crt \\
    --mount=type=bind,source=requirements.txt,target=/requirements.txt \\
    python3 -m venv /opt/env && SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt {index_variables()} \\
    /opt/uv/bin/uv pip install --python /opt/env/bin/python --compile-bytecode --link-mode copy -r /requirements.txt
""")


def index_variables():
    """The package index of this host's pip, for uv, which does not read pip's settings."""
    found = subprocess.run(["pip", "config", "get", "global.index-url"], capture_output=True, text=True).stdout.strip()
    return f"UV_DEFAULT_INDEX={found}" if found else ""


def pip_build(folder, no_cache):
    command = [DOCKER, "build", "-q", "-t", PIP_TAG, *(["--no-cache"] if no_cache else []), folder]
    return run(command, env={**os.environ, "DOCKER_BUILDKIT": "1"})[0]


def envforge_build(spec, lockfile, *options):
    seconds, out = run([ENVFORGE, "build", spec, "--lockfile", lockfile, "--json", *options])
    return seconds, json.loads(out)


def project_build(folder, spec, packages):
    """Seconds of the whole process, and what it says, for a project with these packages."""
    (folder / "envforge.toml").write_text(
        f'schema = 1\nname = "bench"\nspec = {json.dumps(spec)}\n[packages]\npython = {json.dumps(packages)}\n'
    )
    seconds, out = run([ENVFORGE, "build", "--json"], cwd=folder)
    return seconds, json.loads(out)


def cache_folder():
    """envforge's cache."""
    folder = os.environ.get("ENVFORGE_CACHE_DIR")
    return pathlib.Path(folder) if folder else pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "envforge"


def record_folders():
    """The directories of records, one for each state directory that used the cache."""
    return [folder / "layers" for folder in (cache_folder() / "records").glob("*")]


def forget_layers():
    """Empties the caches of digests, lists and byte code of wheels; base and system layer stay."""
    for folder in record_folders():
        for name in ("digests", "wheels", "byte-code-2"):
            shutil.rmtree(folder / name, ignore_errors=True)


def full_build(spec, lockfile, image):
    """Seconds of a build from the start to the image on the engine, which has none of its layers."""
    run(["docker", "rmi", "-f", image])
    total, built = envforge_build(spec, lockfile)
    assert built["image"] == image, f"{built['image']} instead of {image}: the lock must give the same configuration"
    return total - built["seconds"]["checks"] - built["seconds"]["content"], built


def folder_bytes(folder):
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def kept_bytes():
    """Bytes of the layers that containers made, which lie among the downloads."""
    # The first line of a record is its seal.
    records = [json.loads(file.read_text().split("\n", 1)[1]) for folder in record_folders() for file in folder.glob("*.json")]
    layers = {layer["sha256"]: layer["size"] for record in records if isinstance(record, list) for layer in record}
    return sum(layers.values())


def forget_pip_layers():
    """Removes the pip image and the layers its steps left in BuildKit's cache; downloads stay (a cache mount)."""
    subprocess.run(["docker", "rmi", "-f", PIP_TAG], capture_output=True)
    listed = run(["docker", "system", "df", "-v", "--format", "{{json .BuildCache}}"])[1]
    for record in json.loads(listed):
        if record["CacheType"] == "regular" and "/requirements.txt" in record.get("Description", ""):
            subprocess.run(["docker", "builder", "prune", "-f", "--filter", f"id={record['ID']}"], capture_output=True)


def image_bytes(reference):
    return int(run(["docker", "image", "inspect", "-f", "{{.Size}}", reference])[1])


def measure_theirs(folder, base, lock, is_warm):
    """Seconds of the pip build, of its step alone, with one package more, of uv's step, and the size of pip's image."""
    pip_dockerfile(folder, base, lock, [])
    if not is_warm:
        pip_build(folder, no_cache=True)  # warms pip's cache
        forget_pip_layers()
    pip = pip_build(folder, no_cache=True)
    size = image_bytes(PIP_TAG) / 1e9
    forget_pip_layers()
    pip_dockerfile(folder, base, lock, [PURE])
    pip_more = pip_build(folder, no_cache=False)  # its apt layer is cached, pip's is not
    forget_pip_layers()
    uv_dockerfile(folder, base, lock, [])
    pip_build(folder, no_cache=False)  # warms uv's cache, and the layers below its step
    forget_pip_layers()
    uv = pip_build(folder, no_cache=False)
    forget_pip_layers()
    pip_dockerfile(folder, base, lock, [])
    pip_step = pip_build(folder, no_cache=False)  # its apt layer is cached: what envforge's full build is beside
    forget_pip_layers()
    return {"pip": pip, "step": pip_step, "more": pip_more, "uv": uv, "size": size}


def compared(name, ours, theirs, bound, unit="s", digits=0):
    """A row with the ratio; without theirs, which was not measured, a row of ours alone."""
    mine = f"{ours:.{digits}f} {unit}"
    if theirs is None:
        return (name, mine, "", "", bound)
    ratio = ours / theirs
    return (name, mine, f"{theirs:.{2 if unit == 'GB' else 0}f} {unit}", f"{ratio:.{3 if ratio < 0.1 or unit == 'GB' else 2}f}", bound)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("spec")
    arguments.add_argument("--warm", action="store_true", help="pip's download cache is warm already")
    arguments.add_argument("--ours", action="store_true", help="leave pip and uv out: seconds without ratios")
    arguments = arguments.parse_args()
    spec = arguments.spec
    rows = [("`plan`, whole process", f"{plan_milliseconds(spec):.1f} ms", "", "", "10 ms")]
    rows.append(("`plan` with 10,000 requirements", f"{large_plan_seconds():.2f} s", "", "", "1 s"))
    with tempfile.TemporaryDirectory(prefix="envforge-bench-") as temp:
        temp = pathlib.Path(temp)
        lockfile, folder = temp / "envforge.lock", temp / "pip"
        folder.mkdir()
        made = []
        try:
            _, first = envforge_build(spec, lockfile)  # warms the caches
            made.append(first["image"])
            lock = tomllib.loads(lockfile.read_text())
            base = first["base"]
            theirs = {}
            if not arguments.ours:
                theirs = measure_theirs(folder, base, lock, arguments.warm)
            forget_layers()
            cold, built = full_build(spec, lockfile, first["image"])
            warm, built = full_build(spec, lockfile, first["image"])
            size = image_bytes(built["image"])
            for name, ours, bound in (("cold", cold, "0.45"), ("warm", warm, "0.40")):
                rows.append(compared(f"full build, layer caches {name}", ours, theirs.get("pip"), bound))
                if theirs:
                    rows.append(compared("the same beside pip's step alone", ours, theirs["step"], ""))
                    rows.append(compared("the same beside uv's step alone", ours, theirs["uv"], "1"))
            extra = folder_bytes(cache_folder() / "records") + kept_bytes()
            rows.append(("disk beside wheels and engine", f"{extra / 1e9:.2f} GB", "", "", "1 GB"))
            rows.append(compared("image size", size / 1e9, theirs.get("size"), "1.0", "GB", 2))
            rows.append(("its checks, apart", f"{built['seconds']['checks']:.0f} s", "", "", ""))
            project = temp / "project"
            project.mkdir()
            made.append(project_build(project, spec, [BEFORE])[1]["image"])
            more, added = project_build(project, spec, [BEFORE, PURE])
            made.append(added["image"])
            image = added["seconds"]["build"]
            rows.append(compared("one small package more, the image", image, theirs.get("more"), "1.5 s", digits=1))
            rows.append(compared("one small package more, to the new tag", more, theirs.get("more"), "4 s", digits=1))
        finally:
            for image in dict.fromkeys([*made, PIP_TAG]):
                subprocess.run(["docker", "rmi", "-f", image], capture_output=True)
    print("| measurement | envforge | pip Dockerfile | ratio | bound |\n|---|---|---|---|---|")
    for row in rows:
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
